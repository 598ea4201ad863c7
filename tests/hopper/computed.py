"""Products one of whose operands is computed from what is loaded, for the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.language as tl

from .running import DTYPES, aligned, integers
from .specialized import simulated


@weft.jit
def computed(  # type: ignore[no-untyped-def]
    a, b, by, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OPERAND: tl.constexpr
):
    """c = a OPERAND(b), with the rows of b that OPERAND gives; what lies outside is masked off or wraps around."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        inner = at + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :], (rows < M)[:, None] & (inner < K)[None, :], 0.0)
        acc = tl.dot(left, OPERAND(b, by, at, inner, columns, N, K, BK, BN).to(left.dtype), acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, (rows < M)[:, None] & (columns < N)[None, :])


@weft.jit
def widened(b, by, at, inner, columns, N, K, BK: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    """Weights of 8 bits."""
    return tl.load(b + inner[:, None] * N + columns[None, :], (inner < K)[:, None] & (columns < N)[None, :], 0.0)


@weft.jit
def wrapped(b, by, at, inner, columns, N, K, BK: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same, with columns that begin anew past the end."""
    return tl.load(b + inner[:, None] * N + (columns % N)[None, :], (inner < K)[:, None], 0.0)


@weft.jit
def turned(b, by, at, inner, columns, N, K, BK: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same, which lie in memory transposed."""
    return tl.load(b + columns[None, :] * K + inner[:, None], (inner < K)[:, None] & (columns < N)[None, :], 0.0)


@weft.jit
def scaled(b, by, at, inner, columns, N, K, BK: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same, with a scale for each BK rows."""
    return widened(b, by, at, inner, columns, N, K, BK, BN).to(tl.float32) * tl.load(by + at // BK)


@weft.jit
def scaled_by_rows(b, by, at, inner, columns, N, K, BK: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same, with a scale for each row."""
    scale = tl.load(by + inner, inner < K, 0.0)
    return widened(b, by, at, inner, columns, N, K, BK, BN).to(tl.float32) * tl.exp2(scale)[:, None]


@weft.jit
def unpacked(b, by, at, inner, columns, N, K, BK: tl.constexpr, BN: tl.constexpr):  # type: ignore[no-untyped-def]
    """Two weights of 4 bits in a byte, in rows that follow each other."""
    half = at // 2 + tl.arange(0, BK // 2)
    packed = tl.load(b + half[:, None] * N + columns[None, :], (columns < N)[None, :], 0)
    return tl.join(packed & 15, packed >> 4).permute(0, 2, 1).reshape(BK, BN).to(tl.int8)


@weft.jit
def summed(a, b, c, total, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """c = a b, whose columns begin anew past the end, and the sum of all elements of b that are loaded."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc, sums = tl.zeros((BM, BN), tl.float32), tl.zeros((BN,), tl.int32)
    for at in range(0, K, BK):
        inner = at + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :], (rows < M)[:, None] & (inner < K)[None, :], 0.0)
        right = tl.load(b + inner[:, None] * N + (columns % N)[None, :], (inner < K)[:, None], 0)
        acc = tl.dot(left, right.to(left.dtype), acc)
        sums += tl.sum(right.to(tl.int32), 0)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, (rows < M)[:, None] & (columns < N)[None, :])
    tl.store(total + tl.program_id(1), tl.sum(sums, 0))


@dataclass(frozen=True)
class Computed:
    """A product by an operand that one of the functions above computes from `kind`."""

    operand: Any = widened
    kind: str = "i8"
    sizes: tuple[int, int, int] = (72, 144, 272)
    """Rows, columns and the summed dimension; none is a multiple of its block."""
    block: tuple[int, int, int] = (64, 128, 64)
    warps: int = 4
    stages: int = 4
    left: str = "f16"

    def operands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Integers, whose sums are exact, and powers of two."""
        m, n, k = self.sizes
        a = integers(1, (m, k), DTYPES[self.left])
        if self.operand is unpacked:
            b = aligned((k // 2, n), np.uint8)
            b[...] = np.random.default_rng(2).integers(0, 256, b.shape)
        else:
            b = integers(2, (n, k) if self.operand is turned else (k, n), DTYPES[self.kind])
        by = aligned((k,), np.float32)
        by[...] = np.random.default_rng(3).integers(0, 3, k)
        return a, b, by

    def run(self, options: Any = None, **more: Any) -> tuple[np.ndarray, Any]:
        """The product, and the launch."""
        (m, n, k), (bm, bn, bk) = self.sizes, self.block
        c = aligned((m, n), np.float32)
        made = simulated(
            computed, (-(-m // bm), -(-n // bn)), *self.operands()[:3], c, m, n, k, BM=bm, BN=bn, BK=bk,
            OPERAND=self.operand, options=options, num_warps=self.warps, num_stages=self.stages, **more,
        )  # fmt: skip
        return c, made

    def exact(self) -> np.ndarray:
        a, b, by = self.operands()
        right = b.astype(np.float64)
        if self.operand is turned:
            right = right.T
        elif self.operand is scaled:
            right = right * by[np.arange(len(by)) // self.block[2]][:, None]
        elif self.operand is scaled_by_rows:
            right = right * np.exp2(by)[:, None]
        elif self.operand is unpacked:
            right = np.stack([b & 15, b >> 4], 1).reshape(a.shape[1], -1).astype(np.float64)
        return a.astype(np.float64) @ right
