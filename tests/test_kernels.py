"""Every kernel of tests/kernels runs on the CPU and agrees with NumPy in float64."""

from __future__ import annotations

import pytest

from kernels import load_cases
from kernels.running import run_case

CASES = load_cases("weft")


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_numpy(name: str) -> None:
    run_case(CASES[name])
