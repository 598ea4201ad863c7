"""A lane program to a code object, with what a launch needs to know."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from weft.backends.amd import AMDGPU, assembled, facts_of, linked, object_code
from weft.backends.gpu import emit_llvm, emitted_of
from weft.base import CompileOptions
from weft.ir.lane import LaneProgram, text_of

from ..stages import stage


def make(
    program: LaneProgram, language: CompileOptions, maxnreg: int | None, warps: int, timings: dict[str, float]
) -> tuple[dict[str, Any], dict[str, str | bytes]]:
    """(facts, texts). `warps` of them are to fit on a SIMD; 0 is any number."""
    with stage("llir", timings, lambda: text_of(program)):
        dialect = AMDGPU(program.machine, warps)
        llir = emit_llvm(program, dialect, language.enable_fp_fusion, maxnreg)
    with stage("amdgcn", timings, lambda: llir):
        inlined = dialect.inlined
        parts = assembled(llir, dialect.target, inlined) if inlined else (object_code(llir, dialect.target),)
    with stage("hsaco", timings, lambda: llir):
        image = linked(*parts)
        taken = asdict(facts_of(image))
    emitted = emitted_of(program, dialect, llir, "", maxnreg)
    facts = {**emitted.metadata, "maxnreg": emitted.maxnreg, "taken": taken}
    return facts, {"llir": llir, "hsaco": image}
