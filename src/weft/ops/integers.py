"""Operations on integers, as docs/reference/semantics.md has them: they wrap, and are defined for all operands.

The functions take Python's integers as well as arrays: folding, the analyses and the simulator share them.

>>> quotient(-7, 2, 32), quotient(7, 0, 32), left(1, 40, 32)
(-3, 0, 0)
>>> quotient(np.array([-7, 7], np.int8), np.array([2, 0], np.int8), 8)
array([-3,  0], dtype=int8)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import bounds
from .elements import ELEMENTS, Element
from .rounding import Array
from .row import DIVISION, INTEGERS, Kind, Meaning, Row

Whole = Callable[[Any, Any, int], Any]
"""A function of two integers and the bits of their type."""


def unsigned(x: Array) -> Array:
    """The same bits as unsigned integers."""
    if x.dtype == np.bool_:
        return x.view(np.uint8)
    return x if x.dtype.kind == "u" else np.asarray(x, order="C").view(f"u{x.dtype.itemsize}")


def quotient(a: Any, b: Any, bits: int) -> Any:
    """Towards zero; x / 0 is 0, the smallest value by -1 is itself."""
    divisor = b + (b == 0)
    below = a // divisor
    return (below + ((below * divisor != a) & ((a < 0) != (divisor < 0)))) * (b != 0)


def remainder(a: Any, b: Any, bits: int) -> Any:
    """The sign of the dividend; x % 0 is x."""
    return a - quotient(a, b, bits) * b


def quotient_below(a: Any, b: Any, bits: int) -> Any:
    """Rounded down; x / 0 is 0."""
    return a // (b + (b == 0)) * (b != 0)


def quotient_above(a: Any, b: Any, bits: int) -> Any:
    """Rounded up; x / 0 is 0."""
    divisor = b + (b == 0)
    below = a // divisor
    return (below + (below * divisor != a)) * (b != 0)


def left(a: Any, b: Any, bits: int) -> Any:
    """Amounts count as unsigned; those of the width and more shift everything out."""
    inside = (b >= 0) & (b < bits)
    return (a << b * inside) * inside


def right(a: Any, b: Any, bits: int) -> Any:
    """As `left`; of a signed number the sign stays."""
    inside = (b >= 0) & (b < bits)
    return a >> b * inside + (bits - 1) * (inside ^ True)


def right_unsigned(a: Any, b: Any, bits: int) -> Any:
    """As `left`."""
    inside = (b >= 0) & (b < bits)
    return (a >> b * inside) * inside


def largest(a: Any, b: Any, bits: int) -> Any:
    """The larger one."""
    return max(a, b) if isinstance(a, int) else np.maximum(a, b)


def least(a: Any, b: Any, bits: int) -> Any:
    """The smaller one."""
    return min(a, b) if isinstance(a, int) else np.minimum(a, b)


def is_wrong(row: Row, a: int, b: int, bits: int) -> bool:
    """Whether debug builds report an operation on these integers: no result is what its author meant."""
    if row.wrong == "divisor":
        return b == 0 or (not row.is_unsigned and b == -1 and a == -1 << bits - 1)
    return row.wrong == "amount" and not 0 <= b < bits


def on_integers(function: Whole, is_unsigned: bool = False) -> Meaning:
    """The meaning on arrays of a type's integers; an i1 that is true is -1, or 1 without a sign."""

    def meaning(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
        a, b = operands
        if elem == "i1":
            a, b = (unsigned(x) if is_unsigned else -x.astype(np.int8) for x in (a, b))
            return np.asarray((function(a, b, 1) & 1) != 0)
        dtype = a.dtype
        if is_unsigned:
            a, b = unsigned(a), unsigned(b)
        result = np.asarray(function(a, b, 8 * dtype.itemsize)).astype(a.dtype, copy=False)
        return result.view(dtype) if is_unsigned else result

    return meaning


def _high(signed: bool) -> Meaning:
    """The upper half of the product."""

    def meaning(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
        a, b = operands
        bits = ELEMENTS[elem].bits
        x, y = (v if signed else unsigned(v) for v in (a, b))
        if bits == 1:
            return np.zeros_like(a & b)
        if bits <= 32:
            wide = np.int64 if signed else np.uint64
            return np.asarray((x.astype(wide) * y.astype(wide) >> wide(bits)).astype(x.dtype).view(a.dtype))
        product = x.astype(object) * y.astype(object)
        high = np.frompyfunc(lambda v: (int(v) >> bits) & ((1 << bits) - 1), 1, 1)(product)
        return np.asarray(high.astype(np.uint64)).view(a.dtype)

    return meaning


def _both_halves(high: Meaning) -> Meaning:
    return lambda operands, elem, attrs: (_product(operands, elem, attrs), high(operands, elem, attrs))


_product = on_integers(lambda a, b, bits: a * b)


def _count_zeros(leading: bool) -> Meaning:
    def meaning(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
        x, bits = operands[0], ELEMENTS[elem].bits
        rest = unsigned(x)
        zeros = np.zeros(x.shape, np.int64)
        going = np.ones(x.shape, np.bool_)
        for i in range(bits):
            at = bits - 1 - i if leading else i
            going &= (rest >> rest.dtype.type(at) & rest.dtype.type(1)) == 0
            zeros += going
        return zeros.astype(x.dtype)

    return meaning


def _absolute(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
    return np.asarray(np.abs(operands[0]))


def _ones(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
    return np.asarray(np.bitwise_count(unsigned(operands[0])).astype(operands[0].dtype))


def _least_signed(e: Element) -> int:
    return -(1 << e.bits - 1)


def _greatest_signed(e: Element) -> int:
    return (1 << e.bits - 1) - 1


def _whole(name: str, function: Whole, *, is_unsigned: bool = False, **facts: Any) -> Row:
    meaning = on_integers(function, is_unsigned)
    return Row(name, INTEGERS, 2, meaning, of_integers=function, is_unsigned=is_unsigned, **facts)


def _plain(function: Callable[[Any, Any], Any]) -> Whole:
    return lambda a, b, bits: function(a, b)


def _division(name: str, function: Whole, **facts: Any) -> Row:
    return _whole(name, function, cost=DIVISION, wrong="divisor", **facts)


_AND: dict[str, Any] = {"bounds": bounds.conjunction, "zero": "0|0", "ones": "x|x", "same": "x"}
_OR: dict[str, Any] = {"bounds": bounds.other_bits, "zero": "x|x", "ones": "-1|-1", "same": "x"}
_MOST: dict[str, Any] = {"is_unsigned": True, "commutes": True, "bounds": bounds.corners(), "zero": "x|x", "same": "x"}
_LEAST: dict[str, Any] = {"is_unsigned": True, "commutes": True, "bounds": bounds.corners(), "zero": "0|0", "same": "x"}

INTEGER_ROWS = (
    _whole("arith.addi", _plain(operator.add), commutes=True, neutral=lambda e: 0, zero="x|x", bounds=bounds.corners()),
    _whole("arith.subi", _plain(operator.sub), zero="x|", same="0", bounds=bounds.corners()),
    _whole("arith.muli", _plain(operator.mul), commutes=True, neutral=lambda e: 1, zero="0|0", one="x|x",
           bounds=bounds.corners(lambda a, b: a.multiple * b.multiple)),
    _whole("arith.andi", _plain(operator.and_), commutes=True, neutral=lambda e: -1, **_AND),
    _whole("arith.ori", _plain(operator.or_), commutes=True, neutral=lambda e: 0, **_OR),
    _whole("arith.xori", _plain(operator.xor), commutes=True, neutral=lambda e: 0, **{**_OR, "ones": "", "same": "0"}),
    _division("arith.divsi", quotient, bounds=bounds.quotient, one="x|"),
    _division("arith.divui", quotient, is_unsigned=True, bounds=bounds.quotient, one="x|"),
    _division("arith.remsi", remainder, bounds=bounds.remainder, one="0|"),
    _division("arith.remui", remainder, is_unsigned=True, bounds=bounds.remainder, one="0|"),
    _division("arith.floordivsi", quotient_below, bounds=bounds.quotient, one="x|"),
    _division("arith.ceildivsi", quotient_above, bounds=bounds.quotient, one="x|"),
    _division("arith.ceildivui", quotient_above, is_unsigned=True, bounds=bounds.quotient, one="x|"),
    _whole("arith.shli", left, wrong="amount", zero="x|0", bounds=bounds.left),
    _whole("arith.shrsi", right, wrong="amount", bounds=bounds.right, zero="x|0"),
    _whole("arith.shrui", right_unsigned, is_unsigned=True, wrong="amount", bounds=bounds.right, zero="x|0"),
    _whole("arith.maxsi", largest, commutes=True, neutral=_least_signed, bounds=bounds.corners(), same="x"),
    _whole("arith.minsi", least, commutes=True, neutral=_greatest_signed, bounds=bounds.corners(), same="x"),
    _whole("arith.maxui", largest, neutral=lambda e: 0, **_MOST),
    _whole("arith.minui", least, neutral=lambda e: -1, **_LEAST),
    Row("arith.mulhui", INTEGERS, 2, _high(False), is_tile=False, commutes=True),
    Row("arith.mulhsi", INTEGERS, 2, _high(True), is_tile=False, commutes=True),
    Row("tt.mulhiui", INTEGERS, 2, _high(False), lane="arith.mulhui", commutes=True),
    Row("arith.mului_extended", Kind("int", "int", "halves"), 2, _both_halves(_high(False))),
    Row("arith.mulsi_extended", Kind("int", "int", "halves"), 2, _both_halves(_high(True))),
    Row("math.absi", INTEGERS, 1, _absolute, keeps_zero=True, bounds=bounds.magnitude),
    Row("math.ctpop", INTEGERS, 1, _ones, keeps_zero=True, bounds=bounds.count_of_bits),
    Row("math.ctlz", INTEGERS, 1, _count_zeros(True), bounds=bounds.count_of_bits),
    Row("math.cttz", INTEGERS, 1, _count_zeros(False), bounds=bounds.count_of_bits),
)  # fmt: skip
