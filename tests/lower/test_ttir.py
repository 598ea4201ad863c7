"""Triton kernels on the GPU's road: plain layouts, the lowering, the simulator; what NumPy gives, every checker on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import load_cases
from kernels.case import copy_arguments
from weft.ir import parse_module
from weft.lower import lower
from weft.passes import tile_pipeline
from weft.passes.assign_layouts import assign_layouts
from weft.passes.decompose_dot_scaled import decompose_dot_scaled
from weft.sim import run

FILES = sorted((Path(__file__).resolve().parent.parent / "data" / "ttir").glob("*.ttir"))
CASES = load_cases("weft")

NOT_YET = {
    "choose_pointer": "arguments that the case computes",
    "descriptor_matmul": "tensor descriptors",
    "descriptor_matmul_f32": "tensor descriptors",
    "descriptor_reduce": "tensor descriptors",
    "descriptor_window": "tensor descriptors",
    "device_descriptor_matmul": "tensor descriptors",
    "dot_3d": "batched products",
    "spin_lock": "tt.atomic_cas",
    "sum_lists": "pointers in memory",
    "tickets": "old values of atomics by one lane",
}
"""Cases whose lowering is not written; the reason."""

RUNNING = [p for p in FILES if p.stem in CASES and p.stem not in NOT_YET]


def test_there_are_enough() -> None:
    assert len(RUNNING) >= 130


@pytest.mark.parametrize("path", RUNNING, ids=[p.stem for p in RUNNING])
def test_runs_in_the_simulator(path: Path) -> None:
    case = CASES[path.stem]
    module = tile_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name))
    decompose_dot_scaled(module)
    program = lower(assign_layouts(module, "cuda:80"))
    before = case.make_inputs()
    after = copy_arguments(before)
    run(program, case.grid, {p.name: after[p.name] for p in program.parameters})
    case.check(before, after)
