"""LLVM IR for Intel's GPUs, as the common back end of GPUs asks for it: their `Dialect`.

dialect = SPIRV(program.machine)
words = spirv(emit_llvm(without_bf16(program), dialect))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.base import Unsupported
from weft.ir.lane import LaneOp, Value
from weft.machines import Machine
from weft.machines.intel import DG2
from weft.targets.instruction import Instruction

from ..gpu.diagnostics import address_of
from ..gpu.emitter import Emitter, Register
from .arithmetic import OF_OPENCL, Arithmetic
from .assertions import TRAPPED, Assertions, any_of
from .blocks import write_block
from .memory import Memory
from .vectors import Vectors, whole, write_product

CONSTANT = 2
"""The address space of what formats are in."""
CONSTANT_POINTER = f"ptr addrspace({CONSTANT})"
PRINTF = "printf"


class SPIRV(Memory, Arithmetic):
    """The dialect of one program. With `imports_products` a product is a call of the function that older compilers know
    for it, which the module imports (`imported` then has their names)."""

    prints = "call spir_func"
    """The instruction that prints."""

    def __init__(self, machine: Machine, imports_products: bool = False) -> None:
        super().__init__(machine)
        self.imports_products = imports_products
        self.imported: set[str] = set()
        self.assertions = Assertions()
        self.vectors: Vectors
        if machine.generation == DG2:  # which has no f64
            self.scalars = {**self.scalars, **OF_OPENCL}

    def instruction(
        self, e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]]
    ) -> list[list[Register]]:
        """An entry of `targets.intel`."""
        if "block" in entry.params:
            return write_block(e, op, entry, chunks, self.vectors)
        if self.imports_products:
            name, arguments = entry.params["imported"], entry.params["imported arguments"]
            entry = replace(entry, text=name, params={**entry.params, "arguments": arguments})
            self.imported.add(name)
        return write_product(e, op, entry, chunks, self.vectors)

    def begin(self, e: Emitter) -> None:
        """What products and blocks take."""
        super().begin(e)
        self.vectors = Vectors(e)

    def together(self, value: Value) -> int:
        """What one product gives."""
        return whole(value)

    def wait(self, e: Emitter, op: LaneOp) -> None:
        """Products are done when the next instruction wants them."""
        raise e.fail(op, f"waiting for a {op.attrs['kind']}")

    def assembly(self, e: Emitter, op: LaneOp) -> None:
        """None: what a kernel would say is for one GPU's assembler, and SPIR-V is for all."""
        raise Unsupported("inline assembly", e.program.target, op.span, hint="operations of the language do the same")

    def print(self, e: Emitter, form: str, values: list[tuple[str, str]]) -> None:
        """OpenCL's `printf`, whose format is in constant memory: the device's runtime writes the lines."""
        text = address_of(e, form.replace("%ll", "%l"), space=CONSTANT)
        e.module.declarations[PRINTF] = f"declare spir_func i32 @{PRINTF}({CONSTANT_POINTER}, ...)"
        given = ", ".join(f"{type} {name}" for type, name in [(CONSTANT_POINTER, text), *values])
        e.do(f"{self.prints} i32 ({CONSTANT_POINTER}, ...) @{PRINTF}({given})")

    def anywhere(self, e: Emitter, bit: str) -> str:
        """Where that of any thread of the block says so, as no thread may return alone: others wait at barriers."""
        return any_of(e, bit, of_block=e.program.warps > 1 and e.partition is None)

    def give_up(self, e: Emitter, message: str, path: str, line: int) -> None:
        """The program stops, and the launch says why."""
        self.assertions.fails(e, [message, path, line], is_alone=e.partition is not None)

    def trap(self, e: Emitter) -> None:
        """The same."""
        self.assertions.fails(e, [TRAPPED, "", 0], is_alone=e.partition is not None)
