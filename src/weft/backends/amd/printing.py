"""What kernels say, as LLVM IR: lines of `device_print`, and which assertion does not hold. `messages` reads it.

    at = atomic add of the record's size to the memory's first number
    if at < CAPACITY: store the message's number and its values there
    else: count a line that is lost

Where the memory is stands in a variable of the code object, which is filled in when it is loaded: so a kernel that says
nothing has none of this, and launches of one that does take no further argument.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from weft.ir.lane import LaneProgram

from ..gpu.emitter import Emitter
from .messages import CAPACITY, FAILED, LOST, PROGRAM, RECORDS, VARIABLE

POINTER = "ptr addrspace(1)"
CODES = {"i32": "i", "i64": "q", "double": "d"}
"""How `struct` reads a value, where its format is none of an unsigned number."""
_FORMAT = re.compile(r"%%|%[\d.]*(?:ll)?([a-z])")


class Printing:
    """The texts of a kernel, and what refers to them."""

    def __init__(self) -> None:
        self.messages: list[list[Any]] = []
        """[text of a line with formats, how its values are packed], or [text, file, line] of an assertion."""

    def _number(self, e: Emitter, message: list[Any]) -> int:
        """Of a message; the first brings the variable along."""
        if not self.messages:
            definition = f"protected addrspace(1) externally_initialized global {POINTER} null, align 8"
            e.module.globals.append(f"@{VARIABLE} = {definition}")
        if message not in self.messages:
            self.messages.append(message)
        return self.messages.index(message)

    def _place(self, e: Emitter, distance: int) -> str:
        memory = e.once(VARIABLE, f"load {POINTER}, {POINTER} @{VARIABLE}, align 8", ())
        return e.early(f"getelementptr i8, {POINTER}", memory, f"i64 {distance}") if distance else memory

    def line(self, e: Emitter, text: str, values: Sequence[tuple[str, str]]) -> None:
        """Print one, with values (type, name) in the places of its formats."""
        kinds = [kind for kind in _FORMAT.findall(text) if kind]
        codes = [CODES[t].upper() if kind in "ux" else CODES[t] for kind, (t, _) in zip(kinds, values, strict=True)]
        plain = _FORMAT.sub(lambda form: form[0].replace("ll", "") if form[1] else form[0], text)
        number = self._number(e, [plain, "".join(codes)])
        size = sum(4 if type == "i32" else 8 for type, _ in values) + 4
        memory = self._place(e, 0)
        at = e.ins(f'atomicrmw add {POINTER} {memory}, i64 {size} syncscope("agent") monotonic')
        fits = e.ins(f"icmp ult i64 {at}, {CAPACITY}")
        inside, outside, after = (e.f.new_label(name) for name in ("fits", "lost", "said"))
        e.do(f"br i1 {fits}, label %{inside}, label %{outside}")
        e.f.start(outside)
        lost = e.ins(f"getelementptr i8, {POINTER} {memory}, i64 {LOST}")
        e.ins(f'atomicrmw add {POINTER} {lost}, i64 1 syncscope("agent") monotonic')
        e.do(f"br label %{after}")
        e.f.start(inside)
        record = e.ins(f"getelementptr i8, {POINTER} {memory}, i64 {at}")
        distance = RECORDS
        for type, name in [("i32", str(number)), *values]:
            place = e.ins(f"getelementptr i8, {POINTER} {record}, i64 {distance}")
            e.do(f"store {type} {name}, {POINTER} {place}, align 4")
            distance += 4 if type == "i32" else 8
        e.do(f"br label %{after}")
        e.f.start(after)

    def failure(self, e: Emitter, message: str, path: str, line: int) -> None:
        """Say that an assertion does not hold, where none has said so before; and in which program."""
        number, mark = self._number(e, [message, path, line]), e.mark()  # nothing here dominates what follows
        failed = e.ins(f"getelementptr i8, {POINTER} {self._place(e, 0)}, i64 {FAILED}")
        pair = f'cmpxchg {POINTER} {failed}, i32 0, i32 {number + 1} syncscope("agent") monotonic monotonic'
        first = e.ins(f"extractvalue {{ i32, i1 }} {e.ins(pair)}, 1")
        inside, after = e.f.new_label("first"), e.f.new_label("told")
        e.do(f"br i1 {first}, label %{inside}, label %{after}")
        e.f.start(inside)
        for i, axis in enumerate("xyz"):
            place = e.ins(f"getelementptr i8, {POINTER} {self._place(e, 0)}, i64 {PROGRAM + 4 * i}")
            e.do(f"store i32 {e.dialect.place(e, f'program.{axis}')}, {POINTER} {place}, align 4")
        e.forget(mark)
        e.do(f"br label %{after}")
        e.f.start(after)


def may_wait(program: LaneProgram) -> bool:
    """Whether warps may wait for others in a loop: one that ended would let them wait for ever."""
    names = {op.name for op in program.body.walk()}
    return "while" in names and any(name.startswith("atomic") for name in names)
