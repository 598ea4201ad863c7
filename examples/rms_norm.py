"""RMS norm on bf16 data, computed in float32.

Models keep activations in 16 bits, but sums of squares need more. A tile loaded as bf16 is widened with
`.to(tl.float32)`, everything in between is float32, and storing to a bf16 pointer rounds once, at the end. NumPy has no
bf16 of its own; arrays of `ml_dtypes.bfloat16` are passed as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import BF16, Array, Work, main, normal, to_torch


@weft.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + columns, x * scale * weight, mask=mask)


def rms_norm(x: Array, weight: Array, out: Array, eps: float = 1e-6) -> None:
    """out[i] = x[i] / sqrt(mean(x[i]**2) + eps) * weight"""
    rows, columns = x.shape
    rms_norm_kernel[(rows,)](x, weight, out, columns, eps, BLOCK=weft.next_power_of_2(columns))


def plain_rms_norm(x: Array, weight: Array, dtype: type, eps: float = 1e-6) -> Array:
    """The same in NumPy."""
    x = x.astype(dtype)
    result: Array = x / np.sqrt((x * x).mean(1, keepdims=True) + dtype(eps)) * weight.astype(dtype)
    return result


def works() -> Iterator[Work]:
    """The widths of a small and of a large model, in both types."""
    for rows, columns, dtype in ((4096, 2048, np.dtype(np.float32)), (4096, 2048, BF16)):
        x, weight, out = (
            normal(rows, columns, dtype=dtype),
            normal(columns, dtype=dtype),
            np.zeros((rows, columns), dtype),
        )

        def torch_work(torch, x=x, weight=weight, columns=columns):
            a, w = to_torch(torch, x), to_torch(torch, weight)
            return lambda: torch.nn.functional.rms_norm(a, (columns,), w, 1e-6)

        yield Work(
            f"{rows}x{columns} {dtype.name}",
            lambda: rms_norm(x, weight, out),
            lambda: out,
            lambda: plain_rms_norm(x, weight, np.float64),
            tolerance=1e-2 if dtype == BF16 else 1e-5,
            numpy=lambda: plain_rms_norm(x, weight, np.float32).astype(dtype),
            torch=torch_work,
            bytes=2 * x.nbytes,
        )


if __name__ == "__main__":
    main(__file__, works)
