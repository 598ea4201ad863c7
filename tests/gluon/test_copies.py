"""Copies written in Gluon, with layouts of every kind, in the simulator: what NumPy gives, with every checker on."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
from weft import gluon

TARGETS = ["sim:cuda:80", "sim:cuda:90"]


@gluon.jit
def copy_1d(x, y, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(y + i, gl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("per_thread", [1, 2, 4, 8, 16])
def test_copy_1d(target: str, per_thread: int) -> None:
    x = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    y = np.full_like(x, np.nan)
    layout = gl.BlockedLayout([per_thread], [32], [4], [0])
    with weft.target(target):
        copy_1d[(weft.cdiv(x.size, 1024),)](x, y, x.size, BLOCK=1024, layout=layout, num_warps=4)
    np.testing.assert_array_equal(x, y)
