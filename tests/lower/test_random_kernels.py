"""The random kernels of the CPU's fuzzer on the GPU's road: what the simulator computes, NumPy computes.

Of seeds beyond these some (68, 72, 1145) store to one address from several lanes; which of them stays is not the same.
"""

from __future__ import annotations

import sys

import pytest

import weft
import weft.sim
from fuzz.compare import VARIANTS, difference, generate

SEEDS = [*range(40), 1010, 1082, 1171]
"""The last ones have gathers by an index of another length than the source, which were wrong."""


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected with mprotect")
@pytest.mark.parametrize("seed", SEEDS)
def test_agrees_with_numpy(seed: int) -> None:
    with weft.target(f"sim:cuda:{(80, 90)[seed % 2]}"):
        assert not difference(generate(seed), VARIANTS["host"])
