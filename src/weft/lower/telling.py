"""Remarks of the lowering: how wide an access is, how a tile is moved, what lies in shared memory.

Each function is called where the decision is made and has nothing to do unless the program has a collector.
"""

from __future__ import annotations

import math
from functools import lru_cache

from xdsl.ir import Operation, SSAValue

from weft.analysis import limit_of_run, lines_of_buffers
from weft.base import LayoutError
from weft.base.remarks import AccessWidth, Alternative, Conversion, SharedBuffer, Site
from weft.ir import element_of, is_pointer, pointee_of, shape_of, span_of, type_text
from weft.ir.gpu import encoding_of, layout_text, linear_encoding
from weft.ir.lane import LaneProgram
from weft.layouts import LinearLayout
from weft.layouts.plan import Plan

from .context import Context, tile_shape

__all__ = ["tell_buffers", "tell_conversion", "tell_width"]


def tile_text(value: SSAValue) -> str:
    """A tile's shape and elements, without its layout: 64x32xf16; of pointers, what they point to."""
    element = element_of(value.type)
    kind = pointee_of(element) if is_pointer(element) else element
    return "x".join([*map(str, shape_of(value.type)), type_text(kind)])


def site_of(op: Operation) -> Site:
    """An operation by its name, with its place."""
    return Site(op.name, span_of(op))


def tell_width(
    c: Context, access: str, op: Operation, pointer: SSAValue, mask: SSAValue | None, bits: int, vector: int
) -> None:
    """How many elements are accessed at a time, and what keeps it from more."""
    if not c.program.remarks:
        return
    size, most = max(1, bits // 8), c.machine.vector_bytes
    tile, span, extents = tile_text(pointer), span_of(op), tile_shape(pointer)
    limit, fact, value, where = "widest", "", "", None
    if vector * size < most:
        contiguity = c.facts.of(pointer).contiguity
        axis = max(range(len(extents)), key=lambda d: (min(contiguity[d], extents[d]), d))
        run = min(most // size, extents[axis])
        found = limit_of_run(c.facts, pointer, mask, axis, run, size)
        if found is not None:
            limit, fact, value, where = found.kind, found.fact, found.value, found.span
        elif run * size < most and vector == run:
            limit, fact = "tile", f"the tile has {run} element{'s' if run > 1 else ''} along dimension {axis}"
        else:
            elements = "1 element" if vector == 1 else f"{vector} elements"
            limit, fact = "layout", f"the layout gives a thread {elements} in a row, {_layout_of(pointer)}"
    c.program.remarks.add(AccessWidth(span, access, tile, vector * size, most, limit, fact, value, where))


def _layout_of(value: SSAValue) -> str:
    encoding = encoding_of(value.type)
    return layout_text(encoding.named) if encoding is not None else "none"


@lru_cache(maxsize=1024)
def _text_of(layout: LinearLayout) -> str:
    try:
        return linear_encoding(layout).text()
    except LayoutError:  # it has bases that move in two dimensions
        return str(dict(layout.bases))


def tell_conversion(c: Context, plan: Plan, elem: str) -> None:
    """How a tile is moved between layouts, for the operation that is lowered now."""
    asked = c.op is not None and c.op.name == "ttg.convert_layout"
    if not c.program.remarks or c.op is None or (plan.kind in ("nothing", "registers") and not asked):
        return
    op = c.op
    made = op.operands[0].owner if op.operands else op
    by, wanted = site_of(made) if isinstance(made, Operation) else Site("the kernel's argument"), [site_of(op)]
    source, result = _text_of(plan.src), _text_of(plan.dst)
    if op.name == "ttg.convert_layout":
        wanted = list(dict.fromkeys(site_of(use.operation) for use in op.results[0].uses))[:4]
        source, result = _layout_of(op.operands[0]), _layout_of(op.results[0])
    tile = "x".join([*map(str, plan.src.out_dims.values()), elem])
    others = [Alternative(k, None if p == math.inf else p, note) for k, p, note in plan.considered]
    cost = plan.cost
    remark = Conversion(
        *(c.build.span, tile, source, result, by, tuple(wanted), plan.kind, cost.cycles, cost.scratch_bytes),
        tuple(others),
    )
    c.program.remarks.add(remark)


def tell_buffers(program: LaneProgram) -> None:
    """Every buffer of shared memory that is used, now that all are placed."""
    if not program.remarks or not program.shared:
        return
    lines = lines_of_buffers(program)
    for buffer, used in zip(program.shared, lines, strict=True):
        if buffer.bytes:
            first, last = used or (None, None)
            purpose = buffer.what or "tile"
            program.remarks.add(SharedBuffer(buffer.span, buffer.bytes, buffer.offset or 0, purpose, first, last))
