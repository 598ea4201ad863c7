"""Blocks of 16 bytes: the copy engine wants shared memory at a multiple of 128 for them too."""

from __future__ import annotations

import numpy as np

import weft
from weft import gluon
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma


@gluon.jit
def small(x, y):
    line: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    rows: gl.constexpr = gl.BlockedLayout([1, 1], [8, 4], [1, 1], [1, 0])
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    block: gl.constexpr = gl.NVMMASharedLayout(0, 32, 2)
    source = tma.make_tensor_descriptor(x, [1, 4], [4, 1], [1, 4], block)
    target = tma.make_tensor_descriptor(y, [1, 4], [4, 1], [1, 4], block)
    first = gl.allocate_shared_memory(gl.int32, [4], plain, gl.arange(0, 4, line))
    a = gl.allocate_shared_memory(gl.int32, [1, 4], block)
    second = gl.allocate_shared_memory(gl.int32, [4], plain, gl.arange(4, 8, line))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, source.block_type.nbytes)
    tma.async_copy_global_to_shared(source, [0, 0], bar, a)
    mbarrier.wait(bar, 0)
    more = gl.reshape(first.load(line) + second.load(line), [1, 4])
    b = gl.allocate_shared_memory(gl.int32, [1, 4], block, a.load(rows) + gl.convert_layout(more, rows))
    fence_async_shared()
    tma.async_copy_shared_to_global(target, [0, 0], b)
    tma.store_wait(0)
    mbarrier.invalidate(bar)
    first._keep_alive()
    second._keep_alive()


def test_blocks_of_16_bytes() -> None:
    x, y = np.arange(4, dtype=np.int32) * 100, np.zeros(4, np.int32)
    with weft.target("sim:cuda:90"):
        small[(1,)](x, y, num_warps=1)
    np.testing.assert_array_equal(y, x + [4, 6, 8, 10])
