"""A few random kernels over rows; `python -m fuzz.rows` runs more."""

from __future__ import annotations

import pytest

from .rows import difference


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.thinned(2)
def test_rows_agree(seed: int) -> None:
    assert difference(seed, "sim:cuda:90") == ""


@pytest.mark.parametrize("seed", range(3))
def test_wide_rows_agree(seed: int) -> None:
    assert difference(seed, "sim:cuda:90", is_wide=True) == ""
