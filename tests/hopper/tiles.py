"""Products over tiles, as persistent kernels have them, for the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.language as tl

from .running import DTYPES, aligned
from .specialized import described, simulated


@weft.jit
def by_descriptors(  # type: ignore[no-untyped-def]
    a, b, c, bias, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    """c = relu(a b + bias)."""
    blocks_n = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * blocks_n
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True, warp_specialize=WS):
        m0, n0 = tile // blocks_n * BM, tile % blocks_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for at in range(0, k, BK):
            acc = tl.dot(a.load([m0, at]), b.load([at, n0]), acc)
        columns = n0 + tl.arange(0, BN)
        acc += tl.load(bias + columns, columns < n, 0.0)[None, :]
        c.store([m0, n0], tl.maximum(acc, 0.0).to(c.dtype))


@weft.jit
def in_halves(  # type: ignore[no-untyped-def]
    a, b, c, bias, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    """The same, and each tile is stored in two halves."""
    blocks_n = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * blocks_n
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True, warp_specialize=WS):
        m0, n0 = tile // blocks_n * BM, tile % blocks_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for at in range(0, k, BK):
            acc = tl.dot(a.load([m0, at]), b.load([at, n0]), acc)
        columns = n0 + tl.arange(0, BN)
        acc = tl.maximum(acc + tl.load(bias + columns, columns < n, 0.0)[None, :], 0.0)
        left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
        c.store([m0, n0], left.to(c.dtype))
        c.store([m0, n0 + BN // 2], right.to(c.dtype))


@weft.jit
def turned(  # type: ignore[no-untyped-def]
    a, b, c, bias, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    """The same as c^T = relu(b^T a^T + bias): all warps wait for each other before the tile, transposed, is stored."""
    blocks_n = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * blocks_n
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True, warp_specialize=WS):
        m0, n0 = tile // blocks_n * BM, tile % blocks_n * BN
        acc = tl.zeros((BN, BM), tl.float32)
        for at in range(0, k, BK):
            acc = tl.dot(b.load([at, n0]).T, a.load([m0, at]).T, acc)
        columns = n0 + tl.arange(0, BN)
        acc += tl.load(bias + columns, columns < n, 0.0)[:, None]
        c.store([m0, n0], tl.maximum(acc, 0.0).to(c.dtype).T)


@weft.jit
def place(tile, in_group, blocks_m, GROUP: tl.constexpr):  # type: ignore[no-untyped-def]
    """Row and column of a tile, in groups of rows."""
    first = tile // in_group * GROUP
    size = min(blocks_m - first, GROUP)
    return first + tile % size, tile % in_group // size


@weft.jit
def by_pointers(  # type: ignore[no-untyped-def]
    a, b, c, bias, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    """As Triton's tutorial has it: where a tile is stored is computed once more, of a number that the loop carries."""
    blocks_m, blocks_n, steps = tl.cdiv(m, BM), tl.cdiv(n, BN), tl.cdiv(k, BK)
    tiles, in_group = blocks_m * blocks_n, 2 * blocks_n
    stored = tl.program_id(0) - PROGRAMS
    inner = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True, warp_specialize=WS):
        i, j = place(tile, in_group, blocks_m, 2)
        rows, columns = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
        rows = tl.max_contiguous(tl.multiple_of(tl.where(rows < m, rows, 0), BM), BM)
        columns = tl.max_contiguous(tl.multiple_of(tl.where(columns < n, columns, 0), BN), BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(steps):
            at = step * BK + tl.arange(0, BK)
            left = a + (rows[:, None] * k + at[None, :])
            right = b + (at[:, None] * n + columns[None, :])
            x = tl.load(left, mask=inner[None, :] < k - step * BK, other=0.0)
            y = tl.load(right, mask=inner[:, None] < k - step * BK, other=0.0)
            acc = tl.dot(x, y, acc)
        stored += PROGRAMS
        i, j = place(stored, in_group, blocks_m, 2)
        rows, columns = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
        acc += tl.load(bias + columns, columns < n, 0.0)[None, :]
        out = tl.maximum(acc, 0.0).to(c.dtype.element_ty)
        tl.store(c + n * rows[:, None] + columns[None, :], out, (rows[:, None] < m) & (columns[None, :] < n))


@dataclass
class Tiles:
    """A product over tiles. Sizes need not be multiples of the block's."""

    kernel: Any = by_descriptors
    sizes: tuple[int, int, int] = (136, 200, 200)
    block: tuple[int, int, int] = (64, 64, 64)
    kind: str = "f16"
    programs: int = 2
    warps: int = 4
    stages: int = 2
    asked: bool = True
    made_tensors: bool = True
    blocks: int = 1

    def run(self, *, options: Any = None, stages: int = 0) -> tuple[np.ndarray, Any]:
        """The product, and the launch."""
        (m, n, k), (bm, bn, bk) = self.sizes, self.block
        a, b, bias = self.operands()
        c = aligned((m, n), DTYPES[self.kind])
        sides = [(a, (bm, bk)), (b, (bk, bn)), (c, (bm, bn // 2 if self.kernel is in_halves else bn))]
        given = [x[0] if self.kernel is by_pointers else described(*x) for x in sides]
        made = simulated(
            self.kernel, (self.programs,), *given, bias, m, n, k, BM=bm, BN=bn, BK=bk, PROGRAMS=self.programs,
            WS=self.asked, options=options, num_warps=self.warps, num_stages=stages or self.stages,
            made_tensors=self.made_tensors, num_ctas=self.blocks,
        )  # fmt: skip
        return c, made

    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m, n, k = self.sizes
        rng = np.random.default_rng(5)
        found = []
        for shape in ((m, k), (k, n)):
            array = aligned(shape, DTYPES[self.kind])
            array[...] = rng.standard_normal(shape).astype(np.float32).astype(DTYPES[self.kind])
            found.append(array)
        return found[0], found[1], rng.standard_normal(n).astype(np.float32)

    def exact(self) -> np.ndarray:
        """What NumPy says."""
        a, b, bias = (x.astype(np.float64) for x in self.operands())
        return np.maximum(a @ b + bias, 0)
