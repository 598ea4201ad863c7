"""Products by pointers whose loads become bulk copies, for the simulator: ways to write one kernel, and what they are
given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft
import weft.language as tl

from .running import DTYPES, aligned
from .specialized import simulated


@weft.jit
def grouped(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """As Triton's tutorial has it: blocks in groups, rows and columns modulo the sizes, a mask along K."""
    pid = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    in_group = 2 * blocks_n
    first = pid // in_group * 2
    rows_left = min(blocks_m - first, 2)
    m0, n0 = (first + pid % in_group % rows_left) * BM, pid % in_group // rows_left * BN
    rows, columns, inner = (m0 + tl.arange(0, BM)) % M, (n0 + tl.arange(0, BN)) % N, tl.arange(0, BK)
    a_ptrs = a + rows[:, None] * sam + inner[None, :] * sak
    b_ptrs = b + inner[:, None] * sbk + columns[None, :] * sbn
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=True):
        left = tl.load(a_ptrs, mask=inner[None, :] < K - k * BK, other=0.0)
        right = tl.load(b_ptrs, mask=inner[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(left, right, acc)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    rows, columns = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN)
    out = c + rows[:, None] * scm + columns[None, :] * scn
    tl.store(out, tl.maximum(acc, 0.1 * acc).to(c.dtype.element_ty), (rows[:, None] < M) & (columns[None, :] < N))


@weft.jit
def masked(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Addresses made anew in each iteration, and masks on all sides."""
    blocks_n = tl.cdiv(N, BN)
    rows = tl.program_id(0) // blocks_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % blocks_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, warp_specialize=True):
        inner = at + tl.arange(0, BK)
        here = (rows < M)[:, None] & (inner < K)[None, :]
        left = tl.load(a + rows[:, None] * sam + inner[None, :] * sak, here, 0.0)
        there = (inner[:, None] < K) & (columns[None, :] <= N - 1)
        right = tl.load(b + inner[:, None] * sbk + columns[None, :] * sbn, there, 0.0)
        acc = tl.dot(left, right, acc)
    out = c + rows[:, None] * scm + columns[None, :] * scn
    tl.store(out, tl.maximum(acc, 0.1 * acc).to(c.dtype.element_ty), (rows[:, None] < M) & (columns[None, :] < N))


@weft.jit
def whole(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Without masks: sizes are multiples of the block's."""
    blocks_n = tl.cdiv(N, BN)
    rows = tl.program_id(0) // blocks_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % blocks_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, warp_specialize=True):
        inner = at + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * sam + inner[None, :] * sak)
        right = tl.load(b + inner[:, None] * sbk + columns[None, :] * sbn)
        acc = tl.dot(left, right, acc)
    out = c + rows[:, None] * scm + columns[None, :] * scn
    tl.store(out, tl.maximum(acc, 0.1 * acc).to(c.dtype.element_ty))


@weft.jit
def by_blocks(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Block pointers, which are advanced."""
    blocks_n = tl.cdiv(N, BN)
    m0, n0 = tl.program_id(0) // blocks_n * BM, tl.program_id(0) % blocks_n * BN
    left = tl.make_block_ptr(a, (M, K), (sam, sak), (m0, 0), (BM, BK), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (sbk, sbn), (0, n0), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in tl.range(0, K, BK, warp_specialize=True):
        x = tl.load(left, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(right, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(x, y, acc)
        left, right = left.advance((0, BK)), right.advance((BK, 0))
    out = tl.make_block_ptr(c, (M, N), (scm, scn), (m0, n0), (BM, BN), (1, 0))
    tl.store(out, tl.maximum(acc, 0.1 * acc).to(c.dtype.element_ty), boundary_check=(0, 1))


@weft.jit
def described(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Descriptors that the kernel makes; of the right operand one of its transpose, where that is contiguous."""
    blocks_n = tl.cdiv(N, BN)
    m0, n0 = tl.program_id(0) // blocks_n * BM, tl.program_id(0) % blocks_n * BN
    left = tl.make_tensor_descriptor(a, [M, K], [sam, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [sbk, 1], [BK, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, warp_specialize=True):
        acc = tl.dot(left.load([m0, at]), right.load([at, n0]), acc)
    rows, columns = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN)
    out = c + rows[:, None] * scm + columns[None, :] * scn
    tl.store(out, tl.maximum(acc, 0.1 * acc).to(c.dtype.element_ty), (rows[:, None] < M) & (columns[None, :] < N))


@weft.jit
def backwards(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """From the last block along K to the first."""
    blocks_n = tl.cdiv(N, BN)
    rows = tl.program_id(0) // blocks_n * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % blocks_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(tl.cdiv(K, BK) - 1, -1, -1, warp_specialize=True):
        inner = k * BK + tl.arange(0, BK)
        here = (rows < M)[:, None] & (inner < K)[None, :]
        left = tl.load(a + rows[:, None] * sam + inner[None, :] * sak, here, 0.0)
        there = (inner < K)[:, None] & (columns < N)[None, :]
        acc = tl.dot(left, tl.load(b + inner[:, None] * sbk + columns[None, :] * sbn, there, 0.0), acc)
    out = c + rows[:, None] * scm + columns[None, :] * scn
    tl.store(out, tl.maximum(acc, 0.1 * acc).to(c.dtype.element_ty), (rows[:, None] < M) & (columns[None, :] < N))


WAYS = (grouped, masked, by_blocks, described, backwards)


@dataclass
class Pointed:
    """A product by pointers. Sizes need not be multiples of the block's; rows may be longer than is looked at."""

    kernel: Any = grouped
    sizes: tuple[int, int, int] = (72, 72, 72)
    block: tuple[int, int, int] = (64, 64, 64)
    trans: bool = False
    """Whether the right operand's columns are contiguous."""
    kind: str = "f16"
    further: int = 0
    """Elements of a row that are not the matrix' own."""
    warps: int = 4
    stages: int = 2
    more: dict[str, Any] = field(default_factory=dict)

    def operands(self) -> tuple[np.ndarray, np.ndarray]:
        m, n, k = self.sizes
        rng = np.random.default_rng(3)
        found = []
        for rows, columns in ((m, k), (n, k) if self.trans else (k, n)):
            array = aligned((max(1, rows), max(1, columns + self.further)), DTYPES[self.kind])
            array[...] = rng.standard_normal(array.shape).astype(np.float32).astype(DTYPES[self.kind])
            found.append(array)
        return found[0], found[1]

    def exact(self) -> np.ndarray:
        """What NumPy says."""
        m, n, k = self.sizes
        a, b = (x.astype(np.float64) for x in self.operands())
        right = b[:n, :k].T if self.trans else b[:k, :n]
        result = a[:m, :k] @ right
        return np.maximum(result, 0.1 * result)

    def run(self, *, options: Any = None, stages: int = 0) -> tuple[np.ndarray, Any]:
        """The product, and the launch; beyond it nothing may be written."""
        (m, n, k), (bm, bn, bk) = self.sizes, self.block
        a, b = self.operands()
        c = aligned((m + 2, n + 8), np.float32)
        c[...] = 77
        right = (1, b.shape[1]) if self.trans else (b.shape[1], 1)
        grid = (-(-m // bm) * -(-n // bn),)
        made = simulated(
            self.kernel, grid, a, b, c, m, n, k, a.shape[1], 1, *right, c.shape[1], 1, BM=bm, BN=bn, BK=bk,
            options=options, num_warps=self.warps, num_stages=stages or self.stages, **self.more,
        )  # fmt: skip
        assert (c[m:] == 77).all() and (c[:, n:] == 77).all()
        return c[:m, :n], made
