"""Layout IR that Triton wrote, lowered and run in the simulator: what NumPy gives, with every checker on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft.ir.gpu  # the operations of layout IR
from hopper.running import Described
from kernels import load_cases
from kernels.case import Descriptor, copy_arguments
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.lower import lower
from weft.passes.gpu_pipelines import layout_pipeline
from weft.sim import Options, run

FILES = sorted((Path(__file__).resolve().parent.parent / "data" / "ttgir").glob("*.ttgir"))
CASES = load_cases("weft")


def case_of(path: Path) -> str:
    return path.stem.removesuffix("_sm80").removesuffix("_sm90")


RUNNING = [p for p in FILES if case_of(p) in CASES]


def given(program: LaneProgram, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments by the names of parameters; behind a descriptor stands what Triton's launcher hands over for it."""
    names = [p.name for p in program.parameters]
    if all(name in arguments for name in names):
        return {name: arguments[name] for name in names}
    found: list[Any] = []
    maps = {p.name for p in program.parameters if p.elem == "tensormap"}
    for name, value in arguments.items():
        if not isinstance(value, Descriptor):
            found += [value] if name in names else []
            continue
        array = value.array
        sizes = [*array.shape, *(s // array.itemsize for s in array.strides)]
        if name in maps:
            found += [Described(array, value.block_shape, value.padding), *sizes]
        else:
            found += [array, *sizes, value.padding == "nan", *sizes]
    return dict(zip(names, found, strict=True))


def test_there_are_enough() -> None:
    assert len(RUNNING) >= 25
    assert weft.ir.gpu.ttg is not None


@pytest.mark.parametrize("order", ["forward", "backward"])
@pytest.mark.parametrize("path", RUNNING, ids=[p.stem for p in RUNNING])
@pytest.mark.thinned(3)
def test_runs_in_the_simulator(path: Path, order: str) -> None:
    case = CASES[case_of(path)]
    program = lower(layout_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name)))
    before = case.make_inputs()
    after = copy_arguments(before)
    run(program, case.grid, given(program, after), Options(order=order))
    case.check(before, after)
