"""Gradients of attention for the simulator: loops of three, four and five products; see `specialized.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.language as tl

from .running import DTYPES, aligned
from .specialized import LOG2E, described, simulated

COUNT = {"keys": 2, "queries": 1, "all": 3}
"""Of results."""


@weft.jit
def of_keys(  # type: ignore[no-untyped-def]
    queries, keys, values, douts, dk_out, dv_out, most, sums, scale, length,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    """dk and dv of a block of keys, in an order in which nobody would begin the products."""
    n0 = tl.program_id(0) * BN
    columns = n0 + tl.arange(0, BN)
    k, v = keys.load([n0, 0]), values.load([n0, 0])
    dk, dv = tl.zeros([BN, D], tl.float32), tl.zeros([BN, D], tl.float32)
    for m0 in tl.range(n0 // BM * BM if CAUSAL else 0, length, BM, warp_specialize=WS):
        rows = m0 + tl.arange(0, BM)
        q = queries.load([m0, 0])
        p = tl.exp2(tl.dot(k, q.T) * scale - tl.load(most + rows)[None, :])
        if CAUSAL:
            p = tl.where(rows[None, :] >= columns[:, None], p, 0.0)
        do = douts.load([m0, 0])
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = p * (tl.dot(v, do.T) - tl.load(sums + rows)[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    at = columns[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(dk_out + at, dk)
    tl.store(dv_out + at, dv)


@weft.jit
def of_queries(  # type: ignore[no-untyped-def]
    queries, keys, values, douts, dq_out, most, sums, scale, length,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    """dq of a block of queries."""
    m0 = tl.program_id(0) * BM
    rows = m0 + tl.arange(0, BM)
    q, do = queries.load([m0, 0]), douts.load([m0, 0])
    top, d = tl.load(most + rows), tl.load(sums + rows)
    dq = tl.zeros([BM, D], tl.float32)
    for n0 in tl.range(0, length, BN, warp_specialize=WS):
        k = keys.load([n0, 0])
        p = tl.exp2(tl.dot(q, k.T) * scale - top[:, None])
        ds = p * (tl.dot(do, values.load([n0, 0]).T) - d[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_out + rows[:, None] * D + tl.arange(0, D)[None, :], dq)


@weft.jit
def of_all(  # type: ignore[no-untyped-def]
    queries, keys, values, douts, dk_out, dv_out, dq_out, most, sums, scale, length,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    """dk and dv of a block of keys, and what it adds to dq."""
    n0 = tl.program_id(0) * BN
    columns, inner = n0 + tl.arange(0, BN), tl.arange(0, D)
    k, v = keys.load([n0, 0]), values.load([n0, 0])
    dk, dv = tl.zeros([BN, D], tl.float32), tl.zeros([BN, D], tl.float32)
    for m0 in tl.range(n0 // BM * BM if CAUSAL else 0, length, BM, warp_specialize=WS):
        rows = m0 + tl.arange(0, BM)
        q, do = queries.load([m0, 0]), douts.load([m0, 0])
        p = tl.exp2(tl.dot(k, q.T) * scale - tl.load(most + rows)[None, :])
        if CAUSAL:
            p = tl.where(rows[None, :] >= columns[:, None], p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = (p * (tl.dot(v, do.T) - tl.load(sums + rows)[None, :])).to(q.dtype)
        dk = tl.dot(ds, q, dk)
        tl.atomic_add(dq_out + rows[:, None] * D + inner[None, :], tl.dot(ds.T, k), sem="relaxed")
    at = columns[:, None] * D + inner[None, :]
    tl.store(dk_out + at, dk)
    tl.store(dv_out + at, dv)


@dataclass
class Gradients:
    """dk and dv ("keys"), dq ("queries"), or all three ("all") of one head of so many rows and keys."""

    n: int = 128
    head: int = 32
    block: tuple[int, int] = (16, 64)
    """Rows of queries, and of keys."""
    of: str = "keys"
    causal: bool = False
    warps: int = 4
    stages: int = 2
    asked: bool = True
    programs: int = 0
    """That are run, of as many as there are blocks; all, if 0."""

    def operands(self) -> dict[str, np.ndarray]:
        """q, k, v, do, and of each row of scores the logarithm of its sum (`most`) and what is subtracted (`sums`)."""
        rng = np.random.default_rng(0)
        found = {}
        for name in ("q", "k", "v", "do"):
            found[name] = aligned((self.n, self.head), DTYPES["bf16"])
            found[name][...] = rng.standard_normal((self.n, self.head)).astype(np.float32)
        p, do = self._weights(found), found["do"].astype(np.float64)
        found["most"], found["sums"] = (aligned((self.n,), np.float32) for _ in range(2))
        found["most"][...] = np.log2(p.sum(1))
        found["sums"][...] = ((p / p.sum(1, keepdims=True) @ found["v"].astype(np.float64)) * do).sum(1)
        return found

    def _weights(self, given: dict[str, np.ndarray]) -> np.ndarray:
        """Before they are divided by the sums of their rows."""
        scores = given["q"].astype(np.float64) @ given["k"].astype(np.float64).T * self.scale
        return np.exp2(np.where(np.tri(self.n, dtype=bool), scores, -np.inf) if self.causal else scores)

    @property
    def scale(self) -> float:
        return self.head**-0.5 * LOG2E

    def run(self, *, options: Any = None, stages: int = 0) -> tuple[list[np.ndarray], Any]:
        """The results and the kernel."""
        given, (bm, bn) = self.operands(), self.block
        sides = [described(given[x], (rows, self.head)) for x, rows in (("q", bm), ("k", bn), ("v", bn), ("do", bm))]
        out = [aligned((self.n, self.head), np.float32) for _ in range(COUNT[self.of])]
        for x in out:
            x[...] = 0
        rest = (given["most"], given["sums"], self.scale, self.n)
        more: dict[str, Any] = {"D": self.head, "BM": bm, "BN": bn, "WS": self.asked, "num_warps": self.warps}
        more |= {"num_stages": stages or self.stages, "options": options}
        grid = (self.programs or self.n // (bm if self.of == "queries" else bn),)
        if self.of == "queries":
            return out, simulated(of_queries, grid, *sides, *out, *rest, **more)
        kernel = of_keys if self.of == "keys" else of_all
        return out, simulated(kernel, grid, *sides, *out, *rest, CAUSAL=self.causal, **more)

    def exact(self) -> list[np.ndarray]:
        """By NumPy."""
        given = self.operands()
        q, k, v, do = (given[x].astype(np.float64) for x in ("q", "k", "v", "do"))
        weights = self._weights(given)
        p = weights / weights.sum(1, keepdims=True)
        ds = p * (do @ v.T - given["sums"][:, None])
        found = {"keys": [ds.T @ q, p.T @ do], "queries": [ds @ k]}
        return found.get(self.of) or found["keys"] + found["queries"]
