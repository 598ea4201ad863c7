"""Inline assembly in AMD's text: which registers its constraints name.

An element of less than 32 bits is in the low bits of a register, whose others are 0; a bool is 0 or 1.
"""

from __future__ import annotations

import re

from ..gpu.emitter import CONVERGENT_PURE, Emitter
from ..gpu.inline import Registers

SCALAR = ("s", "r")


class AMDRegisters(Registers):
    """Vector registers, which each lane has, and scalar ones, which a warp has once; on CDNA those of products too."""

    clobbers = re.compile(r"~\{(?:\w+|[vsa]\[\d+:\d+\])\}")
    widened = {"i1": "i32", "i8": "i32", "i16": "i32"}

    def __init__(self, is_cdna: bool) -> None:
        letters = "vsra" if is_cdna else "vsr"
        self.outputs, self.inputs = re.compile(f"=&?[{letters}]"), re.compile(rf"[{letters}]|\d+")
        products = ", a (a register of products)" if is_cdna else ""
        self.kinds = f"v (a vector register), s and r (a scalar one){products}, of 32 bits, or pairs for 64"

    def operand(self, e: Emitter, constraint: str, type: str, name: str) -> str:
        """In a scalar register the value of the first lane, which LLVM would not take by itself."""
        if constraint not in SCALAR or name.lstrip("-").isdigit():
            return name
        if type in ("float", "double"):
            word = f"i{32 if type == 'float' else 64}"
            scalar = self.operand(e, constraint, word, e.pure(f"bitcast {type} {name} to {word}"))
            return e.pure(f"bitcast {word} {scalar} to {type}")
        return e.ins(e.call(f"llvm.amdgcn.readfirstlane.{type}", type, [(type, name)], CONVERGENT_PURE))
