"""Histogram: counts within a tile, then one atomic addition for each bin.

`tl.histogram` counts the values 0 to BINS - 1 of a tile without leaving it. Programs that added every element to shared
counters would wait for each other at every step; here each adds BINS numbers, once, after several tiles.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main


@weft.jit
def histogram_kernel(x_ptr, counts_ptr, n, TILES: tl.constexpr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    counts = tl.zeros([BINS], tl.int32)
    first = tl.program_id(0) * TILES * BLOCK
    for tile in range(TILES):
        offsets = first + tile * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask, other=0).to(tl.int32)
        counts += tl.histogram(x, BINS, mask=mask)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts)


def histogram(x: Array, counts: Array) -> None:
    """counts[v] = how often v occurs in x"""
    counts[:] = 0
    BLOCK, TILES = 1024, 64
    histogram_kernel[(weft.cdiv(x.size, BLOCK * TILES),)](x, counts, x.size, TILES=TILES, BLOCK=BLOCK, BINS=counts.size)


def works() -> Iterator[Work]:
    """The bytes of an image with 4 million pixels."""
    n, bins = 1 << 22, 256
    x = np.clip(np.random.default_rng(0).normal(128, 40, n), 0, 255).astype(np.uint8)
    counts = np.zeros(bins, np.int32)

    def torch_work(torch):
        a = torch.from_numpy(x)
        return lambda: torch.bincount(a, minlength=bins)

    yield Work(
        f"{n >> 20} Mi uint8, {bins} bins",
        lambda: histogram(x, counts),
        lambda: counts,
        lambda: np.bincount(x, minlength=bins),
        tolerance=0,
        numpy=lambda: np.bincount(x, minlength=bins),
        torch=torch_work,
        bytes=n,
    )


if __name__ == "__main__":
    main(__file__, works)
