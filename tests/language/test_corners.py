"""The corners that docs/reference/semantics.md defines, on the CPU."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

NAN, INF = float("nan"), float("inf")


@weft.jit
def binary(p, q, o, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(p + i)
    y = tl.load(q + i)
    if OP == "//":
        r = x // y
    elif OP == "%":
        r = x % y
    elif OP == "<<":
        r = x << y
    elif OP == ">>":
        r = x >> y
    elif OP == "maximum":
        r = tl.maximum(x, y)
    elif OP == "maximum, all":
        r = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "clamp to 1":
        r = tl.clamp(x, y, 1.0)
    elif OP == "clamp to 1, all":
        r = tl.clamp(x, y, 1.0, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "minus":
        r = -x
    elif OP == "abs":
        r = tl.abs(x)
    elif OP == "gather":
        r = tl.gather(x, y, 0)
    tl.store(o + i, r)


MIN = -(2**31)


@pytest.mark.parametrize(
    ("op", "type", "x", "y", "want"),
    [
        ("//", np.int32, [7, -7, MIN, -7], [0, 2, -1, -2], [0, -3, MIN, 3]),
        ("//", np.int8, [7, -7, -128, 5], [0, 2, -1, 0], [0, -3, -128, 0]),
        ("//", np.uint32, [7, 7, 0, 2**32 - 1], [0, 2, 1, 2], [0, 3, 0, 2**31 - 1]),
        ("//", np.int64, [7, -7, -(2**63), 5], [0, 2, -1, 0], [0, -3, -(2**63), 0]),
        ("%", np.int32, [7, -7, MIN, 7], [0, 2, -1, -4], [7, -1, 0, 3]),
        ("%", np.uint32, [7, 7, 0, 5], [0, 2, 1, 0], [7, 1, 0, 5]),
        ("%", np.float32, [5.5, -5.5, 1.0, INF], [2.0, 2.0, 0.0, 2.0], [1.5, -1.5, NAN, NAN]),
        ("<<", np.int32, [1, 1, 1, 1], [31, 32, 100, -1], [MIN, 0, 0, 0]),
        ("<<", np.int64, [1, 1, 1, 1], [31, 63, 64, -1], [2**31, -(2**63), 0, 0]),
        (">>", np.int32, [-8, -8, 8, 8], [1, 100, 100, -1], [-4, -1, 0, 0]),
        (">>", np.uint32, [2**31] * 4, [31, 32, 33, 1], [1, 0, 0, 2**30]),
        ("maximum", np.float32, [NAN, 1.0, NAN, 2.0], [1.0, NAN, NAN, 0.0], [1.0, 1.0, NAN, 2.0]),
        ("maximum, all", np.float32, [NAN, 1.0, NAN, 2.0], [1.0, NAN, NAN, 0.0], [NAN, NAN, NAN, 2.0]),
        ("clamp to 1", np.float32, [NAN, 5.0, -5.0, 2.0], [0.0, 0.0, 0.0, 3.0], [0.0, 1.0, 0.0, 1.0]),
        ("clamp to 1, all", np.float32, [NAN, 5.0, -5.0, 2.0], [0.0, 0.0, 0.0, 3.0], [NAN, 1.0, 0.0, 1.0]),
        ("minus", np.float32, [0.0, -0.0, 1.0, NAN], [0.0] * 4, [-0.0, 0.0, -1.0, NAN]),
        ("minus", np.int32, [MIN, 0, 1, -1], [0] * 4, [MIN, 0, -1, 1]),
        ("abs", np.int32, [MIN, 0, 1, -1], [0] * 4, [MIN, 0, 1, 1]),
        ("gather", np.int32, [10, 11, 12, 13], [5, -1, 4, 2], [11, 13, 10, 12]),
    ],
)
def test_binary(op: str, type: Any, x: list[Any], y: list[Any], want: list[Any]) -> None:
    a, b = np.array(x, type), np.array(y, type)
    got = np.zeros_like(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        binary[(1,)](a, b, got, op, len(a))
    np.testing.assert_array_equal(got, np.array(want, type))
    if type is np.float32:
        np.testing.assert_array_equal(
            np.signbit(got), np.signbit(np.array(want, type)) | (np.isnan(got) & np.signbit(got))
        )


@weft.jit
def converted(p, o, T: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(p + i).to(T))


def convert(values: list[float], source: Any, target: Any, name: Any) -> list[float]:
    given = np.array(values).astype(source)
    got = np.zeros(len(values), target)
    converted[(1,)](given, got, name, len(values))
    return [float(x) for x in got]


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    ("target", "name"),
    [
        (np.int8, tl.int8), (np.uint8, tl.uint8), (np.int16, tl.int16), (np.int32, tl.int32), (np.uint32, tl.uint32),
        (np.int64, tl.int64), (np.uint64, tl.uint64),
    ],
)  # fmt: skip
def test_float_to_integer_saturates(source: Any, target: Any, name: Any) -> None:
    info = np.iinfo(target)
    low = -1.0 if info.min else 0.0
    want = [float(info.max), float(info.min), 0.0, low, 2.0, float(info.max), float(info.min), 0.0]
    assert convert([INF, -INF, NAN, -1.9, 2.9, INF, -INF, -0.5], source, target, name) == want


@pytest.mark.parametrize("source", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("target", "name", "largest"),
    [
        (ml_dtypes.float8_e4m3fn, tl.float8e4nv, 448.0), (ml_dtypes.float8_e5m2, tl.float8e5, 57344.0),
        (ml_dtypes.float8_e4m3fnuz, tl.float8e4b8, 240.0), (ml_dtypes.float8_e5m2fnuz, tl.float8e5b16, 57344.0),
    ],
)  # fmt: skip
def test_float_to_fp8_saturates(source: Any, target: Any, name: Any, largest: float) -> None:
    got = convert([65504.0, -INF, NAN, 0.3, 0.28125, -0.0, 0.0, 1.0], source, target, name)
    np.testing.assert_array_equal(
        got, [largest, -largest, NAN, 0.3125, 0.25 if name.fp_mantissa_width == 2 else 0.28125, 0.0, 0.0, 1.0]
    )
    assert np.signbit(got[5]) == (name in (tl.float8e4nv, tl.float8e5))


@weft.jit
def in_memory(p, q, o):
    i = tl.arange(0, 8)
    tl.store(o + i, tl.load(p + i, mask=i < 3))
    tl.store(o + 8 + i * 0, i)
    tl.store(o + 16 + i, tl.histogram(tl.load(q + i), 8))
    tl.store(o + 24 + i, tl.atomic_add(o + 32 + i, 1, mask=i < 2))
    tl.store(o + 40 + i, tl.atomic_add(o + 48 + i * 0, i))


def test_memory() -> None:
    p = np.arange(1, 9, dtype=np.int32)
    q = np.array([-1, 0, 8, 7, 100, 7, -9, 0], np.int32)
    o = np.full(56, 7, np.int32)
    in_memory[(1,)](p, q, o)
    loaded, stored, counted, before, added, order, total = o.reshape(7, 8)
    assert loaded.tolist() == [1, 2, 3, 0, 0, 0, 0, 0]
    assert stored.tolist() == [7] * 8  # lane 7 was the last
    assert counted.tolist() == [2, 0, 0, 0, 0, 0, 0, 2]
    assert before.tolist() == [7, 7, 0, 0, 0, 0, 0, 0] and added.tolist() == [8, 8, 7, 7, 7, 7, 7, 7]
    assert order.tolist() == [7 + sum(range(i)) for i in range(8)] and total[0] == 7 + 28


# -- fma of halves -----------------------------------------------------------------------------------------------------


@weft.jit
def multiply_add(x, y, z, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.fma(tl.load(x + i), tl.load(y + i), tl.load(z + i)))


@pytest.mark.parametrize("type", [np.float16, ml_dtypes.bfloat16])
def test_fma_of_halves_rounds_once(type: Any) -> None:
    """A product in the middle of two numbers of the type, and what makes it more or less than that by very little."""
    e = float(ml_dtypes.finfo(type).eps)
    one, tiny = 1 + 2 * e, 6e-5 if type == np.float16 else 1e-30  # (1 + 2 e) 1.25 is 1.25 + 2.5 e
    cases = [
        (one, 1.25, tiny, 1.25 + 3 * e), (one, 1.25, -tiny, 1.25 + 2 * e), (one, 1.25, 0.0, 1.25 + 2 * e),
        (-one, 1.25, tiny, -1.25 - 2 * e), (-one, 1.25, -tiny, -1.25 - 3 * e), (one, -1.25, -tiny, -1.25 - 3 * e),
        (3.0, 1.25, 1.0, 4.75), (INF, 1.25, -1.0, INF), (INF, 1.0, -INF, NAN), (1.0, NAN, 1.0, NAN),
        (1.0, 1.0, INF, INF), (-1.0, 1.0, 1.0, 0.0), (0.0, -1.0, -0.0, -0.0), (2.0, -0.5, tiny, -1.0),
        (tiny, 1.0, 0.0, tiny), (one, 1.0, 1.0, 2.0 + 2 * e),
    ]  # fmt: skip
    x, y, z, wanted = (np.array(column).astype(type) for column in zip(*cases, strict=True))
    out = np.zeros_like(x)
    multiply_add[(1,)](x, y, z, out, N=16)
    np.testing.assert_array_equal(out.astype(np.float32), wanted.astype(np.float32))


# -- extrema of NaN ----------------------------------------------------------------------------------------------------


@weft.jit
def extrema(x, greatest, least, places, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, PLACES: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    i = tl.arange(0, N if AXIS == 0 else M)
    tl.store(greatest + i, tl.max(v, AXIS))
    tl.store(least + i, tl.min(v, AXIS))
    if PLACES:
        tl.store(places + i, tl.argmax(tl.where(v != v, -9.0, v), AXIS))


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 2), (1, 4), (2, 8), (4, 16), (64, 1), (8, 128), (128, 64)], ids=str)
def test_extrema_pass_over_nan(shape: tuple[int, int], axis: int, places: bool) -> None:
    """A tile whose axis is one vector of registers has no iteration before its first element; nor with places."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.choice(np.array([-3.0, 1.0, 2.0, -INF, NAN], np.float32), shape)
        x[rng.random(shape) < seed / 6] = NAN
        count = shape[1 - axis]
        greatest, least, found = np.zeros(count, np.float32), np.zeros(count, np.float32), np.zeros(count, np.int32)
        extrema[(1,)](x, greatest, least, found, *shape, AXIS=axis, PLACES=places)
        np.testing.assert_array_equal(greatest, np.fmax.reduce(x, axis))
        np.testing.assert_array_equal(least, np.fmin.reduce(x, axis))
        if places:
            np.testing.assert_array_equal(found, np.where(np.isnan(x), -9.0, x).argmax(axis))


