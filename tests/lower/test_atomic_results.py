"""What an atomic gives reaches every copy of an element, also where matrix instructions store tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.gluon import language as gl


@gluon.jit
def counted(x, y, z, rows: gl.constexpr, columns: gl.constexpr):
    i = gl.arange(0, 32, gl.SliceLayout(1, rows))[:, None]
    j = gl.arange(0, 8, gl.SliceLayout(0, rows))[None, :]
    before = gl.atomic_add(x + i * 8 + j, i * 0 + 7)
    gl.store(y + i * 8 + j, before)
    moved = gl.convert_layout(before * 2, columns)
    i = gl.arange(0, 32, gl.SliceLayout(1, columns))[:, None]
    j = gl.arange(0, 8, gl.SliceLayout(0, columns))[None, :]
    gl.store(z + i * 8 + j, moved)


LAYOUTS = [
    gl.BlockedLayout([1, 1], [4, 8], [2, 2], [1, 0]),  # two warps hold copies
    gl.NVMMADistributedLayout([2, 0], [1, 4], [16, 8]),  # all do
    gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8]),
    gl.BlockedLayout([1, 2], [16, 2], [1, 4], [1, 0]),
]


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("rows", LAYOUTS)
def test_every_copy_has_it(target: str, rows: Any) -> None:
    for columns in LAYOUTS:
        x = np.arange(256, dtype=np.int32)
        y, z = np.zeros_like(x), np.zeros_like(x)
        with weft.target(target):
            counted[(1,)](x, y, z, rows, columns, num_warps=4)
        np.testing.assert_array_equal(x, np.arange(256) + 7)
        np.testing.assert_array_equal(y, np.arange(256))
        np.testing.assert_array_equal(z, 2 * np.arange(256))
