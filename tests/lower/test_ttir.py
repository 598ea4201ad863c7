"""Triton kernels on the GPU's road: plain layouts, the lowering, the simulator; what NumPy gives, every checker on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernels import load_cases
from kernels.case import Descriptor, copy_arguments
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline
from weft.sim import run

FILES = sorted((Path(__file__).resolve().parent.parent / "data" / "ttir").glob("*.ttir"))
CASES = load_cases("weft")

NOT_HERE = {"sum_lists": "its arrays hold addresses of the host, and the simulator has its own"}
"""Cases that cannot run in the simulator; the reason."""

RUNNING = [p for p in FILES if p.stem in CASES and p.stem not in NOT_HERE]


def parts_of(value: Any) -> list[Any]:
    """The arguments that one of a case is: a descriptor is its array, padding, shape and strides."""
    if isinstance(value, Descriptor):
        array = value.array
        steps = [s // array.itemsize for s in array.strides]
        return [array, int(value.padding == "nan"), *array.shape, *steps]
    return [value]


def arguments_of(program: LaneProgram, given: dict[str, Any]) -> dict[str, Any]:
    """What each parameter of a program is, in the order of the kernel's own."""
    names = [p.name for p in program.parameters]
    if all(name in given for name in names):
        return {name: given[name] for name in names}
    parts = [part for v in given.values() for part in parts_of(v)]
    if len(parts) != len(names):  # some are compile-time constants
        parts = [part for k, v in given.items() if isinstance(v, Descriptor) or k in names for part in parts_of(v)]
    return dict(zip(names, parts, strict=True))


def test_there_are_enough() -> None:
    assert len(RUNNING) >= 130


@pytest.mark.parametrize("path", RUNNING, ids=[p.stem for p in RUNNING])
def test_runs_in_the_simulator(path: Path) -> None:
    case = CASES[path.stem]
    module = tile_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name))
    program = lower(gpu_pipeline(module, "cuda:80"))
    before = case.make_inputs()
    after = copy_arguments(before)
    run(program, case.grid, arguments_of(program, after))
    case.check(before, after)
