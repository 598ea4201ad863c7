"""Programs for these tests: from the test kernels, or by hand; and ptxas, where there is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weft.backends.gpu import Emitted
from weft.backends.nvidia import emit
from weft.backends.nvidia.ptxas import MachineCode, assemble, find_tool
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline, layout_pipeline

FOLDER = Path(__file__).resolve().parents[2] / "data" / "ttir"
LAYOUT_IR = FOLDER.parent / "ttgir"
NAMES = sorted(p.stem for p in FOLDER.glob("*.ttir"))
OF_TRITON = sorted(p.stem for p in LAYOUT_IR.glob("*.ttgir") if "_gfx" not in p.stem)
"""Layout IR that Triton wrote for NVIDIA GPUs."""
TARGETS = ("cuda:80", "cuda:90")

needs_ptxas = pytest.mark.skipif(find_tool() is None, reason="there is no ptxas on this machine")


def program_of(name: str, target: str) -> LaneProgram:
    """The lane program of a test kernel."""
    module = tile_pipeline(parse_module((FOLDER / f"{name}.ttir").read_text(encoding="utf-8"), name))
    return lower(gpu_pipeline(module, machine_of(target)), machine_of(target))


def program_of_layout_ir(name: str) -> LaneProgram:
    """The lane program of layout IR that Triton wrote; it says itself what it is for."""
    text = (LAYOUT_IR / f"{name}.ttgir").read_text(encoding="utf-8")
    return lower(layout_pipeline(parse_module(text, name)))


def assembled(program: LaneProgram) -> tuple[Emitted, MachineCode]:
    """The program's PTX and what ptxas made of it."""
    emitted = emit(program)
    return emitted, assemble(emitted.code, emitted.processor)


def code(ptx: str) -> list[str]:
    """The instructions of a kernel, without comments and declarations, registers and blanks made alike."""
    body = ptx[ptx.index("{", ptx.index(".entry")) :]
    lines = (re.sub(r"//.*", "", line).strip() for line in body.splitlines())
    return [re.sub(r"\s+", " ", line) for line in lines if line.endswith(";") and not line.startswith((".reg", ".loc"))]


def kinds(ptx: str) -> list[str]:
    """What each instruction is, without its operands and its predicate."""
    return [re.sub(r"^@!?%p\d+ ", "", line).split(" ")[0].rstrip(";") for line in code(ptx)]
