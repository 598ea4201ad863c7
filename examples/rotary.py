"""Rotary embedding: every head's vector is rotated, pair by pair, by angles that grow with the position.

Element d is paired with element d + HALF. One program handles one position of one sequence, all heads at once: a tile
of shape (HEADS, HALF), which broadcasting builds from two index vectors, `h[:, None]` and `d[None, :]`. The cosines and
sines are loaded once as (1, HALF) and broadcast over the heads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def rotary_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq_len, heads, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0)
    position = token % seq_len
    h = tl.arange(0, HEADS)[:, None]
    d = tl.arange(0, HALF)[None, :]
    cos = tl.load(cos_ptr + position * HALF + d)
    sin = tl.load(sin_ptr + position * HALF + d)
    offsets = token.to(tl.int64) * heads * 2 * HALF + h * 2 * HALF + d
    mask = h < heads
    low = tl.load(x_ptr + offsets, mask=mask)
    high = tl.load(x_ptr + offsets + HALF, mask=mask)
    tl.store(out_ptr + offsets, low * cos - high * sin, mask=mask)
    tl.store(out_ptr + offsets + HALF, high * cos + low * sin, mask=mask)


def rotary(x: Array, cos: Array, sin: Array, out: Array) -> None:
    """Rotate x of shape (batch, sequence, heads, 2 * HALF)."""
    batch, seq_len, heads, head = x.shape
    rotary_kernel[(batch * seq_len,)](
        x, cos, sin, out, seq_len, heads, HEADS=weft.next_power_of_2(heads), HALF=head // 2
    )


def plain_rotary(x: Array, cos: Array, sin: Array) -> Array:
    """The same in NumPy."""
    low, high = np.split(x, 2, axis=-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


def works() -> Iterator[Work]:
    """12 heads, which is not a power of two."""
    batch, seq_len, heads, head = 4, 1024, 12, 128
    x = normal(batch, seq_len, heads, head)
    angle = np.arange(seq_len)[:, None] / 10000 ** (np.arange(head // 2) / (head // 2))
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    out = np.zeros_like(x)

    def torch_work(torch):
        a, c, s = (torch.from_numpy(array) for array in (x, cos[:, None, :], sin[:, None, :]))

        def step():
            low, high = a.chunk(2, -1)
            return torch.cat([low * c - high * s, high * c + low * s], -1)

        return step

    yield Work(
        f"{batch}x{seq_len}x{heads}x{head} fp32",
        lambda: rotary(x, cos, sin, out),
        lambda: out,
        lambda: plain_rotary(x.astype(np.float64), cos, sin),
        numpy=lambda: plain_rotary(x, cos, sin),
        torch=torch_work,
        bytes=8 * x.size,
    )


if __name__ == "__main__":
    main(__file__, works)
