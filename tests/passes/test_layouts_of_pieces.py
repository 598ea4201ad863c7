"""Layouts where what a lane takes at a time is small: scans of rows that begin anywhere, and transposing copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def sums_so_far(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < width
    value = tl.load(x + row * width + column, mask, other=0.0)
    tl.store(out + row * width + column, tl.cumsum(value, 0), mask)


@weft.jit
def transposed(x, out, rows, columns, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)[:, None]
    j = tl.program_id(1) * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + i * rows + j, tl.load(x + i + j * columns))


@weft.jit
def sums_of_pairs(x, totals, odd, WIDTH: tl.constexpr):
    row, column = tl.arange(0, 8)[:, None], tl.arange(0, WIDTH)[None, :]
    value = tl.load(x + row * WIDTH + column)
    pairs = tl.interleave(value, value)
    sums = tl.cumsum(pairs, 1)
    columns, seconds = tl.reshape(sums, [16 * WIDTH]), tl.split(tl.reshape(sums, [WIDTH * 8, 2]))[1]
    tl.store(totals + tl.arange(0, 16 * WIDTH), columns)
    tl.store(odd + tl.arange(0, 8 * WIDTH), seconds)


def test_a_scan_has_one_run_in_each_thread() -> None:
    """Four runs apart take four times as many shuffles, more than four lines of memory for each load do."""
    x = np.ones((2, 501), np.float32)
    out = np.zeros_like(x)
    args: tuple[Any, ...] = (x, out, 501)
    text = sums_so_far.warmup(*args, BLOCK=512, grid=(2,), target="cuda:90").asm["ttgir"]
    scan = next(line for line in text.splitlines() if "(tensor<512xf32, #" in line)
    name = scan.rpartition("#")[2].rstrip(">")
    assert f"#{name} = #ttg.blocked<{{sizePerThread = [4]" in text
    with weft.target("sim:cuda:90"):
        sums_so_far[(2,)](*args, BLOCK=512)
    np.testing.assert_array_equal(out, np.cumsum(x, 1))


@pytest.mark.parametrize("warps", [1, 4])
def test_a_scan_of_a_view_is_done_as_its_result_lies(warps: int) -> None:
    """There was no layout to choose for it: nobody has said how a view of what was loaded is to lie."""
    x = np.arange(128, dtype=np.int32).reshape(8, 16)
    totals, odd = np.zeros((8, 32), np.int32), np.zeros((8, 16), np.int32)
    with weft.target("sim:cuda:90"):
        sums_of_pairs[(1,)](x, totals, odd, WIDTH=16, num_warps=warps)
    wanted = np.cumsum(np.repeat(x, 2, 1), 1)
    np.testing.assert_array_equal(totals, wanted)
    np.testing.assert_array_equal(odd, wanted[:, 1::2])


def test_a_small_transposing_copy_loads_whole_sectors() -> None:
    """From [1, 8] halves of a thread, each warp would load half of each sector, and another warp the other half."""
    x = np.zeros((64, 64), np.float16)
    kernel = transposed.warmup(x, x, 64, 64, SIZE=32, grid=(2, 2), target="cuda:90")
    loads = [line for line in kernel.asm["lane"].splitlines() if "= load" in line and "space=global" in line]
    assert len(loads) == 1
    assert "vector=8" in loads[0]
