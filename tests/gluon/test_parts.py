"""Parts of buffers as the ends of bulk copies: where a slice is, the boxes of its descriptor go and come from."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
from weft import gluon
from weft.base import LayoutError
from weft.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from weft.gluon.nvidia.hopper import TensorDescriptor


@gluon.jit
def through_a_part(x, y, whole, ROWS: gl.constexpr, COLUMNS: gl.constexpr, row: gl.constexpr, column: gl.constexpr):
    memory = gl.allocate_shared_memory(x.dtype, [ROWS, COLUMNS], x.layout)
    part = memory.slice(row, x.block_shape[0], 0).slice(column, x.block_shape[1], 1)
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    i = gl.arange(0, ROWS, gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))[None, :]
    memory.store(gl.zeros([ROWS, COLUMNS], x.dtype, layout))
    fence_async_shared()
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x.block_type.nbytes)
    tma.async_copy_global_to_shared(x, [0, 0], bar, part)
    mbarrier.wait(bar, 0)
    gl.store(whole + i * COLUMNS + j, memory.load(layout))
    tma.async_copy_shared_to_global(y, [0, 0], part)
    tma.store_wait(0)


def launch(buffer: tuple[int, int], block: tuple[int, int], at: tuple[int, int], swizzle: int) -> None:
    x = np.random.default_rng(0).standard_normal(block).astype(np.float16)
    y, whole = np.zeros_like(x), np.ones(buffer, np.float16)
    layout = gl.NVMMASharedLayout(swizzle, 16, 2)
    described = [TensorDescriptor(a, block, (block[1], 1), list(block), layout) for a in (x, y)]
    with weft.target("sim:cuda:90"):
        through_a_part[(1,)](*described, whole, *buffer, *at)
    wanted = np.zeros(buffer, np.float16)
    wanted[at[0] : at[0] + block[0], at[1] : at[1] + block[1]] = x
    np.testing.assert_array_equal(whole, wanted)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize(
    "buffer,block,at,swizzle",
    [
        ((256, 128), (128, 128), (128, 0), 128),  # shorter boxes than the buffer's, apart by more than a block
        ((256, 128), (64, 128), (192, 0), 128),
        ((64, 256), (32, 128), (32, 128), 128),  # some of the columns
        ((64, 256), (32, 64), (32, 192), 128),  # one box
        ((512, 64), (256, 64), (256, 0), 128),  # boxes of the buffer's own size
        ((32, 64), (8, 32), (16, 32), 64),
        ((32, 64), (8, 16), (0, 48), 32),
    ],
)
def test_bulk_copies_of_parts(
    buffer: tuple[int, int], block: tuple[int, int], at: tuple[int, int], swizzle: int
) -> None:
    launch(buffer, block, at, swizzle)


def test_parts_that_no_box_fills() -> None:
    """Without a swizzle the rows of a box follow each other; those of the part do not."""
    with pytest.raises(LayoutError) as found:
        launch((128, 128), (32, 64), (96, 64), 0)
    assert "the descriptor moves boxes of [32, 64] with a swizzle of 16 bytes" in str(found.value)
    assert "the buffer has boxes of [128, 128] with 16, in which the part begins at byte 24704" in str(found.value)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float16"])
def test_descriptors_of_tensors_that_numpy_has_no_protocol_for(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="descriptors of its tensors")
    x = torch.arange(64 * 64).reshape(64, 64).to(getattr(torch, dtype))
    y, whole = torch.zeros_like(x), torch.zeros((64, 128), dtype=x.dtype)
    layout = gl.NVMMASharedLayout(64 if x.element_size() == 1 else 128, 8 * x.element_size(), 2)
    described = [TensorDescriptor.from_tensor(a, [64, 64], layout) for a in (x, y)]
    with weft.target("sim:cuda:90"):
        through_a_part[(1,)](*described, whole, 64, 128, 0, 64)
    assert torch.equal(y.view(torch.uint8), x.view(torch.uint8))
    assert torch.equal(whole[:, 64:].view(torch.uint8), x.view(torch.uint8))


@gluon.jit
def swizzled_part(x, y, z, row: gl.constexpr, ROWS: gl.constexpr):
    """A part of a view; where it begins, the swizzle has exchanged elements that are accessed together."""
    whole: gl.constexpr = gl.BlockedLayout([1, 8], [32, 1], [1, 4], [1, 0])
    some: gl.constexpr = gl.BlockedLayout([1, 64], [1, 32], [4, 1], [1, 0])
    i = gl.arange(0, 32, gl.SliceLayout(1, whole))[:, None] * 8 + gl.arange(0, 8, gl.SliceLayout(0, whole))[None, :]
    j = gl.arange(0, ROWS, gl.SliceLayout(1, some))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, some))[None, :]
    memory = gl.allocate_shared_memory(gl.int8, [32, 8], gl.SwizzledSharedLayout(1, 4, 8, [1, 0]), gl.load(x + i))
    part = memory.reshape([4, 64]).slice(row, ROWS, 0)
    tile = part.load(some)
    gl.store(y + j, tile)
    part.store(tile + 1)
    gl.store(z + i, memory.load(whole))


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("row,rows", [(0, 4), (1, 1), (2, 2), (3, 1)])
def test_parts_that_begin_within_a_vector(row: int, rows: int, target: str) -> None:
    x = np.random.default_rng(0).integers(-50, 50, (32, 8)).astype(np.int8)
    y, z = np.zeros((rows, 64), np.int8), np.zeros_like(x)
    with weft.target(target):
        swizzled_part[(1,)](x, y, z, row, rows)
    wanted = x.copy().reshape(4, 64)
    np.testing.assert_array_equal(y, wanted[row : row + rows])
    wanted[row : row + rows] += 1
    np.testing.assert_array_equal(z, wanted.reshape(32, 8))


@gluon.jit
def loads_ahead(x, y, steps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    memory = gl.allocate_shared_memory(x.dtype, [2, *x.block_shape], x.layout)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for s in gl.static_range(2):
        mbarrier.init(bars.index(s), count=1)
    fence_async_shared()
    mbarrier.expect(bars.index(0), x.block_type.nbytes)
    tma.async_copy_global_to_shared(x, [0, 0], bars.index(0), memory.index(0))
    i = gl.arange(0, 64, gl.SliceLayout(1, layout))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, layout))[None, :]
    for k in range(steps):
        following = k + 1
        mbarrier.expect(bars.index(following % 2), x.block_type.nbytes)
        tma.async_copy_global_to_shared(x, [following * 64, 0], bars.index(following % 2), memory.index(following % 2))
        mbarrier.wait(bars.index(k % 2), k // 2 & 1)
        gl.store(y + k * 64 * 64 + i, memory.index(k % 2).load(layout))
        gl.thread_barrier()


def test_a_load_that_nobody_waits_for_is_told() -> None:
    """As a loop that always loads one tile ahead leaves it."""
    x = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float16)
    y = np.zeros_like(x)
    described = TensorDescriptor.from_tensor(x, [64, 64], gl.NVMMASharedLayout(128, 16, 2))
    with weft.target("sim:cuda:90"), weft.sim.options(copies="latest"):
        with pytest.warns(weft.sim.BulkCopyWarning, match=r"ends, and is never waited for") as told:
            loads_ahead[(1,)](described, y, steps=2)
    assert told[0].filename == __file__ and "async_copy" in open(__file__).read().splitlines()[told[0].lineno - 1]
    np.testing.assert_array_equal(y, x)
