"""Which register holds which element, for matrix instructions: the lanes' share is fixed, registers are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.lane import Value
from weft.layouts import LinearLayout

from .context import Context


def elements(layout: LinearLayout) -> list[tuple[int, ...]]:
    """The coordinates of each register of lane 0 of warp 0."""
    part = layout.sublayout(["register"], layout.out_dims)
    return [part._coordinates(x) for x in part.table().tolist()]


def held(layout: LinearLayout) -> dict[tuple[int, ...], int]:
    """The register that holds each element of lane 0 of warp 0; of copies the first."""
    register_of: dict[tuple[int, ...], int] = {}
    for register, point in enumerate(elements(layout)):
        register_of.setdefault(point, register)
    return register_of


def points(layout: LinearLayout) -> list[tuple[int, ...]]:
    """The coordinates of the registers of lane 0 in an instruction's operand."""
    return elements(layout.transpose_outs(["dim0", "dim1"]))


def assembled(c: Context, parts: Mapping[tuple[int, int], tuple[Value, Sequence[int]]], layout: LinearLayout) -> Value:
    """One fragment of tiles that were computed apart: for each its registers, and which of the whole's they are."""
    order: dict[int, int] = {}
    for _, registers in parts.values():
        for register in registers:
            order.setdefault(register, len(order))
    values = [v for v, _ in parts.values()]
    total = sum(v.count for v in values)
    joined = c.build.add("join", values, [(values[0].elem, total)]).result if len(values) > 1 else values[0]
    where = held(layout)
    return c.build.rename(joined, [order[where[point]] for point in elements(layout)])
