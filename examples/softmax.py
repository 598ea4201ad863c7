"""Softmax over rows, fused: one pass over memory instead of five.

NumPy computes `x.max()`, `x - max`, `exp`, `sum` and the division one after another, each a trip through memory. Here
one program reads a row into a tile, keeps it, and writes the finished row: the data crosses the bus twice in all.

The tile is the next power of two at least as long as the row. Columns beyond the end load `-inf`, whose exponential is
0, so that they change neither the maximum nor the sum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + columns, numerator / tl.sum(numerator, axis=0), mask=mask)


def softmax(x: Array, out: Array) -> None:
    """out[i] = exp(x[i]) / sum(exp(x[i]))"""
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, columns, columns, columns, BLOCK=weft.next_power_of_2(columns))


def plain_softmax(x: Array) -> Array:
    """The same in NumPy."""
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def works() -> Iterator[Work]:
    """A square matrix, and one whose rows are not a power of two."""
    for rows, columns in ((2048, 2048), (4096, 1000)):
        x, out = normal(rows, columns), np.zeros((rows, columns), np.float32)

        def torch_work(torch, x=x):
            a, b = torch.from_numpy(x), torch.empty(x.shape)
            return lambda: torch.softmax(a, 1, out=b)

        yield Work(
            f"{rows}x{columns} fp32",
            lambda: softmax(x, out),
            lambda: out,
            lambda: plain_softmax(x.astype(np.float64)),
            numpy=lambda: plain_softmax(x),
            torch=torch_work,
            bytes=8 * x.size,
        )


if __name__ == "__main__":
    main(__file__, works)
