"""Loops of products in a branch, as behind an early return: warps part before it, and both kinds go the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

from .attentions import begin, step
from .running import aligned, integers
from .specialized import SCHEDULES, described, is_specialized, simulated, why_not

slow = pytest.mark.slow


@weft.jit
def packed_products(a, b, c, starts, K, N: tl.constexpr, B: tl.constexpr, LATE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Rows of one of several matrices behind each other times b; there may be fewer rows than programs for them."""
    at, rows = tl.program_id(0) * B, tl.arange(0, B)
    first = tl.load(starts + tl.program_id(1))
    count = tl.load(starts + tl.program_id(1) + 1) - first
    if at >= count:
        return
    low = tl.load(starts) if LATE else 0
    acc = tl.zeros((B, N), tl.float32)
    for k in tl.range(low, K, B, warp_specialize=True):
        acc = tl.dot(a.load([first + at, k]), b.load([k, 0]), acc)
    out = c + (first + at + rows[:, None]) * N + tl.arange(0, N)[None, :]
    tl.store(out, acc, (at + rows < count)[:, None])


STARTS = np.cumsum([0, 70, 3, 130])


def products(late: bool = False, options: Any = None) -> Any:
    a, b, c = integers(1, (203, 200), np.float16), integers(2, (200, 64), np.float16), aligned((203, 64), np.float32)
    starts = aligned((4,), np.int32)
    starts[...] = STARTS
    sides = described(a, (64, 64)), described(b, (64, 64))
    more = {"N": 64, "B": 64, "LATE": late, "num_warps": 4, "num_stages": 2}
    made = simulated(packed_products, (3, 3), *sides, c, starts, 200, options=options, **more)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    return made


def test_a_loop_behind_an_early_return_is_specialized() -> None:
    made = products()
    assert is_specialized(made), why_not(made)


@slow
@pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
def test_schedules(options: Any) -> None:
    assert is_specialized(products(options=options))


def test_what_the_branch_loads_is_not_there_before_it() -> None:
    made = products(late=True)
    assert not is_specialized(made)
    (why,) = why_not(made)
    assert why == "the addresses of an operand depend on values that are loaded in the branch around the loop"


@weft.jit
def one_way_or_the_other(q, k, v, o, n, scale, BN: tl.constexpr, TWICE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Attention whose mask, or whose second loop, depends on the program."""
    mine = q.load([tl.program_id(0) * 64, 0])
    acc, m, total = begin(64, 64)
    if tl.program_id(0) % 2 == 0:
        for at in tl.range(0, n, BN, warp_specialize=True):
            s = tl.dot(mine, k.load([at, 0]).T) * scale
            acc, m, total = step(s, v.load([at, 0]), acc, m, total)
        if TWICE:
            for at in tl.range(0, n, BN, warp_specialize=True):
                s = tl.dot(mine, k.load([at, 0]).T) * scale
                acc, m, total = step(s, v.load([at, 0]), acc, m, total)
    else:
        for at in tl.range(0, n, BN, warp_specialize=True):
            s = tl.dot(mine, k.load([at, 0]).T) * scale
            s = tl.where((at + tl.arange(0, BN))[None, :] < n // 2, s, -1.0e30)
            acc, m, total = step(s, v.load([at, 0]), acc, m, total)
    i, j = tl.program_id(0) * 64 + tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    tl.store(o + i * 64 + j, acc / total[:, None])


@slow
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("options", SCHEDULES[:3], ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
def test_one_branch_of_several_is_specialized(twice: bool, options: Any) -> None:
    rng = np.random.default_rng(1)
    q, k, v = (aligned((rows, 64), np.float16) for rows in (256, 320, 320))
    for x in (q, k, v):
        x[...] = rng.standard_normal(x.shape)
    o = aligned((256, 64), np.float32)
    sides = (described(x, (64, 64)) for x in (q, k, v))
    made = simulated(
        one_way_or_the_other, (4,), *sides, o, 320, 0.2, BN=64, TWICE=twice, options=options, num_warps=4, num_stages=2
    )
    assert is_specialized(made), why_not(made)
    s = q.astype(np.float64) @ k.astype(np.float64).T * 0.2
    s.reshape(4, 64, 320)[1::2, :, 160:] = -np.inf
    p = np.exp2(s - s.max(1, keepdims=True))
    np.testing.assert_allclose(o, p / p.sum(1, keepdims=True) @ v.astype(np.float64), atol=3e-3)


@weft.jit
def some_blocks(a, b, c, which, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """a b of the blocks along K that a table has."""
    i, j, inner = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :], tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, k, BK):
        left = tl.load(a + i * k + at + inner[None, :])
        right = tl.load(b + (at + inner[:, None]) * BN + j)
        if tl.load(which + at // BK) != 0:
            acc = tl.dot(left, right, acc)
    tl.store(c + i * BN + j, acc)


def test_stages_leave_room_for_what_a_branch_stores() -> None:
    """A product in a branch reads its operands from memory of its own, beside the buffers of the stages."""
    a, b, c = integers(1, (128, 256), np.float16), integers(2, (256, 64), np.float16), np.zeros((128, 64), np.float32)
    which = np.array([0, 1], np.int32)
    simulated(some_blocks, (1,), a, b, c, which, 256, 128, 64, 128, num_warps=4, num_stages=5)
    np.testing.assert_array_equal(c, a[:, 128:].astype(np.float64) @ b[128:].astype(np.float64))


@weft.jit
def behind_a_return(a, b, c, limit, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    if tl.program_id(0) >= limit:
        return
    rows, columns, inner = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, k, BK, warp_specialize=True):
        left = tl.load(a + rows[:, None] * k + (at + inner)[None, :], (at + inner < k)[None, :], 0.0)
        right = tl.load(b + (at + inner)[:, None] * BN + columns[None, :], (at + inner < k)[:, None], 0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + columns[:, None] * BM + rows[None, :], acc.T)


def test_stages_leave_room_for_what_is_moved_behind_the_loop() -> None:
    """In a branch, the buffers are not free behind the loop: 32 KiB to transpose in lie beside them."""
    a, b = integers(0, (128, 192), np.float16), integers(1, (192, 64), np.float16)
    c = aligned((64, 128), np.float32)
    made = simulated(behind_a_return, (1,), a, b, c, 1, 192, BM=128, BN=64, BK=64, num_warps=8, num_stages=9)
    assert is_specialized(made), why_not(made)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).T)
