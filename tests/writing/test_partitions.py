"""The source of a loop that is divided among warps: a kernel of its own, which computes what the first one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from hopper.running import aligned
from weft import gluon
from weft.base import CompilationError
from weft.gluon import language as gl
from weft.gluon.language.extra import descriptors
from weft.gluon.language.nvidia.hopper import mbarrier, tma

SIZE = 64


@weft.jit
def product(out, a, b, k, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0) * SIZE
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for at in tl.range(0, k, SIZE, warp_specialize=True):
        total = tl.dot(a.load([row, at]), b.load([at, 0]), total)
    out.store([row, 0], total)


def operands(k: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    arrays = [aligned(shape, np.float32) for shape in ((2 * SIZE, SIZE),)]
    for shape in ((2 * SIZE, k), (k, SIZE)):
        array = aligned(shape, np.float16)
        array[...] = rng.integers(-3, 4, shape)
        arrays.append(array)
    return tuple(weft.TensorDescriptor.from_tensor(array, [SIZE, SIZE]) for array in arrays)


def test_it_runs_with_the_same_arguments() -> None:
    given = operands(3 * SIZE)
    out, a, b = (d.base for d in given)
    source = product.to_gluon(*given, 3 * SIZE, SIZE=SIZE, target="cuda:90", num_stages=2)
    with weft.target("sim:cuda:90"):
        source.kernel[(2,)](*given, 3 * SIZE, SIZE=SIZE, **source.options)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert list(source.arguments) == [*given, 3 * SIZE, SIZE]


@weft.jit
def two_sums(out, narrow_out, a, b, narrow, k, SIZE: tl.constexpr, NARROW: tl.constexpr):  # type: ignore[no-untyped-def]
    total, rest = tl.zeros((SIZE, SIZE), tl.float32), tl.zeros((SIZE, NARROW), tl.float32)
    for at in tl.range(0, k, SIZE, warp_specialize=True):
        x = a.load([0, at])
        total = tl.dot(x, b.load([0, at]).T, total)
        rest = tl.dot(x, narrow.load([SIZE, at]).T, rest)
    out.store([0, 0], total)
    narrow_out.store([0, SIZE], rest)


def test_products_side_by_side() -> None:
    rng, k, narrow = np.random.default_rng(0), 2 * SIZE + 8, 8
    a, b = aligned((SIZE, k), np.float16), aligned((SIZE + narrow, k), np.float16)
    a[...], b[...] = rng.integers(-3, 4, a.shape), rng.integers(-3, 4, b.shape)
    out = aligned((SIZE, SIZE + narrow), np.float32)
    blocks = [(out, (SIZE, SIZE)), (out, (SIZE, narrow)), (a, (SIZE, SIZE)), (b, (SIZE, SIZE)), (b, (narrow, SIZE))]
    given = [weft.TensorDescriptor.from_tensor(x, list(block)) for x, block in blocks]
    source = two_sums.to_gluon(*given, k, SIZE=SIZE, NARROW=narrow, target="cuda:90", num_stages=2)
    assert str(source).count("side_by_side=True") == 2, "in the loop, and in its last iteration"
    with weft.target("sim:cuda:90"):
        made = source.kernel[(1,)](*given, k, SIZE=SIZE, NARROW=narrow, **source.options)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)
    assert "wgmma.m64n72k16" in made.asm["lane"]


def test_it_reads_as_somebody_would_write_it() -> None:
    text = str(product.to_gluon(*operands(128), 128, SIZE=SIZE, target="cuda:90", num_stages=2))
    for line in (
        "shared: gl.constexpr = gl.constexpr(gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16))",
        "a_blocks = gl.extra.descriptors.bulk(a, [64, 64], shared)",
        "full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())",
        "mbarrier.init(empty.index(0), count=4)",
        "mbarrier.wait(empty.index(slot), phase)",
        "mbarrier.arrive(barrier, pred=holds_3, each_warp=True)",
        "def product_producer(k, empty, full, a_buffers, program, a_blocks, b_buffers, b_blocks):",
        "(product_producer, (k, empty, full, a_buffers, program, a_blocks, b_buffers, b_blocks)),",
        "worker_num_regs=[24],",
    ):
        assert line in text


@gluon.jit
def mixed(x, y, layout: gl.constexpr):  # type: ignore[no-untyped-def]
    descriptors.bulk(x, [64, 64], layout)
    tma.store_wait(0)


@gluon.jit
def alone(count: gl.constexpr):  # type: ignore[no-untyped-def]
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.arrive(bar, count=count, each_warp=True)


def test_what_cannot_be_is_said() -> None:
    x = weft.like((64, 64), "fp16")
    layout = gl.NVMMASharedLayout(128, 16)
    plain = weft.TensorDescriptor.from_tensor(x, [64, 64])
    laid = gluon.nvidia.hopper.TensorDescriptor.from_tensor(x, [64, 64], layout)
    for args, message in (
        ((laid, x, layout), "expected a parameter that a weft.TensorDescriptor is given for"),
        ((plain, laid, layout), "descriptors with a layout and such without one"),
        ((plain, x, gl.SwizzledSharedLayout(1, 1, 1, [1, 0])), "expected an NVMMASharedLayout"),
    ):
        with pytest.raises(CompilationError, match=message):
            mixed.warmup(*args, grid=(1,), target="cuda:90")
    with pytest.raises(CompilationError, match="each_warp goes with no count"):
        alone.warmup(2, grid=(1,), target="cuda:90")
