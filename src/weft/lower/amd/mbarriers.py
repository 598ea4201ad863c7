"""gfx1250's barriers in local memory: initialised by a store that all waves execute alike, arrived at by every lane."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.base import CompilationError, Unsupported
from weft.ir import int_value
from weft.ir.amd.mbarriers import ArriveBarrierOp, CopiesArriveOp, InitBarrierOp, WaitBarrierOp
from weft.targets.amd import ARRIVE, COPIES_ARRIVE, INIT, MOST, PARITY, WAIT, made
from weft.targets.table import has

from ..context import Context, Lowering


def _check(c: Context) -> None:
    if not has(c.machine, ARRIVE):
        raise Unsupported(f"the instruction {ARRIVE}", c.program.target, c.build.span, works_on=("hip:gfx1250",))


def _init(c: Context, op: Operation) -> None:
    """Others see the barrier when all have met."""
    assert isinstance(op, InitBarrierOp)
    _check(c)
    count = int_value(op.count)
    if not 1 <= count <= MOST:
        text = f"an mbarrier of {c.program.target} is for 1 to {MOST} arrivals, got {count}"
        raise CompilationError(text, c.build.span)
    c.build.instruction(INIT, [c[op.alloc], c.number(made(count), "i64")])
    c.build.barrier("block")


def _arrive(c: Context, op: Operation) -> None:
    """The parity that the word had before."""
    assert isinstance(op, ArriveBarrierOp)
    _check(c)
    count = int_value(op.count)
    word = c.build.instruction(ARRIVE, [c[op.alloc], c.number(count, "i64")], [("i64", 1)]).result
    phase = c.build.op("arith.shrui", [word, c.number(PARITY, "i64")], "i64")
    low = c.build.op("arith.trunci", [phase], "i32")
    c[op.result] = c.build.op("arith.andi", [low, c.number(1)], "i32")


def _wait(c: Context, op: Operation) -> None:
    assert isinstance(op, WaitBarrierOp)
    _check(c)
    c.build.instruction(WAIT, [c[op.alloc], c[op.phase]])


def _copies(c: Context, op: Operation) -> None:
    assert isinstance(op, CopiesArriveOp)
    _check(c)
    c.build.instruction(COPIES_ARRIVE, [c[op.alloc]])


BARRIER_LOWERINGS: dict[str, Lowering] = {
    InitBarrierOp.name: _init,
    ArriveBarrierOp.name: _arrive,
    WaitBarrierOp.name: _wait,
    CopiesArriveOp.name: _copies,
}
