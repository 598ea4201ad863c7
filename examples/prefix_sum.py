"""Prefix sums: of rows, and of one long array in two passes.

`tl.cumsum` scans within a tile; `tl.associative_scan` does the same for any associative function. A long array needs
its tiles to know what came before them: the first kernel sums each tile, a scan over these few sums tells where each
tile starts, and the second kernel scans the tile and adds the start.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def row_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * n_cols + columns
    x = tl.load(x_ptr + offsets, mask=columns < n_cols, other=0.0)
    tl.store(out_ptr + offsets, tl.cumsum(x, axis=0), mask=columns < n_cols)


@weft.jit
def tile_sums_kernel(x_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0), axis=0))


@weft.jit
def start_kernel(sums_ptr, tiles, BLOCK: tl.constexpr):
    """Sums of all tiles before each tile, in place; one program."""
    i = tl.arange(0, BLOCK)
    sums = tl.load(sums_ptr + i, mask=i < tiles, other=0)
    tl.store(sums_ptr + i, tl.cumsum(sums, axis=0) - sums, mask=i < tiles)


@weft.jit
def tile_scan_kernel(x_ptr, starts_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.store(out_ptr + offsets, tl.cumsum(x, axis=0) + tl.load(starts_ptr + tl.program_id(0)), mask=offsets < n)


def row_sums(x: Array, out: Array) -> None:
    """out[i, j] = x[i, 0] + ... + x[i, j]"""
    rows, columns = x.shape
    row_kernel[(rows,)](x, out, columns, BLOCK=weft.next_power_of_2(columns))


def long_sum(x: Array, out: Array, sums: Array) -> None:
    """out[i] = x[0] + ... + x[i]; `sums` is scratch for one number a tile."""
    BLOCK = 4096
    tiles = weft.cdiv(x.size, BLOCK)
    tile_sums_kernel[(tiles,)](x, sums, x.size, BLOCK=BLOCK)
    start_kernel[(1,)](sums, tiles, BLOCK=weft.next_power_of_2(tiles))
    tile_scan_kernel[(tiles,)](x, sums, out, x.size, BLOCK=BLOCK)


def works() -> Iterator[Work]:
    """Rows of floats, and a long array of integers."""
    x, out = normal(2048, 2000), np.zeros((2048, 2000), np.float32)

    def torch_rows(torch):
        a, b = torch.from_numpy(x), torch.empty(x.shape)
        return lambda: torch.cumsum(a, 1, out=b)

    yield Work(
        "2048x2000 fp32",
        lambda: row_sums(x, out),
        lambda: out,
        lambda: np.cumsum(x.astype(np.float64), 1),
        tolerance=1e-4,
        numpy=lambda: np.cumsum(x, 1, out=out),
        torch=torch_rows,
        bytes=8 * x.size,
    )

    n = 1 << 22
    y = np.random.default_rng(0).integers(-100, 100, n, np.int32)
    z, sums = np.zeros(n, np.int32), np.zeros(n // 4096 + 1, np.int32)

    def torch_long(torch):
        a, b = torch.from_numpy(y), torch.empty(n, dtype=torch.int32)
        return lambda: torch.cumsum(a, 0, out=b)

    yield Work(
        f"{n >> 20} Mi int32",
        lambda: long_sum(y, z, sums),
        lambda: z,
        lambda: np.cumsum(y),
        tolerance=0,
        numpy=lambda: np.cumsum(y, out=z),
        torch=torch_long,
        bytes=12 * n,
    )


if __name__ == "__main__":
    main(__file__, works)
