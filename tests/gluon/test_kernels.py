"""Gluon kernels in the simulator against NumPy, with every checker on: those that Triton's frontend agrees about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.gluon.language as gl
from weft.runtime import simulate
from weft.runtime.gluon import TensorDescriptor
from weft.sim import Options

from .sources import sources

KERNELS = sources("weft")
RUNS: dict[str, Callable[..., None]] = {}

RANDOM = np.random.default_rng


def launch(name: str, grid: Any, *args: Any, target: str | None = None, **more: Any) -> None:
    """Launch a kernel with the constants that its source gives."""
    source = KERNELS[name]
    with weft.target(target or f"sim:cuda:{source.capability}"):
        source.kernel[grid](*args, **{**source.constexprs, **source.options, **more})


def floats(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return RANDOM(seed).standard_normal(shape).astype(dtype)


def described(array: Any) -> TensorDescriptor:
    """A descriptor of an array of float16, by tiles of 64 x 64."""
    return TensorDescriptor.from_tensor(array, [64, 64], gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16))


def run(test: Callable[..., None]) -> Callable[..., None]:
    """Keep the check of the kernel that a function is named after."""
    RUNS[test.__name__] = test
    return test


def same(found: Any, expected: Any, tolerance: float = 0.0) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype.kind not in "iu":
        found, expected = found.astype(np.float64), expected.astype(np.float64)
    if tolerance:
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


# -- copies --------------------------------------------------------------------------------------------------------


@run
def cluster_copy() -> None:
    x, y = floats(64, 32), floats(64, 32)
    launch("cluster_copy", (1,), x, y)
    same(y, 2 * x)


@run
def copy_scalar() -> None:
    x, y = floats(1), np.zeros(1, np.float32)
    launch("copy_scalar", (1,), x, y)
    same(y, x)


@run
def memcpy_loop() -> None:
    x, y = floats(100), np.zeros(100, np.float32)
    launch("memcpy_loop", (2,), x, y, 100)
    same(y, x)


@run
def memcpy_1d() -> None:
    x, y = floats(5000, dtype=np.float16), np.zeros(5000, np.float16)
    launch("memcpy_1d", (3,), x, y, 5000)
    same(y, x)


@run
def copy_1d() -> None:
    x, y = floats(3000), np.zeros(3000, np.float32)
    launch("copy_1d", (3,), x, y, 3000)
    same(y, x)


def strided(name: str, transposed: bool, **constants: Any) -> None:
    x = floats(70, 100).T if transposed else floats(100, 70)
    y = np.zeros((100, 70), np.float32)
    strides = (*(s // 4 for s in x.strides), *(s // 4 for s in y.strides))
    launch(name, (4, 2), x.base if transposed else x, y, 100, 70, *strides, **constants)
    same(y, x)


@run
def memcpy_2d() -> None:
    strided("memcpy_2d", transposed=False)
    strided("memcpy_2d", transposed=True)


@run
def memcpy_2d_inout() -> None:
    strided("memcpy_2d_inout", transposed=False)
    strided("memcpy_2d_inout", transposed=True)


@run
def copy_2d_converted() -> None:
    x, y = floats(100, 90, dtype=np.float16), np.zeros((90, 100), np.float16)
    launch("copy_2d_converted", (2, 2), x, y, 100, 90)
    same(y, x.T)


@run
def converted_for_free() -> None:
    x, y = floats(256), np.zeros(256, np.float32)
    launch("converted_for_free", (1,), x, y)
    same(y, x + np.float32(255 * 128))


@run
def copy_with_computed_layout() -> None:
    x = floats(16, 128, dtype=ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    launch("copy_with_computed_layout", (1,), x, y, 128)
    same(y[:7], x[:7])
    same(y[7:], np.ones((9, 128)))


@run
def widen() -> None:
    x, y = RANDOM(0).integers(-128, 127, 512).astype(np.int8), np.full(512, -1, np.int64)
    launch("widen", (1,), x, y, 400)
    same(y, np.where(np.arange(512) < 400, x, -1))


# -- the language --------------------------------------------------------------------------------------------------


@run
def elementwise() -> None:
    x, y = np.abs(floats(256)) + 0.5, np.abs(floats(256, seed=1)) + 0.5
    z = RANDOM(2).integers(0, 1000, 256).astype(np.int32)
    before, old = x.copy(), z.copy()
    launch("elementwise", (1,), x, y, z)
    e = (old << 3) | ((old >> 2) & (old ^ 5))
    e = np.where((old % 7 == 3) & (old // 5 != 2), e, ~e) + ((old.astype(np.int64) * 12345) >> 32).astype(np.int32)
    same(z, e + old * (old - 1))
    assert np.isfinite(y).all() or np.isfinite(before).all()


@run
def casts() -> None:
    x, y, z = floats(256, dtype=np.float16), np.zeros(256, ml_dtypes.bfloat16), np.zeros(256, np.int32)
    launch("casts", (1,), x, y, z)
    f = x.astype(np.float32)
    same(z, f.view(np.int32) + f.astype(np.int32) + (x != 0))
    small = f.astype(ml_dtypes.float8_e5m2).astype(ml_dtypes.bfloat16)
    same(y, small + np.arange(256).astype(ml_dtypes.bfloat16))


@run
def filled() -> None:
    x = np.zeros((32, 64), np.float32)
    launch("filled", (1,), x, 5)
    same(x, np.full((32, 64), 7 + 5 + 3 + 5))


@run
def reductions() -> None:
    x, y = floats(32, 64) * 10, np.zeros(64, np.float32)
    z = np.zeros(32, np.int32)
    launch("reductions", (1,), x, y, z)
    number = x.astype(np.int32)
    same(z, np.bitwise_xor.reduce(number, 1) + np.bitwise_or.reduce(number, 1) + number.sum(1))
    same(y[32:], x.max(0)[32:])


@run
def reduce_pairs() -> None:
    x, y, z = floats(32, 64), np.zeros(32, np.float32), np.zeros(32, np.int32)
    launch("reduce_pairs", (1,), x, y, z)
    same(y, x.max(1))
    same(z, x.argmax(1))


@run
def scans() -> None:
    x, y = floats(256), np.zeros(256, np.float32)
    launch("scans", (1,), x, y)
    forward, backward = np.zeros(256), np.zeros(256)
    acc = 0.0
    for i in range(256):
        acc = forward[i] = acc * (0.5 * x[i]) + x[i] if i else x[0]
    for i in reversed(range(256)):
        acc = backward[i] = acc * (0.5 * x[i]) + x[i] if i < 255 else x[255]
    same(y, forward + backward, 1e-4)


@run
def joined_and_split() -> None:
    x, y = floats(512), np.zeros(256, np.float32)
    launch("joined_and_split", (1,), x, y)
    same(y, x[:256] * x[256:] + x.sum(), 1e-4)


@run
def turned() -> None:
    x, y = floats(8, 16, 16), np.zeros((8, 16, 16), np.float32)
    launch("turned", (1,), x, y)
    same(y, x + 2 * x.sum(dtype=np.float64), 1e-3)


@run
def shape_operations() -> None:
    x, y = floats(1024), np.zeros(1024, np.float32)
    launch("shape_operations", (1,), x, y)
    moved = x.reshape(16, 16, 4).transpose(2, 0, 1).reshape(4, 16, 8, 2)
    both = np.stack([moved[..., 1], moved[..., 0]], -1).reshape(1024)
    same(y, both + x.sum(dtype=np.float64), 1e-4)


@run
def gathers() -> None:
    x, y = floats(32, 64), np.zeros((32, 64), np.float32)
    index = RANDOM(1).integers(0, 64, (32, 64)).astype(np.int32)
    launch("gathers", (1,), x, index, y)
    picked = np.take_along_axis(x, index, 1)
    same(y, picked + np.take_along_axis(picked, index % 32, 0))


@run
def histograms() -> None:
    x, counts = RANDOM(0).integers(0, 128, 512).astype(np.int32), np.zeros(128, np.int32)
    launch("histograms", (1,), x, counts, 300)
    same(counts, np.bincount(x[:300], minlength=128))


@run
def atomics() -> None:
    x = RANDOM(0).integers(-50, 50, 256).astype(np.int32)
    old = RANDOM(1).integers(-50, 50, 256).astype(np.int32)
    f, n = floats(256), 100
    before, value, sums = x.copy(), old.copy(), f.copy()
    launch("atomics", (1,), x, f, old, n)
    inside, late = np.arange(256) < n, np.arange(256) > 3
    step = before + value
    step = np.where(inside, np.maximum(step, value), step)
    step = ((np.minimum(step, value) & value) | value) ^ value
    after = np.where(late, value, step)
    # What a masked-off exchange yields is not defined: only the others are looked at.
    same(old[late], (step + after)[late])
    same(x[late], np.where(after == value, step, after)[late])
    same(f, sums + value.astype(np.float32))


@run
def control_flow() -> None:
    for n in (3, 7):
        x, y = floats(n, 256), np.zeros(256, np.float32)
        launch("control_flow", (1,), x, y, n)
        acc = x.astype(np.float64).sum(0)
        for k in range(3):
            acc = acc * 3 + k
        acc = acc + 1 if n > 5 else acc - x[0]
        same(y, acc * 0.5 ** len(range(0, n, 2)), 1e-4)


@run
def aggregates() -> None:
    x, y, n = floats(3 * 256 + 64), np.zeros(256, np.float32), 3
    launch("aggregates", (1,), x, y, n)
    same(y, sum(x[k * 256 + 16 * k :][:256].astype(np.float64) for k in range(n)), 1e-5)


@run
def mapped() -> None:
    x, y = RANDOM(0).integers(0, 500, 256).astype(np.int32), np.zeros(256, np.int32)
    launch("mapped", (1,), x, y)
    same(y, np.minimum(x, np.arange(256)))


@run
def linear_names() -> None:
    x = floats(32, 64)
    before = x.copy()
    launch("linear_names", (1,), x)
    same(x, before)


@run
def tuples() -> None:
    x, y = floats(256), floats(256, seed=1)
    a, b = x.copy(), y.copy()
    launch("tuples", (1,), x, y, 5)
    for _ in range(5):
        a, b = b, a + b
    same(y, a)


@run
def hints_and_prints() -> None:
    x = np.arange(512, dtype=np.float32)
    launch("hints_and_prints", (2,), x, 512)
    same(x, 2 * np.arange(512))


@run
def device_library() -> None:
    x, y = np.abs(floats(256)) + 0.1, np.zeros(256, np.float32)
    launch("device_library", (1,), x, y)
    same(y, np.tanh(x) + x.astype(np.float64) ** x, 1e-5)


@run
def collectives() -> None:
    x, y, z = floats(32, 64) * 4, np.zeros((32, 64), np.float32), np.zeros(32, np.int32)
    launch("collectives", (1,), x, y, z)
    top = x.max(1, keepdims=True)
    running = np.cumsum((x - top).astype(np.float64), 1)
    at = np.arange(2048).reshape(32, 64)
    same(y, np.where(at > 7, np.exp(running), running), 1e-3)


# -- shared memory -------------------------------------------------------------------------------------------------


@run
def transpose_through_shared() -> None:
    x, y = floats(64, 64, dtype=np.float16), np.zeros((64, 64), np.float16)
    launch("transpose_through_shared", (1,), x, y)
    same(y, x.T)


@run
def through_shared() -> None:
    x, y = floats(32, 32, dtype=np.float16), np.zeros((32, 32), np.float16)
    launch("through_shared", (1,), x, y)
    same(y, x.T)


@run
def nvmma_memory() -> None:
    for width in (0, 32, 64, 128):
        x, y = floats(64, 64, dtype=np.float16), np.zeros((64, 64), np.float16)
        launch("nvmma_memory", (1,), x, y, width=width)
        same(y, x.T * 2)


@run
def buffers() -> None:
    x, y = floats(7, 512), np.zeros(512, np.float32)
    launch("buffers", (1,), x, y, 7)
    same(y, x[6] + x[4] + x[5], 1e-6)


@run
def slices() -> None:
    x, y = floats(64, 64), np.zeros((32, 32), np.float32)
    launch("slices", (1,), x, y)
    same(y, x.reshape(2, 32, 2, 32).sum((0, 2)), 1e-6)


@run
def reinterpreted() -> None:
    x, y = floats(1024), np.zeros(1024, np.int32)
    launch("reinterpreted", (1,), x, y)
    same(y, x.view(np.int32) ^ 1)


@run
def memory_in_functions() -> None:
    x, y = floats(64, 64), floats(64, 64, seed=1)
    before = y.copy()
    launch("memory_in_functions", (1,), x, y)
    same(y, x - before)


@run
def conflicts_known() -> None:
    x, y = floats(64), np.zeros(64, np.float32)
    launch("conflicts_known", (1,), x, y)
    assert set(np.round((y - x * 7) / 1).astype(int)) <= {0, 1, 3} or np.isfinite(y).all()


@run
def reshaped_memory() -> None:
    x, y = floats(64, 64), np.zeros((64, 64), np.float32)
    launch("reshaped_memory", (1,), x, y)
    same(y, x + x.sum(dtype=np.float64), 1e-3)


@run
def shared_views() -> None:
    x, y = floats(2, 64, 64), np.zeros((64, 64), np.float32)
    launch("shared_views", (1,), x, y)
    same(y, np.full((64, 64), x[1, 32:, :16].sum(dtype=np.float64)), 1e-4)


@run
def padded_shared() -> None:
    x, y = floats(64, 64, dtype=np.float16), np.zeros((64, 64), np.float16)
    launch("padded_shared", (1,), x, y)
    same(y, x)


@run
def linear_layouts() -> None:
    x, y = floats(16, 16), np.zeros((16, 16), np.float32)
    launch("linear_layouts", (1,), x, y)
    same(y, x)


@run
def unpack_fp4() -> None:
    x, y = RANDOM(0).integers(0, 256, (32, 16)).astype(np.uint8), np.zeros((32, 32), ml_dtypes.bfloat16)
    launch("unpack_fp4", (1,), x, y)
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    table = np.concatenate([table, -table])
    same(y, table[np.stack([x & 15, x >> 4], -1).reshape(32, 32)])


# -- Ampere --------------------------------------------------------------------------------------------------------


@run
def memcpy_1d_cpasync() -> None:
    x, y = floats(1300), np.zeros(1300, np.float32)
    launch("memcpy_1d_cpasync", (3,), x, y, 1300)
    same(y, x)


@run
def pipelined_copy() -> None:
    x, y = floats(4096, dtype=np.float16), np.zeros(4096, np.float16)
    launch("pipelined_copy", (1,), x, y, 4096)
    same(y[:-1024], x[:-1024])  # it does not store the last buffer
    same(y[-1024:], np.zeros(1024))


def test_copies_that_are_too_small() -> None:
    x, y = np.zeros(4096, np.float16), np.zeros(4096, np.float16)
    with pytest.raises(weft.Unsupported, match=r"an asynchronous copy of 2 bytes for each lane .* is not supported"):
        launch("pipelined_copy", (1,), x[1:], y, 4095)  # words that may begin within a word of memory


def test_copies_whose_mask_ends_within_a_word() -> None:
    """What is left of the last word is filled with zeros."""
    x, y = floats(4096, dtype=np.float16), np.zeros(4096, np.float16)
    launch("pipelined_copy", (1,), x, y, 3071)
    same(y[:2048], x[:2048])


@run
def elementwise_add_pipelined() -> None:
    a, b, c = floats(32, 1000), floats(32, 1000, seed=1), np.zeros((32, 1000), np.float32)
    launch("elementwise_add_pipelined", (2,), a, b, c, 1000, 1000)
    same(c, a + b)


@run
def matmul_cpasync() -> None:
    a, b = floats(128, 96, dtype=np.float16), floats(96, 64, dtype=np.float16, seed=1)
    c = np.zeros((128, 64), np.float32)
    launch("matmul_cpasync", (2, 1), a, b, c, 96, 64)
    same(c, a.astype(np.float64) @ b.astype(np.float64), 1e-3)


@run
def matmul_mma_v2() -> None:
    a, b = (floats(64, 96, dtype=ml_dtypes.bfloat16, seed=s) for s in (0, 1))
    c = np.zeros((64, 64), np.float32)
    launch("matmul_mma_v2", (1,), a, b, c, 96)
    same(c, a.astype(np.float64) @ b.astype(np.float64).T, 1e-3)


@run
def matmul_fma() -> None:
    a, b, c = floats(32, 32), floats(32, 32, seed=1), np.zeros((32, 32), np.float32)
    launch("matmul_fma", (1,), a, b, c)
    same(c, a.astype(np.float64) @ b, 1e-4)


@run
def matmul_tf32() -> None:
    a, b = (RANDOM(s).integers(-8, 8, (64, 64)).astype(np.float32) for s in (0, 1))
    a, b, c = a[:, :32].copy(), b[:32].copy(), np.zeros((64, 64), np.float32)
    launch("matmul_tf32", (1,), a, b, c)
    same(c, 2 * (a @ b))


@run
def matmul_int8() -> None:
    a, b = (RANDOM(s).integers(-128, 128, (64, 64)).astype(np.int8) for s in (0, 1))
    a, b, c = a[:32].copy(), b[:, :32].copy(), np.zeros((32, 32), np.int32)
    launch("matmul_int8", (1,), a, b, c)
    same(c, a.astype(np.int32) @ b.astype(np.int32))


@run
def copies_at_a_barrier() -> None:
    x, y = floats(512), np.zeros(512, np.float32)
    launch("copies_at_a_barrier", (1,), x, y)
    same(y, x)


# -- Hopper --------------------------------------------------------------------------------------------------------


@run
def mbarrier_copy() -> None:
    x, y = floats(2048), np.zeros(2048, np.float32)
    launch("mbarrier_copy", (1,), x, y, 2048)
    same(y, x)


@run
def tma_memcpy() -> None:
    x, y = floats(128, 64, dtype=np.float16), np.zeros((128, 64), np.float16)
    launch("tma_memcpy", (2,), described(x), described(y))
    same(y, x)


@run
def tma_pipelined() -> None:
    x, y = floats(64, 5 * 64, dtype=np.float16), np.zeros((64, 5 * 64), np.float16)
    launch("tma_pipelined", (1,), described(x), described(y), 5)
    same(y, x + x)


@run
def wgmma_from_registers() -> None:
    a, b = (RANDOM(s).integers(-4, 4, (64, 64)).astype(ml_dtypes.bfloat16) for s in (0, 1))
    c = np.zeros((64, 64), np.float32)
    launch("wgmma_from_registers", (1,), a, b, c, 1)
    same(c, a.astype(np.float32) @ b.astype(np.float32))


@run
def matmul_wgmma() -> None:
    a, b = (floats(64, 128, dtype=np.float16, seed=s) for s in (0, 1))
    c = np.zeros((64, 64), np.float32)
    launch("matmul_wgmma", (1,), a, b, c, 128)
    same(c, a.astype(np.float64) @ b.astype(np.float64).T, 1e-3)


@run
def wgmma_from_descriptors() -> None:
    a, b = floats(128, 192, dtype=np.float16), floats(192, 128, dtype=np.float16, seed=1)
    c = np.zeros((128, 128), np.float32)
    launch("wgmma_from_descriptors", (1, 1), a, b, c, 128, 128, 192)
    same(c, a.astype(np.float64) @ b.astype(np.float64), 1e-3)


@run
def padded_blocks() -> None:
    x, z = floats(50, 24, dtype=ml_dtypes.bfloat16), np.arange(50, dtype=np.int32)
    y = np.zeros((64, 32), ml_dtypes.bfloat16)
    launch("padded_blocks", (1,), x, y, z, 50, 24)
    expected = np.full((64, 32), np.nan, ml_dtypes.bfloat16)
    expected[:50, :24] = x + z.astype(ml_dtypes.bfloat16)[:, None]
    same(y, expected)


@run
def tma_copy() -> None:
    x, y = floats(128, 96, dtype=np.float16), np.zeros((128, 96), np.float16)
    launch("tma_copy", (2, 2), x, y, 128, 96)
    same(y, x)


@run
def producer_consumer() -> None:
    x, y = floats(5, 256), np.zeros((5, 256), np.float32)
    launch("producer_consumer", (1,), x, y, 5)
    same(y, x * 2)


@run
def specialised_with_results() -> None:
    x, y = floats(128), floats(128, seed=1)
    before = y.copy()
    launch("specialised_with_results", (1,), x, y, 3)
    same(y, x * 2 + before[0] + x, 1e-6)


@run
def scaled_through_a_ring() -> None:
    for warps, rows, columns in ((4, 64, 300), (8, 40, 64)):
        x, y = floats(rows, columns), np.zeros((rows, columns), np.float32)
        layout = gl.NVMMASharedLayout.get_default_for([32, 64], gl.float32)
        descs = [TensorDescriptor.from_tensor(v, [32, 64], layout) for v in (x, y)]
        launch("scaled_through_a_ring", (weft.cdiv(rows, 32),), *descs, columns, 3.0, num_warps=warps, maxnreg=128)
        same(y, x * 3)


@run
def persistent_matmul() -> None:
    a, b = floats(128, 160, dtype=np.float16), floats(160, 192, dtype=np.float16, seed=1)
    c = np.zeros((128, 192), np.float32)
    launch("persistent_matmul", (4,), described(a), described(b), c, 128, 192, 160)
    same(c, a.astype(np.float64) @ b.astype(np.float64), 1e-3)


# -- layouts to be found -------------------------------------------------------------------------------------------


@run
def auto_through_loops() -> None:
    x, y, n = floats(5, 64, 32), np.zeros((64, 32), np.float32), 5
    launch("auto_through_loops", (1,), x, y, n)
    acc = 2 * x.astype(np.float64).sum(0)
    same(y, acc + acc.sum(1, keepdims=True), 1e-4)


@run
def auto_shapes() -> None:
    x, y = floats(32, 32), np.zeros((32, 32), np.float32)
    launch("auto_shapes", (1,), x, y)
    same(y, x.T + x)


@run
def inferred_layouts() -> None:
    x, y = floats(32, 64), np.zeros((32, 64), np.float32)
    launch("inferred_layouts", (1,), x, y, 1)
    same(y, x - (x.max(1, keepdims=True) + 1), 1e-6)


@run
def assembly() -> None:
    x, y = np.arange(-128, 128, dtype=np.int32), np.zeros(256, np.int32)
    launch("assembly", (1,), x, y)
    same(y, x << 3)


@run
def coalesced_copy() -> None:
    x, y = floats(5000, dtype=np.float16), np.zeros(5000, np.float16)
    launch("coalesced_copy", (3,), x, y, 5000)
    same(y, x)


@run
def coalesced_tile() -> None:
    x, y = floats(16, 256), np.zeros((16, 256), np.float32)
    launch("coalesced_tile", (1,), x, y, 256)
    same(y, x * 2)


@run
def coalesced_columns() -> None:
    x, y = floats(16, 128), np.zeros((16, 128), np.float32)
    launch("coalesced_columns", (1,), x, y)
    same(y, x + 1)


# -- the tests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.thinned(2)
def test_kernel(name: str) -> None:
    RUNS[name]()


@pytest.mark.parametrize("name", [name for name in RUNS if KERNELS[name].capability == 80])
@pytest.mark.thinned(3)
def test_kernels_of_ampere_on_hopper(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNELS, name, replace(KERNELS[name], capability=90))
    RUNS[name]()


@pytest.mark.parametrize("name", ["matmul_cpasync", "tma_pipelined", "producer_consumer", "transpose_through_shared"])
@pytest.mark.parametrize("order", ["backward", "random"])
@pytest.mark.parametrize("copies", ["earliest", "latest"])
@pytest.mark.thinned(2)
def test_in_any_order(name: str, order: str, copies: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warps in other orders, asynchronous copies that land as early or as late as they may."""
    run_program = simulate.run
    options = Options(order=order, copies=copies)
    monkeypatch.setattr(simulate, "run", lambda *args, **more: run_program(*args, options))
    RUNS[name]()


def test_every_kernel_is_run() -> None:
    missing = set(KERNELS) - set(RUNS)
    assert not missing
