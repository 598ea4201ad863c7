"""Weights of 4 bits, of which eight lie in a word: each word is copied once, and so is the scale of a group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def packed(  # type: ignore[no-untyped-def]
    x, w, scale, out, K, N: tl.constexpr, M: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, MASKED: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        value = tl.load(x + m[:, None] * K + at[None, :])
        words = w + (at // 8)[:, None] * N + n[None, :]
        if MASKED:
            word = tl.load(words, mask=(at // 16 * 16 < K)[:, None] & (n != 3)[None, :], other=0)
        else:
            word = tl.load(words)
        by = tl.load(scale + (at // GROUP)[:, None] * N + n[None, :])
        weight = (word >> (k % 8 * 4)[:, None] & 15).to(tl.float16) * by
        acc = tl.dot(value, weight, acc)
    tl.store(out + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize(
    ("rows", "step", "group", "masked"), [(16, 32, 16, False), (16, 32, 32, True), (64, 32, 64, False)]
)
def test_computes_the_same(rows: int, step: int, group: int, masked: bool) -> None:
    rng, columns, depth = np.random.default_rng(0), 32, 64
    x = rng.integers(-4, 5, (rows, depth)).astype(np.float16)
    w = rng.integers(-(1 << 31), 1 << 31, (depth // 8, columns)).astype(np.int32)
    scale = rng.integers(1, 4, (-(-depth // group), columns)).astype(np.float16)
    out = np.zeros((rows, columns), np.float32)
    shapes: dict[str, Any] = {"N": columns, "M": rows, "BK": step, "GROUP": group, "MASKED": masked}
    with weft.runtime.compiling.target("sim:cuda:90"):
        made = packed[(1,)](x, w, scale, out, depth, **shapes)
    k = np.arange(depth)
    weights = (w[k // 8] >> (k % 8 * 4)[:, None] & 15) * scale[k // group].astype(np.float64)
    if masked:
        weights[:, 3] = 0
    assert np.array_equal(out, x.astype(np.float64) @ weights)
    assert f"-> <{step // 8}x{columns}xi32" in made.asm["ttgir"]  # copied, ahead of the products
