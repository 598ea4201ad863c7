"""Reductions and scans along every axis of tiles of one to four dimensions, of every element type.

The numbers are small integers, so that every order of combination gives the same.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

Array = np.ndarray[Any, np.dtype[Any]]
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
FLOATS = [np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
SHAPES = [(128,), (8, 16), (4, 2, 16), (2, 4, 2, 8)]
ODD_SHAPES = [(1,), (2,), (1, 16), (16, 1), (4, 1, 8), (1, 1, 64), (64, 1, 2), (2, 1, 1, 2), (1024, 2), (2, 1024)]
WIDTHS: list[dict[str, Any]] = [{}, {"vector_bits": 128}, {"vector_bits": 256}]


@weft.jit
def multiply(a, b):
    return a * b


@weft.jit
def later(a, i, b, j):  # neither commutes nor is symmetric
    return b * 2 - b, i * 0 + j


@weft.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@weft.jit
def every(total, most, least, first, rising, falling, last, chained, x, SHAPE: tl.constexpr, COUNT: tl.constexpr,
          AXIS: tl.constexpr):  # fmt: skip
    v = tl.reshape(tl.load(x + tl.arange(0, COUNT)), SHAPE)
    size: tl.constexpr = COUNT // SHAPE[AXIS]
    i = tl.arange(0, size)
    tl.store(total + i, tl.reshape(tl.sum(v, AXIS), [size]))
    tl.store(most + i, tl.reshape(tl.max(v, AXIS), [size]))
    tl.store(least + i, tl.reshape(tl.min(v, AXIS), [size]))
    tl.store(first + i, tl.reshape(tl.argmax(v, AXIS), [size]))
    k = tl.arange(0, COUNT)
    tl.store(rising + k, tl.reshape(tl.cumsum(v, AXIS), [COUNT]))
    tl.store(falling + k, tl.reshape(tl.cumsum(v, AXIS, reverse=True), [COUNT]))
    wide = v.to(tl.float64)
    end, _ = tl.reduce((wide, wide), AXIS, later)
    tl.store(last + i, tl.reshape(end, [size]))
    sign = tl.where(wide > 0, wide * 0 + 1, wide * 0 - 1)
    _, sums = tl.associative_scan((sign, wide), AXIS, affine)
    tl.store(chained + k, tl.reshape(sums, [COUNT]))


def chained(v: Array, axis: int) -> Array:
    """What the scan of `affine` gives: b becomes b * sign + the next, one after the other."""
    moved = np.moveaxis(v.astype(np.float64), axis, 0)
    result = [moved[0]]
    for row in moved[1:]:
        result.append(result[-1] * np.where(row > 0, 1, -1) + row)
    return np.moveaxis(np.stack(result), 0, axis)


def check(shape: tuple[int, ...], axis: int, dtype: np.dtype[Any], options: dict[str, Any]) -> None:
    count = int(np.prod(shape))
    is_float = dtype in FLOATS
    low = 0 if dtype.kind == "u" else -3
    v = np.random.default_rng(axis).integers(low, 4, shape).astype(np.float32).astype(dtype)
    wide = v.astype(np.float64 if is_float else np.int64)
    kind = np.float64 if is_float else np.int64
    size = count // shape[axis]
    small = {name: np.full(size, 77, kind) for name in ("total", "most", "least", "first")}
    large = {name: np.full(count, 77, kind) for name in ("rising", "falling")}
    last, chain = np.zeros(size), np.zeros(count)
    every[(1,)](*small.values(), *large.values(), last, chain, v.reshape(-1), SHAPE=shape, COUNT=count, AXIS=axis,
                **options)  # fmt: skip
    wanted = {
        "total": wide.sum(axis), "most": wide.max(axis), "least": wide.min(axis), "first": wide.argmax(axis),
        "rising": wide.cumsum(axis), "falling": np.flip(np.flip(wide, axis).cumsum(axis), axis),
    }  # fmt: skip
    for name, got in {**small, **large}.items():
        np.testing.assert_array_equal(got, wanted[name].reshape(-1), err_msg=name)
    np.testing.assert_array_equal(last, np.take(wide, -1, axis).reshape(-1))
    np.testing.assert_array_equal(chain, chained(wide, axis).reshape(-1))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=lambda d: d.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.thinned(4)
def test_every_axis(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    which = [*INTEGERS, *FLOATS].index(dtype)
    for axis in range(len(shape)):
        if len(shape) > 2 and (which + axis) % 2:  # every axis with six types, and every type with two axes
            continue
        check(shape, axis, dtype, WIDTHS[(which + axis) % 3])


@pytest.mark.parametrize("shape", ODD_SHAPES, ids=str)
@pytest.mark.thinned(2)
def test_shapes_with_ones_and_long_ones(shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):
        check(shape, axis, np.dtype(np.int32), WIDTHS[axis % 3])


@weft.jit
def overflow(total, product, rising, x, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.store(total, tl.sum(v))
    tl.store(product, tl.reduce(v, 0, multiply))
    tl.store(rising + tl.arange(0, BLOCK), tl.cumsum(v))


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.name)
def test_integers_wrap_in_the_type_that_sums_have(dtype: np.dtype[Any]) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, 64, dtype=dtype, endpoint=True) | dtype.type(1)
    wide = dtype if dtype.itemsize >= 4 else np.dtype(f"{dtype.kind}4")
    total, product, rising = np.zeros(1, wide), np.zeros(1, dtype), np.zeros(64, wide)
    overflow[(1,)](total, product, rising, x, BLOCK=64)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(total[0], x.astype(wide).sum(dtype=wide))
        np.testing.assert_array_equal(product[0], np.multiply.reduce(x, dtype=dtype))
        np.testing.assert_array_equal(rising, x.astype(wide).cumsum(dtype=wide))
