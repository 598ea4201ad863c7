"""Attention in fp8: what comes out of the first product goes into the second in registers, by shuffles of a warp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.sim import Options

from .running import DTYPES, aligned
from .specialized import SCHEDULES, described, is_specialized, simulated


@weft.jit
def attention(  # type: ignore[no-untyped-def]
    q, k, v, o, n, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, WS: tl.constexpr
):
    """Of one head; v is D x n, as Triton's tutorial has it."""
    start = tl.program_id(0) * BM
    rows = start + tl.arange(0, BM)
    m = tl.full((BM,), -1.0e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    mine = q.load([start, 0])
    high = min(n, start + BM) if CAUSAL else n
    for at in tl.range(0, high, BN, warp_specialize=WS):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        columns = at + tl.arange(0, BN)
        keep = columns[None, :] < n
        if CAUSAL:
            keep = keep & (columns[None, :] <= rows[:, None])
        s = tl.where(keep, s, -1.0e30)
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(m - new)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v.load([0, at]).T, acc * shrink[:, None])
        m = new
    tl.store(o + rows[:, None] * D + tl.arange(0, D)[None, :], acc / total[:, None], rows[:, None] < n)


@dataclass
class Bytes:
    """Attention over so many rows."""

    n: int = 192
    kind: str = "fp8e5"
    head: int = 64
    block: tuple[int, int] = (64, 64)
    causal: bool = False
    warps: int = 4
    stages: int = 2
    asked: bool = True

    def operands(self) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        found = []
        for shape in ((self.n, self.head), (self.n, self.head), (self.head, self.n)):
            array = aligned(shape, DTYPES[self.kind])
            array[...] = rng.standard_normal(shape).astype(np.float32).astype(DTYPES[self.kind])
            found.append(array)
        return found

    def run(self, *, options: Options | None = None, stages: int = 0) -> tuple[np.ndarray, Any]:
        """The output and the kernel."""
        (bm, bn), d = self.block, self.head
        q, k, v = self.operands()
        o = aligned((self.n, d), np.float32)
        sides = described(q, (bm, d)), described(k, (bn, d)), described(v, (d, bn))
        made = simulated(
            attention, (-(-self.n // bm),), *sides, o, self.n, d**-0.5 * 1.4426950408889634, CAUSAL=self.causal,
            BM=bm, BN=bn, D=d, WS=self.asked, options=options, num_warps=self.warps, num_stages=stages or self.stages,
        )  # fmt: skip
        return o, made

    def exact(self) -> np.ndarray:
        """Blocks of keys one after the other, with p rounded as the kernel rounds it."""
        q, k, v = (x.astype(np.float32) for x in self.operands())
        bn, d = self.block[1], self.head
        most, total = np.full((self.n, 1), -1.0e30, np.float32), np.zeros((self.n, 1), np.float32)
        out = np.zeros((self.n, d), np.float32)
        for at in range(0, self.n, bn):
            s = q @ k[at : at + bn].T * np.float32(d**-0.5 * 1.4426950408889634)
            if self.causal:
                s = np.where(np.arange(at, at + s.shape[1])[None] <= np.arange(self.n)[:, None], s, -1.0e30)
            new = np.maximum(most, s.max(1, keepdims=True))
            p, shrink = np.exp2(s - new), np.exp2(most - new)
            total = total * shrink + p.sum(1, keepdims=True)
            rounded = p.astype(DTYPES[self.kind]).astype(np.float32)
            out, most = out * shrink + rounded @ v[:, at : at + bn].T, new
        return out / total


def check(case: Bytes, options: Any = None) -> Any:
    found, made = case.run(options=options)
    assert is_specialized(made)
    plain, other = case.run(stages=1)
    assert not is_specialized(other)
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_allclose(found, case.exact(), atol=0.02)
    return made


def test_the_left_operand_stays_in_registers() -> None:
    case = Bytes(n=128)
    found, made = case.run(options=SCHEDULES[3])
    np.testing.assert_allclose(found, case.exact(), atol=0.02)
    assert is_specialized(made)
    last = [line for line in made.asm["lane"].splitlines() if "wgmma.m64n64k32.f32.e5m2.e5m2.ra" in line]
    assert last and "ttg.local_store" not in made.asm["ttgir"]


CASES = {
    "e4m3": Bytes(kind="fp8", stages=3),
    "causal": Bytes(causal=True),
    "rows that stick out": Bytes(n=208, stages=3),
    "heads of 128": Bytes(n=256, head=128, block=(64, 128)),
    "8 warps, unasked": Bytes(n=256, head=128, block=(128, 128), warps=8, asked=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_attentions_of_bytes(case: Bytes) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
def test_under_schedules(options: Any) -> None:
    check(Bytes(n=256, stages=3), options)
