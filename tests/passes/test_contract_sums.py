"""Sums of products of tiles of three dimensions are products of matrices, where they are large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def summed(
    z, x, y, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FORM: tl.constexpr, ADD: tl.constexpr
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if FORM == "mkn":
        t = tl.sum(tl.load(x + m[:, None] * K + k)[:, :, None] * tl.load(y + k[:, None] * N + n)[None, :, :], axis=1)
    elif FORM == "mnk":
        t = tl.sum(tl.load(y + k + n[:, None] * K)[None, :, :] * tl.load(x + m[:, None] * K + k)[:, None, :], axis=2)
    elif FORM == "kmn":
        t = tl.sum(tl.load(x + m + k[:, None] * M)[:, :, None] * tl.load(y + k[:, None] * N + n)[:, None, :], axis=0)
    else:
        t = tl.sum(tl.load(y + n[:, None] * K + k)[:, :, None] * tl.load(x + m + k[:, None] * M)[None, :, :], axis=1)
        t = tl.trans(t)
    if ADD:
        t += tl.load(c + m[:, None] * N + n)
    tl.store(z + m[:, None] * N + n, t)


def _compiled(form: str, m: int, n: int, k: int, add: bool = True, **options: Any) -> Any:
    f32 = weft.MockTensor("fp32")
    return summed.warmup(f32, f32, f32, f32, m, n, k, form, add, grid=(1,), target="cuda:90", **options)


@pytest.mark.parametrize("form", ["mkn", "mnk", "kmn", "nkm"])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.thinned(2)
def test_it_is_a_product_and_right(form: str, add: bool) -> None:
    rng = np.random.default_rng(5)
    m, n, k = 32, 64, 16
    x, y = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    c, z = rng.standard_normal((m, n), np.float32), np.empty((m, n), np.float32)
    left = x if form in ("mkn", "mnk") else np.ascontiguousarray(x.T)
    right = y if form in ("mkn", "kmn") else np.ascontiguousarray(y.T)
    with weft.target("sim:cuda:90"):
        summed[(1,)](z, left, right, c, m, n, k, form, add)
    wanted = x.astype(np.float64) @ y + (c if add else 0)
    np.testing.assert_allclose(z, wanted, rtol=1e-5, atol=1e-5)  # in f32: tf32 would be off by 1e-3
    text = _compiled(form, m, n, k, add).asm["ttir"]
    assert "tt.dot" in text and "tt.reduce" not in text and "arith.mulf" not in text
    assert ("arith.addf" in text) == (add and form == "nkm")  # its sum is of what the product was transposed to


def test_what_is_added_is_where_the_product_begins() -> None:
    text = _compiled("mkn", 64, 64, 32).asm["ttir"]
    assert "arith.addf" not in text.replace("tt.reduce", "") and text.count("tt.dot") == 1


@pytest.mark.parametrize("shape", [(8, 64, 64), (64, 64, 8), (64, 8, 64)])
def test_small_ones_stay(shape: tuple[int, int, int]) -> None:
    text = _compiled("mkn", *shape).asm["ttir"]
    assert "tt.dot" not in text and "tt.reduce" in text


def test_rounded_apart_they_stay() -> None:
    assert "tt.dot" not in _compiled("mkn", 64, 64, 32, enable_fp_fusion=False).asm["ttir"]


def test_squares_and_other_functions_stay() -> None:
    @weft.jit
    def other(z, x, KIND: tl.constexpr):
        i = tl.arange(0, 32)
        a = tl.load(x + i[:, None] * 32 + i)
        if KIND == "square":
            t = tl.sum((a[:, :, None] * a[:, :, None]) + tl.zeros((32, 32, 32), tl.float32), axis=1)
        elif KIND == "max":
            t = tl.max(a[:, :, None] * a[None, :, :], axis=1)
        else:
            t = tl.sum(a[:, :, None] + a[None, :, :], axis=1)
        tl.store(z + i[:, None] * 32 + i, t)

    f32 = weft.MockTensor("fp32")
    for kind in ("square", "max", "sum"):
        assert "tt.dot" not in other.warmup(f32, f32, kind, grid=(1,), target="cuda:90").asm["ttir"]