# -- softmax -----------------------------------------------------------------------------------------------------------


@weft.jit
def softmax_along(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, KEEP: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.softmax(tl.load(x + at), AXIS, keep_dims=KEEP))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
@pytest.mark.parametrize("shape", [(8, 8), (4, 16)], ids=str)
def test_softmax_along_any_axis(shape: tuple[int, int], axis: int | None, keep: bool) -> None:
    """Without keep_dims a square tile was divided by the sums of the other axis."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    out = np.empty_like(x)
    softmax_along[(1,)](x, out, *shape, AXIS=axis, KEEP=keep)
    e = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(out, e / e.sum(axis or 0, keepdims=True), rtol=1e-6)


@weft.jit
def last_of(x, y, n, TILE: tl.constexpr):
    for i in range(n):
        rows = tl.make_tensor_descriptor(x + i * TILE * TILE, [TILE, TILE], [TILE, 1], [TILE, TILE])
    if n > 0:
        at = tl.arange(0, TILE)
        tl.store(y + at[:, None] * TILE + at[None, :], rows.load([0, 0]))


@pytest.mark.parametrize("count", [0, 2])
def test_a_descriptor_that_only_a_loop_makes(count: int) -> None:
    """Before the first iteration it is nothing: LLVM refused the 0 that stood for its pointer."""
    x, y = np.arange(512, dtype=np.float32).reshape(2, 16, 16), np.zeros((16, 16), np.float32)
    last_of[(1,)](x, y, count, TILE=16)
    np.testing.assert_array_equal(y, x[1] if count else 0)
