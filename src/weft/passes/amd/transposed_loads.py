"""An operand whose rows do not run along the summed dimension is loaded in blocks, which threads transpose.

A matrix instruction takes some elements in a row along the summed dimension, k, of each lane. Of a right operand that
lies row by row in memory, a thread that loads 16 bytes has 8 columns of one k: stored to shared memory as they are,
they are read two bytes at a time. With a block of several k for each thread

    %b = tt.load %p : [1, 8] of a thread          a thread has b[k, n .. n+7]
becomes
    %b = tt.load %p : [4, 8] of a thread          and b[k+1, n .. n+7], b[k+2, ...], b[k+3, ...]

a thread has, of each column, four neighbours along k. It packs them in registers (a byte permutation for each word),
and both the store to shared memory and the read of the operand are of 8 bytes. The loads are as many and as wide as
before. This is what Triton's `in-thread-transpose` does on gfx942; here it is the layout of
the load, on every processor, and what packs and stores is what the planner finds for that layout.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation, SSAValue

from weft.ir import element_of, ints_of, shape_of, tt
from weft.layouts import BlockedLayout
from weft.machines import Machine
from weft.ops.table import ELEMENTWISE
from weft.targets.table import products

from ..blocks_of_threads import VECTOR_BITS, blocked_for

RUN_BITS = 64
"""What a thread packs of a column: the least that lanes read at once without waste."""


def transposed_load(op: Operation, layout: BlockedLayout, bits: int, machine: Machine, warps: int) -> BlockedLayout:
    """The layout of a load of elements of so many bits: blocks, if it is an operand that has to be transposed."""
    shape = shape_of(op.results[0].type) if isinstance(op, tt.LoadOp) else ()
    if len(shape) != 2 or bits > 32 or layout.cga_layout:
        return layout
    summed, product = summed_dimension(op.results[0])
    along = layout.order[0]
    if product is None or summed == along or layout.size_per_thread[along] * bits < 32:
        return layout
    each = prod(shape) // machine.threads(warps)
    room = each // layout.size_per_thread[along]  # beside loads as wide as before
    run = max(2, RUN_BITS // bits, min(taken_at_once(product, machine), room))
    run = min(run, shape[summed], each)
    if run < 2:  # a thread has one element, or none of its own
        return layout
    vector = min(layout.size_per_thread[along], max(1, each // run))
    if vector * bits < 32:  # the block would take narrower loads than a word
        return layout
    box = [0, 0]
    box[along], box[summed] = min(vector, VECTOR_BITS // bits), run
    return blocked_for(shape, layout.order, box, machine.lanes, warps)


def taken_at_once(op: tt.DotOp, machine: Machine) -> int:
    """How many elements in a row along the summed dimension a lane holds of the instruction's right operand."""
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


def summed_dimension(value: SSAValue) -> tuple[int, tt.DotOp | None]:
    """The dimension over which products sum that take a tile, or what is computed of it, and one of them; None if they
    do not agree."""
    found: dict[int, tt.DotOp] = {}
    todo = [(value, False)]
    seen = {value}
    while todo:
        x, turned = todo.pop()
        for use in x.uses:
            op, also = use.operation, turned
            if isinstance(op, tt.DotOp):
                if use.index < 2:
                    found.setdefault((1 - use.index) ^ turned, op)
                continue
            if isinstance(op, tt.TransOp) and ints_of(op.properties["order"]) == (1, 0):
                also = not turned
            elif op.name not in ELEMENTWISE:
                continue
            for result in op.results:
                if result not in seen:
                    seen.add(result)
                    todo.append((result, also))
    return next(iter(found.items())) if len(found) == 1 else (0, None)
