"""Inline assembly in PTX: which registers its constraints name, and which version of PTX has what it says."""

from __future__ import annotations

import re

from weft.ir.lane import LaneOp

from ..gpu.emitter import Emitter
from ..gpu.inline import Registers, write_assembly

NEWER = {
    r"multimem\.|e[45]m[23]x2|\bst\.async": 81,
    r"\btensormap\.|fence\.proxy\.tensormap": 83,
    r"e2m1|e3m2|e2m3|ue8m0|f32x2\b|tcgen05\.|clusterlaunchcontrol|redux\.sync\.\w+(?:\.abs)?(?:\.NaN)?\.f32": 86,
    r"\bcvt\.rs\b": 87,
}
"""Words of assembly, and the version of PTX, times ten, that has them: what is not here every version has."""


class PTXRegisters(Registers):
    """Typed ones; 8 bits are in one of 16."""

    outputs, inputs = re.compile(r"=&?[hrlfdbc]"), re.compile(r"[hrlfdbcn]|\d+")
    clobbers = re.compile(r"~\{\w+\}")
    immediates = "n"
    kinds = "h and c (16 bits), r and f (32), l and d (64), b (a predicate), n (an integer in the instruction itself)"
    widened = {"i8": "i16"}


def write_ptx(e: Emitter, op: LaneOp) -> int:
    """Write it; the version of PTX, times ten, that has what it says, or 0."""
    write_assembly(e, op, PTXRegisters())
    return max((v for words, v in NEWER.items() if re.search(words, op.attrs["text"])), default=0)
