"""2D blocks in SPIR-V: one call for each, and a lane's part of a block in memory of its own on the way.

    %block = alloca [16 x i16]
    call void @_Z32__spirv_Subgroup2DBlockLoadINTEL...(i32 2, i32 16, i32 8, i32 2, ptr addrspace(1) %base, i32 %width,
                                                       i32 %height, i32 %pitch, <2 x i32> %at, ptr %block)
    %words = load <8 x i16>, ptr %block                                  and the others, as products take them

The first four numbers are the bytes of an element, columns, rows and blocks. Translators keep such memory in registers.
Transforms and transposes give words of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.lane import LaneOp
from weft.targets.instruction import Instruction
from weft.targets.intel.blocks import PREFETCH, STORE, TRANSFORM, TRANSPOSE, Block

from ..gpu.emitter import CONVERGENT, Emitter, Register
from ..gpu.memory import pointer_to
from .vectors import Vectors

LONGEST = 8
"""Words of the vectors that products take; SPIR-V's longest have 16."""


def write_block(
    e: Emitter, op: LaneOp, entry: Instruction, chunks: Sequence[Sequence[Register]], vectors: Vectors
) -> list[list[Register]]:
    """Write an access to a block; the elements that it loads, if it does."""
    block: Block = entry.params["block"]
    base, width, height, pitch, x, y = (part[0] for part in chunks[:6])
    at = e.pure(f"insertelement <2 x i32> poison, i32 {e.name(x)}, i32 0")
    at = e.pure(f"insertelement <2 x i32> {at}, i32 {e.name(y)}, i32 1")
    pointer, _, address = pointer_to(e, base, "global").rpartition(" ")
    sizes = [("i32", str(size)) for size in block.sizes]
    surface = [(pointer, address), *(("i32", e.name(n)) for n in (width, height, pitch)), ("<2 x i32>", at)]
    if block.kind == PREFETCH:
        e.do(e.call(entry.text, "void", [*sizes, *surface], CONVERGENT))
        return []
    data = entry.operands[6] if block.kind == STORE else entry.results[0]
    bits = 32 if block.kind in (TRANSFORM, TRANSPOSE) else block.bytes * 8
    if data.count > 1 and block.kind not in (TRANSFORM, TRANSPOSE) and block.columns * block.bytes > 32:
        bits = min(32, bits * (block.columns * block.bytes // 32))  # neighbours that a lane has
    words = data.count * block.bytes * 8 // bits
    place = _Place(e, words, f"i{bits}", block.kind == STORE)
    if block.kind == STORE:
        place.store(vectors.packed(e, chunks[6], e.llvm[op.operands[6].elem], place.type))
        e.do(e.call(entry.text, "void", [*sizes, ("ptr", place.first), *surface], CONVERGENT))
        return []
    e.do(e.call(entry.text, "void", [*sizes, *surface, ("ptr", place.first)], CONVERGENT))
    value, each = op.results[0], data.count // len(place.starts)
    parts = (vectors.elements(e, value, place.load(start), place.type, each) for start in place.starts)
    return [[register for part in parts for register in part]]


class _Place:
    """An array of words of the lane's own, which vectors are loaded from as products take them."""

    def __init__(self, e: Emitter, words: int, word: str, stored: bool) -> None:
        self.e, self.whole = e, f"[{words} x {word}]"
        self.array = f"%block{len(e.f.allocas)}"
        e.f.allocas.append(f"  {self.array} = alloca {self.whole}, align 64")
        each = words if stored else min(words, LONGEST)
        self.type = word if each == 1 else f"<{each} x {word}>"
        self.starts = range(0, words, each)
        self.first = self.at(0)

    def at(self, word: int) -> str:
        """A pointer to one of its words."""
        return self.e.ins(f"getelementptr inbounds {self.whole}, ptr {self.array}, i64 0, i64 {word}")

    def load(self, start: int) -> str:
        """A vector that begins at a word."""
        return self.e.ins(f"load {self.type}, ptr {self.at(start)}, align 64")

    def store(self, value: str) -> None:
        """All of it, which is one vector."""
        self.e.do(f"store {self.type} {value}, ptr {self.first}, align 64")
