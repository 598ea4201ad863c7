"""A lane program to PTX.

emitted = emit(program)
emitted.code, emitted.name, emitted.threads, emitted.shared_bytes
"""

from __future__ import annotations

from weft.ir.lane import LaneProgram

from ..gpu.emission import Emitted, emit_llvm, emitted_of
from .dialect import PTX


def emit(program: LaneProgram, *, fp_fusion: bool = True, maxnreg: int | None = None) -> Emitted:
    """The PTX of a lane program. Unsupported where the target lacks something, CompilerCrash where LLVM refuses it."""
    dialect = PTX(program.machine)
    llir = emit_llvm(program, dialect, fp_fusion, maxnreg)
    return emitted_of(program, dialect, llir, dialect.code(llir), maxnreg)
