"""`while` loops that count are `for` loops: products in them are copied ahead, and give what they give on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def product(a, b, c, last, K, HOW: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """One block of a product, whose loop is written in some way; and the counter behind the loop."""
    rows, inner = tl.arange(0, 64), tl.arange(0, BK)
    acc = tl.zeros((64, 64), tl.float32)
    if HOW == "up":
        k = 0
        while K > k:
            x, y = tl.load(a + rows[:, None] * K + k + inner), tl.load(b + (k + inner)[:, None] * 64 + rows)
            acc = tl.dot(x, y, acc)
            k += BK
    elif HOW == "down":
        k = K - BK
        while k >= 0:
            x, y = tl.load(a + rows[:, None] * K + k + inner), tl.load(b + (k + inner)[:, None] * 64 + rows)
            acc = tl.dot(x, y, acc)
            k -= BK
    elif HOW == "pointers":
        k = tl.cdiv(K, BK)
        stride = K
        while k > 0:
            x, y = tl.load(a + rows[:, None] * stride + inner), tl.load(b + inner[:, None] * 64 + rows)
            acc = tl.dot(x, y, acc)
            a += BK
            b += BK * 64
            k = k - 1
    else:
        k, left = 0, 100
        while (k < K) & (left > 0):
            x, y = tl.load(a + rows[:, None] * K + k + inner), tl.load(b + (k + inner)[:, None] * 64 + rows)
            acc = tl.dot(x, y, acc)
            k, left = k + BK, left - 1
    tl.store(c + rows[:, None] * 64 + rows, acc)
    tl.store(last, k)


@pytest.mark.parametrize(
    ("how", "depth", "last"),
    [("up", 192, 192), ("up", 0, 0), ("down", 192, -32), ("pointers", 192, 0), ("other", 96, 96)],
)
def test_counts_as_it_says(how: str, depth: int, last: int) -> None:
    rng = np.random.default_rng(depth)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, depth), (depth, 64)))
    c, end = np.ones((64, 64), np.float32), np.ones(1, np.int32)
    with weft.target("sim:cuda:90"):
        made: Any = product[(1,)](a, b, c, end, depth, HOW=how, BK=32, num_stages=3)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert end[0] == last
    reasons = [remark.reason for remark in made.remarks.of("warps not specialized")]
    if how == "other":
        assert reasons == ["it is a `while` loop that does not count"]
    else:
        assert made.remarks.of("product overlap"), "the product goes on while the next iteration begins"
        assert len(reasons) == 1 and "while" not in reasons[0]


@weft.jit
def down(out, begin, end, STEP: tl.constexpr):  # type: ignore[no-untyped-def]
    """How many iterations it takes down to an argument, to constants on either side of 0, and the last value before."""
    k, times, last = begin, 0, begin
    while k > end:
        times, last, k = times + 1, k, k - STEP
    tl.store(out, times)
    tl.store(out + 1, last)
    k, times = begin, 0
    while 0 <= k:
        times, k = times + 1, k - STEP
    tl.store(out + 2, times)
    k, times = begin, 0
    while k > -1000000000:
        times, k = times + 1, k - STEP
    tl.store(out + 3, times)


@pytest.mark.parametrize("step", [700_000_001, 1 << 28])
@pytest.mark.parametrize("begin", [-(2**31), -2_147_483_000, -5, 0, 1_500_000_000, 2_147_483_000, 2**31 - 1])
@pytest.mark.parametrize("end", [-1_000_000_000, 0, 2_147_483_000])
def test_distances_that_are_no_numbers_of_the_counter(begin: int, end: int, step: int) -> None:
    out = np.full(4, 7, np.int32)
    with weft.target("sim:cuda:90"):
        made: Any = down[(1,)](out, begin, end, STEP=step)
    to_end, to_zero, to_constant = (range(begin, limit, -step) for limit in (end, -1, -1_000_000_000))
    assert out.tolist() == [len(to_end), to_end[-1] if to_end else begin, len(to_zero), len(to_constant)]
    assert "scf.while" not in made.asm["ttgir"]


@weft.jit
def narrow(out, STEP: tl.constexpr):  # type: ignore[no-untyped-def]
    """Counters of 8 bits, up and down."""
    k, times = tl.full((), -120, tl.int8), 0
    while k < 100:
        times, k = times + 1, (k + STEP).to(tl.int8)
    tl.store(out, times)
    while k > -100:
        times, k = times + 1, (k - STEP).to(tl.int8)
    tl.store(out + 1, times)


def test_more_iterations_than_a_counter_of_8_bits_has_positive_numbers() -> None:
    out = np.zeros(2, np.int32)
    with weft.target("sim:cuda:90"):
        narrow[(1,)](out, STEP=1)
    assert out.tolist() == [220, 420]


@weft.jit
def in_both_loops(a, b, c, n, K):  # type: ignore[no-untyped-def]
    """A product in a loop, and another in the loop around it."""
    rows = tl.arange(0, 64)
    at = rows[:, None] * 64 + rows
    total = tl.zeros((64, 64), tl.float32)
    for i in range(n):
        inner = tl.zeros((64, 64), tl.float32)
        for k in range(K):
            inner = tl.dot(tl.load(a + k * 4096 + at), tl.load(b + i * 4096 + at), inner)
        total = tl.dot(inner.to(tl.float16), tl.load(b + i * 4096 + at), total)
    tl.store(c + at, total)


def test_each_loop_with_a_product_of_its_own_says_why_it_is_not_specialized() -> None:
    x = weft.like((4096,), "fp16")
    made = in_both_loops.warmup(x, x, weft.like((4096,), "fp32"), 4, 4, grid=(1,), target="cuda:90")
    reasons = [remark.reason for remark in made.remarks.of("warps not specialized")]
    assert reasons == ["another loop stands in it", "the loop over tiles has another product in it"]
