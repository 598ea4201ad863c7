"""Atomics of every kind, on tiles with copies and on scalars, with what was there before."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
import weft.sim
from lower.tile_text import launched, loaded, program_of, random_layout, stored, text_of, tile

TYPES: dict[str, Any] = {
    "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}  # fmt: skip
COPIES = (
    "#ttg.linear<{register = [[0], [1]], lane = [[2], [4], [0], [8], [0]], warp = [[16], [0]], block = []}>",
    "#ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [0]], warp = [[32], [64]], block = []}>",
    "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>",
)


def updated(layout: str, size: int, elem: str, kind: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """(memory before, the other operand, memory after, what each place got)."""
    one, at = tile((size,), elem, "#l"), tile((size,), f"!tt.ptr<{elem}>", "#l")
    body = (
        loaded("v", "b", (size,), elem, "#l")
        + f"""
    %r = tt.make_range {{end = {size} : i32, start = 0 : i32}} : {tile((size,), "i32", "#l")}
    %s = tt.splat %a : !tt.ptr<{elem}> -> {at}
    %p = tt.addptr %s, %r : {at}, {tile((size,), "i32", "#l")}
    %t = arith.constant dense<true> : {tile((size,), "i1", "#l")}
    %o = tt.atomic_rmw {kind}, acq_rel, gpu, %p, %v, %t : ({at}, {one}, {tile((size,), "i1", "#l")}) -> {one}"""
        + stored("o", "c", (size,), elem, "#l")
    )
    program = program_of({"l": layout}, [(n, elem) for n in "abc"], body)
    rng = np.random.default_rng(seed)
    before, other = (rng.integers(0, 50, size).astype(np.float32).astype(TYPES[elem]) for _ in range(2))
    after, old = before.copy(), np.zeros_like(before)
    launched(program, seed, a=after, b=other, c=old)
    return before, other, after, old


@pytest.mark.parametrize("layout", range(4))
@pytest.mark.parametrize("elem", ["i32", "f32", "f16", "i64"])
@pytest.mark.thinned(2)
def test_copies_act_once_and_all_know_what_was_there(layout: int, elem: str) -> None:
    size = (32, 128, 64, 256)[layout]
    text = COPIES[layout] if layout < 3 else text_of(random_layout(random.Random(5), (256,)))
    add = "add" if elem[0] == "i" else "fadd"
    before, other, after, old = updated(text, size, elem, add, layout)
    assert np.array_equal(after, (before + other).astype(before.dtype))
    assert np.array_equal(old, before)


@pytest.mark.parametrize(
    ("kind", "combine"),
    [
        ("and", np.bitwise_and),
        ("or", np.bitwise_or),
        ("xor", np.bitwise_xor),
        ("max", np.maximum),
        ("umin", np.minimum),
        ("exch", lambda a, b: b),
    ],
)
def test_kinds(kind: str, combine: Any) -> None:
    before, other, after, old = updated(COPIES[0], 32, "i32", kind, 3)
    assert np.array_equal(after, combine(before, other))
    assert np.array_equal(old, before)


@pytest.mark.parametrize("elem", ["f32", "f64", "f16", "bf16"])
def test_sums_of_floats(elem: str) -> None:
    before, other, after, _ = updated(COPIES[1], 128, elem, "fadd", 4)
    wide = before.astype(np.float32) + other.astype(np.float32)
    assert np.array_equal(after.astype(np.float32), wide.astype(before.dtype).astype(np.float32))


@weft.jit
def compared(x, old, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(old + i, tl.atomic_cas(x + i, i, 0 * i - 1))


def test_compare_and_swap_of_a_tile() -> None:
    x = np.arange(32, dtype=np.int32)
    x[::3] = 100
    found, old = x.copy(), np.zeros_like(x)
    with weft.target("sim:cuda:80"):
        compared[(1,)](found, old, n=32)
    assert np.array_equal(found, np.where(x == np.arange(32), -1, x))
    assert np.array_equal(old, x)


@weft.jit
def numbered(counter, lock, out, total, n: tl.constexpr):
    mine = tl.atomic_add(counter, 1)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    i = tl.arange(0, n)
    tl.store(total + i, tl.load(total + i) + mine)
    tl.atomic_xchg(lock, 0)
    tl.store(out + mine * n + i, i)


def test_a_scalar_is_one_step_for_the_whole_program() -> None:
    counter, lock = np.zeros(1, np.int32), np.zeros(1, np.int32)
    out, total = np.zeros((6, 128), np.int32), np.zeros(128, np.int32)
    with weft.target("sim:cuda:80"):
        numbered[(6,)](counter, lock, out, total, n=128)
    assert counter[0] == 6
    assert lock[0] == 0
    assert np.array_equal(out, np.tile(np.arange(128), (6, 1)))
    assert (total == 15).all()
    report = weft.sim.last_run()
    assert report["barriers"] > 0


@weft.jit
def minima(x, low, high, n: tl.constexpr):
    i = tl.arange(0, n)
    v = tl.load(x + i)
    tl.atomic_min(low + i * 0, v)
    tl.atomic_max(high + i * 0, v, mask=v < 3.0)


def test_extremes_of_floats() -> None:
    x = np.random.default_rng(1).standard_normal(256).astype(np.float32)
    low, high = np.full(1, np.inf, np.float32), np.full(1, -np.inf, np.float32)
    with weft.target("sim:cuda:80"):
        minima[(1,)](x, low, high, n=256)
    assert low[0] == x.min()
    assert high[0] == x[x < 3].max()


@weft.jit
def halves(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i, tl.load(x + i), mask=i < n)


@pytest.mark.parametrize(
    ("dtype", "target", "steps"),
    [
        (np.float16, "cuda:80", 2),
        (ml_dtypes.bfloat16, "cuda:80", 4),
        (ml_dtypes.bfloat16, "cuda:90", 1),
        (np.float32, "cuda:90", 1),
        (np.float32, "cuda:80", 4),
    ],
)
def test_several_are_added_at_once(dtype: Any, target: str, steps: int) -> None:
    x = np.random.default_rng(0).integers(0, 9, 512).astype(np.float32).astype(dtype)
    out = np.ones(512, np.float32).astype(dtype)
    with weft.target(f"sim:{target}"):
        halves[(1,)](x, out, 496, BLOCK=512)
    assert np.array_equal(out.astype(np.float32), 1 + np.where(np.arange(512) < 496, x.astype(np.float32), 0))
    assert weft.sim.last_run().kinds["atomic.global"] == 4 * steps
