"""LLVM IR for AMD's GPUs, as the common back end of GPUs asks for it: their `Dialect`.

dialect = AMDGPU(program.machine)
text = emit_llvm(program, dialect)
image = linked(object_code(text, dialect.target))
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.lane import LaneOp, Value
from weft.targets.instruction import Instruction

from ..gpu.calls import write_instruction
from ..gpu.emitter import CONVERGENT, Emitter, Register
from ..gpu.groups import together
from ..gpu.inline import write_assembly
from .arithmetic import Arithmetic
from .inline import AMDRegisters
from .mbarriers import write_mbarrier
from .memory import Memory
from .occupancy import Saving
from .printing import may_wait


class AMDGPU(Memory, Arithmetic):
    """The dialect of one program."""

    def instruction(
        self, e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]]
    ) -> list[list[Register]]:
        """An entry of `targets.amd`."""
        if entry.touches == "barrier":
            return write_mbarrier(e, op, entry, chunks)
        if not entry.results and not entry.text:  # nothing is scheduled over it
            if entry.name == "slice" or Saving.SLICES in self.saving:
                e.do(e.call("llvm.amdgcn.sched.barrier", "void", [("i32", "0")], CONVERGENT))
            return []
        if not entry.results and not entry.touches:  # it would be dropped as having no effect
            e.do(e.call(entry.text, "void", [(type, str(n)) for type, n in entry.params["arguments"]], CONVERGENT))
            return []
        if entry.name == "held.narrow" and Saving.ADDRESSES not in self.saving:
            return [list(chunks[0])]
        if not entry.text:  # no instruction, but LLVM sees one in its place
            return [[e.asm("", "=v,0", ["i32"], [("i32", e.name(chunks[0][0]))])[0]]]
        return write_instruction(e, op, entry, chunks, self.past_copies if entry.touches == "shared" else "")

    def together(self, value: Value) -> int:
        """What one matrix instruction gives."""
        return together(value)

    def wait(self, e: Emitter, op: LaneOp) -> None:
        """Products are done when the next instruction wants them."""
        raise e.fail(op, f"waiting for a {op.attrs['kind']}")

    def assembly(self, e: Emitter, op: LaneOp) -> None:
        """As it was written; who makes the object has an assembler to ask (`assembler`)."""
        self.inlined.append(op)
        write_assembly(e, op, AMDRegisters(self.target.is_cdna))

    def print(self, e: Emitter, form: str, values: list[tuple[str, str]]) -> None:
        """Into memory that the launch reads."""
        self.printing.line(e, form, values)

    def give_up(self, e: Emitter, message: str, path: str, line: int) -> None:
        """The warp ends, and the launch says why; where others may wait for it, all of them end."""
        self.printing.failure(e, message, path, line)
        if may_wait(e.program):
            self.trap(e)
        else:
            e.do(e.call("llvm.amdgcn.endpgm", "void", (), CONVERGENT))

    def trap(self, e: Emitter) -> None:
        """`s_trap 2`."""
        e.do(e.call("llvm.trap", "void", ()))
