"""Embedding look-up (gather) and its gradient (scatter with atomics).

A tile of pointers need not be regular: `table_ptr + index[:, None] * width + d` reads whichever rows the indices name.
The gradient goes the other way. Two tokens may name the same row, in the same program or in different ones, so rows are
added with `tl.atomic_add`, which is right in any order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def gather_kernel(table_ptr, index_ptr, out_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, WIDTH)[None, :]
    mask = (i < n)[:, None]
    index = tl.load(index_ptr + i, mask=i < n, other=0)
    rows = tl.load(table_ptr + index[:, None] * WIDTH + d, mask=mask)
    tl.store(out_ptr + i[:, None] * WIDTH + d, rows, mask=mask)


@weft.jit
def scatter_add_kernel(grad_ptr, index_ptr, table_grad_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, WIDTH)[None, :]
    mask = (i < n)[:, None]
    index = tl.load(index_ptr + i, mask=i < n, other=0)
    grad = tl.load(grad_ptr + i[:, None] * WIDTH + d, mask=mask)
    tl.atomic_add(table_grad_ptr + index[:, None] * WIDTH + d, grad, mask=mask)


def gather(table: Array, index: Array, out: Array) -> None:
    """out[i] = table[index[i]]"""
    BLOCK = 8
    gather_kernel[(weft.cdiv(index.size, BLOCK),)](table, index, out, index.size, WIDTH=table.shape[1], BLOCK=BLOCK)


def scatter_add(grad: Array, index: Array, table_grad: Array) -> None:
    """table_grad[index[i]] += grad[i], from zero"""
    table_grad[:] = 0
    BLOCK = 8
    grid = (weft.cdiv(index.size, BLOCK),)
    scatter_add_kernel[grid](grad, index, table_grad, index.size, WIDTH=grad.shape[1], BLOCK=BLOCK)


def plain_scatter_add(grad: Array, index: Array, shape: tuple[int, ...]) -> Array:
    """The same in NumPy."""
    result = np.zeros(shape, grad.dtype)
    np.add.at(result, index, grad)
    return result


def works() -> Iterator[Work]:
    """16 thousand tokens from a table of 5000 rows."""
    tokens, rows, width = 16384, 5000, 256
    table = normal(rows, width)
    index = np.random.default_rng(0).integers(0, rows, tokens)
    out, grad, table_grad = np.zeros((tokens, width), np.float32), normal(tokens, width, seed=1), np.zeros_like(table)

    def torch_gather(torch):
        a, i, o = torch.from_numpy(table), torch.from_numpy(index), torch.empty(out.shape)
        return lambda: torch.index_select(a, 0, i, out=o)

    yield Work(
        f"{tokens}x{width} fp32 gather",
        lambda: gather(table, index, out),
        lambda: out,
        lambda: table[index],
        tolerance=0,
        numpy=lambda: np.take(table, index, 0, out=out),
        torch=torch_gather,
        bytes=2 * out.nbytes,
    )

    def torch_scatter(torch):
        g, i, o = torch.from_numpy(grad), torch.from_numpy(index), torch.zeros(table_grad.shape)
        return lambda: o.zero_().index_add_(0, i, g)

    yield Work(
        f"{tokens}x{width} fp32 scatter add",
        lambda: scatter_add(grad, index, table_grad),
        lambda: table_grad,
        lambda: plain_scatter_add(grad.astype(np.float64), index, table.shape),
        numpy=lambda: plain_scatter_add(grad, index, table.shape),
        torch=torch_scatter,
        bytes=3 * grad.nbytes,
    )


if __name__ == "__main__":
    main(__file__, works)
