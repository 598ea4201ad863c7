"""PTX, as the common back end of GPUs asks for it: the `Dialect` of NVIDIA's GPUs.

dialect = PTX(program.machine)
text = emit_llvm(program, dialect)
ptx = dialect.code(text)
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.lane import ELEMENT_BITS, LaneOp
from weft.targets.instruction import Instruction

from ..gpu.diagnostics import address_of
from ..gpu.emitter import CONVERGENT, Emitter, Register
from .arithmetic import Arithmetic
from .inline import write_ptx
from .instructions import write_instruction, write_wait
from .lanes import Lanes
from .machine import assembly
from .memory import Memory

ORDERED_FROM, SCATTERED = 90, 128
"""From which capability and from how many accesses of global memory on the sums of a kernel are put in order: it is one
of elements that have addresses of their own."""
LOOPS = 24
"""Loops of `while` from which on a kernel is one of many."""
LARGEST_BITS = 128
"""Of an access."""


def _accesses(op: LaneOp) -> int:
    """How many accesses of global memory an operation is."""
    if op.name not in ("load", "store") or op.attrs["space"] != "global":
        return 0
    value = op.results[0] if op.results else op.operands[1]
    bits = int(op.attrs["vector"]) * max(8, ELEMENT_BITS[value.elem])
    return op.operands[0].count * max(1, bits // LARGEST_BITS)


class PTX(Lanes, Memory, Arithmetic):
    """The dialect of one program."""

    convention = "ptx_kernel"

    def begin(self, e: Emitter) -> None:
        """What the program is like, for LLVM's passes; the mbarriers that it needs."""
        operations, self.remarks = list(e.program.body.walk()), e.program.remarks
        self.orders_sums = self.capability >= ORDERED_FROM and sum(map(_accesses, operations)) > SCATTERED
        self.rotates_loops = sum(op.name == "while" for op in operations) > LOOPS
        super().begin(e)

    def code(self, text: str) -> str:
        """The PTX of the program, from its LLVM IR."""
        ordered, rotated = self.orders_sums, self.rotates_loops
        return assembly(text, self.target, self.version, ordered=ordered, rotated=rotated, remarks=self.remarks)

    def instruction(
        self, e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]]
    ) -> list[list[Register]]:
        """An entry of `targets.nvidia`."""
        self.needs(entry.version)
        return write_instruction(e, op, entry, chunks)

    def wait(self, e: Emitter, op: LaneOp) -> None:
        """`wgmma.wait_group`."""
        write_wait(e, op)

    def assembly(self, e: Emitter, op: LaneOp) -> None:
        """Inline assembly, as it was written."""
        self.version = max(self.version, write_ptx(e, op))

    def print(self, e: Emitter, form: str, values: list[tuple[str, str]]) -> None:
        """CUDA's `vprintf`, which takes the address of a structure of the values."""
        address = address_of(e, form)
        type = f"{{ {', '.join(t for t, _ in values)} }}"
        e._count += 1
        buffer = f"%b{e._count}"
        e.f.allocas.append(f"  {buffer} = alloca {type}, align 8")
        for i, (kind, name) in enumerate(values):
            place = e.ins(f"getelementptr {type}, ptr {buffer}, i32 0, i32 {i}")
            e.do(f"store {kind} {name}, ptr {place}")
        e.do(e.call("vprintf", "i32", [("ptr", address), ("ptr", buffer)]))

    def give_up(self, e: Emitter, message: str, path: str, line: int) -> None:
        """CUDA's own assertion, from which no thread returns: what follows may assume that it held, and need not bring
        the threads of a warp together again."""
        said, where, kernel = (address_of(e, text) for text in (message, path, e.program.name))
        arguments = [("ptr", said), ("ptr", where), ("i32", str(line)), ("ptr", kernel), ("i64", "1")]
        e.do(e.call("__assertfail", "void", arguments, "noreturn"))

    def trap(self, e: Emitter) -> None:
        """`trap`."""
        e.asm("trap;", "", (), (), CONVERGENT)
