"""Scaled products against a reference in float64: every format, both packings, with NaN and the least scales."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
M, N, K = 16, 32, 64


@weft.jit
def scaled_product(
    a, b, sa, sb, c,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A_ROWS: tl.constexpr, A_COLS: tl.constexpr,
    B_ROWS: tl.constexpr, B_COLS: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    A_PACK: tl.constexpr, B_PACK: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    x = tl.load(a + tl.arange(0, A_ROWS)[:, None] * A_COLS + tl.arange(0, A_COLS)[None, :])
    y = tl.load(b + tl.arange(0, B_ROWS)[:, None] * B_COLS + tl.arange(0, B_COLS)[None, :])
    xs = tl.load(sa + m[:, None] * (K // 32) + k[None, :])
    ys = tl.load(sb + n[:, None] * (K // 32) + k[None, :])
    z = tl.dot_scaled(x, xs, A, y, ys, B, fast_math=FAST, lhs_k_pack=A_PACK, rhs_k_pack=B_PACK)
    tl.store(c + m[:, None] * N + n[None, :], z)


def operand(kind: str, rows: int, cols: int, axis: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """An operand as the kernel takes it (e2m1 packed along `axis`) and as numbers."""
    if kind == "e2m1":
        codes = rng.integers(0, 16, (rows, cols)).astype(np.uint8)
        low = codes[::2] if axis == 0 else codes[:, ::2]
        high = codes[1::2] if axis == 0 else codes[:, 1::2]
        return low | (high << 4), E2M1[codes]
    types = {
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
        "bf16": ml_dtypes.bfloat16,
        "fp16": np.float16,
    }
    values = rng.normal(size=(rows, cols)).astype(types[kind])
    return values, values.astype(np.float64)


def scales(rows: int, rng: np.random.Generator, odd: bool) -> tuple[np.ndarray, np.ndarray]:
    codes = rng.integers(122, 133, (rows, K // 32)).astype(np.uint8)
    if odd:
        codes[1, 0], codes[2, 1] = 255, 0
    factors = np.where(codes == 255, np.nan, np.exp2(codes.astype(np.float64) - 127))
    return codes, np.repeat(factors, 32, axis=1)


@pytest.mark.parametrize(
    ("a_kind", "b_kind", "a_pack", "b_pack", "odd"),
    [
        ("e2m1", "e2m1", True, True, False),
        ("e2m1", "e4m3", False, True, False),
        ("e5m2", "e2m1", True, False, True),
        ("e2m1", "bf16", True, True, True),
        ("fp16", "e2m1", True, False, False),
        ("e4m3", "e5m2", True, True, True),
    ],
)
def test_scaled_product(a_kind: str, b_kind: str, a_pack: bool, b_pack: bool, odd: bool) -> None:
    rng = np.random.default_rng(7)
    a, x = operand(a_kind, M, K, 1 if a_pack else 0, rng)
    b, y = operand(b_kind, K, N, 0 if b_pack else 1, rng)
    sa, fa = scales(M, rng, odd)
    sb, fb = scales(N, rng, odd)
    c = np.zeros((M, N), np.float32)
    shapes = {"A_ROWS": a.shape[0], "A_COLS": a.shape[1], "B_ROWS": b.shape[0], "B_COLS": b.shape[1]}
    kinds = {"A": a_kind, "B": b_kind, "A_PACK": a_pack, "B_PACK": b_pack, "FAST": False}
    scaled_product[(1,)](np.ascontiguousarray(a), np.ascontiguousarray(b), sa, sb, c, M=M, N=N, K=K, **shapes, **kinds)
    wanted = (x * fa) @ (y * fb.T)
    assert np.array_equal(np.isnan(c), np.isnan(wanted))
    np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("kind", ["e4m3", "e5m2", "e2m1", "bf16", "fp16"])
@pytest.mark.thinned(3)
def test_the_least_scales(kind: str, target: str) -> None:
    """A byte of 0 is 2^-127, a denormal number in bf16, which products must not take for zero; in f16 it is none."""
    rng = np.random.default_rng(7)
    a, x = operand(kind, M, K, 1, rng)
    b, y = operand(kind, K, N, 0, rng)
    shapes = {"A_ROWS": a.shape[0], "A_COLS": a.shape[1], "B_ROWS": b.shape[0], "B_COLS": b.shape[1]}
    flags = {"A": kind, "B": kind, "A_PACK": True, "B_PACK": True, "FAST": False}
    for small, large in ((0, 247), (1, 247), (2, 246)):
        for left, right in ((small, large), (large, small)):
            sa, sb = np.full((M, K // 32), left, np.uint8), np.full((N, K // 32), right, np.uint8)
            c = np.zeros((M, N), np.float32)
            operands = np.ascontiguousarray(a), np.ascontiguousarray(b), sa, sb, c
            scaled_product[(1,)](*operands, M=M, N=N, K=K, **shapes, **flags, target=target)
            if kind == "fp16":
                assert np.isnan(c).all()  # one scale is 0 in f16, the other infinite
            else:  # each operand is rounded to bf16 with its scale; denormal numbers have fewer places
                np.testing.assert_allclose(c, _rounded(x, left) @ _rounded(y, right), rtol=1e-5, atol=1e-6)


def _rounded(values: np.ndarray, code: int) -> np.ndarray:
    """Values times a scale as bf16 holds them."""
    return np.asarray((values * 2.0 ** (code - 127)).astype(np.float32).astype(ml_dtypes.bfloat16), np.float64)


@weft.jit
def scaled_weights(X, W, S, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, A: tl.constexpr):
    m, n, k, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK), tl.arange(0, BK // 32)
    total = tl.zeros((M, N), tl.float32)
    for step in range(K // BK):
        x = tl.load(X + m[:, None] * K + (step * BK + k)[None, :])
        w = tl.load(W + n[None, :] * K + (step * BK + k)[:, None])
        s = tl.load(S + n[:, None] * (K // 32) + (step * (BK // 32) + g)[None, :])
        total = tl.dot_scaled(x, None, A, w, s, "e4m3", total)
    tl.store(OUT + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("m", [16, 64])
def test_scales_are_moved_before_they_are_repeated(m: int, target: str) -> None:
    """Of 64 x 128 weights there are 64 x 4 scales: only those are moved between threads, and looked at for NaN."""
    rng = np.random.default_rng(3)
    n, depth = 64, 256
    x = rng.integers(-3, 4, (m, depth)).astype(ml_dtypes.bfloat16)
    w = rng.integers(-3, 4, (n, depth)).astype(ml_dtypes.float8_e4m3fn)
    s = rng.integers(125, 130, (n, depth // 32)).astype(np.uint8)
    s[5, 2], s[9, 7] = 255, 0
    out = np.zeros((m, n), np.float32)
    arguments = (x, w, s, out, depth)
    options = {"M": m, "N": n, "BK": 128, "A": "bf16"}
    scaled_weights[(1,)](*arguments, **options, target=target)
    factors = np.where(s == 255, np.nan, np.exp2(s.astype(np.float64) - 127))
    wanted = x.astype(np.float64) @ (w.astype(np.float64) * np.repeat(factors, 32, axis=1)).T
    np.testing.assert_array_equal(out, wanted)
    kernel = scaled_weights.warmup(*arguments, **options, grid=(1,), target=target[4:])
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    for line in loop.splitlines():
        if "ttg.convert_layout" in line and "dot_op" not in line:
            assert "tensor<64x4x" in line, line
        assert "arith.select" not in line or "tensor<64x4x" in line or "i32" in line, line
