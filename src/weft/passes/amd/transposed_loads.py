"""Load a tile that is used along its columns in small blocks, which threads transpose.

A matrix instruction takes several elements from each lane that are consecutive along the summed dimension, k. If a
right operand lies row by row in memory, a thread that loads 16 bytes has 8 columns of one k: stored to shared memory in
this order, they are read two bytes at a time. With a block of several k for each thread

    %b = tt.load %p : [1, 8] of a thread          a thread has b[k, n .. n+7]
becomes
    %b = tt.load %p : [4, 8] of a thread          and b[k+1, n .. n+7], b[k+2, ...], b[k+3, ...]

a thread has, of each column, four neighbours along k. It packs them in registers (a byte permutation for each word),
and both the store to shared memory and the read of the operand are of 8 bytes. The loads are as many and as wide as
before. Triton's `in-thread-transpose` does this on gfx942. Here, only the layout of the load changes, on every
processor, and the planner finds how to pack and store for that layout.

The same holds for a tile that is loaded along its rows and stored along its columns:

    tt.store %q, tt.trans(%x)                      64x64 of f16, 4 waves of 64 lanes: a thread has 16 elements

With [1, 8] of a thread at a time, words of two neighbours of a column are made by exchanging halves of them between
lanes; with [2, 8] a thread has both halves.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue, Use

from weft.analysis import AxisFacts
from weft.ir import bit_width, element_of, ints_of, shape_of, tt
from weft.layouts import BlockedLayout
from weft.machines import Machine
from weft.ops.table import ELEMENTWISE
from weft.targets.table import products

from ..blocks_of_threads import VECTOR_BITS, blocked_for

Product: TypeAlias = tt.DotOp | tt.DotScaledOp
SCALED_RUN = 16
"""Bytes in a row along the summed dimension that a lane holds of an operand of a scaled product."""
RUN_BITS = 64
"""What a thread packs of a column: the least that lanes read at once without waste."""


def transposed_load(op: Operation, layout: BlockedLayout, bits: int, machine: Machine, warps: int) -> BlockedLayout:
    """The layout of a load of elements of so many bits: blocks, if it is an operand that has to be transposed."""
    shape = shape_of(op.results[0].type) if isinstance(op, tt.LoadOp) else ()
    if len(shape) != 2 or bits > 32 or layout.cga_layout:
        return layout
    along = layout.order[0]
    if layout.size_per_thread[along] * bits < 32:
        return layout
    each = prod(shape) // machine.threads(warps)
    room = each // layout.size_per_thread[along]  # beside loads as wide as before
    summed, product = summed_dimension(op.results[0])
    if product is not None:
        run = max(2, RUN_BITS // bits, min(taken_at_once(product, machine), room))
    else:
        summed, run = 1 - along, max(32 // bits, min(RUN_BITS // bits, room))
        if bits == 32 or not is_stored_across(op.results[0], along):
            return layout
    if summed == along:
        return layout
    run = min(run, shape[summed], each)
    if run < 2:  # a thread has one element, or none of its own
        return layout
    vector = min(layout.size_per_thread[along], max(1, each // run))
    if vector * bits < 32:  # the block would take narrower loads than a word
        return layout
    box = [0, 0]
    box[along], box[summed] = min(vector, VECTOR_BITS // bits), run
    return blocked_for(shape, layout.order, box, machine.lanes, warps)


def taken_at_once(op: Product, machine: Machine) -> int:
    """How many elements in a row along the summed dimension a lane holds of the instruction's right operand."""
    if isinstance(op, tt.DotScaledOp):
        return SCALED_RUN
    for entry in products(machine, *(str(element_of(x.type)) for x in op.operands)):
        layout = entry.operands[1].layout
        assert layout is not None
        count = 1
        for basis in layout.transpose_outs(["dim0", "dim1"]).bases["register"]:
            if basis != (count, 0):
                break
            count *= 2
        return count
    return 1


def summed_dimension(value: SSAValue) -> tuple[int, Product | None]:
    """The dimension over which products sum that take a tile, or what is computed of it, and one of them; None if they
    do not agree."""
    found: dict[int, Product] = {}
    for use, turned in _uses(value):
        op = use.operation
        if isinstance(op, tt.DotOp | tt.DotScaledOp) and use.index < 2:
            found.setdefault((1 - use.index) ^ turned, op)
    return next(iter(found.items())) if len(found) == 1 else (0, None)


def is_stored_across(value: SSAValue, along: int) -> bool:
    """Whether all stores of a tile, or of what is computed of it element by element, are in elements of less than a
    word, whose addresses follow each other along the other dimension than this one."""
    stores = [(use.operation, turned) for use, turned in _uses(value) if isinstance(use.operation, tt.StoreOp)]
    facts = AxisFacts()
    for store, turned in stores:
        pointer, stored = store.operands[:2]
        runs = facts.of(pointer).contiguity
        if bit_width(element_of(stored.type)) >= 32 or runs[along ^ turned] >= runs[1 - along ^ turned]:
            return False
    return bool(stores)


def _uses(value: SSAValue) -> Iterator[tuple[Use, bool]]:
    """The uses of a tile, and of what is computed of it element by element; whether they are of it transposed."""
    todo = [(value, False)]
    seen = {value}
    while todo:
        x, turned = todo.pop()
        for use in x.uses:
            op, also = use.operation, turned
            yield use, turned
            if isinstance(op, tt.TransOp) and ints_of(op.properties["order"]) == (1, 0):
                also = not turned
            elif op.name not in ELEMENTWISE:
                continue
            for result in op.results:
                if result not in seen:
                    seen.add(result)
                    todo.append((result, also))
