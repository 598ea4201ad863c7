"""Dropout from a seed: random numbers that need no memory.

`tl.rand(seed, offsets)` is counter based (Philox): the number at an offset depends on the seed and the offset alone.
The mask is never stored; the backward pass asks for the same numbers again, in any order and with any tile size. The
same seed gives the same bits on every machine and as Triton gives on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def dropout(x: Array, out: Array, p: float, seed: int) -> None:
    """Zero a share `p` of x and scale up the rest."""
    BLOCK = 1024
    dropout_kernel[(weft.cdiv(x.size, BLOCK),)](x, out, x.size, p, seed, BLOCK=BLOCK)


def philox(seed: int, n: int) -> Array:
    """The first word of Philox 4x32-10 for counters 0 to n - 1, as the kernel's generator defines it."""
    c = [np.arange(n, dtype=np.uint64), *(np.zeros(n, np.uint64) for _ in range(3))]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        left, right = np.uint64(0xCD9E8D57) * c[2], np.uint64(0xD2511F53) * c[0]
        c = [
            (left >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            left & low,
            (right >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            right & low,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0].astype(np.uint32)


def expected(x: Array, p: float, seed: int) -> Array:
    """The same in float64, from the definition of the generator."""
    bits = philox(seed, x.size).view(np.int32).astype(np.int64)
    uniform = np.where(bits < 0, -bits - 1, bits).astype(np.float32) * np.float32(4.6566127342e-10)
    return np.where(uniform > np.float32(p), x.astype(np.float64) / (1 - p), 0)


def works() -> Iterator[Work]:
    """4 million elements; NumPy and PyTorch draw other numbers, but as many."""
    n, p, seed = 1 << 22, 0.5, 20240607
    x, out = normal(n), np.zeros(n, np.float32)
    rng = np.random.default_rng(0)

    def torch_work(torch):
        a = torch.from_numpy(x)
        return lambda: torch.nn.functional.dropout(a, p)

    yield Work(
        f"{n >> 20} Mi fp32",
        lambda: dropout(x, out, p, seed),
        lambda: out,
        lambda: expected(x, p, seed),
        numpy=lambda: np.where(rng.random(n, np.float32) > p, x / np.float32(1 - p), np.float32(0)),
        torch=torch_work,
        bytes=8 * n,
    )


if __name__ == "__main__":
    main(__file__, works)
