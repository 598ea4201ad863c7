"""Loops of machine code without vectors are those that docs/reference/scalar_loops.md lists, with the reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aarch64.loops import count
from fuzz.compare import AVX2
from kernels.library import load_cases
from kernels.running import arguments_of
from weft.compiler import host_cpu

pytestmark = pytest.mark.skipif(not (host_cpu().is_x86 and host_cpu().has("avx2")), reason="counts loops of AVX2")

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scalar_loops.md"
CASES = load_cases("weft")
WITHOUT = (
    "sort_rows",
    "gathers",
    "scatter",
    "cast_float32_to_int32",
    "cast_float32_to_uint8",
    "quantise_rows",
    "float_atomics",
)
"""Kernels that had scalar loops, or might have."""


def listed() -> dict[str, int]:
    """Of each kernel in the table the number of its scalar loops."""
    table = PAGE.read_text(encoding="utf-8").partition("## Loops")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \| (\d+) \|", table, re.M)
    return {name: int(number) for names, number in rows for name in re.findall(r"`(\w+)`", names)}


def scalar_loops(name: str) -> int:
    """How many loops of a kernel work on one element at a time."""
    case = CASES[name]
    kernel = case.kernel.warmup(**arguments_of(case), **case.constexprs, **case.options, **AVX2, grid=case.grid)
    return count(kernel.asm["asm"], arm=False).scalar


@pytest.mark.parametrize("name", [*WITHOUT, "histograms", "mapped", "math_functions"])
def test_scalar_loops_are_listed(name: str) -> None:
    assert scalar_loops(name) == listed().get(name, 0)


@pytest.mark.slow
def test_all_scalar_loops_are_listed() -> None:
    counted = {name: scalar_loops(name) for name in CASES}
    assert {name: number for name, number in counted.items() if number} == listed()
