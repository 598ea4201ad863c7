"""Expand waits for a value in memory into loops, for targets without such an operation.

    %found = tt.atomic_poll acquire, gpu, %p, %v : !tt.ptr<i32>, i32 -> i1
becomes
    %found = scf.while : () -> i1 {
      %old = tt.atomic_load acquire, gpu, %p : (!tt.ptr<i32>) -> i32
      %found = arith.cmpi eq, %old, %v
      scf.condition(not %found) %found
    } do { scf.yield }

With a time-out a clock is read before the loop and behind each load.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from weft.ir import NANOSECONDS, Builder, bool_attr, find, i1, i32_attr, i64, str_attr, tt

from .removal import remove

CLOCK = {
    "asm_string": str_attr(NANOSECONDS),
    "constraints": str_attr("=l"),
    "pure": bool_attr(False),
    "packed_element": i32_attr(1),
}
"""A clock in nanoseconds, which every target knows."""


def expand_polls(root: Operation) -> None:
    """Rewrite every wait."""
    for op in find(root, tt.AtomicPollOp):
        op.result.replace_all_uses_with(_loop(op))
        remove(op)


def _loop(op: tt.AtomicPollOp) -> SSAValue:
    b = Builder.before(op)
    begin = _clock(b) if op.timeout is not None else None
    loop = b.while_((), (i1,))
    before, after = (region.blocks[0] for region in loop.regions)
    inner = Builder.at_end(before, op.location)
    old = inner.value(tt.AtomicLoadOp, (op.ptr,), op.expected.type, {"sem": op.sem, "scope": op.scope})
    reached = inner.cmpi("eq", old, op.expected)
    waiting = inner.binary(arith.XOrIOp, reached, inner.constant(True, i1))
    if begin is not None and op.timeout is not None:
        passed = inner.binary(arith.SubiOp, _clock(inner), begin)
        waiting = inner.binary(arith.AndIOp, waiting, inner.cmpi("ult", passed, op.timeout))
    inner.create(scf.ConditionOp, (waiting, reached))
    Builder.at_end(after, op.location).yield_()
    return loop.results[0]


def _clock(b: Builder) -> SSAValue:
    return b.value(tt.ElementwiseInlineAsmOp, (), i64, CLOCK)
