"""Layout IR that Triton wrote, lowered and run in the simulator: what NumPy gives, with every checker on."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft.ir.gpu  # the operations of layout IR
from kernels import load_cases
from kernels.case import copy_arguments
from weft.ir import parse_module
from weft.lower import lower
from weft.passes.gpu_pipelines import layout_pipeline
from weft.sim import Options, run

FILES = sorted((Path(__file__).resolve().parent.parent / "data" / "ttgir").glob("*.ttgir"))
CASES = load_cases("weft")

NOT_YET = {
    "descriptor_matmul": "tensor descriptors",
    "descriptor_reduce": "tensor descriptors",
    "descriptor_window": "tensor descriptors",
    "device_descriptor_matmul": "tensor descriptors",
}
"""Cases whose lowering is not written; the reason."""


def case_of(path: Path) -> str:
    return path.stem.removesuffix("_sm80").removesuffix("_sm90")


RUNNING = [p for p in FILES if case_of(p) in CASES and case_of(p) not in NOT_YET]


def test_there_are_enough() -> None:
    assert len(RUNNING) >= 25
    assert weft.ir.gpu.ttg is not None


@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("path", RUNNING, ids=[p.stem for p in RUNNING])
def test_runs_in_the_simulator(path: Path, order: str) -> None:
    case = CASES[case_of(path)]
    program = lower(layout_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name)))
    before = case.make_inputs()
    after = copy_arguments(before)
    run(program, case.grid, {p.name: after[p.name] for p in program.parameters}, Options(order=order))
    case.check(before, after)
