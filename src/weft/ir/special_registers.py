"""Assembly that only reads a register of the machine which a CPU has an equivalent of.

    mov.u64 $0, %globaltimer;      a clock in nanoseconds
    mov.u32 $0, %smid;             the number of the thread that runs the program
    mov.u32 $0, %tid.x;            0: a program is one thread, and a scalar is what the first one of a GPU holds

`register_of` gives the name of the register, for `tl.extra.cuda.globaltimer` and for what kernels write themselves.
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from .tt_compute import ElementwiseInlineAsmOp
from .types import is_int

CLOCKS = {"globaltimer": 0, "globaltimer_lo": 0, "globaltimer_hi": 32, "clock64": 0, "clock": 0, "clock_hi": 32}
"""Registers that count nanoseconds here, and the lowest bit that they show."""
NANOSECONDS = "mov.u64 $0, %globaltimer;"
"""The first of them, as kernels read it."""
FIXED_REGISTERS = {
    **dict.fromkeys(("laneid", "warpid", "lanemask_lt", "gridid", "cluster_ctarank"), 0),
    **dict.fromkeys(("lanemask_eq", "lanemask_le", "cluster_nctarank"), 1),
    "lanemask_gt": 0xFFFF_FFFE,
    "lanemask_ge": 0xFFFF_FFFF,
    **{f"{name}.{axis}": 0 for name in ("tid", "cluster_ctaid") for axis in "xyz"},
    **{f"cluster_nctaid.{axis}": 1 for axis in "xyz"},
}
"""What the first thread of a program that is a cluster by itself reads."""
_PROGRAM = {f"{name}.{axis}" for name in ("ctaid", "nctaid", "clusterid", "nclusterid") for axis in "xyz"}
_KNOWN = {*CLOCKS, *_PROGRAM, *FIXED_REGISTERS, "smid"}
_READ = re.compile(r"\s*\{?\s*mov\.[ub](?:32|64)\s+\$0\s*,\s*%([a-z0-9_.]+)\s*;?\s*\}?\s*(?://[^\n]*)?\s*")


def register_of(op: Operation) -> str | None:
    """The register that an operation reads, if it does that only, into a scalar, and a CPU has one for it."""
    if not isinstance(op, ElementwiseInlineAsmOp) or op.operands or len(op.results) != 1:
        return None
    match = _READ.fullmatch(op.asm_string.data) if isinstance(op.asm_string, StringAttr) else None
    if match is None or match[1] not in _KNOWN or not is_int(op.results[0].type):
        return None
    return match[1]
