"""Addresses that all lanes share are put into scalar registers: gfx1250.

    index = tl.load(table + i)      %sum = add i64 %rows, %distance          ; %distance is four times %index
    x = tl.load(rows + index)       %q = call i64 @llvm.amdgcn.readfirstlane.i64(i64 %sum)

An access of gfx1250 can multiply a distance by the size of what it loads (`scale_offset`). For `rows + index` LLVM 22
asks for that, and then takes 0 for the distance and the sum for the pointer. Where the sum is in vector registers, as
it is after a load or a maximum of 64 bits, it gives up that form of the address, keeps the request, and ends the
process by "Instruction does not support offset scaling". What a lane has read it does not take apart.
"""

from __future__ import annotations

from weft.ir.lane import LaneProgram, Value

from ..gpu.emitter import CONVERGENT_PURE, Emitter, Register

SAME = ("constant", "program_id", "num_programs", "rename")
"""What gives all lanes the same where its operands are the same."""


class Alike:
    """Which values of a program all lanes of a block share; `more` are operations of which all lanes of a warp do."""

    def __init__(self, program: LaneProgram, *more: str) -> None:
        self.same = (*SAME, *more)
        self.alike = dict.fromkeys(program.body.arguments, True)
        for op in program.body.walk():
            if op.name == "for":
                self.alike[op.regions[0].arguments[0]] = True

    def is_alike(self, value: Value) -> bool:
        """Whether all lanes are known to have the same."""
        known = self.alike.get(value)
        if known is None:
            op = value.op
            follows = op is not None and (op.name in self.same or op.name.startswith("arith."))
            known = self.alike[value] = follows and op is not None and all(map(self.is_alike, op.operands))
        return known


def from_first_lane(e: Emitter, address: Register) -> str:
    """An address, in scalar registers."""
    return e.ins(e.call("llvm.amdgcn.readfirstlane.i64", "i64", [("i64", e.name(address))], CONVERGENT_PURE))
