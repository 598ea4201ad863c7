"""A lane program to a code object, with what a launch needs to know."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from weft.backends.amd import (
    AMDGPU,
    Processor,
    Saving,
    assembled,
    facts_of,
    linked,
    object_code,
    registers_for_one_more,
)
from weft.backends.gpu import emit_llvm, emitted_of
from weft.base import CompileOptions
from weft.ir.lane import LaneProgram, text_of

from ..stages import stage

NEARLY = (Saving.ADDRESSES | Saving.LOCAL, Saving.SLICES)
"""What is tried, one after the other, where one more warp nearly fits."""
SPILLING = (Saving.SLICES, Saving.SLICES | Saving.ADDRESSES)
"""What is tried where registers are spilled. Which is better nobody knows before: attention spills 18 registers and not
42 where addresses are computed in loops, a product of 256 x 256 736 and not 544. How much LDS there is LLVM may see: it
is told to take all registers, and does."""


def make(
    program: LaneProgram, language: CompileOptions, maxnreg: int | None, warps: int, timings: dict[str, float]
) -> tuple[dict[str, Any], dict[str, str | bytes]]:
    """(facts, texts). `warps` of them are to fit on a SIMD; 0 is any number."""
    with stage("llir", timings, lambda: text_of(program)):
        dialect = AMDGPU(program.machine, warps)
        llir = emit_llvm(program, dialect, language.enable_fp_fusion, maxnreg)
    with stage("amdgcn", timings, lambda: llir):
        inlined = dialect.inlined
        parts: tuple[bytes, ...] = (
            assembled(llir, dialect.target, inlined) if inlined else (object_code(llir, dialect.target),)
        )
        if not (maxnreg or warps or inlined):
            llir, parts = _narrower(program, language, dialect.target, llir, parts)
    with stage("hsaco", timings, lambda: llir):
        image = linked(*parts)
        taken = asdict(facts_of(image))
    emitted = emitted_of(program, dialect, llir, "", maxnreg)
    facts = {**emitted.metadata, "maxnreg": emitted.maxnreg, "taken": taken, "messages": dialect.printing.messages}
    return facts, {"llir": llir, "hsaco": image}


def _narrower(
    program: LaneProgram, language: CompileOptions, target: Processor, llir: str, parts: tuple[bytes, ...]
) -> tuple[str, tuple[bytes, ...]]:
    """(LLVM IR, objects): once more, where a thread spills, or a few registers less would let one more warp fit; what
    spills less is taken, or lets the warp fit without spilling."""
    taken = facts_of(parts[0])
    fewer = 0 if taken.spills else registers_for_one_more(target, taken.registers)
    if target.is_cdna or not (fewer or taken.spills):
        return llir, parts
    for saving in NEARLY if fewer else SPILLING:
        dialect = AMDGPU(program.machine, saving=saving)
        narrow = emit_llvm(program, dialect, language.enable_fp_fusion, fewer or None)
        code = object_code(narrow, target)
        found = facts_of(code)
        if fewer and not found.spills and found.registers <= fewer:
            return narrow, (code,)
        if found.spills < taken.spills:
            llir, parts, taken = narrow, (code,), found
    return llir, parts
