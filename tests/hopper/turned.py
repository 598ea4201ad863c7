"""Products by pointers whose operands may lie in memory transposed, for the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.language as tl

from .running import DTYPES, aligned, integers
from .specialized import simulated


@weft.jit
def by_strides(a, b, c, M, N, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """c = a b, whichever dimension of each operand is contiguous; elements outside are masked off."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        inner = at + tl.arange(0, BK)
        here, there = (rows < M)[:, None] & (inner < K)[None, :], (inner < K)[:, None] & (columns < N)[None, :]
        left = tl.load(a + rows[:, None] * sam + inner[None, :] * sak, here, 0.0)
        right = tl.load(b + inner[:, None] * sbk + columns[None, :] * sbn, there, 0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc, (rows < M)[:, None] & (columns < N)[None, :])


@dataclass(frozen=True)
class Turned:
    """A product by pointers; operands whose letters are in `which` lie in memory transposed."""

    which: str
    kind: str = "f16"
    sizes: tuple[int, int, int] = (72, 104, 264)
    """Rows, columns and the summed dimension; none is a multiple of its block."""
    block: tuple[int, int, int] = (64, 64, 64)
    warps: int = 4
    stages: int = 4

    def operands(self) -> tuple[Any, Any]:
        """Integers, whose sums are exact."""
        m, n, k = self.sizes
        a, b = integers(1, (m, k), DTYPES[self.kind]), integers(2, (k, n), DTYPES[self.kind])
        return self._laid("a", a), self._laid("b", b)

    def _laid(self, name: str, operand: Any) -> Any:
        if name not in self.which:
            return operand
        memory = aligned(operand.T.shape, operand.dtype)
        memory[...] = operand.T
        return memory.T

    def run(self, options: Any = None, **more: Any) -> tuple[np.ndarray, Any]:
        """The product, and the launch."""
        (m, n, k), (bm, bn, bk) = self.sizes, self.block
        a, b = self.operands()
        c = aligned((m, n), np.float32)
        strides = [stride // x.itemsize for x in (a, b) for stride in x.strides]
        memory = [x.T if name in self.which else x for name, x in (("a", a), ("b", b))]
        made = simulated(
            by_strides, (-(-m // bm), -(-n // bn)), *memory, c, m, n, k, *strides, BM=bm, BN=bn, BK=bk,
            options=options, num_warps=self.warps, num_stages=self.stages, **more,
        )  # fmt: skip
        return c, made

    def exact(self) -> np.ndarray:
        a, b = (x.astype(np.float64) for x in self.operands())
        return a @ b
