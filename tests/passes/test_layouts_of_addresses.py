"""What is loaded from addresses that were computed from loaded numbers lies as those do: addresses are not moved.

Nor are tiles that repeat a smaller one.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def sum_of_looked_up(x, rows, out, n, stride, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.load(rows + i, mask=i < n, other=0)
    tl.atomic_add(out, tl.sum(tl.load(x + i * stride + row, mask=i < n, other=0)))


@weft.jit
def weighed(x, rows, out, n, stride, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.load(rows + i, mask=i < n, other=0)
    value = tl.load(x + i * stride + row, mask=(i < n) & (row != 3), other=0)
    tl.atomic_add(out, tl.sum(value * tl.load(x + row, mask=i < n, other=0)))


@pytest.mark.parametrize("kernel", [sum_of_looked_up, weighed])
def test_addresses_stay_where_they_are(kernel: weft.JITFunction) -> None:
    f, i = weft.MockTensor("fp32"), weft.MockTensor("i32")
    made = kernel.warmup(f, i, f, 4096, 16, B=4096, grid=(1,), target="cuda:90")
    assert "convert_layout" not in str(made.asm["ttgir"])
    assert str(made.asm["ptx"]).count("ld.global.v4") >= 4096 // 128 // 4  # the numbers are loaded 16 bytes at a time


def test_it_is_computed_so() -> None:
    rng = np.random.default_rng(3)
    x, rows = rng.integers(0, 9, 256 * 8 + 8).astype(np.float32), rng.integers(0, 8, 256).astype(np.int32)
    out = np.zeros(1, np.float32)
    with weft.target("sim:cuda:90"):
        weighed[(2,)](x, rows, out, 250, 8, B=128)
    i = np.arange(250)
    assert out[0] == (x[i * 8 + rows[:250]] * (rows[:250] != 3) * x[rows[:250]]).sum()


@weft.jit
def looked_up(x, rows, out, n, stride, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    row = tl.load(rows + i // stride * stride + i % stride, mask=i < n, other=0)
    tl.store(out + i, tl.load(x + i % stride + row, mask=i < n, other=0), mask=i < n)


def test_what_addresses_are_computed_of_is_computed_once() -> None:
    """Loaded numbers of 64 bits lie as the floats that are stored: no second layout, in which to divide too."""
    f, i = weft.MockTensor("fp32"), weft.MockTensor("i64")
    made = looked_up.warmup(f, i, f, 4096, 48, B=512, grid=(1,), target="cuda:90")
    text = str(made.asm["ttgir"])
    assert "convert_layout" not in text
    assert text.count("arith.divsi") == 1
    assert "st.global.v4" in str(made.asm["ptx"])


@weft.jit
def spread(words, out, C: tl.constexpr):
    row = tl.arange(0, 32)[:, None]
    x = tl.load(words + row * C + tl.arange(0, C)[None, :])
    x = tl.interleave(x, x)
    x = tl.interleave(x, x)
    at = tl.arange(0, 4 * C)[None, :]
    tl.store(out + row * (4 * C) + at, ((x >> (at % 4 * 8)) & 255).to(tl.float16))


def test_words_are_moved_before_they_are_spread() -> None:
    """What is interleaved with itself is moved, if at all, as the smaller tile that it was."""
    made = spread.warmup(weft.MockTensor("i32"), weft.MockTensor("fp16"), C=32, grid=(1,), target="cuda:90")
    moved = [line.split(" -> ")[1] for line in str(made.asm["ttgir"]).splitlines() if "convert_layout" in line]
    assert all(kind.startswith("tensor<32x32xi32") for kind in moved)
    assert made.metadata.shared <= 32 * 32 * 4


def test_spread_words_are_what_they_were() -> None:
    words = np.random.default_rng(2).integers(-(2**31), 2**31, (32, 32)).astype(np.int32)
    for target in ("sim:cuda:90", "cpu"):
        out = np.zeros((32, 128), np.float16)
        with weft.target(target):
            spread[(1,)](words, out, C=32)
        assert np.array_equal(out, words.view(np.uint8).reshape(32, 128).astype(np.float16))


@weft.jit
def strided(x, out, first, second, ROWS: tl.constexpr, COLUMNS: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = i * first * A + j * second * B
    tl.store(out + at, tl.load(x + at) + 1)


@pytest.mark.parametrize(
    ("strides", "factors", "order"),
    [
        ((9, 1152), (1, 1), [0, 1]),  # weights of a convolution
        ((1152, 9), (1, 1), [1, 0]),
        ((9, 7), (1, 1), [1, 0]),  # nothing is known: the last dimension
        ((1, 9), (3, 1), [0, 1]),  # a number and an argument
        ((1, 1), (2, 9), [0, 1]),  # two numbers
        ((1, 1), (9, 2), [1, 0]),
        ((0, 9), (0, 1), [1, 0]),  # no stride at all
    ],
)
def test_threads_follow_the_stride_that_is_probably_less(
    strides: tuple[int, int], factors: tuple[int, int], order: list[int]
) -> None:
    f = weft.MockTensor("fp32")
    named = {"ROWS": 32, "COLUMNS": 64, "A": factors[0], "B": factors[1]}
    made = strided.warmup(f, f, *strides, **named, grid=(1,), target="cuda:90")
    assert f"order = {order}" in str(made.asm["ttgir"])


@weft.jit
def pixels(x, out, width, channel, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr, PART: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    place = i // width * 1000 + i % width * STEP // PART
    at = tl.where(place < 5000, place, 0)[:, None] + j[None, :] * channel
    tl.store(out + at, tl.load(x + at) + 1)


@pytest.mark.parametrize(("step", "part", "order"), [(2, 1, [0, 1]), (4, 2, [0, 1]), (2, 4, [1, 0])])
def test_most_neighbours_of_a_remainder_are_in_one_row(step: int, part: int, order: list[int]) -> None:
    f = weft.MockTensor("fp32")
    named = {"ROWS": 32, "COLUMNS": 64, "STEP": step, "PART": part}
    made = pixels.warmup(f, f, 30, 3136, **named, grid=(1,), target="cuda:90")
    assert f"order = {order}" in str(made.asm["ttgir"])
