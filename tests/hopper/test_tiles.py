"""Loops over tiles that are divided with the loop of products in them: buffers go on from tile to tile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

from .running import aligned
from .specialized import SCHEDULES, described, is_specialized, simulated, why_not
from .tiles import Tiles, by_descriptors, by_pointers, in_halves

slow = pytest.mark.slow


def check(case: Tiles, options: Any = None) -> None:
    """Specialised, right, and bit by bit what the loops give that are not."""
    found, made = case.run(options=options)
    assert is_specialized(made), why_not(made)
    plain, other = case.run(stages=1)
    assert not is_specialized(other)
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_allclose(found.astype(np.float64), case.exact(), atol=0.05 if case.kind == "f16" else 0.3)


def test_tiles() -> None:
    case = Tiles(sizes=(72, 136, 136))
    found, made = case.run(options=SCHEDULES[3])
    assert is_specialized(made), why_not(made)
    np.testing.assert_allclose(found.astype(np.float64), case.exact(), atol=0.05)


CASES = {
    "more stages than steps": Tiles(sizes=(136, 136, 64), stages=4),
    "3 stages": Tiles(stages=3),
    "one program": Tiles(programs=1),
    "more programs than tiles": Tiles(sizes=(64, 64, 136), programs=3),
    "bf16, 8 warps": Tiles(sizes=(264, 136, 136), block=(128, 64, 64), kind="bf16", warps=8, stages=3),
    "8 warps of one tile's rows": Tiles(sizes=(136, 136, 136), block=(64, 128, 64), warps=8),
    "in halves": Tiles(in_halves, block=(64, 128, 64), sizes=(136, 200, 136)),
    "in halves, by way of one buffer": Tiles(in_halves, (264, 264, 136), (128, 256, 64), "bf16", warps=8, stages=4),
    "two blocks": Tiles(sizes=(264, 136, 200), block=(128, 64, 64), blocks=2),
    "two blocks, more columns": Tiles(sizes=(72, 264, 136), block=(64, 256, 64), stages=3, blocks=2),
    "two blocks that divide what they share": Tiles(sizes=(136, 264, 136), block=(128, 256, 64), blocks=2),
    "two blocks, in halves": Tiles(in_halves, (264, 264, 136), (128, 128, 64), "bf16", blocks=2),
    "two blocks, by pointers": Tiles(by_pointers, (264, 136, 136), (128, 64, 64), blocks=2),
    "four blocks": Tiles(sizes=(264, 264, 136), block=(128, 128, 64), stages=3, blocks=4),
    "by pointers": Tiles(by_pointers),
    "by pointers, 3 stages": Tiles(by_pointers, (328, 136, 72), stages=3, programs=3),
    "by pointers, 8 warps": Tiles(by_pointers, (264, 136, 136), (128, 128, 64), warps=8, stages=3),
}


@slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cases(case: Tiles) -> None:
    check(case)


@slow
def test_large_tiles_are_divided_unasked() -> None:
    case = Tiles(sizes=(136, 136, 136), block=(128, 128, 64), warps=8, stages=3, asked=False)
    check(case)
    assert not is_specialized(replace(case, block=(128, 64, 64)).run()[1])


@slow
def test_large_tiles_by_pointers_are_divided_unasked() -> None:
    check(Tiles(by_pointers, sizes=(136, 136, 136), block=(128, 128, 64), warps=8, stages=3, asked=False))


@slow
@pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
@pytest.mark.parametrize("stages", [2, 3])
def test_schedules(stages: int, options: Any) -> None:
    check(Tiles(stages=stages), options)


@slow
def test_tiles_without_a_step() -> None:
    """A tile whose loop has no iteration takes no buffer, and gives none back."""
    a, b, c = aligned((136, 64), np.float16), aligned((64, 72), np.float16), aligned((136, 72), np.float16)
    a[...], b[...] = 1, 1
    bias = np.arange(72, dtype=np.float32)
    sides = (described(a, (64, 64)), described(b, (64, 64)), described(c, (64, 64)))
    more = {"BM": 64, "BN": 64, "BK": 64, "PROGRAMS": 2, "WS": True}
    made = simulated(by_descriptors, (2,), *sides, bias, 136, 72, 0, **more, num_stages=2)
    assert is_specialized(made)
    np.testing.assert_array_equal(c, np.broadcast_to(bias, c.shape))


@weft.jit
def side_by_side(  # type: ignore[no-untyped-def]
    a, b, narrow_b, c, narrow_c, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, NARROW: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """c = a b by tiles of BN + NARROW columns, which are two sums."""
    blocks_n = tl.cdiv(n, BN + NARROW)
    tiles = tl.cdiv(m, BM) * blocks_n
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True, warp_specialize=True):
        m0, n0 = tile // blocks_n * BM, tile % blocks_n * (BN + NARROW)
        acc = tl.zeros((BM, BN), tl.float32)
        narrow = tl.zeros((BM, NARROW), tl.float32)
        for at in range(0, k, BK):
            x = a.load([m0, at])
            acc = tl.dot(x, b.load([at, n0]), acc)
            narrow = tl.dot(x, narrow_b.load([at, n0 + BN]), narrow)
        c.store([m0, n0], acc.to(c.dtype))
        narrow_c.store([m0, n0 + BN], narrow.to(narrow_c.dtype))


@pytest.mark.parametrize(
    ("blocks", "ways"), [(2, [2]), pytest.param(2, [2, 1], marks=slow), pytest.param(1, [2, 1], marks=slow)]
)
def test_sums_side_by_side(blocks: int, ways: list[int]) -> None:
    """The copy engine stores both; blocks of a cluster each begin a half of what they share. `ways` are stages."""
    (bm, bn, narrow, bk), (m, n, k) = (64 * blocks, 64, 32, 32), (72, 104, 72)
    a, b = aligned((m, k), np.float16), aligned((k, n), np.float16)
    rng = np.random.default_rng(3)
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    found = []
    for stages in ways:
        c = aligned((m, n), np.float16)
        sides = [(a, (bm, bk)), (b, (bk, bn)), (b, (bk, narrow)), (c, (bm, bn)), (c, (bm, narrow))]
        sizes = {"BM": bm, "BN": bn, "NARROW": narrow, "BK": bk, "PROGRAMS": 2}
        made = simulated(
            side_by_side, (2,), *(described(*x) for x in sides), m, n, k, **sizes, num_stages=stages, num_ctas=blocks
        )
        assert is_specialized(made) == (stages == 2), why_not(made)
        assert made.asm["ttgir"].count("async_tma_copy_local_to_global") == (2 if stages == 2 else 0)
        found.append(c)
    np.testing.assert_array_equal(found[0], found[-1])
    np.testing.assert_allclose(found[0].astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), atol=0.05)


@weft.jit
def odd_tiles(a, b, c, counter, k, KIND: tl.constexpr, PROGRAMS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Products of 64 rows each, in ways that keep warps from going over tiles apart from each other."""
    total = tl.zeros((64, 64), tl.float32)
    start = 0
    for tile in tl.range(tl.program_id(0), 3, PROGRAMS, warp_specialize=True):
        row = tile * 64
        if KIND == "a tile that is taken":
            row = tl.atomic_add(counter, 1) * 64
        elif KIND == "stores to what it loads":
            a.store([row, 0], tl.full((64, 64), 1.0, tl.float16))
        elif KIND == "length that is loaded":
            k = tl.load(counter + 1 + tile)
        acc = tl.zeros((64, 64), tl.float32)
        for at in range(0, k, 64):
            acc = tl.dot(a.load([row, at]), b.load([at, start]), acc)
        if KIND == "another loop":
            for at in range(0, k, 64):
                acc = tl.dot(a.load([row, at]), b.load([at, 0]), acc)
        total += acc
        c.store([row, 0], acc)


KINDS = {
    "plain": "",
    "a tile that is taken": "the loop over tiles has an operation at which warps wait for each other, or for memory",
    "stores to what it loads": "stores to memory that the loop loads",
    "length that is loaded": "depend on values that the loop loads or carries",
    "another loop": "another loop in it",
}


@slow
@pytest.mark.parametrize(("kind", "why"), KINDS.items(), ids=KINDS)
def test_what_stays(kind: str, why: str) -> None:
    a, b, c = aligned((192, 128), np.float16), aligned((128, 64), np.float16), aligned((192, 64), np.float32)
    rng = np.random.default_rng(1)
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    sides = [described(x, (64, 64)) for x in (a, b, c)]
    left = a.astype(np.float64)
    if kind == "stores to what it loads":
        left[:, :64] = 1
    exact = left @ b.astype(np.float64) * (2 if kind == "another loop" else 1)
    made = simulated(odd_tiles, (1,), *sides, np.array([0, 128, 128, 128], np.int32), 128, KIND=kind, PROGRAMS=1)
    assert is_specialized(made) == (not why) and all(why in found for found in why_not(made))
    np.testing.assert_allclose(c, exact, atol=1e-2)
