"""Casts, comparisons and choices; each rounded once, all corners defined."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .bounds import either, same
from .dtypes import DTYPES
from .floats import wide
from .integers import unsigned
from .rounding import Array, round_to, toward_zero
from .row import CONVERSION, FUNCTION, Kind, Row

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
COMPARISONS = {name: _COMPARE[name[-2:]] for name in INTEGER_PREDICATES}
"""Of numbers or arrays, which are read without a sign for `ult` and its like."""
_Attrs = Mapping[str, Any]
_Operands = Sequence[Array]


def predicate_of(attrs: _Attrs, names: tuple[str, ...]) -> str:
    """The predicate of a comparison, which is given by its name or by its number."""
    value = attrs["predicate"]
    return value if isinstance(value, str) else names[int(value)]


def _compare_integers(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    a, b = operands
    predicate = predicate_of(attrs, INTEGER_PREDICATES)
    if predicate not in ("eq", "ne") and predicate[0] == "u":
        a, b = unsigned(a), unsigned(b)
    elif a.dtype == np.bool_:
        a, b = -a.astype(np.int8), -b.astype(np.int8)  # a signed i1 is 0 or -1
    return np.asarray(_COMPARE[predicate[-2:]](a, b))


def _compare_floats(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    x, y = map(wide, operands)
    predicate = predicate_of(attrs, FLOAT_PREDICATES)
    if predicate in ("false", "true"):
        return np.full(np.broadcast_shapes(x.shape, y.shape), predicate == "true")
    unordered = np.isnan(x) | np.isnan(y)
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    holds = _COMPARE[predicate[1:]](x, y)
    return np.asarray(holds | unordered if predicate[0] == "u" else holds & ~unordered)


def _select(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    condition, a, b = operands
    return np.where(condition, a, b).astype(a.dtype)


def _to_integer(signed: bool) -> Callable[[_Operands, str, _Attrs], Array]:
    """Towards zero; out of range saturates, NaN is 0."""

    def meaning(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
        x, dtype = wide(operands[0]), DTYPES[elem]
        if elem == "i1":
            return np.asarray(x != 0)
        info = np.iinfo(dtype if signed else f"u{dtype.itemsize}")
        whole = np.trunc(x.astype(np.float64))
        inside = (whole > float(info.min) - 1) & (whole < float(info.max) + 1) & ~np.isnan(whole)
        if info.bits == 64:  # float(max) is max + 1
            inside = (whole >= float(info.min)) & (whole < 2.0 ** (63 if signed else 64))
        converted = np.where(inside, whole, 0).astype(info.dtype)
        least, most = info.dtype.type(info.min), info.dtype.type(info.max)
        clipped = np.where(np.isnan(whole), info.dtype.type(0), np.where(whole < 0, least, most))
        return np.where(inside, converted, clipped).astype(info.dtype).view(dtype)

    return meaning


def _to_float(signed: bool) -> Callable[[_Operands, str, _Attrs], Array]:
    def meaning(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
        x = operands[0]
        if x.dtype == np.bool_ and signed:
            x = -x.astype(np.int8)
        x = x if signed else unsigned(x)
        return x.astype(DTYPES[elem]) if elem in ("f32", "f64") else round_to(_odd_from_integer(x), elem)

    return meaning


def _odd_from_integer(x: Array) -> Array:
    """An integer as f64; one with too many bits to the neighbour with an odd last bit."""
    near = x.astype(np.float64)
    if x.dtype.itemsize < 8:
        return near
    high, low = (x >> 11) << 11, x & 0x7FF  # 53 bits are exact; what is cut off stays visible in one bit
    return np.where(np.abs(near) >= 2.0**52, high.astype(np.float64) + np.where(low != 0, 1024.0, 0.0), near)


def _round(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    down = attrs.get("roundingmode") in ("toward_zero", "rtz") or attrs.get("rounding") in (0, "rtz")
    return (toward_zero if down else round_to)(wide(operands[0]), elem)


def _widen_float(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    return wide(operands[0]).astype(DTYPES[elem])


def _sign_extended(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    x = operands[0]
    return (-x.astype(np.int8) if x.dtype == np.bool_ else x).astype(DTYPES[elem])


def _zero_extended(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    dtype = DTYPES[elem]
    return unsigned(operands[0]).astype(f"u{dtype.itemsize}").view(dtype)


def _cut(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    x = operands[0]
    return np.asarray((x & 1) != 0) if elem == "i1" else x.astype(DTYPES[elem])


def _same_bits(operands: _Operands, elem: str, attrs: _Attrs) -> Array:
    return np.asarray(operands[0], order="C").view(DTYPES[elem])


CAST_ROWS = (
    Row("arith.extsi", Kind("int", "int", "wider"), 1, _sign_extended, keeps_zero=True, bounds=same),
    Row("arith.extui", Kind("int", "int", "wider"), 1, _zero_extended, keeps_zero=True, is_unsigned=True, bounds=same),
    Row("arith.trunci", Kind("int", "int", "narrower"), 1, _cut, keeps_zero=True, bounds=same),
    Row("arith.index_cast", Kind("int", "int"), 1, _sign_extended, keeps_zero=True, bounds=same),
    Row("arith.extf", Kind("float", "float", "wider"), 1, _widen_float, keeps_zero=True),
    Row("arith.truncf", Kind("float", "float", "narrower"), 1, _round, keeps_zero=True),
    Row("tt.fp_to_fp", Kind("float", "float"), 1, _round, CONVERSION, lane="arith.truncf", keeps_zero=True),
    Row("arith.sitofp", Kind("int", "float"), 1, _to_float(True), keeps_zero=True),
    Row("arith.uitofp", Kind("int", "float"), 1, _to_float(False), keeps_zero=True),
    Row("arith.fptosi", Kind("float", "int"), 1, _to_integer(True), wrong="range", keeps_zero=True),
    Row("arith.fptoui", Kind("float", "int"), 1, _to_integer(False), is_unsigned=True, wrong="range", keeps_zero=True),
    Row("arith.bitcast", Kind("any", "any", "bits"), 1, _same_bits, keeps_zero=True),
    Row("tt.bitcast", Kind("any", "any", "bits"), 1, _same_bits, lane="arith.bitcast", keeps_zero=True),
    Row("tt.int_to_ptr", Kind("int", "pointer"), 1, _same_bits, lane="arith.bitcast"),
    Row("tt.ptr_to_int", Kind("pointer", "int"), 1, _same_bits, lane="arith.bitcast"),
    Row("tt.addptr", Kind("pointer", "pointer"), 2, lane="arith.addi"),
    Row("arith.cmpi", Kind("int", "i1"), 2, _compare_integers),
    Row("arith.cmpf", Kind("float", "i1"), 2, _compare_floats),
    Row("select", Kind("any", "any"), 3, _select, is_tile=False, bounds=either),
    Row("arith.select", Kind("any", "any"), 3, _select, lane="select", bounds=either),
    Row("tt.extern_elementwise", Kind("any", "any"), 0, None, FUNCTION, lane="libdevice."),
)
