"""Kernels through padded shared memory, for test_padded.py; loaded as Weft's or as Triton's (sources.load)."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma


@gluon.jit
def places(columns, rows: gl.constexpr, width: gl.constexpr, layout: gl.constexpr):
    i = gl.arange(0, rows, gl.SliceLayout(1, layout))[:, None]
    return i * columns + gl.arange(0, width, gl.SliceLayout(0, layout))[None, :]


@gluon.jit
def through(x, y, memory: gl.constexpr, stored: gl.constexpr, loaded: gl.constexpr):
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [64, 64], memory)
    buffer.store(gl.load(x + places(64, 64, 64, stored)))
    gl.store(y + places(64, 64, 64, loaded), buffer.load(loaded))


@gluon.jit
def turned(x, y, memory: gl.constexpr, stored: gl.constexpr, loaded: gl.constexpr):
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [64, 64], memory, gl.load(x + places(64, 64, 64, stored)))
    gl.store(y + places(64, 64, 64, loaded), buffer.permute([1, 0]).load(loaded))


@gluon.jit
def buffers(x, y, n, memory: gl.constexpr, stored: gl.constexpr, loaded: gl.constexpr):
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [4, 64, 64], memory)
    for i in gl.static_range(4):
        buffer.index(i).store(gl.load(x + i * 4096 + places(64, 64, 64, stored)))
    for i in range(n):
        gl.store(y + i * 4096 + places(64, 64, 64, loaded), buffer.index(3 - i).load(loaded))


@gluon.jit
def parts(x, y, memory: gl.constexpr, stored: gl.constexpr, loaded: gl.constexpr):
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [64, 64], memory)
    buffer.store(gl.load(x + places(64, 64, 64, stored)))
    part = buffer.slice(32, 32, 0).slice(16, 16, 1)
    part.store(part.load(stored) + part.load(stored))
    gl.store(y + places(64, 64, 64, loaded), buffer.load(loaded))


@gluon.jit
def reshaped(x, y, memory: gl.constexpr, stored: gl.constexpr, loaded: gl.constexpr):
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [64, 64], memory)
    buffer.store(gl.load(x + places(64, 64, 64, stored)))
    gl.store(y + places(32, 128, 32, loaded), buffer.reshape([128, 32]).load(loaded))


@gluon.jit
def copied(x, y, n, memory: gl.constexpr, stored: gl.constexpr, loaded: gl.constexpr):
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [2, 64, 64], memory)
    async_copy.async_copy_global_to_shared(buffer.index(n), x + places(64, 64, 64, stored))
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.store(y + places(64, 64, 64, loaded), buffer.index(n).load(loaded))


@gluon.jit
def product(x, y, memory: gl.constexpr, stored: gl.constexpr, loaded: gl.constexpr):
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])
    value = gl.load(x + places(64, 64, 64, stored))
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [64, 64], memory, value)
    a = buffer.load(gl.DotOperandLayout(0, mma, 2))
    b = buffer.permute([1, 0]).load(gl.DotOperandLayout(1, mma, 2))
    c = buffer.load(gl.DotOperandLayout(1, mma, 2))
    acc = mma_v2(a, b, gl.zeros([64, 64], gl.float32, mma))
    acc = mma_v2(a, c, acc)
    gl.store(y + places(64, 64, 64, loaded), gl.convert_layout(acc, loaded))


@gluon.jit
def bulk(desc, y, memory: gl.constexpr, layout: gl.constexpr):
    buffer = gl.allocate_shared_memory(gl.float16, [64, 64], memory)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, desc.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, [0, 0], bar, buffer)
    mbarrier.wait(bar, 0)
    gl.store(y + places(64, 64, 64, layout), buffer.load(layout))


@gluon.jit
def groups(x, y, memory: gl.constexpr, layout: gl.constexpr):
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    buffer = gl.allocate_shared_memory(gl.float16, [64, 64], memory, gl.load(x + places(64, 64, 64, layout)))
    fence_async_shared()
    acc = warpgroup_mma(buffer, buffer, gl.zeros([64, 64], gl.float32, mma))
    gl.store(y + places(64, 64, 64, layout), gl.convert_layout(acc, layout))


@gluon.jit
def some_buffers(x, y, memory: gl.constexpr, stored: gl.constexpr, loaded: gl.constexpr):
    buffer = gl.allocate_shared_memory(x.dtype.element_ty, [4, 64, 64], memory)
    for i in gl.static_range(4):
        buffer.index(i).store(gl.load(x + i * 4096 + places(64, 64, 64, stored)))
    last = buffer.slice(2, 2)
    gl.store(y + places(64, 64, 64, loaded), last.index(1).load(loaded))
    part = last.index(0).slice(32, 32, 0)
    gl.store(y + 4096 + places(64, 32, 64, loaded), part.load(loaded))
