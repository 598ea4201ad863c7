"""What is written to an array of bools is 1 where `x != 0` and else 0, whatever type x has, on every target."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.runtime.descriptor import TensorDescriptor

TARGETS = ("cpu", "sim:cuda:80", "sim:cuda:90")
N = 16


@weft.jit
def written(o, x, mask, N: tl.constexpr, V: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i) if V is None else V
    tl.store(o + i, value, mask=tl.load(mask + i))


@weft.jit
def written_once(o, x, LOADED: tl.constexpr):
    tl.store(o, tl.load(x) if LOADED else x)


@weft.jit
def other(o, x, y, N: tl.constexpr, V: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(y + i) if V is None else V
    tl.store(o + i, tl.load(x + i, mask=i < 0, other=value).to(tl.int32))


@weft.jit
def through_blocks(o, x, N: tl.constexpr):
    into = tl.advance(tl.make_block_ptr(o, (N,), (1,), (N // 2,), (N,), (0,)), (-N // 2,))
    for _ in range(1):
        tl.store(into, tl.load(tl.make_block_ptr(x, (N,), (1,), (0,), (N,), (0,))), boundary_check=(0,))


@weft.jit
def truth_through_blocks(o, x, N: tl.constexpr):
    into = tl.make_block_ptr(o, (N,), (1,), (0,), (N,), (0,))
    tl.store(into, tl.load(x + tl.arange(0, N)) > 0)


@weft.jit
def through_a_descriptor(into, x, N: tl.constexpr):
    i = tl.arange(0, N)
    into.store([0, 0], tl.broadcast_to(tl.load(x + i)[None, :], (N, N)))


def _values(dtype: Any) -> np.ndarray:
    """Zeros, ones, and what loses all its bits in a byte."""
    kind = np.dtype(dtype)
    if kind.kind in "fV":
        numbers: list[float] = [0, 1, 2, 0.5, -1, 1.75, -0.0, 0.25] * 2
        with np.errstate(all="ignore"):
            values = np.array(numbers).astype(dtype)
            if dtype != ml_dtypes.float8_e4m3fn:
                values[9] = np.nan
        return values
    top = 8 * kind.itemsize - (1 if kind.kind == "b" else 2)
    wide = [0, 1, 2, 1 << min(8, top), 1 << top, 0, 3, 128] * 2
    return np.array(wide, np.uint64).astype(dtype)


KINDS = [
    bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
    np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn,
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_of_every_type(target: str) -> None:
    mask = np.arange(N) % 5 != 1
    for dtype in KINDS:
        x, o = _values(dtype), np.ones(N, bool)
        written[(1,)](o, x, mask, N, None, target=target)
        wanted = np.where(mask, x.astype(np.float64) != 0, True)
        np.testing.assert_array_equal(o.view(np.uint8), wanted, str(dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", [2, 256, 0, -1, 0.5, float("nan"), 1 << 40, True])
def test_numbers(number: Any, target: str) -> None:
    everywhere, o = np.ones(N, bool), np.zeros(N, bool)
    written[(1,)](o, o, everywhere, N, number, target=target)
    np.testing.assert_array_equal(o.view(np.uint8), number != 0)
    o[:] = False
    written_once[(1,)](o, number, False, target=target)
    np.testing.assert_array_equal(o.view(np.uint8), [number != 0] + [False] * (N - 1))
    told = np.zeros(N, np.int32)
    other[(1,)](told, np.zeros(N, bool), o, N, number, target=target)
    np.testing.assert_array_equal(told, number != 0)


@pytest.mark.parametrize("target", TARGETS)
def test_scalars_and_other(target: str) -> None:
    for dtype in (np.int32, np.float32, np.int64):
        x, o = np.full(1, 1 << 8 if dtype != np.float32 else 0.25, dtype), np.zeros(1, bool)
        written_once[(1,)](o, x, True, target=target)
        assert o.view(np.uint8)[0] == 1
    x, told = _values(np.int32), np.zeros(N, np.int32)
    other[(1,)](told, np.zeros(N, bool), x, N, None, target=target)
    np.testing.assert_array_equal(told, x != 0)


@pytest.mark.parametrize("target", TARGETS)
def test_block_pointers(target: str) -> None:
    bytes_ = np.arange(N, dtype=np.uint8) * 16
    for x in (bytes_.view(np.int8), bytes_.view(bool)):
        o = np.zeros(N, bool)
        through_blocks[(1,)](o, x, N, target=target)
        np.testing.assert_array_equal(o.view(np.uint8), bytes_ != 0)
    told = np.zeros(N, np.int8)
    through_blocks[(1,)](told, bytes_.view(bool), N, target=target)
    np.testing.assert_array_equal(told, bytes_ != 0)  # read they are 0 and 1 too
    o = np.zeros(N, bool)
    truth_through_blocks[(1,)](o, np.arange(N, dtype=np.int32) - 8, N, target=target)
    np.testing.assert_array_equal(o, np.arange(N) > 8)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
def test_descriptors(target: str) -> None:
    for dtype in (np.int32, np.float32):
        x, o = np.arange(N).astype(dtype) * 128, np.zeros((N, N), bool)
        through_a_descriptor[(1,)](TensorDescriptor.from_tensor(o, [N, N]), x, N, target=target)
        np.testing.assert_array_equal(o.view(np.uint8), np.tile(x != 0, (N, 1)))


@weft.jit
def addresses(o, x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, x + i)


def test_addresses_are_refused() -> None:
    with pytest.raises(weft.CompilationError, match=r"cannot cast .* to int1: cast it to int64 first"):
        addresses[(1,)](np.zeros(N, bool), np.zeros(N, np.int32), N)


@weft.jit
def raised(o, OP: tl.constexpr):
    OP(o, True)


@pytest.mark.parametrize("name", ["atomic_or", "atomic_and", "atomic_xor", "atomic_xchg", "atomic_add", "atomic_max"])
def test_atomics_are_refused(name: str) -> None:
    with pytest.raises(weft.CompilationError, match=f"{name} does not support int1"):
        raised[(1,)](np.zeros(1, bool), getattr(tl, name))
