"""Loops that do less: copies of few iterations are begun before the loop, scales of a whole block are one number, and
what is widened for a product of tf32 goes to wgmma."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def short(A, B, OUT, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(A + m[:, None] * K + (start + k)[None, :])
        b = tl.load(B + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(OUT + m[:, None] * N + n[None, :], acc)


@weft.jit
def scaled(A, B, S, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    m, n, k = tl.arange(0, M), (tl.program_id(0) * N + tl.arange(0, N)) % (4 * N), tl.arange(0, BK)
    a, b, scales = A + m[:, None] * K + k[None, :], B + n[None, :] * K + k[:, None], S + n // N * (K // BK)
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(tl.load(a), tl.load(b)) * tl.load(scales)[None, :]
        a += BK
        b += BK
        scales += 1
    tl.store(OUT + m[:, None] * 4 * N + n[None, :], acc)


@weft.jit
def widened(A, B, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(A + m[:, None] * K + (start + k)[None, :])
        b = tl.load(B + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(a * 0.5, b.to(tl.float32), acc)
    tl.store(OUT + m[:, None] * N + n[None, :], acc)


def integers(*shape: int, kind: Any = np.float16) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(kind)


def run(kernel: Any, *args: Any, grid: int = 1, **more: Any) -> Any:
    with weft.target("sim:cuda:90"), weft.sim.options(copies="latest"):
        return kernel[(grid,)](*args, **more)


def body(made: Any) -> str:
    """What the loop of a kernel has."""
    text: str = made.asm["ttgir"]
    return text[text.index("scf.for") : text.index("scf.yield")]


@pytest.mark.parametrize(("rows", "stages"), [(16, 4), (64, 3)])
def test_all_copies_of_few_iterations_are_begun_before_the_loop(rows: int, stages: int) -> None:
    a, b, out = integers(rows, 64), integers(64, 32), np.zeros((rows, 32), np.float32)
    made = run(short, a, b, out, M=rows, N=32, K=64, BK=32, num_stages=stages)
    assert np.array_equal(out, a.astype(np.float64) @ b)
    assert "async_copy" not in body(made)
    assert f"memdesc<2x{rows}x32xf16" in made.asm["ttgir"]


def test_the_scale_of_a_block_is_one_number() -> None:
    a, b, s = integers(16, 128), integers(128, 128), integers(4, 4, kind=np.float32)
    out = np.zeros((16, 128), np.float32)
    made = run(scaled, a, b, s, out, 128, grid=4, M=16, N=32, BK=32)
    by = np.repeat(s, 32, axis=0)
    parts = (a[:, i : i + 32].astype(np.float64) @ b[:, i : i + 32].T * by[:, i // 32] for i in range(0, 128, 32))
    assert np.array_equal(out, sum(parts))
    assert "tt.load" in body(made)
    assert "tensor<32x!tt.ptr<f32>" not in body(made)


def test_what_is_widened_for_tf32_goes_to_wgmma() -> None:
    a, b, out = integers(64, 64, kind=np.float32), integers(64, 32), np.zeros((64, 32), np.float32)
    made = run(widened, a, b, out, 64, M=64, N=32, BK=32)
    assert np.array_equal(out, a * 0.5 @ b.astype(np.float64))
    assert "warp_group_dot" in made.asm["ttgir"]
