"""`range` with a step that only the launch knows: iterations as in Python, both ways, near the type's ends too."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl

MOST, LEAST = 2**31 - 1, -(2**31)


@weft.jit
def iterations(o, a, b, c):
    n = 0
    s = 0
    i = -5
    for i in range(a, b, c):
        s = (s * 3 + i) & 0xFFFF
        n += 1
    tl.store(o, n)
    tl.store(o + 1, s)
    tl.store(o + 2, i)


def in_python(a: int, b: int, c: int) -> list[int]:
    n, s, i = 0, 0, -5
    for i in range(a, b, c):
        s = (s * 3 + i) & 0xFFFF
        n += 1
    return [n, s, i]


RANGES = [
    (88, -1, -8),
    (5, 10, -3),
    (3, 0, -1),
    (0, 9, 2),
    (9, 0, 2),
    (0, 0, 5),
    (7, 7, -7),
    (MOST - 5, MOST, 2),
    (LEAST, MOST, 2**30),
    (MOST, LEAST, LEAST),
    (MOST, LEAST, -(2**30)),
    (LEAST + 4, LEAST, -2),
    (10, 3, LEAST + 1),
    (0, MOST, MOST),
]


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80", "sim:cuda:90"])
def test_turns(target: str) -> None:
    for bounds in RANGES:
        for kind in (np.int32, np.int64) if target == "cpu" else (np.int32,):
            out = np.full(3, -1, kind)
            with weft.target(target):
                iterations[(1,)](out, *bounds)
            assert out.tolist() == in_python(*bounds), bounds


@weft.jit
def in_bytes(o, steps):
    n = 0
    for i in range(tl.cast(tl.load(o), tl.int8), tl.load(steps), tl.load(steps + 1)):
        n += i
    tl.store(o, n)


@pytest.mark.parametrize(("start", "end", "step"), [(-128, 127, 1), (127, -128, -128), (100, -100, -77), (0, 5, 0)])
def test_a_type_of_eight_bits(start: int, end: int, step: int) -> None:
    out = np.array([start], np.int32)
    in_bytes[(1,)](out, np.array([end, step], np.int8))
    assert out[0] == (sum(range(start, end, step)) if step else 0)


@weft.jit
def unsigned(o, a, b, BACK: tl.constexpr):
    first, last = tl.load(a), tl.load(b)
    n = 0
    if BACK:
        for i in range(last, first, -2):
            n += (i - first).to(tl.int32)
    else:
        for i in range(first, last):
            n += (i - first).to(tl.int32)
    tl.store(o, n)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_unsigned_numbers_beyond_the_signed_ones(target: str, kind: type) -> None:
    first = np.iinfo(kind).max // 2 - 2
    for back, expected in ((False, 1 + 2 + 3 + 4), (True, 5 + 3 + 1)):
        out = np.zeros(1, np.int32)
        with weft.target(target):
            unsigned[(1,)](out, np.array([first], kind), np.array([first + 5], kind), BACK=back)
        assert out[0] == expected


@weft.jit
def descending_rows(x, o, rows, step, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for row in tl.range(rows - 1, -1, step, num_stages=3):
        total = total * 0.5 + tl.load(x + row * BLOCK + at)
    tl.store(o + at, total)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80", "sim:cuda:90"])
def test_a_pipelined_loop_that_goes_down(target: str) -> None:
    x = np.random.default_rng(0).integers(-8, 8, (7, 128)).astype(np.float32)
    out = np.zeros(128, np.float32)
    with weft.target(target):
        descending_rows[(1,)](x, out, 7, -2, BLOCK=128)
    expected = np.zeros(128, np.float32)
    for row in range(6, -1, -2):
        expected = expected * 0.5 + x[row]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80", "sim:cuda:90"])
def test_a_step_of_zero(target: str) -> None:
    out = np.full(3, -1, np.int32)
    with weft.target(target):
        iterations[(1,)](out, 0, 5, 0)
        assert out.tolist() == [0, 0, -5]
        with pytest.raises(weft.DeviceAssertionError) as caught:
            iterations[(1,)](out, 0, 5, 0, debug=True)
    line = iterations.fn.__code__.co_firstlineno + 5
    assert str(caught.value).splitlines()[0] == (
        f"{__file__}:{line}:14: error: device assertion failed: the step of a range must not be 0"
    )


@weft.jit
def strided(o, n, BLOCK: tl.constexpr):
    for at in range(tl.program_id(0) * BLOCK, n, BLOCK * tl.num_programs(0)):
        tl.store(o + at + tl.arange(0, BLOCK), at)


def test_a_step_that_is_positive_as_it_is_made_needs_no_count() -> None:
    out = np.zeros(64, np.int32)
    strided[(3,)](out, 64, BLOCK=8)
    assert out.tolist() == [at for at in range(0, 64, 8) for _ in range(8)]
    text = strided.warmup(out, 64, BLOCK=8, grid=(3,)).asm["ttir"]
    assert "divui" not in text
