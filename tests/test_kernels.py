"""Every kernel of tests/kernels runs on the CPU and agrees with NumPy in float64."""

from __future__ import annotations

import pytest

from kernels import load_cases
from kernels.running import run_case
from one_in import one_in
from weft.runtime import knobs

CASES = load_cases("weft")


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_numpy(name: str) -> None:
    run_case(CASES[name])


@pytest.mark.parametrize("name", one_in(4, CASES))
@pytest.mark.thinned(3)
def test_kernel_passes_every_check_of_debug(name: str) -> None:
    with knobs.runtime.scope():
        knobs.runtime.debug = True
        run_case(CASES[name])
