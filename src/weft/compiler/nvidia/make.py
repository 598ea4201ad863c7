"""A lane program to PTX, with what a launch needs to know."""

from __future__ import annotations

from typing import Any

from weft.backends.gpu import emit_llvm, emitted_of
from weft.backends.nvidia import PTX
from weft.base import CompileOptions
from weft.ir.lane import LaneProgram, text_of

from ..stages import stage


def make(
    program: LaneProgram, language: CompileOptions, maxnreg: int | None, timings: dict[str, float]
) -> tuple[dict[str, Any], dict[str, str]]:
    """(facts, texts)."""
    with stage("llir", timings, lambda: text_of(program)):
        dialect = PTX(program.machine)
        llir = emit_llvm(program, dialect, language.enable_fp_fusion, maxnreg)
    with stage("ptx", timings, lambda: llir):
        ptx = dialect.code(llir)
    emitted = emitted_of(program, dialect, llir, ptx, maxnreg)
    return {**emitted.metadata, "maxnreg": emitted.maxnreg}, {"llir": llir, "ptx": ptx}
