"""Products of fp8 whose operands have scales by blocks, for the simulator, and what NumPy says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.language as tl
from weft.sim import Options

from .running import DTYPES, aligned
from .specialized import described, simulated


@weft.jit
def by_descriptors(  # type: ignore[no-untyped-def]
    a, b, sa, sb, c, n, k, steps, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr
):
    """c = a b^T; sa has a scale for BK elements of a row of a, sb for BK by BK of b."""
    m0, n0 = tl.program_id(0) * BM, tl.program_id(1) * BN
    rows, columns = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for step in tl.range(0, steps, warp_specialize=WS):
        left, right = a.load([m0, step * BK]), b.load([n0, step * BK]).T
        by_row, by_column = tl.load(sa + rows * steps + step), tl.load(sb + columns // BK * steps + step)
        acc += tl.dot(left, right) * by_row[:, None] * by_column[None, :]
    tl.store(c + rows[:, None] * n + columns[None, :], acc)


@weft.jit
def by_pointers(  # type: ignore[no-untyped-def]
    a, b, sa, sb, c, n, k, steps, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr
):
    """The same with pointers that the loop moves, those of the scales too, and masks along k."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_at, b_at = a + rows[:, None] * k + inner[None, :], b + columns[None, :] * k + inner[:, None]
    sa_at, sb_at = sa + rows * steps, sb + columns // BK * steps
    acc = tl.zeros((BM, BN), tl.float32)
    for step in tl.range(0, steps, warp_specialize=WS):
        left = tl.load(a_at, mask=inner[None, :] < k - step * BK, other=0.0)
        right = tl.load(b_at, mask=inner[:, None] < k - step * BK, other=0.0)
        acc += tl.dot(left, right) * tl.load(sa_at)[:, None] * tl.load(sb_at)[None, :]
        a_at += BK
        b_at += BK
        sa_at += 1
        sb_at += 1
    tl.store(c + rows[:, None] * n + columns[None, :], acc)


@dataclass
class Scaled:
    """A product of whole blocks; k need not be a multiple of the block's."""

    sizes: tuple[int, int, int] = (64, 64, 384)
    block: tuple[int, int, int] = (64, 64, 64)
    kernel: Any = by_descriptors
    kind: str = "fp8"
    warps: int = 4
    stages: int = 2
    asked: bool = True

    def operands(self) -> list[np.ndarray]:
        """a, b and their scales."""
        (m, n, k), bk = self.sizes, self.block[2]
        rng = np.random.default_rng(0)
        found = [aligned(shape, DTYPES[self.kind]) for shape in ((m, k), (n, k))]
        for array in found:
            array[...] = rng.standard_normal(array.shape).astype(np.float32).astype(array.dtype)
        steps = -(-k // bk)
        for shape in ((m, steps), (-(-n // bk), steps)):
            scales = aligned(shape, np.float32)
            scales[...] = rng.random(shape) + 0.5
            found.append(scales)
        return found

    def run(self, *, options: Options | None = None, stages: int = 0) -> tuple[np.ndarray, Any]:
        """The product and the kernel."""
        (m, n, k), (bm, bn, bk) = self.sizes, self.block
        a, b, sa, sb = self.operands()
        c = aligned((m, n), np.float32)
        sides: tuple[Any, ...] = (a, b)
        if self.kernel is by_descriptors:
            sides = described(a, (bm, bk)), described(b, (bn, bk))
        made = simulated(
            self.kernel, (m // bm, n // bn), *sides, sa, sb, c, n, k, -(-k // bk), BM=bm, BN=bn, BK=bk,
            WS=self.asked, options=options, num_warps=self.warps, num_stages=stages or self.stages,
        )  # fmt: skip
        return c, made

    def exact(self) -> np.ndarray:
        a, b, sa, sb = (x.astype(np.float64) for x in self.operands())
        (_, n, k), bk = self.sizes, self.block[2]
        a *= np.repeat(sa, bk, axis=1)[:, :k]
        b *= np.repeat(np.repeat(sb, bk, axis=0)[:n], bk, axis=1)[:, :k]
        return a @ b.T
