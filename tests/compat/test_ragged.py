"""Rows of tensors through descriptors that stop at the end of a part of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import LaunchError
from weft.compat.shim.tools.ragged_tma import (
    atomic_add_ragged,
    create_ragged_descriptor,
    create_ragged_descriptor_device_2d,
    create_ragged_descriptor_device_3d,
    load_ragged,
    store_ragged,
)


@weft.jit
def by_host(  # type: ignore[no-untyped-def]
    x: Any, y: Any, start: Any, to: Any, n: Any, DIM: tl.constexpr, RANK: tl.constexpr, ADD: tl.constexpr
):
    at = (0,) * RANK
    data = load_ragged(x, start, n, at, DIM)
    if ADD:
        atomic_add_ragged(y, to, n, at, data, DIM)
        atomic_add_ragged(y, to, n, at, data, DIM)
    else:
        store_ragged(y, to, n, at, data + 1, DIM)


@weft.jit
def by_kernel(  # type: ignore[no-untyped-def]
    x: Any, y: Any, start: Any, to: Any, n: Any, sizes: Any, steps: Any, BLOCK: tl.constexpr, DIM: tl.constexpr
):
    if len(sizes) == 2:
        a = create_ragged_descriptor_device_2d(x, *sizes, *steps, *BLOCK, DIM)
        b = create_ragged_descriptor_device_2d(y, *sizes, *steps, *BLOCK, DIM)
    else:
        a = create_ragged_descriptor_device_3d(x, *sizes, *steps, *BLOCK, DIM)
        b = create_ragged_descriptor_device_3d(y, *sizes, *steps, *BLOCK, DIM)
    at = (0,) * len(sizes)
    store_ragged(b, to, n, at, load_ragged(a, start, n, at, DIM) + 1, DIM)


CASES = [((96, 40), (32, 64), 0), ((24, 16, 32), (16, 8, 32), 0), ((24, 24, 32), (32, 16, 32), 1)]


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
@pytest.mark.parametrize("how", ["host", "add", "kernel"])
@pytest.mark.parametrize(("shape", "block", "dim"), CASES)
@pytest.mark.thinned(3)
def test_rows_of_a_part(shape: tuple[int, ...], block: tuple[int, ...], dim: int, how: str, target: str) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    y = np.full_like(x, 7)
    start, to, n = 2, 5, block[dim] - 3
    wanted = y.copy()
    source = [slice(0, min(a, b)) for a, b in zip(shape, block, strict=True)]
    place = list(source)
    source[dim], place[dim] = slice(start, start + n), slice(to, to + n)
    part = x[tuple(source)]
    wanted[tuple(place)] = 7 + part + part if how == "add" else part + 1
    with weft.target(target):
        if how == "kernel":
            steps = tuple(s // 4 for s in x.strides)
            by_kernel[(1,)](x, y, start, to, n, shape, steps, block, dim)
        else:
            a, b = (create_ragged_descriptor(v, block, dim) for v in (x, y))
            by_host[(1,)](a, b, start, to, n, dim, len(shape), how == "add")
    np.testing.assert_allclose(y, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "dim", "message"),
    [
        ((4, 4, 4, 16), 0, "at most 3 dimensions, the array has 4"),
        ((4, 16), 1, "dimension 1 of 2 cannot be ragged"),
        ((4, 16), -1, "dimension -1 of 2 cannot be ragged"),
    ],
)
def test_what_cannot_be_ragged(shape: tuple[int, ...], dim: int, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        create_ragged_descriptor(np.zeros(shape, np.float32), [1] * (len(shape) - 1) + [16], dim)
