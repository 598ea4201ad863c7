"""Random kernels on the GPU: NumPy's values, and the same bits at the second launch; `make gpu-fuzz` runs new ones."""

from __future__ import annotations

import pytest

from fuzz.compare import check
from weft.compiler import devices


@pytest.mark.parametrize("seed", range(48))
def test_agrees_with_numpy_and_with_itself(seed: int) -> None:
    clusters = "-x2" if seed % 4 == 3 and devices.current_device().capability >= 90 else ""
    check(seed, f"cuda{clusters}")


@pytest.mark.parametrize("seed", range(24))
def test_gluon_agrees_with_numpy_and_with_itself(seed: int) -> None:
    check(seed, f"gluon:cuda:{90 if devices.current_device().capability >= 90 else 80}")
