"""Sorting rows, and the k largest of each.

`tl.sort` runs a bitonic network on the last axis of a tile: always the same comparisons, whatever the data, so that all
elements move at once. `tl.topk` stops when the k largest are known. A program may hold several rows in one tile.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def sort_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    offsets = rows * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + offsets, tl.sort(tl.load(x_ptr + offsets)))


@weft.jit
def topk_kernel(x_ptr, out_ptr, n_cols, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, N)
    x = tl.load(x_ptr + row * n_cols + columns, mask=columns < n_cols, other=-float("inf"))
    tl.store(out_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


def sort_rows(x: Array, out: Array) -> None:
    """Each row in ascending order; its length a power of two."""
    sort_kernel[(x.shape[0] // 4,)](x, out, ROWS=4, N=x.shape[1])


def topk(x: Array, out: Array) -> None:
    """The largest of each row, in descending order."""
    rows, columns = x.shape
    topk_kernel[(rows,)](x, out, columns, N=weft.next_power_of_2(columns), K=out.shape[1])


def works() -> Iterator[Work]:
    """Rows of 256 sorted; the 8 largest of 1000."""
    x, out = normal(4096, 256), np.zeros((4096, 256), np.float32)

    def torch_sort(torch):
        a, values, indices = torch.from_numpy(x), torch.empty(x.shape), torch.empty(x.shape, dtype=torch.int64)
        return lambda: torch.sort(a, out=(values, indices))

    yield Work(
        "4096x256 fp32 sort",
        lambda: sort_rows(x, out),
        lambda: out,
        lambda: np.sort(x, 1),
        tolerance=0,
        numpy=lambda: np.sort(x, 1),
        torch=torch_sort,
        bytes=8 * x.size,
    )

    y, best = normal(4096, 1000), np.zeros((4096, 8), np.float32)

    def torch_topk(torch):
        a = torch.from_numpy(y)
        return lambda: torch.topk(a, 8)

    yield Work(
        "4096x1000 fp32 top 8",
        lambda: topk(y, best),
        lambda: best,
        lambda: np.sort(y, 1)[:, :-9:-1],
        tolerance=0,
        numpy=lambda: np.sort(np.partition(y, -8, 1)[:, -8:], 1)[:, ::-1],
        torch=torch_topk,
        bytes=4 * y.size,
    )


if __name__ == "__main__":
    main(__file__, works)
