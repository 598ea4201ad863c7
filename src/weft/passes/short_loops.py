"""Unroll short loops with loads of tiles completely, so that the loads of all iterations are in flight together.

    %s = scf.for %i = %c0 to %c4096 step %c2048 iter_args(%a = %init) -> (tensor<2048xf32>) {
      %x = tt.load %row[%i]
      %b = arith.addf %a, %x
      scf.yield %b
    }
becomes
    %x = tt.load %row[%c0]
    %b = arith.addf %init, %x
    %y = tt.load %row[%c2048]
    %s = arith.addf %b, %y

Inductor writes such a loop for a row that is wider than its block. ptxas moves loads over arithmetic, but not into the
previous iteration, so a loop waits for memory in each iteration.

This is done to loops with a known number of iterations, without loops, products or barriers in them, if the code stays
short and a thread has registers for everything that is loaded. The order of sums does not change. A branch that depends
on the number of the iteration is decided at compile time.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from weft import ir
from weft.base.remarks import NO_REMARKS, RemarkCollector, Unrolled
from weft.ir import Builder, find, span_of, walk

from .effects import droppable, shareable
from .first_iterations import is_decided_by_counter
from .fold import int_of
from .removal import put_in_place
from .unroll_loops import FACTOR, known_iterations

REGISTER_BITS = 32

MOST_ITERATIONS = 8
"""More loads under way hide no more, and code takes time to compile."""

MOST_INSTRUCTIONS = 512
"""The most instructions of a thread in all iterations, counting one for each operation and element."""

MOST_LOADED = 32
"""Registers of a thread for what all iterations load."""


def unroll_short_loops(root: Operation, threads: int, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Write out the loops inside `root` that blocks of so many threads may have whole, inner ones first."""
    for loop in reversed(find(root, scf.ForOp)):
        iterations = known_iterations(loop)
        if iterations is not None and 1 < iterations <= MOST_ITERATIONS and not _is_spoken_for(loop):
            _write_out(loop, iterations, threads, remarks)


def _is_spoken_for(loop: scf.ForOp) -> bool:
    """Whether its author says how many iterations are done at a time (`loop_unroll_factor`), or under way."""
    stages = loop.attributes.get("tt.num_stages")
    return FACTOR in loop.attributes or (isinstance(stages, IntegerAttr) and stages.value.data > 1)


def _write_out(loop: scf.ForOp, iterations: int, threads: int, remarks: RemarkCollector) -> None:
    instructions = loaded = 0
    for op in walk(loop.regions[0].block):
        instructions += instructions_of(op, threads)
        if isinstance(op, ir.tt.LoadOp):
            loaded += _registers(op.results[0], threads)
        if not (_may_be_repeated(op) or is_decided_by_counter(loop, op)):
            return
    if loaded == 0 or iterations * loaded > MOST_LOADED or iterations * instructions > MOST_INSTRUCTIONS:
        return
    remarks.add(Unrolled(span_of(loop), "the loop", f"its {iterations} iterations load at the same time"))
    b = Builder.before(loop)
    body = loop.regions[0].block
    *ops, end = body.ops
    index, step = loop.operands[0], loop.operands[2]
    start, distance = int_of(index), int_of(step)
    assert start is not None and distance is not None, "the number of iterations is known"
    values = list(loop.operands[3:])
    for turn in range(iterations):
        at = b.constant(start + turn * distance, index.type)
        mapped: dict[SSAValue, SSAValue] = dict(zip(body.args, [at, *values], strict=True))
        for op in ops:
            b.insert(op.clone(mapped))
        values = [mapped.get(value, value) for value in end.operands]
    put_in_place(loop, None, values)


def _may_be_repeated(op: Operation) -> bool:
    """Neither waits for others nor is long itself, as a product is, whose loop is pipelined."""
    if isinstance(op, ir.tt.DotOp | ir.tt.DotScaledOp):
        return False
    if isinstance(op, scf.YieldOp | ir.tt.StoreOp):
        return True
    return not op.regions and (shareable(op) or (isinstance(op, ir.tt.LoadOp) and droppable(op)))


def instructions_of(op: Operation, threads: int) -> int:
    """How many instructions of a thread it is, if it is one for each element."""
    return max((_elements(value, threads) for value in op.results), default=1)


def _elements(value: SSAValue, threads: int) -> int:
    """How many elements of a value a thread has."""
    return max(1, ir.numel_of(value.type) // threads) if ir.is_tensor(value.type) else 1


def _registers(value: SSAValue, threads: int) -> int:
    """How many registers they take."""
    return max(1, _elements(value, threads) * ir.bit_width(value.type) // REGISTER_BITS)
