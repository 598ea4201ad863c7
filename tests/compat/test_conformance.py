"""Small kernels for what Triton's own tests once found wrong here, one for each class of fault."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def _later_maximum(v0, i0, v1, i1):
    first = v0 > v1
    return tl.where(first, v0, v1), tl.where(first, i0, i1)


@weft.jit
def _where_of_running_maximum(X, Z, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    x = tl.load(X + m * N + n)
    i = tl.broadcast_to((m if AXIS == 0 else n).to(tl.int64), [M, N])
    _, z = tl.associative_scan((x, i), axis=AXIS, combine_fn=_later_maximum)
    tl.store(Z + m * N + n, z)


@pytest.mark.parametrize("shape", [(8, 32), (1, 256), (64, 2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_with_a_result_that_nothing_reads(shape: tuple[int, int], axis: int) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    z = np.full(shape, -1, np.int64)
    _where_of_running_maximum[(1,)](x, z, *shape, axis)
    best = np.maximum.accumulate(x, axis=axis)
    steps = np.broadcast_to(np.expand_dims(np.arange(shape[axis]), 1 - axis), shape)
    np.testing.assert_array_equal(z, np.maximum.accumulate(np.where(x == best, steps, 0), axis=axis))


@weft.jit
def _integers_from_a_float_zero(Z, N: tl.constexpr, VALUE: tl.constexpr):
    tl.store(Z + tl.arange(0, N), tl.full((N,), VALUE, tl.int8) + 1)


def test_a_float_zero_is_a_zero_of_any_type() -> None:
    z = np.zeros(8, np.int8)
    _integers_from_a_float_zero[(1,)](z, 8, 0.0)
    np.testing.assert_array_equal(z, 1)
    with pytest.raises(weft.CompilationError, match=r"1\.5 is a float"):
        _integers_from_a_float_zero[(1,)](z, 8, 1.5)


def test_an_error_in_a_replaced_source_points_to_its_place() -> None:
    @weft.jit
    def kernel(Z):
        tl.store(Z, 1)

    kernel._unsafe_update_src(kernel.src.replace("tl.store(Z, 1)", "tl.store(Z, missing)"))
    with pytest.raises(weft.CompilationError) as e:
        kernel[(1,)](np.zeros(1))
    line = kernel.starting_line_number + 2
    assert f"test_conformance.py:{line}:21: " in str(e.value)
    assert "tl.store(Z, missing)" in str(e.value)
