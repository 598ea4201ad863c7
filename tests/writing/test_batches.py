"""The source of products whose operands are blocks of tensors with more dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from hopper.running import aligned

SIZE = 64


@weft.jit
def by_pointers(out, a, b, n, k, stride_a, stride_b, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    batch = tl.program_id(0)
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for at in range(0, k, SIZE):
        x = tl.load(a + batch * stride_a + i * k + at + j, (i < n) & (at + j < k), 0.0)
        y = tl.load(b + batch * stride_b + (at + i) * n + j, (at + i < k) & (j < n), 0.0)
        total = tl.dot(x, y, total)
    tl.store(out + batch * n * n + i * n + j, total, (i < n) & (j < n))


@weft.jit
def by_descriptors(out, a, b, k, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    batch = tl.program_id(0)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for at in tl.range(0, k, SIZE, warp_specialize=True):
        x = a.load([batch, 0, at]).reshape(SIZE, SIZE)
        total = tl.dot(x, b.load([batch, at, 0]).reshape(SIZE, SIZE), total)
    out.store([batch, 0, 0], total.reshape(1, SIZE, SIZE))


def operands(depth: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = [aligned((2, SIZE, SIZE), np.float32)]
    for shape in ((2, SIZE, depth), (2, depth, SIZE)):
        array = aligned(shape, np.float16)
        array[...] = rng.integers(-3, 4, shape)
        arrays.append(array)
    return arrays


def _described(array: np.ndarray) -> Any:
    strides = [s // array.itemsize for s in array.strides]
    return weft.TensorDescriptor(array, list(array.shape), strides, [1, SIZE, SIZE])


DEPTH = 4 * SIZE


@pytest.mark.parametrize("described", [False, True])
def test_it_runs(described: bool) -> None:
    arrays = operands(DEPTH)
    out, a, b = arrays
    numbers: Sequence[int] = (SIZE, DEPTH, SIZE * DEPTH, DEPTH * SIZE)
    given = [*map(_described, arrays), DEPTH] if described else [*arrays, *numbers]
    kernel = by_descriptors if described else by_pointers
    source = kernel.to_gluon(*given, SIZE=SIZE, target="cuda:90", num_stages=3)
    assert "async_copy_global_to_shared" in source.text
    with weft.target("sim:cuda:90"):
        source.kernel[(2,)](*source.arguments, **source.options)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))


def test_arguments_that_describe_no_tensor_are_an_error() -> None:
    """A kernel in the Triton language is then launched with copies by threads; the Gluon source has only the
    engine's."""
    arrays = operands(DEPTH)
    numbers = (SIZE, DEPTH, SIZE * DEPTH, DEPTH * SIZE)
    source = by_pointers.to_gluon(*arrays, *numbers, SIZE=SIZE, target="cuda:90", num_stages=3)
    nothing = [SIZE, 0, *numbers[2:], SIZE]
    with weft.target("sim:cuda:90"), pytest.raises(weft.LaunchError, match="it has no elements"):
        source.kernel[(2,)](*arrays, *nothing, **source.options)


@weft.jit
def masked_by_row(out, x, rows, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.full((1, 1), tl.program_id(0), tl.int32)
    column = tl.arange(0, SIZE)[None, :]
    mask = (row < rows) & (column < SIZE - 3)
    tl.store(out + row * SIZE + column, 2 * tl.load(x + row * SIZE + column, mask, other=0.0), mask)


def test_programs_that_end_early_end_in_the_source() -> None:
    x, out = np.random.default_rng(0).random((3, SIZE), np.float32), np.zeros((3, SIZE), np.float32)
    source = masked_by_row.to_gluon(out, x, 2, SIZE=SIZE, target="cuda:90")
    assert "end_unless" in source.text
    with weft.target("sim:cuda:90"):
        source.kernel[(3,)](*source.arguments, **source.options)
    expected = np.zeros_like(x)
    expected[:2, : SIZE - 3] = 2 * x[:2, : SIZE - 3]
    np.testing.assert_array_equal(out, expected)
