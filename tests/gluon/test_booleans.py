"""Booleans in shared memory are bytes, also where matrix instructions move them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.gluon import language as gl


@gluon.jit
def through(x, y, rows: gl.constexpr, columns: gl.constexpr, memory: gl.constexpr, turned: gl.constexpr):
    i = gl.arange(0, 32, gl.SliceLayout(1, rows))[:, None]
    j = gl.arange(0, 32, gl.SliceLayout(0, rows))[None, :]
    held = gl.allocate_shared_memory(gl.int1, [32, 32], memory)
    held.store(gl.load(x + i * 32 + j) > 3)
    view = held.permute([1, 0]) if turned else held
    i = gl.arange(0, 32, gl.SliceLayout(1, columns))[:, None]
    j = gl.arange(0, 32, gl.SliceLayout(0, columns))[None, :]
    gl.store(y + i * 32 + j, view.load(columns).to(gl.int32) * 5)


MMA = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
LAYOUTS = [
    gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]), gl.BlockedLayout([4, 1], [4, 8], [1, 4], [0, 1]), MMA,
    gl.DotOperandLayout(0, MMA, 4), gl.DotOperandLayout(1, MMA, 4),
]  # fmt: skip
MEMORY = [
    gl.NVMMASharedLayout(0, 8, 2),
    gl.NVMMASharedLayout(32, 8, 2, True),
    gl.SwizzledSharedLayout(16, 1, 2, [1, 0]),
]


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("memory", MEMORY, ids=lambda m: type(m).__name__)
def test_all_ways_in_and_out(target: str, memory: Any) -> None:
    x = np.random.default_rng(3).integers(0, 8, (32, 32)).astype(np.int32)
    moved = set[str]()
    for rows in LAYOUTS:
        for columns in LAYOUTS:
            for turned in (False, True):
                y = np.zeros_like(x)
                with weft.target(target):
                    through[(1,)](x, y, rows, columns, memory, turned, num_warps=4)
                want = (x > 3).astype(np.int32) * 5
                np.testing.assert_array_equal(y, want.T if turned else want)
                moved |= {kind for kind in weft.sim.last_run().kinds if "matrix" in kind}
    assert any(kind.startswith("ldmatrix") for kind in moved)
    assert any(kind.startswith("stmatrix") for kind in moved) == (target == "sim:cuda:90")
