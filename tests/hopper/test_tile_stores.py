"""What the copy engine stores of loops over tiles, or adds to memory, and what threads do, as something could tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

from .running import aligned
from .specialized import described, is_specialized, simulated, why_not


@weft.jit
def stored(a, b, c, other, counter, k, KIND: tl.constexpr):  # type: ignore[no-untyped-def]
    """Three tiles of 64 rows, in ways that the copy engine may store or not."""
    for tile in tl.range(tl.program_id(0), 3, 1, warp_specialize=True):
        row = tile * 64
        acc = tl.zeros((64, 64), tl.float32)
        for at in range(0, k, 64):
            acc = tl.dot(a.load([row, at]), b.load([at, 0]), acc)
        result = acc.to(tl.float16)
        if KIND == "loaded too":
            result += c.load([row, 0])
        if KIND == "a row further up":
            c.store([row - 8, 0], result)
        elif KIND == "a whole tile further up":
            c.store([row - 64, 0], result)
        elif KIND == "columns that are no 16 bytes":
            c.store([row, 4], result)
        elif KIND == "with a hint":
            places = (row + tl.arange(0, 64))[:, None] * 64 + tl.arange(0, 64)[None, :]
            tl.store(other + places, result, cache_modifier=".cs")
        elif KIND == "by pointers":
            places = (row + tl.arange(0, 64))[:, None] * 64 + tl.arange(0, 64)[None, :]
            tl.store(other + places, result)
        elif KIND == "added" or KIND == "added to what is loaded":
            places = (row + tl.arange(0, 64))[:, None] * 64 + tl.arange(0, 64)[None, :]
            if KIND == "added to what is loaded":
                result += tl.load(other + places) - 1
            tl.atomic_add(other + places, result, sem="relaxed")
        elif KIND == "added up to a row":
            rows = row + tl.arange(0, 64)
            places = rows[:, None] * 64 + tl.arange(0, 64)[None, :]
            tl.atomic_add(other + places, result, mask=(rows < k)[:, None], sem="relaxed")
        elif KIND == "added in an order":
            places = (row + tl.arange(0, 64))[:, None] * 64 + tl.arange(0, 64)[None, :]
            tl.atomic_add(other + places, result)
        elif KIND == "where a number says so":
            if tile != 1:
                c.store([row, 0], result)
        elif KIND == "summed over rows":
            c.store([row, 0], result + tl.sum(acc, 0)[None, :].to(tl.float16))
        else:
            c.store([row, 0], result)
        if KIND == "told to others":
            tl.atomic_add(counter, 1)
        if KIND == "twice":
            c.store([row, 0], result + result)


BY_COPY_ENGINE = ("plain", "by pointers", "a whole tile further up", "added", "added up to a row")
BY_THREADS = (
    "summed over rows",  # the tile changes its layout for the sum, to the one by which threads store
    *("loaded too", "a row further up", "columns that are no 16 bytes", "with a hint", "where a number says so"),
    *("told to others", "twice", "added to what is loaded", "added in an order"),
)


def check(kind: str) -> Any:
    """Divided, and right; the launch."""
    a, b, c, other = (aligned(shape, np.float16) for shape in ((192, 128), (128, 64), (192, 64), (192, 64)))
    rng = np.random.default_rng(2)
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    c[...], other[...] = 1, 1
    exact = a.astype(np.float64) @ b.astype(np.float64)
    wanted = np.ones((192, 64))
    if kind == "a row further up":
        wanted[:184] = exact[8:]
    elif kind == "a whole tile further up":
        wanted[:128] = exact[64:]
    elif kind == "columns that are no 16 bytes":
        wanted[:, 4:] = exact[:, :60]
    elif kind == "where a number says so":
        wanted[:64], wanted[128:] = exact[:64], exact[128:]
    elif kind == "summed over rows":
        wanted = exact + np.repeat(exact.reshape(3, 64, 64).sum(1), 64, axis=0)
    elif kind.startswith("added"):
        wanted = 1 + exact * (1 if kind != "added up to a row" else (np.arange(192) < 128)[:, None])
    else:
        wanted = exact * (2 if kind == "twice" else 1) + (kind == "loaded too")
    sides = [described(x, (64, 64)) for x in (a, b, c)]
    made = simulated(stored, (1,), *sides, other, np.zeros(1, np.int32), 128, KIND=kind)
    assert is_specialized(made), why_not(made)
    found = other if kind in ("by pointers", "with a hint") or kind.startswith("added") else c
    np.testing.assert_allclose(found.astype(np.float64), wanted, atol=0.1, rtol=1e-2)
    return made


def is_bulk(made: Any) -> bool:
    return any(f"ttng.async_tma_{x}" in made.asm["ttgir"] for x in ("copy_local_to_global", "reduce add"))


def test_what_the_copy_engine_stores() -> None:
    assert is_bulk(check("plain"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", BY_COPY_ENGINE)
def test_by_the_copy_engine(kind: str) -> None:
    assert is_bulk(check(kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", BY_THREADS)
def test_by_threads(kind: str) -> None:
    assert not is_bulk(check(kind))


@weft.jit
def added_and_stored(a, b, c, other, k):  # type: ignore[no-untyped-def]
    """Each step adds its product to memory; their sum is stored at the end of a tile."""
    for tile in tl.range(tl.program_id(0), 2, 1, warp_specialize=True):
        row = tile * 64
        total = tl.zeros((64, 64), tl.float32)
        places = (row + tl.arange(0, 64))[:, None] * 64 + tl.arange(0, 64)[None, :]
        for at in range(0, k, 64):
            part = tl.dot(a.load([row, at]), b.load([at, 0]))
            total += part
            tl.atomic_add(other + places, part.to(tl.float16), sem="relaxed")
        c.store([row, 0], total.to(tl.float16))


@pytest.mark.slow
def test_stores_of_both_loops() -> None:
    """A step waits for what the step before it has begun, though the loop over tiles stores through another buffer."""
    a, b, c, other = (aligned(shape, np.float16) for shape in ((128, 192), (192, 64), (128, 64), (128, 64)))
    rng = np.random.default_rng(2)
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    made = simulated(added_and_stored, (1,), *(described(x, (64, 64)) for x in (a, b, c)), other, 192)
    text = made.asm["ttgir"]
    assert "async_tma_copy_local_to_global" in text and "async_tma_reduce add" in text, why_not(made)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c.astype(np.float64), exact, atol=0.1)
    np.testing.assert_allclose(other.astype(np.float64), exact, atol=0.1)


@weft.jit
def biased(a, b, c, bias, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Each iteration uses its product, and looks up numbers that are loaded an iteration ahead."""
    blocks_n = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * blocks_n, tl.num_programs(0)):
        m0, n0 = tile // blocks_n * BM, tile % blocks_n * BN
        rows, columns = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([m0, k]), b.load([n0, k]).T, acc) + tl.load(bias + k // BK + columns % 4)[None, :]
        mask = (rows < M)[:, None] & (columns < N)[None, :]
        tl.store(c + rows[:, None] * N + columns[None, :], acc, mask)


def test_a_tile_of_a_loop_that_looks_up_numbers_ahead() -> None:
    """The loop was rewritten between the plan of the store and the store: KeyError."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (256, 128)).astype(np.float16) for _ in range(2))
    c, bias = np.zeros((256, 256), np.float32), rng.integers(-2, 3, 8).astype(np.float32)
    sides = [weft.TensorDescriptor.from_tensor(x, [128, 64]) for x in (a, b)]
    with weft.target("sim:cuda:90"):
        made = biased[(2,)](*sides, c, bias, 256, 256, 128, BM=128, BN=128, BK=64, num_warps=4, num_stages=3)
    assert "async_tma_copy_local_to_global" in made.asm["ttgir"]
    added = sum(bias[k + np.arange(256) % 4] for k in range(2))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32) + added)
