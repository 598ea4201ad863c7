"""gfx1250's barriers in local memory: what of them is no intrinsic, and the order that an arrival and a wait give.

What a wave has done before it arrives is seen by who has waited: a release before, an acquire behind. Copies are no
part of it; they arrive for themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.lane import LaneOp
from weft.targets.amd import ARRIVE, COPIES_ARRIVE, INIT, PARITY, WAIT
from weft.targets.instruction import Instruction

from ..gpu.calls import write_instruction
from ..gpu.emitter import CONVERGENT, Emitter, Register
from ..gpu.memory import pointer_to
from .lanes import fence


def write_mbarrier(
    e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]]
) -> list[list[Register]]:
    """One of the entries of `targets/amd/mbarriers.py`."""
    if entry.name == COPIES_ARRIVE:  # nothing is moved across: the copies before it are those that it arrives for
        e.do(e.call("llvm.amdgcn.sched.barrier", "void", [("i32", "0")], CONVERGENT))
        return write_instruction(e, op, entry, chunks)
    if entry.name == ARRIVE:
        fence(e, "workgroup", "release")
        return write_instruction(e, op, entry, chunks)
    pointer, value = pointer_to(e, chunks[0][0], "shared"), e.name(chunks[1][0])
    if entry.name == INIT:
        e.do(f"store i64 {value}, {pointer}, align 8")
        return []
    assert entry.name == WAIT
    _wait(e, pointer, value)
    return []


def _wait(e: Emitter, pointer: str, parity: str) -> None:
    """Look at the word until its phase has another parity; sleep in between."""
    f = e.f
    look, again, over = f.new_label("look"), f.new_label("again"), f.new_label("over")
    e.do(f"br label %{look}")
    f.start(look)
    word = e.ins(f'load atomic i32, {pointer} syncscope("workgroup") monotonic, align 8')
    first = e.ins(e.call("llvm.amdgcn.readfirstlane.i32", "i32", [("i32", word)], CONVERGENT))
    phase = e.ins(f"lshr i32 {first}, {PARITY}")
    change = e.ins(f"xor i32 {phase}, {parity}")
    low = e.ins(f"and i32 {change}, 1")
    same = e.ins(f"icmp eq i32 {low}, 0")
    e.do(f"br i1 {same}, label %{again}, label %{over}")
    f.start(again)
    e.do(e.call("llvm.amdgcn.s.sleep", "void", [("i32", "1")], CONVERGENT))
    e.do(f"br label %{look}")
    f.start(over)
    fence(e, "workgroup", "acquire")
