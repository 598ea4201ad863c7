"""Copies of which few blocks run at a time: every element arrives, whatever the grid is, and how many blocks run."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.nvidia.driver import api
from weft.backends.nvidia.faults import check


@weft.jit
def copied(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize(("block", "warps"), [(2048, 2), (4096, 4), (8192, 8)])
@pytest.mark.parametrize("grid", [1, 3, 8192, 9001])
def test_copies(block: int, warps: int, grid: int) -> None:
    n = block * grid - 16
    x = np.random.default_rng(grid).integers(-1000, 1000, n).astype(np.float32)
    on_gpu, out = weft.cuda.to_device(x), weft.cuda.to_device(np.zeros(block * grid, np.float32))
    kernel = copied[(grid,)](on_gpu, out, n, BLOCK=block, num_warps=warps)
    found = out.numpy()
    np.testing.assert_array_equal(found[:n], x)
    assert not found[n:].any()
    loaded = kernel.load()
    count = check(api().cuOccupancyMaxActiveBlocksPerMultiprocessor(loaded.kernel, 32 * warps, loaded.shared))
    assert kernel.metadata.most_blocks == {2048: 16, 4096: 8, 8192: 4}[block]
    assert int(count) >= kernel.metadata.most_blocks  # of all shared memory; a launch has a part of it
