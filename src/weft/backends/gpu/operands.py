"""How registers are spelled, and what an access is that is not one of LLVM's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from weft.ir.lane import LaneOp
from weft.ops import ELEMENTS

LLVM = {e.name: e.llvm for e in ELEMENTS.values()}
"""The LLVM type of a register, by element type; fp8 is kept as its bits."""

BITS = {e.llvm: e.bits for e in ELEMENTS.values()}


class Sum:
    """An integer: a register (or nothing) and a constant."""

    __slots__ = ("base", "offset", "type")

    def __init__(self, base: str, offset: int, type: str) -> None:
        bits = 32 if type == "i32" else 64
        half = 1 << bits - 1
        self.base, self.offset, self.type = base, (offset + half & (1 << bits) - 1) - half, type


class Part:
    """One of the elements that a word of `count` elements holds, the lowest first."""

    __slots__ = ("count", "index", "type", "word")

    def __init__(self, word: str, index: int, count: int, type: str) -> None:
        self.word, self.index, self.count, self.type = word, index, count, type


Register: TypeAlias = str | Sum | Part


@dataclass(frozen=True)
class Shape:
    """How an access of `vector` elements is done: `words` of an LLVM type, each of `each` elements."""

    word: str
    words: int
    each: int
    bits: int


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a thread that is not a plain one of LLVM's."""

    op: LaneOp
    elem: str
    space: str
    address: Register
    mask: Register | None
    more: int
    """Bytes beyond the address."""
    shape: Shape

    @property
    def word(self) -> str:
        """The LLVM type of its registers: single bytes are in words of 32 bits."""
        return "i32" if self.shape.bits == 8 else self.shape.word
