"""Bulk copies of images (im2col), rounded to tf32, and combined with memory: what Triton has from 3.7 on."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import weft
from backends.nvidia.assembling import needs_ptxas
from weft import gluon
from weft.base import CompilationError, LaunchError
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import mbarrier, tma
from weft.gluon.nvidia.hopper import TensorDescriptor, TensorDescriptorIm2Col
from weft.sim import BulkCopyError


@gluon.jit
def load_images(
    images: Any, out: Any, first: Any, second: Any, third: Any, fourth: Any, channel: Any, rank: gl.constexpr,
    place: gl.constexpr, multicast: gl.constexpr, rows: gl.constexpr,
) -> None:  # fmt: skip
    held = gl.allocate_shared_memory(images.dtype, images.block_shape, images.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    gl.barrier(cluster=True)
    mbarrier.expect(bar, images.nbytes_per_cta)
    if rank == 3:
        tma.async_load_im2col(images, [first, second, channel], place, bar, held, multicast=multicast)
    elif rank == 4:
        tma.async_load_im2col(images, [first, second, third, channel], place, bar, held, multicast=multicast)
    else:
        tma.async_load_im2col(images, [first, second, third, fourth, channel], place, bar, held, multicast=multicast)
    mbarrier.wait(bar, phase=0, deps=[held])
    gl.barrier(cluster=True)
    pixels: gl.constexpr = images.block_shape[0]
    channels: gl.constexpr = images.block_shape[1]
    at = gl.arange(0, pixels)[:, None] * channels + gl.arange(0, channels)[None, :]
    value = held.load(rows)
    gl.store(out + gl.set_auto_layout(at, rows), value)
    mbarrier.invalidate(bar)


def expected(x: Any, start: list[int], offsets: list[int], box: tuple[int, int], lower: list[int], upper: list[int],
             steps: list[int]) -> Any:  # fmt: skip
    """By the words of the PTX manual: pixel after pixel within the bounding box, then the next row, the next image."""
    pixels, channels = box
    sizes, at = x.shape, list(start[:-1])
    result = np.zeros(box, x.dtype)
    last = [size - 1 + u for size, u in zip(sizes[1:-1], upper, strict=True)]
    for p in range(pixels):
        where = [at[0], *(a + o for a, o in zip(at[1:], offsets, strict=True))]
        if all(0 <= w < n for w, n in zip(where, sizes, strict=False)):
            for c in range(channels):
                if 0 <= start[-1] + c < sizes[-1]:
                    result[p, c] = x[(*where, start[-1] + c)]
        for dim in range(len(at) - 1, -1, -1):  # the next pixel
            at[dim] += steps[dim]
            if dim == 0 or at[dim] <= last[dim - 1]:
                break
            at[dim] = lower[dim - 1]
    return result


def drawn(seed: int) -> tuple[Any, ...]:
    chosen, rank = random.Random(seed), 3 + seed % 3
    dtype = chosen.choice([np.float16, np.float32, np.int8])
    width = np.dtype(dtype).itemsize
    spatial = [chosen.randint(3, 7) for _ in range(rank - 2)]
    shape = [chosen.randint(1, 3), *spatial, chosen.choice([16, 32]) * 4 // width]
    lower = [chosen.randint(-2, 0) for _ in spatial]
    upper = [chosen.randint(-2, 0) for _ in spatial]
    steps = [1, *(chosen.choice([1, 1, 2]) for _ in spatial), 1]
    box = (chosen.choice([8, 32, 64]), 64 // width)
    start = [chosen.randrange(shape[0])]
    start += [
        low + step * chosen.randrange((n - 1 + up - low) // step + 1)
        for low, up, n, step in zip(lower, upper, spatial, steps[1:-1], strict=True)
    ]
    start.append(chosen.choice([0, 16 // width]))
    offsets = [chosen.randrange(3) for _ in spatial]
    x = np.random.default_rng(seed).integers(1, 99, shape).astype(dtype)
    return x, start, offsets, box, lower, upper, steps, chosen.choice([0, 32, 64])


def launched(seed: int, launch: Any, blocks: int = 1) -> tuple[Any, Any, Any]:
    """What a launch gives, what it has put out, and what is right."""
    x, start, offsets, box, lower, upper, steps, swizzle = drawn(seed)
    cga = [[0, 0]] if blocks > 1 else []
    layout = gl.NVMMASharedLayout(swizzle, 8 * x.itemsize, 2, cga_layout=cga)
    images = TensorDescriptorIm2Col.from_tensor(
        x, list(box), layout, element_strides=steps, pixel_box_lower_corner=lower, pixel_box_upper_corner=upper
    )
    out = np.zeros(box, x.dtype)
    rows = gl.BlockedLayout([1, 4], [8, 4], [2, 1], [1, 0], cga_layout=cga)
    numbers = [*start[:-1], *[0] * (5 - len(start)), start[-1]]
    found = launch(images, out, *numbers, len(start), offsets, blocks > 1, rows, num_warps=2, num_ctas=blocks)
    return found, out, expected(x, start, offsets, box, lower, upper, steps[:-1])


@pytest.mark.parametrize("seed", range(18))
@pytest.mark.thinned(3)
def test_images(seed: int) -> None:
    with weft.target("sim:cuda:90"):
        _, out, wanted = launched(seed, load_images[(1,)], blocks=1 + seed % 2)
    assert (out == wanted).all()


@needs_ptxas
@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_ptxas_takes_it(seed: int) -> None:
    def compiled(*args: Any, **more: Any) -> Any:
        return load_images.warmup(*args, **more, grid=(1,), target="cuda:90")

    kernel, _, _ = launched(seed, compiled, blocks=1 + (seed == 4))
    rank = 3 + seed % 3
    name = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
    assert name + (".multicast::cluster" if seed == 4 else "") in kernel.asm["ptx"]
    assert kernel.asm["cubin"]


def test_layout_ir_of_images_is_read_again() -> None:
    from weft.ir import parse_module, print_module

    def compiled(*args: Any, **more: Any) -> Any:
        return load_images.warmup(*args, **more, grid=(1,), target="cuda:90")

    text = launched(1, compiled)[0].asm["ttgir"]
    assert "!ttng.tensordesc_im2col<" in text and "ttng.async_tma_copy_im2col_to_local" in text
    assert print_module(parse_module(text, "kernel.ttgir")) == text


def test_what_descriptors_of_images_must_be() -> None:
    x, layout = np.zeros((1, 4, 4, 32), np.float32), gl.NVMMASharedLayout(32, 32)
    box = {"pixel_box_lower_corner": [0, 0], "pixel_box_upper_corner": [0, 0]}
    for args, said in (
        (([8, 8, 8], layout, box), r"a block of images is \[pixels, channels\], got \[8, 8, 8\]"),
        (([8, 8], layout, {}), "pixel_box_lower_corner of images of 4 dimensions has 2 numbers of -128 to 127"),
        (([8, 8], layout, {**box, "pixel_box_upper_corner": [0, 128]}), "pixel_box_upper_corner of images"),
        (([8, 8], layout, {**box, "element_strides": [1, 9, 1, 1]}), "element_strides are 4 numbers of 1 to 8"),
    ):
        with pytest.raises(LaunchError, match=said):
            TensorDescriptorIm2Col.from_tensor(x, args[0], args[1], **args[2])
    with pytest.raises(LaunchError, match="images have 3 to 5 dimensions"):
        TensorDescriptorIm2Col.from_tensor(x[0, 0], [8, 8], layout, **box)
    outside = TensorDescriptorIm2Col.from_tensor(x, [8, 8], layout, **box)
    rows, out = gl.BlockedLayout([1, 4], [8, 4], [2, 1], [1, 0]), np.zeros((8, 8), np.float32)
    with weft.target("sim:cuda:90"):
        with pytest.raises(BulkCopyError, match="begins at 4, outside of the bounding box, 0 to 3"):
            load_images[(1,)](outside, out, 0, 4, 0, 0, 0, 4, [0, 0], False, rows, num_warps=2)
        with pytest.raises(CompilationError, match="expected 2 offsets, one for each dimension of pixels, got 1"):
            load_images[(1,)](outside, out, 0, 0, 0, 0, 0, 4, [0], False, rows, num_warps=2)
        plain = TensorDescriptor.from_tensor(out, [8, 8], layout)
        with pytest.raises(CompilationError, match="needs a tensor descriptor of images"):
            load_images[(1,)](plain, out, 0, 0, 0, 0, 0, 4, [0, 0], False, rows, num_warps=2)


@gluon.jit
def through(source: Any, to: Any, kind: gl.constexpr, read_only: gl.constexpr) -> None:
    """A block of one tensor goes to another, or is combined with it."""
    held = gl.allocate_shared_memory(source.dtype, source.block_shape, source.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, source.nbytes_per_cta)
    tma.async_load(source, [0, 0], bar, held)
    mbarrier.wait(bar, phase=0, deps=[held])
    mbarrier.invalidate(bar)
    if kind == "store":
        tma.async_store(to, [0, 0], held)
    elif kind == "add":
        tma.async_atomic_add(to, [0, 0], held)
    elif kind == "min":
        tma.async_atomic_min(to, [0, 0], held)
    elif kind == "max":
        tma.async_atomic_max(to, [0, 0], held)
    elif kind == "and":
        tma.async_atomic_and(to, [0, 0], held)
    elif kind == "or":
        tma.async_atomic_or(to, [0, 0], held)
    else:
        tma.async_atomic_xor(to, [0, 0], held)
    tma.store_wait(0, read_only=read_only)


COMBINED = [
    *[(kind, "uint32") for kind in ("add", "min", "max", "and", "or", "xor")],
    *[(kind, "int32") for kind in ("add", "min", "max", "xor")],
    *[(kind, "uint64") for kind in ("add", "min", "max")],
    *[(kind, "float16") for kind in ("add", "min", "max")],
    ("max", "int64"),
    ("add", "float32"),
]


def described(x: Any, **more: Any) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(x, [16, 16], gl.NVMMASharedLayout(32, 8 * x.itemsize, 2), **more)


@pytest.mark.parametrize(("kind", "dtype"), COMBINED)
@pytest.mark.thinned(3)
def test_combined_with_memory(kind: str, dtype: str) -> None:
    numbers = np.random.default_rng(0)
    if dtype.startswith("float"):
        x, y = (numbers.integers(-99, 99, (16, 16)).astype(dtype) for _ in range(2))
    else:  # with the highest bit too, which says which of two is less
        x, y = (numbers.integers(0, 256, (16, 16 * np.dtype(dtype).itemsize)).astype("u1").view(dtype) for _ in "xy")
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    ufunc = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or}
    wanted = ufunc.get(kind, np.bitwise_xor)(x, y)
    with weft.target("sim:cuda:90"):
        through[(1,)](described(x), described(y), kind, kind != "add")
    assert (y == wanted).all()


@needs_ptxas
@pytest.mark.parametrize("kind", ["store", "max"])
def test_ptxas_takes_combinations(kind: str) -> None:
    x = np.zeros((16, 16), np.uint32)
    kernel = through.warmup(described(x), described(x), kind, False, grid=(1,), target="cuda:90")
    assert "cp.async.bulk.wait_group 0;" in kernel.asm["ptx"] and kernel.asm["cubin"]
    if kind == "max":
        assert "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group" in kernel.asm["ptx"]


def test_types_that_cannot_be_combined() -> None:
    x = np.zeros((16, 16), np.int8)
    layout = gl.NVMMASharedLayout(0, 8, 2)
    block = TensorDescriptor.from_tensor(x, [16, 16], layout)
    with weft.target("sim:cuda:90"), pytest.raises(CompilationError, match="Unsupported dtype int8 for atomic_add"):
        through[(1,)](block, block, "add", True)


def test_rounded_to_tf32() -> None:
    x = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)
    x[0, :4] = [np.inf, -np.inf, np.nan, 1 + 2**-11 + 2**-12]
    bits = x.view(np.uint32)
    bits[1, :4] = [0x3F801000, 0x3F803000, 0x3F801001, 0x7FA00001]  # ties go to even; a NaN stays what it is
    y = np.zeros_like(x)
    with weft.target("sim:cuda:90"):
        through[(1,)](described(x, round_f32_to_tf32=True), described(y), "store", True)
    near = bits + np.uint32(0xFFF) + (bits >> 13 & np.uint32(1)) & np.uint32(0xFFFFE000)
    assert (y.view(np.uint32) == np.where(np.isfinite(x), near, bits)).all()
    assert y.view(np.uint32)[1, :4].tolist() == [0x3F800000, 0x3F804000, 0x3F802000, 0x7FA00001]
    with pytest.raises(LaunchError, match="round_f32_to_tf32 is for arrays of float32, this one holds fp16"):
        TensorDescriptor.from_tensor(np.zeros((16, 16), np.float16), [16, 16], gl.NVMMASharedLayout(32, 16, 2),
                                     round_f32_to_tf32=True)  # fmt: skip


def test_a_descriptor_of_rows_that_is_not_used() -> None:
    """Triton's kernels that run on Blackwell too get one for its gathers; a copy with it is an error."""
    x, y = np.ones((16, 64), np.float32), np.zeros((16, 16), np.float32)
    row = TensorDescriptor.from_tensor(x, [1, 64], gl.NVMMASharedLayout(128, 32, 2))

    @gluon.jit
    def kernel(rows: Any, source: Any, to: Any, uses: gl.constexpr) -> None:
        if uses:
            held = gl.allocate_shared_memory(source.dtype, source.block_shape, source.layout)
            tma.async_store(rows, [0, 0], held)
        through(source, to, "store", True)

    source = np.ones((16, 16), np.float32)
    with weft.target("sim:cuda:90"):
        kernel[(1,)](row, described(source), described(y), False)
        assert (y == source).all()
        with pytest.raises(CompilationError, match="the blocks of the descriptor are fp32"):
            kernel[(1,)](row, described(source), described(y), True)
