"""Hints about addresses with `debug=True`: what holds where CUDA's allocator puts arrays holds for every array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import DeviceAssertionError


def placed(beyond: int, count: int = 256, dtype: Any = np.float32) -> Any:
    """0, 1, ... at an address so many bytes beyond a multiple of 256."""
    size = np.dtype(dtype).itemsize * count
    raw = np.zeros(size + 1024, np.uint8)
    start = -raw.ctypes.data % 256 + beyond
    array = raw[start : start + size].view(dtype)
    array[:] = np.arange(count)
    return array


@weft.jit(debug=True)
def tiles(x, out, at, B: tl.constexpr):
    p = tl.max_contiguous(tl.multiple_of(x + at + tl.arange(0, B), B), B)
    tl.store(out + tl.arange(0, B), tl.load(p) * 2)


@weft.jit(debug=True)
def bases(x, out, at, B: tl.constexpr):
    x = tl.multiple_of(x + at, 128)
    tl.store(out + tl.arange(0, B), tl.load(x + tl.arange(0, B)) * 2)


@weft.jit(debug=True)
def numbers(x, out, at, B: tl.constexpr):
    address = tl.multiple_of((x + at).to(tl.int64), 256)
    tl.store(out + tl.arange(0, B), tl.load(address.to(tl.pointer_type(tl.float32)) + tl.arange(0, B)) * 2)


@weft.jit(debug=True)
def tables(x, out, at, B: tl.constexpr):
    address = tl.multiple_of(tl.load(x), 256)
    o = tl.arange(0, B)
    tl.store(out + o, tl.load(address.to(tl.pointer_type(tl.float32)) + at + o) * 2)


@weft.jit(debug=True)
def carried(x, out, at, B: tl.constexpr):
    p = x + tl.arange(0, B // 4)
    for k in range(4):
        p = tl.multiple_of(p, 64)
        tl.store(out + k * (B // 4) + tl.arange(0, B // 4), tl.load(p) * 2)
        p += B // 4 + at


@weft.jit(debug=True)
def either(x, out, at, B: tl.constexpr):
    o = tl.arange(0, B)
    p = x if at < 100 else out
    tl.store(out + o, tl.load(tl.multiple_of(p + at + o, 64)) * 2)


KERNELS = [tiles, bases, numbers, carried, either]


@pytest.mark.parametrize("beyond", [0, 80])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_hints_that_hold_on_a_gpu(kernel: Any, beyond: int) -> None:
    x, out = placed(beyond), np.zeros(256, np.float32)
    kernel[(1,)](x, out, 0, B=256)
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize(("kernel", "target"), [*((k, "cpu") for k in KERNELS), (numbers, "sim:cuda:80")])
def test_false_hints_about_offsets(kernel: Any, target: str) -> None:
    x, out = placed(64, 400), np.zeros(256, np.float32)
    with pytest.raises(DeviceAssertionError, match=r"the hint multiple_of\((64|128|256)\) is false"):
        kernel[(1,)](x, out, 4, B=256, target=target)


def test_a_view_of_the_second_element_is_no_multiple() -> None:
    with pytest.raises(DeviceAssertionError, match=r"the hint multiple_of\(256\) is false"):
        tiles[(1,)](placed(64)[1:], np.zeros(256, np.float32), 0, B=128 * 2)


def test_addresses_of_a_table() -> None:
    x, out = placed(64), np.zeros(256, np.float32)
    tables[(1,)](np.array([x.ctypes.data]), out, 0, B=256)
    np.testing.assert_array_equal(out, 2 * x)


@weft.jit(debug=True)
def plain(x, out, n):
    tl.store(out, tl.multiple_of(n.to(tl.int64) * 3, 16))


def test_wide_numbers_that_are_no_addresses() -> None:
    out = np.zeros(1, np.int64)
    plain[(1,)](out, out, 16)
    with pytest.raises(DeviceAssertionError, match=r"the hint multiple_of\(16\) is false"):
        plain[(1,)](out, out, 17)


def test_the_whole_message() -> None:
    with pytest.raises(DeviceAssertionError) as caught:
        bases[(1,)](placed(64, 300), np.zeros(256, np.float32), 33, B=256)
    lines = Path(__file__).read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "tl.multiple_of(x + at, 128)" in line)
    assert str(caught.value) == (
        f"{__file__}:{number}:9: error: device assertion failed: the hint multiple_of(128) is false of addresses, "
        "counted from where their array begins\n"
        f"{number:>5} | {lines[number - 1]}\n"
        f"      |         ^\n"
        "note: in program (0, 0, 0) of kernel `bases`: the value is 132"
    )
