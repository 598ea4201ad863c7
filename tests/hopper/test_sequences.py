"""Two loops of products one behind the other that go on with the same buffers, and attention over tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

from .running import aligned
from .specialized import LOG2E, SCHEDULES, Attention, described, is_specialized, simulated, why_not

slow = pytest.mark.slow


@weft.jit
def some_keys(  # type: ignore[no-untyped-def]
    acc, total, most, q, keys, values, begin, end, scale, rows,
    DIAGONAL: tl.constexpr, BN: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    for at in tl.range(begin, end, BN, warp_specialize=WS):
        s = tl.dot(q, keys.load([at, 0]).T) * scale
        if DIAGONAL:
            s = tl.where(rows[:, None] >= (at + tl.arange(0, BN))[None, :], s, -1.0e6)
        now = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        shrink = tl.exp2(most - now)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        v = values.load([at, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        most = now
    return acc, total, most


@weft.jit
def of_a_block(  # type: ignore[no-untyped-def]
    block, queries, keys, values, out, scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    rows = block * BM + tl.arange(0, BM)
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    q = queries.load([block * BM, 0])
    first, end = block * BM, (block + 1) * BM
    acc, total, most = some_keys(acc, total, most, q, keys, values, 0, first, scale, rows, False, BN, WS)
    acc, total, most = some_keys(acc, total, most, q, keys, values, first, end, scale, rows, True, BN, WS)
    out.store([block * BM, 0], (acc / total[:, None]).to(out.dtype))


@weft.jit
def in_two_loops(  # type: ignore[no-untyped-def]
    queries, keys, values, out, scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    of_a_block(tl.program_id(0), queries, keys, values, out, scale, BM, BN, D, WS)


@weft.jit
def over_tiles(  # type: ignore[no-untyped-def]
    queries, keys, values, out, scale, tiles,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, WS: tl.constexpr,
):  # fmt: skip
    for block in tl.range(tl.program_id(0), tiles, tl.num_programs(0), warp_specialize=WS):
        rows = block * BM + tl.arange(0, BM)
        most = tl.full([BM], float("-inf"), tl.float32)
        total = tl.zeros([BM], tl.float32)
        acc = tl.zeros([BM, D], tl.float32)
        q = queries.load([block * BM, 0])
        acc, total, most = some_keys(acc, total, most, q, keys, values, 0, (block + 1) * BM, scale, rows, True, BN, WS)
        out.store([block * BM, 0], (acc / total[:, None]).to(out.dtype))


@dataclass
class Causal:
    """Causal attention of one head: its length, blocks, and whether a program has all of them."""

    n: int = 192
    block: tuple[int, int] = (64, 32)
    head: int = 64
    warps: int = 4
    stages: int = 2
    programs: int = 0

    def run(self, *, options: Any = None, stages: int = 0) -> tuple[np.ndarray, Any]:
        """Output, and the kernel."""
        (bm, bn), d = self.block, self.head
        q, k, v = self.exactly.operands()
        out = aligned(q.shape, q.dtype)
        sides = [described(x, (rows, d)) for x, rows in ((q, bm), (k, bn), (v, bn), (out, bm))]
        tiles = self.n // bm
        kernel, more = (over_tiles, [tiles]) if self.programs else (in_two_loops, [])
        made = simulated(
            kernel, (self.programs or tiles,), *sides, d**-0.5 * LOG2E, *more, BM=bm, BN=bn, D=d, WS=True,
            options=options, num_warps=self.warps, num_stages=stages or self.stages,
        )  # fmt: skip
        return out.astype(np.float32), made

    @property
    def exactly(self) -> Attention:
        """The same by NumPy."""
        return Attention(n=self.n, head=self.head, block=self.block, causal=True)


def check(case: Causal, options: Any = None) -> None:
    """One pair of kinds of warps, right, and bit by bit what loops give that are not divided."""
    found, made = case.run(options=options)
    assert made.asm["ttgir"].count("ttg.warp_specialize(") == 1
    assert "async_copy" not in made.asm["ttgir"] and not why_not(made)
    plain, other = case.run(stages=1)
    assert not is_specialized(other)
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_allclose(found, case.exactly.exact(), atol=0.02)


def test_two_loops() -> None:
    case = Causal(n=128, head=32)
    found, made = case.run(options=SCHEDULES[3])
    assert made.asm["ttgir"].count("ttg.warp_specialize(") == 1 and not why_not(made)
    np.testing.assert_allclose(found, case.exactly.exact(), atol=0.02)


CASES = {
    "3 stages": Causal(stages=3),
    "8 warps": Causal(n=256, block=(128, 32), warps=8),
    "no whole block": Causal(n=64),
    "over tiles": Causal(programs=2),
    "over tiles, 8 warps": Causal(n=384, block=(128, 64), warps=8, stages=3, programs=2),
}


@slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cases(case: Causal) -> None:
    check(case)


@slow
@pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
@pytest.mark.parametrize("programs", [0, 2])
def test_schedules(programs: int, options: Any) -> None:
    check(Causal(programs=programs), options)
