"""Vector addition: the smallest complete kernel.

A kernel is a function that many *programs* run at once, each on its own *tile* of the data. Program number
`tl.program_id(0)` here takes elements `pid * BLOCK` to `pid * BLOCK + BLOCK - 1`. Nothing says that the length is a
multiple of BLOCK, so the last program masks what lies beyond the end: masked-off elements are neither read nor written.

`BLOCK: tl.constexpr` is known when the kernel is compiled, as tile shapes must be; `n` is not, so one compiled kernel
serves every length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x: Array, y: Array, out: Array) -> None:
    """out = x + y"""
    BLOCK = 4096
    grid = (weft.cdiv(x.size, BLOCK),)
    add_kernel[grid](x, y, out, x.size, BLOCK=BLOCK)


def works() -> Iterator[Work]:
    """16 million additions: as fast as memory can deliver."""
    n = 1 << 24
    x, y, out = normal(n), normal(n, seed=1), np.zeros(n, np.float32)

    def torch_work(torch):
        a, b, c = (torch.from_numpy(array) for array in (x, y, np.zeros_like(out)))
        return lambda: torch.add(a, b, out=c)

    yield Work(
        f"{n >> 20} Mi fp32",
        lambda: add(x, y, out),
        lambda: out,
        lambda: x.astype(np.float64) + y,
        numpy=lambda: np.add(x, y, out=out),
        torch=torch_work,
        bytes=12 * n,
    )


if __name__ == "__main__":
    main(__file__, works)
