"""Sorting networks: against numpy, and how many operations a stage takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft.language as tl
from language.bench_ir import Bench
from weft.base import CompileTimeAssertionFailure

RNG = np.random.default_rng(0)


def column(type: str, shape: tuple[int, ...]) -> np.ndarray:
    """Values of a type, among them extremes and equal ones."""
    dtype = {"fp32": np.float32, "fp16": np.float16, "fp64": np.float64, "i32": np.int32, "i8": np.int8, "u1": np.bool_,
             "u8": np.uint8, "u16": np.uint16, "i64": np.int64, "u64": np.uint64}[type]  # fmt: skip
    if type.startswith("fp"):
        values = RNG.normal(size=shape).astype(dtype)
        values.flat[:2] = np.inf, -np.inf
        return values
    if type == "u1":
        return RNG.integers(0, 2, shape).astype(np.bool_)
    info = np.iinfo(dtype)
    values = RNG.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    values.flat[:2] = info.min, info.max
    return values


def tile(type: str, shape: tuple[int, ...]) -> tuple[Bench, object, np.ndarray]:
    bench = Bench()
    from xdsl.ir import Block

    block = tl.block_type(tl.str_to_ty(type, None), list(shape))
    bench.block = Block(arg_types=[block.to_ir()])
    bench.semantic.builder.move_to_end(bench.block)
    values = column(type, shape)
    return bench, tl.tensor(bench.block.args[0], block), values


def signless(values: np.ndarray) -> np.ndarray:
    return values.view(f"i{values.dtype.itemsize}") if values.dtype.kind == "u" else values


TYPES = ["fp32", "fp16", "fp64", "i32", "i8", "u8", "u16", "i64", "u64", "u1"]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("shape", [(2,), (16,), (128,), (4, 8), (2, 2, 16)])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.thinned(3)
def test_sort(type: str, shape: tuple[int, ...], descending: bool) -> None:
    bench, x, values = tile(type, shape)
    y = bench(tl.sort, x, descending=descending)
    assert y.type == x.type
    got = np.asarray(bench.run(y, {x: signless(values)})).view(values.dtype)
    want = np.sort(values, axis=-1)
    np.testing.assert_array_equal(got, want[..., ::-1] if descending else want)


@pytest.mark.parametrize("type", ["fp32", "u16", "i32"])
@pytest.mark.parametrize("k", [1, 2, 4, 16])
@pytest.mark.parametrize("shape", [(16,), (4, 32)])
@pytest.mark.thinned(3)
def test_topk(type: str, k: int, shape: tuple[int, ...]) -> None:
    bench, x, values = tile(type, shape)
    y = bench(tl.topk, x, k)
    got = np.asarray(bench.run(y, {x: signless(values)})).view(values.dtype)
    np.testing.assert_array_equal(got, np.sort(values, axis=-1)[..., ::-1][..., :k])


def test_smallest_k() -> None:
    bench, x, values = tile("fp32", (32,))
    y = bench(tl.standard.sort_impl, x, k=4)
    np.testing.assert_array_equal(bench.run(y, {x: values}), np.sort(values)[:4])


def test_bitonic_merge() -> None:
    bench, x, _ = tile("i32", (16,))
    values = np.concatenate([np.arange(8), np.arange(8)[::-1] * 3]).astype(np.int32)
    y = bench(tl.bitonic_merge, x)
    np.testing.assert_array_equal(bench.run(y, {x: values}), np.sort(values))
    z = bench(tl.bitonic_merge, x, descending=True)
    np.testing.assert_array_equal(bench.run(z, {x: values}), np.sort(values)[::-1])


def test_nan_is_kept_and_sorts_last() -> None:
    bench, x, values = tile("fp32", (8,))
    values[[1, 5]] = np.nan
    y = bench(tl.sort, x)
    np.testing.assert_array_equal(bench.run(y, {x: values}), np.sort(values))


@pytest.mark.parametrize(("shape", "dim"), [((8,), 0), ((4, 8), 0), ((4, 8), 1), ((4, 8), -1), ((2, 4, 8), 1)])
def test_flip(shape: tuple[int, ...], dim: int) -> None:
    bench, x, values = tile("fp32", shape)
    y = bench(tl.flip, x, dim)
    np.testing.assert_array_equal(bench.run(y, {x: values}), np.flip(values, dim))


def test_size_of_a_sort_of_1024() -> None:
    bench, x, _ = tile("i32", (1024,))
    bench(tl.sort, x)
    names = bench.ops()
    assert names.count("tt.reduce") == 2 * 55
    assert len(names) < 55 * 5 + 10 * 15


def test_only_the_last_axis() -> None:
    bench, x, _ = tile("fp32", (4, 8))
    with pytest.raises(
        CompileTimeAssertionFailure,
        match=r"^error: only minor dimension is currently supported: got dim = 0 for shape \[4, 8\]$",
    ):
        bench(tl.sort, x, 0)


@pytest.mark.parametrize(
    ("k", "wrong"),
    [
        (0, "be greater than 0"),
        (3, "be a power of two"),
        (16, "not exceed the size of the selected dimension"),
        (True, "be an int"),
        (2.0, "be an int"),
    ],
)
def test_how_many_elements_can_be_kept(k: Any, wrong: str) -> None:
    bench, x, _ = tile("fp32", (4, 8))
    hint = f"k is a power of two between 1 and 8, got {k}"
    with pytest.raises(CompileTimeAssertionFailure, match=rf"^error: topk: k must {wrong}\nhint: {hint}$"):
        bench(tl.topk, x, k)
