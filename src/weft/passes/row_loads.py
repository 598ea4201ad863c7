"""Lay out loads of rows and columns that are copied iterations ahead: small tiles of narrow elements.

    %b = tt.load %p : 64 elements of f16, consecutive
    %v = tt.broadcast (tt.expand_dims %b {axis = 0}) : 128x64
    %s = arith.mulf %weights, %v                               which becomes an operand of a product

%b is broadcast to %s, so with the layout of %s each warp would load all of it from the cache, with as few as 2
contiguous bytes in each thread. Asynchronous copies need at least 4 bytes of a thread (pipeline_loads.py), so such a
row gets a layout that fits them.
"""

from __future__ import annotations

from xdsl.ir import Operation

from weft.analysis import AxisFacts
from weft.ir import bit_width, element_of, int_value, is_pointer, shape_of
from weft.layouts import BlockedLayout
from weft.layouts.plan import vector_width

from .blocks_of_threads import blocked_for
from .buffered_tiles import is_multiplied
from .natural_layouts import AnyLayout, linear_of


def is_copied(op: Operation) -> bool:
    """Whether a load may be copied iterations ahead: in a loop that has several under way, for a product."""
    loop = op.parent_op()
    if op.name != "tt.load" or loop is None or loop.name != "scf.for":
        return False
    if "tt.num_stages" in loop.attributes and int_value(loop.attributes["tt.num_stages"]) < 2:
        return False
    return is_multiplied(op.results[0])


def copied_row(op: Operation, spread: AnyLayout, facts: AxisFacts, lanes: int, warps: int) -> BlockedLayout | None:
    """A layout in which a row or column of narrow elements can be copied iterations ahead; None where it need not have
    one, as it is spread so that it can, or cannot be copied."""
    pointer = op.operands[0]
    shape, bits = shape_of(pointer.type), bit_width(element_of(op.results[0].type))
    along = _longest(op)
    if bits not in (8, 16) or _run_of(op, spread, facts) * bits >= 32 or not is_copied(op):
        return None
    axis_facts = facts.of(pointer)
    run = min(axis_facts.contiguity[along], axis_facts.divisibility[along] * 8 // bits, 128 // bits, shape[along])
    for mask in op.operands[1:2]:
        run = min(run, facts.of(mask).constancy[along])
    if run * bits < 32:
        return None
    order = [along, *(d for d in reversed(range(len(shape))) if d != along)]
    box = [run if d == along else 1 for d in range(len(shape))]
    return blocked_for(shape, order, box, lanes, warps)


def _run_of(op: Operation, layout: AnyLayout, facts: AxisFacts) -> int:
    """How many elements of a row or column one instruction of a thread loads in a layout."""
    pointer, along = op.operands[0], _longest(op)
    shape, element = shape_of(pointer.type), element_of(pointer.type)
    bits = max(8, bit_width(element.pointee)) if is_pointer(element) else 64  # type: ignore[attr-defined]
    axis_facts = facts.of(pointer)
    order = [along, *(d for d in range(len(shape)) if d != along)]
    width = vector_width(linear_of(layout, list(shape)), shape, bits, order)
    return min(width, axis_facts.contiguity[along], axis_facts.divisibility[along] * 8 // bits)


def _longest(op: Operation) -> int:
    """The dimension of an access of a row or column."""
    shape = shape_of(op.operands[0].type)
    return max(range(len(shape)), key=lambda d: shape[d])
