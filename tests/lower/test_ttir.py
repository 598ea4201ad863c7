"""Triton kernels on the GPU's road: plain layouts, the lowering, the simulator; what NumPy gives, every checker on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels import load_cases
from kernels.case import copy_arguments
from kernels.simulated import arguments_of
from weft.ir import parse_module, unit_attr
from weft.lower import lower
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline
from weft.passes.nvidia.bulk_loads import NOT_MADE
from weft.sim import run

FILES = sorted((Path(__file__).resolve().parent.parent / "data" / "ttir").glob("*.ttir"))
CASES = load_cases("weft")

NOT_HERE = {"sum_lists": "its arrays hold addresses of the host, and the simulator has its own"}
"""Cases that cannot run in the simulator; the reason."""

RUNNING = [p for p in FILES if p.stem in CASES and p.stem not in NOT_HERE]


def test_there_are_enough() -> None:
    assert len(RUNNING) >= 130


@pytest.mark.parametrize("path", RUNNING, ids=[p.stem for p in RUNNING])
@pytest.mark.thinned(3)
def test_runs_in_the_simulator(path: Path) -> None:
    case = CASES[path.stem]
    module = tile_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name))
    program = lower(gpu_pipeline(module, machine_of("cuda:80")))
    before = case.make_inputs()
    after = copy_arguments(before)
    run(program, case.grid, arguments_of(program, after))
    case.check(before, after)


PRODUCTS = [p for p in RUNNING if any(word in p.stem for word in ("matmul", "attention", "gram", "dot"))]


@pytest.mark.parametrize("path", PRODUCTS, ids=[p.stem for p in PRODUCTS])
@pytest.mark.thinned(3)
def test_products_of_warp_groups(path: Path) -> None:
    case = CASES[path.stem]
    module = tile_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name))
    module.attributes[NOT_MADE] = unit_attr()  # no launch makes tensor maps here
    program = lower(gpu_pipeline(module, machine_of("cuda:90")))
    before = case.make_inputs()
    after = copy_arguments(before)
    run(program, case.grid, arguments_of(program, after))
    case.check(before, after)
