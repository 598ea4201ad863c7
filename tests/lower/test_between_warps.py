"""Reductions across warps: one trip for all that is reduced together, and work that lanes share."""

from __future__ import annotations

import ml_dtypes  # noqa: F401  (its element types get names)
import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def first_largest(x, where, top, N: tl.constexpr):
    row = tl.program_id(0)
    value, index = tl.max(tl.load(x + row * N + tl.arange(0, N)), axis=0, return_indices=True)
    tl.store(where + row, index)
    tl.store(top + row, value)


@weft.jit
def columns(x, where, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(where + tl.arange(0, N), tl.argmin(tl.load(x + at), axis=0))


@weft.jit
def total(x, out, N: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, N))))


@weft.jit
def how_many(x, out, N: tl.constexpr):
    tl.store(out, tl.sum((tl.load(x + tl.arange(0, N)) > 0).to(tl.int64)))


@weft.jit
def softmax(x, out, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, N)).to(tl.float32)
    e = tl.exp(value - tl.max(value))
    tl.store(out + tl.arange(0, N), e / tl.sum(e))


def ptx(kernel: weft.JITFunction, *args: object, warps: int, **sizes: int) -> str:
    made = kernel.warmup(*args, **sizes, num_warps=warps, grid=(1,), target="cuda:90")
    return str(made.asm["ptx"])


@pytest.mark.parametrize("warps", [2, 4, 8, 16])
def test_values_and_indices_travel_together(warps: int) -> None:
    f, i = weft.MockTensor("fp32"), weft.MockTensor("i32")
    assert ptx(first_largest, f, i, f, warps=warps, N=4096).count("bar") == 1


def test_lanes_share_what_is_dear() -> None:
    """Of 16 warps' results each lane reads one: 4 steps and not 15 combinations."""
    f, i = weft.MockTensor("fp32"), weft.MockTensor("i32")
    text = ptx(first_largest, f, i, f, warps=16, N=4096)
    assert text.count("shfl.sync") == 2 * (5 + 4)
    assert text.count("ld.shared") == 2


def test_lanes_share_what_takes_many_registers() -> None:
    """Sums of 64 bits by 16 warps are 32 words, for which threads of 16 warps had to be half as many."""
    f, i = weft.MockTensor("fp32"), weft.MockTensor("i64")
    assert ptx(how_many, f, i, warps=16, N=4096).count("ld.shared") == 1
    x, out = np.random.default_rng(0).normal(size=4096).astype(np.float32), np.zeros(1, np.int64)
    how_many[(1,)](x, out, N=4096, num_warps=16, target="sim:cuda:90")
    assert out[0] == np.count_nonzero(x > 0)


def test_what_is_cheap_is_added_by_each() -> None:
    f = weft.MockTensor("fp32")
    text = ptx(total, f, f, warps=16, N=4096)
    assert text.count("shfl.sync") == 5
    assert text.count("ld.shared.v4") == 4


def test_each_reduction_has_bytes_of_its_own() -> None:
    """The second one need not wait until all have read the results of the first."""
    f = weft.MockTensor("fp32")
    assert ptx(softmax, f, f, warps=8, N=4096).count("bar.sync") == 2


def test_halves_are_compared_in_words() -> None:
    """The largest of eight halves in four words, and of those of the other lanes without taking them out of words."""
    text = ptx(softmax, weft.MockTensor("bf16"), weft.MockTensor("fp32"), warps=4, N=1024)
    assert text.count("max.bf16x2") >= 3 + 5
    assert "max.f32" not in text


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_largest_halves(kind: str) -> None:
    x = np.random.default_rng(3).normal(size=1024).astype(kind)
    out = np.zeros(1024, np.float32)
    with weft.target("sim:cuda:90"):
        softmax[(1,)](x, out, N=1024)
    wide = x.astype(np.float64)
    assert np.allclose(out, np.exp(wide) / np.exp(wide).sum(), rtol=1e-5)


@pytest.mark.parametrize("warps", [4, 8, 16])
def test_results(warps: int) -> None:
    x = np.random.default_rng(warps).integers(0, 50, (5, 2048)).astype(np.float32)
    where, top = np.zeros(5, np.int32), np.zeros(5, np.float32)
    with weft.target("sim:cuda:90"):
        first_largest[(5,)](x, where, top, N=2048, num_warps=warps)
    assert np.array_equal(where, x.argmax(axis=1))
    assert np.array_equal(top, x.max(axis=1))


@pytest.mark.parametrize("shape", [(64, 16), (256, 4), (512, 2), (32, 64)])
@pytest.mark.parametrize("warps", [8, 16])
def test_columns(shape: tuple[int, int], warps: int) -> None:
    """Lanes may hold different columns; then they have nothing to share."""
    x = np.random.default_rng(3).integers(0, 9, shape).astype(np.float32)
    where = np.zeros(shape[1], np.int32)
    with weft.target("sim:cuda:90"):
        columns[(1,)](x, where, M=shape[0], N=shape[1], num_warps=warps)
    assert np.array_equal(where, x.argmin(axis=0))
