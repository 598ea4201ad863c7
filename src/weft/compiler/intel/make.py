"""A lane program to a module of SPIR-V, with what a launch needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.backends.gpu import emit_llvm, emitted_of
from weft.backends.intel import SPIRV, WholeWarps, checked, spirv, widened
from weft.base import CompileOptions
from weft.ir.lane import LaneProgram, text_of
from weft.machines.intel import WHOLE_WARPS

from ..stages import stage


def make(
    program: LaneProgram, language: CompileOptions, options: Mapping[str, Any], timings: dict[str, float]
) -> tuple[dict[str, Any], dict[str, str | bytes]]:
    """(facts, texts)."""
    with stage("llir", timings, lambda: text_of(program)):
        is_whole = program.machine.name.endswith(WHOLE_WARPS)
        dialect = (WholeWarps if is_whole else SPIRV)(program.machine, bool(options.get("imported_products")))
        llir = emit_llvm(program, dialect, language.enable_fp_fusion)
        if is_whole:
            llir = widened(llir, program.lanes, program.target)
    with stage("spirv", timings, lambda: llir):
        code = spirv(llir)
        taken = checked(code, dialect.imported)
    emitted = emitted_of(program, dialect, llir, "")
    facts = {
        **emitted.metadata,
        "extensions": list(taken.extensions),
        "imports": sorted(dialect.imported),
        "messages": dialect.assertions.messages,
    }
    if is_whole:
        facts["threads"] = program.warps
    return facts, {"llir": llir, "spirv": code}
