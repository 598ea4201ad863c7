"""Layer norm, forward and backward.

Forward: one program normalises one row and keeps its mean and reciprocal standard deviation for the backward pass.

Backward has two kinds of results. `dx` belongs to a row, so the row's program writes it. `dweight` and `dbias` are sums
over all rows; programs that add to the same place at the same time need *atomic* additions. One for each row would
queue up, so each program takes several rows, keeps the sums in tiles, and adds them once at its end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def forward_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + columns, mask=mask)
    bias = tl.load(bias_ptr + columns, mask=mask)
    tl.store(out_ptr + row * n_cols + columns, centred * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@weft.jit
def backward_kernel(
    dy_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dweight_ptr,
    dbias_ptr,
    n_rows,
    n_cols,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0)
    dweight = tl.zeros([BLOCK], tl.float32)
    dbias = tl.zeros([BLOCK], tl.float32)
    first = tl.program_id(0) * ROWS
    for row in range(first, min(first + ROWS, n_rows)):
        offsets = row * n_cols + columns
        x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
        dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0)
        rstd = tl.load(rstd_ptr + row)
        normed = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        weighted = dy * weight
        along = tl.sum(normed * weighted, axis=0) / n_cols
        constant = tl.sum(weighted, axis=0) / n_cols
        tl.store(dx_ptr + offsets, (weighted - normed * along - constant) * rstd, mask=mask)
        dweight += dy * normed
        dbias += dy
    tl.atomic_add(dweight_ptr + columns, dweight, mask=mask)
    tl.atomic_add(dbias_ptr + columns, dbias, mask=mask)


class LayerNorm:
    """Arrays of one layer and its two passes."""

    def __init__(self, rows: int, columns: int, eps: float = 1e-5) -> None:
        self.eps = eps
        self.x, self.dy = normal(rows, columns), normal(rows, columns, seed=1)
        self.weight, self.bias = normal(columns, seed=2), normal(columns, seed=3)
        self.out, self.dx = np.zeros_like(self.x), np.zeros_like(self.x)
        self.mean, self.rstd = np.zeros(rows, np.float32), np.zeros(rows, np.float32)
        self.dweight, self.dbias = np.zeros(columns, np.float32), np.zeros(columns, np.float32)

    def forward(self) -> None:
        rows, columns = self.x.shape
        forward_kernel[(rows,)](
            self.x,
            self.weight,
            self.bias,
            self.out,
            self.mean,
            self.rstd,
            columns,
            self.eps,
            BLOCK=weft.next_power_of_2(columns),
        )

    def backward(self) -> None:
        rows, columns = self.x.shape
        self.dweight[:] = 0
        self.dbias[:] = 0
        ROWS = 64
        backward_kernel[(weft.cdiv(rows, ROWS),)](
            self.dy,
            self.x,
            self.weight,
            self.mean,
            self.rstd,
            self.dx,
            self.dweight,
            self.dbias,
            rows,
            columns,
            ROWS=ROWS,
            BLOCK=weft.next_power_of_2(columns),
        )


def plain_forward(x: Array, weight: Array, bias: Array, eps: float) -> Array:
    """The same in NumPy."""
    centred = x - x.mean(1, keepdims=True)
    result: Array = centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * weight + bias
    return result


def plain_backward(dy: Array, x: Array, weight: Array, eps: float) -> tuple[Array, Array, Array]:
    """The same in NumPy: dx, dweight, dbias."""
    rstd = 1 / np.sqrt(x.var(1, keepdims=True) + eps)
    normed = (x - x.mean(1, keepdims=True)) * rstd
    weighted = dy * weight
    along = (normed * weighted).mean(1, keepdims=True)
    dx = (weighted - normed * along - weighted.mean(1, keepdims=True)) * rstd
    return dx, (dy * normed).sum(0), dy.sum(0)


def works() -> Iterator[Work]:
    """Both passes on 2048 rows."""
    rows, columns = 2048, 2048
    layer = LayerNorm(rows, columns)

    def torch_forward(torch):
        x, weight, bias = (torch.from_numpy(array) for array in (layer.x, layer.weight, layer.bias))
        return lambda: torch.nn.functional.layer_norm(x, (columns,), weight, bias, layer.eps)

    yield Work(
        f"{rows}x{columns} fp32 forward",
        layer.forward,
        lambda: layer.out,
        lambda: plain_forward(layer.x.astype(np.float64), layer.weight, layer.bias, layer.eps),
        numpy=lambda: plain_forward(layer.x, layer.weight, layer.bias, layer.eps),
        torch=torch_forward,
        bytes=8 * layer.x.size,
    )

    def torch_backward(torch):
        x, weight, bias, dy = (torch.from_numpy(array) for array in (layer.x, layer.weight, layer.bias, layer.dy))
        mean, rstd = (torch.from_numpy(array)[:, None] for array in (layer.mean, layer.rstd))
        step = torch.ops.aten.native_layer_norm_backward
        return lambda: step(dy, x, (columns,), mean, rstd, weight, bias, (True, True, True))

    def expected() -> Array:
        dx, dweight, dbias = plain_backward(
            layer.dy.astype(np.float64), layer.x.astype(np.float64), layer.weight, layer.eps
        )
        return np.vstack([dx, dweight, dbias])

    yield Work(
        f"{rows}x{columns} fp32 backward",
        layer.backward,
        lambda: np.vstack([layer.dx, layer.dweight, layer.dbias]),
        expected,
        tolerance=1e-4,
        numpy=lambda: plain_backward(layer.dy, layer.x, layer.weight, layer.eps),
        torch=torch_backward,
        bytes=12 * layer.x.size,
    )


if __name__ == "__main__":
    main(__file__, works)
