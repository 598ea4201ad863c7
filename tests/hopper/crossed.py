"""Products of two left operands with the same two right ones, for the simulator: tiles with neither a
power of two of rows nor of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.language as tl

from .running import aligned
from .specialized import described, simulated


@weft.jit
def of_two_left_operands(  # type: ignore[no-untyped-def]
    a, a2, b, b2, c, c2, d, d2, m, n, k,
    M: tl.constexpr, M2: tl.constexpr, N: tl.constexpr, N2: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """c = a b by tiles of M + M2 rows and N + N2 columns, as products of c^T = b^T a^T."""
    blocks_n = tl.cdiv(n, N + N2)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M + M2) * blocks_n, PROGRAMS, warp_specialize=True):
        i, j = tile // blocks_n * (M + M2), tile % blocks_n * (N + N2)
        acc, acc2 = tl.zeros((N, M), tl.float32), tl.zeros((N, M2), tl.float32)
        low, low2 = tl.zeros((N2, M), tl.float32), tl.zeros((N2, M2), tl.float32)
        for at in range(0, k, BK):
            x, x2 = b.load([at, j]).T, b2.load([at, j + N]).T
            y, y2 = a.load([i, at]).T, a2.load([i + M, at]).T
            acc, acc2 = tl.dot(x, y, acc), tl.dot(x, y2, acc2)
            low, low2 = tl.dot(x2, y, low), tl.dot(x2, y2, low2)
        c.store([i, j], acc.to(c.dtype).T)
        c2.store([i + M, j], acc2.to(c.dtype).T)
        d.store([i, j + N], low.to(c.dtype).T)
        d2.store([i + M, j + N], low2.to(c.dtype).T)


@dataclass
class Crossed:
    """A product over tiles of `rows` by `columns`, two parts each. Sizes need not be multiples of a tile's."""

    sizes: tuple[int, int, int] = (56, 200, 72)
    rows: tuple[int, int] = (32, 16)
    columns: tuple[int, int] = (128, 64)
    programs: int = 2
    stages: int = 2
    blocks: int = 1

    def operands(self) -> tuple[np.ndarray, np.ndarray]:
        """The same operands each time."""
        m, n, k = self.sizes
        rng, (a, b) = np.random.default_rng(1), (aligned(s, np.float16) for s in ((m, k), (k, n)))
        a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
        return a, b

    def exact(self) -> np.ndarray:
        """The product in f64."""
        a, b = self.operands()
        return a.astype(np.float64) @ b.astype(np.float64)

    def run(self, *, options: Any = None) -> tuple[np.ndarray, Any]:
        """The product, and the launch."""
        a, b = self.operands()
        c = aligned(self.sizes[:2], np.float16)
        blocks = [*((a, (x, 64)) for x in self.rows), *((b, (64, x)) for x in self.columns)]
        blocks += [(c, (x, y)) for y in self.columns for x in self.rows]
        sizes = dict(zip(("M", "M2", "N", "N2"), (*self.rows, *self.columns), strict=True))
        made = simulated(
            of_two_left_operands, (self.programs,), *(described(*x) for x in blocks), *self.sizes, **sizes, BK=64,
            PROGRAMS=self.programs, options=options, num_warps=8, num_stages=self.stages, num_ctas=self.blocks,
        )  # fmt: skip
        return c, made
