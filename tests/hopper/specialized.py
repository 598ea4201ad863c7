"""Kernels whose loops become warp-specialised, for the simulator; what they are given, and what NumPy says of them.

Scores of attention are made by a function that is a constexpr of the kernel, so that one kernel is many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft
import weft.language as tl
from weft.sim import Options

from .running import DTYPES, aligned

TARGET = "cuda:90"
NEVER = -1.0e30
LOG2E = 1.4426950408889634
SCHEDULES = [
    Options(copies="earliest", order="forward"),
    Options(copies="latest", order="backward"),
    *(Options(copies=("latest", "earliest")[seed % 2], order="random", seed=seed) for seed in range(6)),
]


@weft.jit
def product(a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TRANS: tl.constexpr, WS: tl.constexpr):  # type: ignore[no-untyped-def]
    """c = a b, or a b^T, one block of c."""
    m0, n0 = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, k, BK, warp_specialize=WS):
        left = a.load([m0, at])
        right = b.load([n0, at]).T if TRANS else b.load([at, n0])
        acc = tl.dot(left, right, acc)
    rows, columns = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN)
    tl.store(c + rows[:, None] * n + columns[None, :], acc)


@weft.jit
def product_by_pointers(a, b, c, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TRANS: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same of whole blocks, by pointers."""
    m0, n0 = tl.program_id(0) * BM, tl.program_id(1) * BN
    rows, columns, inner = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        left = tl.load(a + rows[:, None] * k + at + inner[None, :])
        if TRANS:
            right = tl.load(b + columns[:, None] * k + at + inner[None, :]).T
        else:
            right = tl.load(b + (at + inner[:, None]) * n + columns[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * n + columns[None, :], acc)


@weft.jit
def as_it_is(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Scores."""
    return s


@weft.jit
def attention(  # type: ignore[no-untyped-def]
    q, k, v, o, lse, extra, n, keys, scale,
    SCORE: tl.constexpr, SIZE: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, GROUP: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    """Of heads side by side: n x (heads * D). Scores are in powers of 2, and end where the keys do."""
    start, head = tl.program_id(0) * BM, tl.program_id(1)
    rows = start + tl.arange(0, BM)
    low, high = 0, keys
    if CAUSAL:
        high = min(keys, start + BM)
    if WINDOW:
        low = max(0, start - WINDOW) // BN * BN
    m = tl.full((BM,), -1.0e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    mine = q.load([start, head * D])
    for at in tl.range(low, high, BN, warp_specialize=WS):
        s = tl.dot(mine, k.load([at, head // GROUP * D]).T) * scale
        columns = at + tl.arange(0, BN)
        s = SCORE(s, rows, columns, head, extra, keys, SIZE)
        keep = columns[None, :] < keys
        if CAUSAL:
            keep = keep & (columns[None, :] <= rows[:, None])
        if WINDOW:
            keep = keep & (columns[None, :] >= rows[:, None] - WINDOW)
        s = tl.where(keep, s, -1.0e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(m - new)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v.load([at, head // GROUP * D]), acc * shrink[:, None])
        m = new
    full = tl.where(total == 0, 1.0, total)
    tl.store(lse + head * n + rows, m + tl.log2(full), rows < n)
    o.store([start, head * D], (acc / full[:, None]).to(o.dtype))


def described(array: np.ndarray, block: Sequence[int]) -> Any:
    return weft.TensorDescriptor.from_tensor(array, list(block))


def simulated(kernel: Any, grid: tuple[int, ...], *args: Any, options: Options | None = None, **more: Any) -> Any:
    """What a launch in the simulator gives."""
    chosen = options or Options()
    fields = {name: getattr(chosen, name) for name in ("copies", "order", "seed")}
    with weft.sim.options(**fields), weft.target(f"sim:{TARGET}"):
        return kernel[grid](*args, **more)


def is_specialized(made: Any) -> bool:
    return "ttg.warp_specialize" in made.asm["ttgir"]


def why_not(made: Any) -> list[str]:
    """The reasons of loops that stay."""
    return [remark.reason for remark in made.remarks.of("warps not specialized")]


@dataclass
class Product:
    """A product to be made; sizes need not be multiples of the block's."""

    kind: str = "f16"
    sizes: tuple[int, int, int] = (128, 64, 256)
    block: tuple[int, int, int] = (64, 64, 64)
    trans: bool = True
    warps: int = 4
    stages: int = 2
    seed: int = 0

    def operands(self) -> tuple[np.ndarray, np.ndarray]:
        m, n, k = self.sizes
        rng = np.random.default_rng(self.seed)
        found = []
        for shape in ((m, k), (n, k) if self.trans else (k, n)):
            array = aligned(shape, DTYPES[self.kind])
            array[...] = rng.standard_normal(shape).astype(np.float32).astype(DTYPES[self.kind])
            found.append(array)
        return found[0], found[1]

    def run(self, *, asked: bool = True, options: Options | None = None, stages: int = 0) -> tuple[np.ndarray, Any]:
        """The product and the kernel."""
        (m, n, k), (bm, bn, bk) = self.sizes, self.block
        a, b = self.operands()
        grid = (-(-m // bm), -(-n // bn))
        wide = grid[1] * bn
        c = aligned((grid[0] * bm, wide), np.float32)
        more = {"BM": bm, "BN": bn, "BK": bk, "TRANS": self.trans, "WS": asked}
        sides = described(a, (bm, bk)), described(b, (bn, bk) if self.trans else (bk, bn))
        made = simulated(
            product, grid, *sides, c, wide, k, **more, options=options, num_warps=self.warps,
            num_stages=stages or self.stages,
        )  # fmt: skip
        return c[:m, :n], made

    def exact(self) -> np.ndarray:
        a, b = (x.astype(np.float64) for x in self.operands())
        return a @ (b.T if self.trans else b)


@dataclass
class Attention:
    """Attention over so many rows and keys."""

    n: int = 256
    keys: int = 0
    """As many as rows, if 0."""
    head: int = 64
    block: tuple[int, int] = (64, 64)
    heads: int = 1
    group: int = 1
    causal: bool = False
    window: int = 0
    score: Any = as_it_is
    size: int = 1
    extra: Any = None
    kind: str = "bf16"
    warps: int = 4
    stages: int = 2
    asked: bool = True
    seed: int = 0
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return self.keys or self.n

    def operands(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        found = []
        for rows, heads in ((self.n, self.heads), *((self.count, self.heads // self.group),) * 2):
            array = aligned((rows, heads * self.head), DTYPES[self.kind])
            array[...] = rng.standard_normal(array.shape).astype(np.float32).astype(DTYPES[self.kind])
            found.append(array)
        return found

    def run(
        self, *, options: Options | None = None, stages: int = 0, keys: int | None = None
    ) -> tuple[np.ndarray, np.ndarray, Any]:
        """Output, logarithms of sums, and the kernel."""
        (bm, bn), d = self.block, self.head
        q, k, v = self.operands()
        o = aligned(q.shape, DTYPES[self.kind])
        lse = aligned((self.heads, self.n), np.float32)
        extra = self.extra if self.extra is not None else lse
        sides = [described(x, (rows, d)) for x, rows in ((q, bm), (k, bn), (v, bn), (o, bm))]
        made = simulated(
            attention, (-(-self.n // bm), self.heads), *sides, lse, extra, self.n,
            self.count if keys is None else keys, d**-0.5 * LOG2E,
            SCORE=self.score, SIZE=self.size, CAUSAL=self.causal, WINDOW=self.window, GROUP=self.group, BM=bm, BN=bn,
            D=d, WS=self.asked, options=options, num_warps=self.warps, num_stages=stages or self.stages,
        )  # fmt: skip
        return o.astype(np.float32), lse, made

    def exact(self, change: Any = None, keys: int | None = None) -> np.ndarray:
        """By NumPy; `change` is of scores of a head, in powers of 2: heads, rows, columns are given."""
        d, count = self.head, self.count if keys is None else keys
        q, k, v = (x.astype(np.float64) for x in self.operands())
        rows, columns = np.arange(self.n)[:, None], np.arange(count)[None, :]
        out = np.zeros((self.n, self.heads * d))
        for head in range(self.heads):
            mine, its = slice(head * d, head * d + d), slice(head // self.group * d, head // self.group * d + d)
            s = q[:, mine] @ k[:count, its].T * d**-0.5 * LOG2E
            if change is not None:
                s = change(s, head, rows, columns)
            if self.causal:
                s = np.where(columns <= rows, s, NEVER)
            if self.window:
                s = np.where(columns >= rows - self.window, s, NEVER)
            if count:
                p = np.exp2(s - s.max(1, keepdims=True))
                out[:, mine] = p / p.sum(1, keepdims=True) @ v[:count, its]
        return out
