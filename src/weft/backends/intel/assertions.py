"""What a kernel that asserts does where an assertion does not hold: it writes a record (failures.py).

SPIR-V has no instruction by which a kernel ends with an error. So a program stops: all of its threads learn whether the
assertion holds in each of them, and return where it does not. Other programs go on, and the launch waits for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.backends.llvm.values import vec

from ..gpu.emitter import CONVERGENT, Body, Emitter

if TYPE_CHECKING:
    from weft.ir.lane import LaneProgram

POINTER = "ptr addrspace(1)"
RECORD = "failures"
"""The name of the kernel's parameter."""
FUNCTION = "item.failed"
"""The function that writes it: of one work item, whatever that is."""
ASSERTING = frozenset(("assert", "check", "trap"))
TRAPPED = "the program stopped itself"
ANY = {False: "_Z13sub_group_anyi", True: "_Z14work_group_anyi"}
"""Whether a number is not 0 in some lane of a subgroup, or work item of a block."""


def pointers(program: LaneProgram) -> tuple[str, ...]:
    """The record, where the program asserts something."""
    return (RECORD,) if any(op.name in ASSERTING for op in program.body.walk()) else ()


class Assertions:
    """What a kernel asserts, and the code for where it does not hold."""

    def __init__(self) -> None:
        self.messages: list[list[Any]] = []
        """[text, file, line] of each."""

    def fails(self, e: Emitter, message: list[Any], *, is_alone: bool) -> None:
        """Write which one it is, and return; go on in a group of warps for which others may wait."""
        if message not in self.messages:
            self.messages.append(message)
        if FUNCTION not in e.module.defined:
            _define(e)
        number = self.messages.index(message) + 1
        e.do(f"call void @{FUNCTION}({POINTER} %{RECORD}, i32 {number})")
        if not is_alone:
            e.do("ret void")
            e.f.start(e.f.new_label("never"))


def _define(e: Emitter) -> None:
    """The function: only the first failure is written, and there can be one in each program."""
    e.module.defined.add(FUNCTION)
    parameters = [(RECORD, vec(POINTER, 0)), ("number", vec("i32", 0))]
    f = Body(e.module, FUNCTION, vec("void", 0), parameters, "nounwind", "internal")
    e.module.functions.append(f)
    inner = Emitter(e.program, e.dialect, False)
    inner.module = e.module
    inner.start(f)
    pair = inner.ins(f'cmpxchg {POINTER} %{RECORD}, i32 0, i32 %number syncscope("device") monotonic monotonic')
    first = inner.ins(f"extractvalue {{ i32, i1 }} {pair}, 1")
    inside, after = f.new_label("first"), f.new_label("told")
    inner.do(f"br i1 {first}, label %{inside}, label %{after}")
    f.start(inside)
    for i in range(3):
        wide = inner.ins(inner.call("_Z12get_group_idj", "i64", [("i32", str(i))]))
        place = inner.ins(f"getelementptr i8, {POINTER} %{RECORD}, i64 {4 + 4 * i}")
        inner.do(f"store i32 {inner.ins(f'trunc i64 {wide} to i32')}, {POINTER} {place}, align 4")
    inner.do(f"br label %{after}")
    f.start(after)
    inner.do("ret void")


def any_of(e: Emitter, bit: str, *, of_block: bool) -> str:
    """A bit: whether some lane of the subgroup, or some work item of the block, has this one."""
    number = e.ins(f"zext i1 {bit} to i32")
    return e.ins(f"icmp ne i32 {e.ins(e.call(ANY[of_block], 'i32', [('i32', number)], CONVERGENT))}, 0")
