"""Random Gluon kernels and layouts in the simulator, which reports races too; `make fuzz` runs new ones."""

from __future__ import annotations

import sys

import pytest

from ..compare import check


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected with mprotect")
@pytest.mark.parametrize("seed", range(28))
@pytest.mark.thinned(2)
def test_agrees_with_numpy(seed: int) -> None:
    check(seed, f"gluon:sim:cuda:{(80, 90)[seed % 2]}")


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected with mprotect")
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.thinned(2)
def test_agrees_on_any_values(seed: int) -> None:
    check(seed, f"special:gluon:sim:cuda:{(80, 90)[seed % 2]}")


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected with mprotect")
@pytest.mark.parametrize("seed", range(1, 7))
def test_tiles_move_through_any_layouts(seed: int) -> None:
    check(seed, f"layouts:gluon:sim:cuda:{(80, 90)[seed % 2]}")
