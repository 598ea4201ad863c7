"""Products as calls, whose operands are vectors: those that are vectors already stay so.

    %v = load <8 x i16>, ptr %block                         a part of a 2D block, as an instruction takes it
    %d = call <8 x float> @dpas(..., <8 x i16> %v, ...)     and not eight elements, taken out and put in again

What only products take is never taken apart. Without that, two of three lines of a matmul would be
`insertelement` and `extractelement`, which take LLVM and the device's compiler their time.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.lane import LaneOp, LaneProgram, Value
from weft.targets.instruction import Instruction
from weft.targets.table import instruction

from ..gpu.calls import packed, unpacked
from ..gpu.emitter import CONVERGENT_PURE, Emitter, Register

MOVES = ("rename", "join")
"""Operations that write nothing: they say which registers are meant."""


class Vectors:
    """The vectors of one program, by the registers that are their elements."""

    def __init__(self, program: LaneProgram) -> None:
        self.of: dict[tuple[str, tuple[Register, ...]], str] = {}
        self.inside: dict[Register, tuple[str, str, str, int, int]] = {}
        """Of elements that were not taken out: the vector, its type, that of an element, how many it has, which."""
        self.apart: set[Value] = set()
        """Values that something else than a product takes."""
        for op in reversed(list(program.body.walk())):
            is_product = op.name == "instruction" and instruction(op.attrs["isa"]).products
            is_moved = op.name in MOVES and self.apart.isdisjoint(op.results)
            if not is_product and not is_moved:
                self.apart.update(op.operands)

    def elements(self, e: Emitter, value: Value, name: str, type: str, count: int) -> list[Register]:
        """The elements of a vector that is a value or a part of it; they stay inside where only products take them."""
        elem = e.llvm[value.elem]
        if value in self.apart:
            elements = unpacked(e, name, type, elem, count)
        else:
            elements = [f"{name}.{i}" for i in range(count)]
            self.inside |= {r: (name, type, elem, count, i) for i, r in enumerate(elements)}
        self.of[type, tuple(elements)] = name
        return elements

    def packed(self, e: Emitter, registers: Sequence[Register], elem: str, type: str) -> str:
        """Registers as one value of a type."""
        found = self.of.get((type, tuple(registers)))
        return packed(e, [self._outside(e, r) for r in registers], elem, type) if found is None else found

    def _outside(self, e: Emitter, register: Register) -> Register:
        """A register that can be named: taken out of its vector, in another order than it has there."""
        if register not in self.inside:
            return register
        name, type, elem, count, i = self.inside[register]
        return unpacked(e, name, type, elem, count)[i]


def write_product(
    e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]], vectors: Vectors
) -> list[list[Register]]:
    """Write a product; the elements of its result."""
    given = {
        operand.name: (registers, e.llvm[value.elem])
        for operand, registers, value in zip(entry.operands, chunks, op.operands, strict=True)
    }
    arguments: list[tuple[str, str]] = []
    for type, what in entry.params["arguments"]:
        arguments.append((type, str(what) if isinstance(what, int) else vectors.packed(e, *given[what], type)))
    type, result = entry.params["returns"], op.results[0]
    made = e.ins(e.call(entry.text, type, arguments, CONVERGENT_PURE))
    return [vectors.elements(e, result, made, type, entry.results[0].count)]
