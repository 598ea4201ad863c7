"""The affine map over F2 that a CuTe layout is, or where it is none. The decision is exact.

A coordinate is its bits, so the size of every mode must be a power of two. Without a swizzle, an offset is a sum of
what the bits that are set add, v_i each, and o. Such a sum is linear (o = 0) exactly when no two of the v_i have a bit
in common: if two have, their sum carries where an xor does not; if none have, it never does. So (4,8):(8,1) is linear,
(4,8):(9,1) is not, and neither is any padding that is no power of two. A swizzle is a linear bijection and changes
nothing about that.

With an offset or negative strides, and for a layout of a layout, carries can cancel: 4:-1 from 3 on is 3, 2, 1, 0, and
that is x ^ 3. Then the offsets of all coordinates are compared with the affine map that those of single bits make.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from weft.base import LayoutError

from ..affine import AffineLayout
from ..linear import LinearLayout


class _Function(Protocol):
    """A function from coordinates to offsets (layout.py)."""

    def modes(self) -> list[list[tuple[int, int]]]: ...

    def at(self, index: Any) -> Any: ...


MOST_BITS = 22
"""Of coordinates, where all of them are compared."""


def affine_of(layout: _Function, names: Sequence[str], out_dim: str) -> AffineLayout:
    """The affine map from one dimension for each outer mode; LayoutError, with the reason, where there is none."""
    bits = _bits(layout, names)
    sums = _sums(layout)
    if sums is not None and sums.offset == 0 and not _shared(sums.columns):
        columns, constant = [sums.swizzle(v) if sums.swizzle else v for v in sums.columns], 0
    elif sums is not None and sums.offset == 0 and min(sums.columns) >= 0:
        raise _carries(layout, bits, sums.columns)
    else:
        columns, constant = _compared(layout, bits, sums)
    reached = constant
    for value in columns:
        reached |= value
    by_name: dict[str, list[tuple[int]]] = {name: [] for name in names}
    for (name, _), value in zip(bits, columns, strict=True):
        by_name[name].append((value,))
    linear = LinearLayout(by_name, {out_dim: 1 << reached.bit_length()}, require_surjective=False)
    return AffineLayout(linear, [constant])


def _bits(layout: _Function, names: Sequence[str]) -> list[tuple[str, int]]:
    """(the dimension, the power of two) of every bit of a coordinate, the fastest first."""
    bits = []
    for name, group in zip(names, layout.modes(), strict=True):
        log = 0
        for size, stride in group:
            if size & (size - 1):
                raise LayoutError(
                    f"{layout}: the mode {size}:{stride} has a size that is no power of two",
                    hint="a linear layout has all of 2^n coordinates: round the size up, and mask what is beyond it",
                )
            log += size.bit_length() - 1
        bits += [(name, 1 << i) for i in range(log)]
    return bits


class _Sums:
    """A Shape:Stride as what its bits add; then the swizzle."""

    def __init__(self, layout: Any) -> None:
        self.columns = [stride << i for size, stride in layout.leaves() for i in range(size.bit_length() - 1)]
        self.offset, self.swizzle = layout.offset, layout.swizzle


def _sums(layout: Any) -> _Sums | None:
    return _Sums(layout) if hasattr(layout, "leaves") else None


def _shared(columns: Sequence[int]) -> tuple[int, int] | None:
    """Two that have a bit in common."""
    taken = 0
    for i, value in enumerate(columns):
        if value < 0 or taken & value:
            return next((j for j in range(i) if value < 0 or columns[j] & value), i), i
        taken |= value
    return None


def _carries(layout: _Function, bits: Sequence[tuple[str, int]], columns: Sequence[int]) -> LayoutError:
    """The error where two bits of a coordinate add the same bit of the offset."""
    pair = _shared(columns)
    assert pair is not None
    (other, before), (name, value) = ((f"{bits[at][0]} = {bits[at][1]}", columns[at]) for at in pair)
    return LayoutError(
        f"{layout}: {name} adds {value} and {other} adds {before} to the offset; the sum "
        f"carries, {before} + {value} = {before + value}, which no xor does ({before ^ value})",
        hint="only layouts in which every bit of the offset comes from one bit of a coordinate are linear over F2; "
        "overlapping strides are not, nor is padding, which weft.layouts.cute_memory reads",
    )


def _compared(layout: _Function, bits: Sequence[tuple[str, int]], sums: _Sums | None) -> tuple[list[int], int]:
    """(columns, constant) of the affine map that agrees with all offsets."""
    if len(bits) > MOST_BITS:
        raise LayoutError(
            f"{layout}: 2^{len(bits)} coordinates; for a layout with an offset or of another layout at most "
            f"2^{MOST_BITS} are compared with a linear one",
            hint="take a smaller shape: layouts repeat",
        )
    if sums is not None and min((*sums.columns, 0)) < 0:
        least = sums.offset + sum(v for v in sums.columns if v < 0)
        if least < 0:
            size, stride = next((s, d) for group in layout.modes() for s, d in group if d < 0 and s > 1)
            raise LayoutError(
                f"{layout}: the mode {size}:{stride} has a negative stride, and the least offset is {least}",
                hint=f"offsets begin at 0: Swizzle<0,0,0> o {sums.offset - least} o ... begins there",
            )
    offsets = np.asarray(layout.at(np.arange(1 << len(bits), dtype=np.int64)))
    if offsets.min() < 0:
        at = int(offsets.argmin())
        raise LayoutError(f"{layout}: the offset at {_coordinate(bits, at)} is {offsets[at]}; offsets begin at 0")
    constant = int(offsets[0])
    columns = [int(offsets[1 << i]) ^ constant for i in range(len(bits))]
    table = np.full(1, constant, np.int64)
    for column in columns:
        table = np.concatenate([table, table ^ column])
    wrong = np.flatnonzero(table != offsets)
    if wrong.size:
        at = int(wrong[0])
        raise LayoutError(
            f"{layout}: the offset at {_coordinate(bits, at)} is {offsets[at]}, and the xor of what its bits give "
            f"alone is {table[at]}, so that the layout is not linear over F2",
            hint="a sum of offsets carries there, which no xor does",
        )
    return columns, constant


def _coordinate(bits: Sequence[tuple[str, int]], index: int) -> str:
    """dim0 = 3, dim1 = 2."""
    values: dict[str, int] = {}
    for i, (name, power) in enumerate(bits):
        values[name] = values.get(name, 0) + (power if index >> i & 1 else 0)
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "0"
