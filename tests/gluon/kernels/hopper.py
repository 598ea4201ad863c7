"""Bulk copies, products of warp groups and warp specialisation of Hopper."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

from gluon.sources import Sources

SOURCES = source = Sources()

TILE = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
DESC = f"tensordesc<fp16[64, 64],{TILE!r}>"


@source(90, x=DESC, y=DESC)
@gluon.jit
def tma_memcpy(x, y):
    memory = gl.allocate_shared_memory(x.dtype, x.block_type.shape, x.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, x.block_type.nbytes)
    tma.async_copy_global_to_shared(x, [gl.program_id(0) * 64, 0], bar, memory)
    mbarrier.wait(bar, phase=0)
    mbarrier.invalidate(bar)
    tma.async_copy_shared_to_global(y, [gl.program_id(0) * 64, 0], memory)
    tma.store_wait(pendings=0)


@source(90, x=DESC, y=DESC, n="i32")
@gluon.jit
def tma_pipelined(x, y, n):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    memory = gl.allocate_shared_memory(gl.float16, [2, 64, 64], x.layout)
    out = gl.allocate_shared_memory(gl.float16, [64, 64], y.layout)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
    mbarrier.expect(bars.index(0), x.block_type.nbytes)
    tma.async_copy_global_to_shared(x, [0, 0], bars.index(0), memory.index(0))
    for i in range(n):
        more = i + 1 < n
        mbarrier.expect(bars.index((i + 1) % 2), x.block_type.nbytes, pred=more)
        tma.async_copy_global_to_shared(x, [0, (i + 1) * 64], bars.index((i + 1) % 2), memory.index((i + 1) % 2), more)
        mbarrier.wait(bars.index(i % 2), i // 2 & 1, deps=[memory])
        value = memory.index(i % 2).load(layout)
        tma.store_wait(0)
        out.store(value + value)
        fence_async_shared()
        tma.async_copy_shared_to_global(y, [0, i * 64], out)
    tma.store_wait(0)
    for i in gl.static_range(2):
        mbarrier.invalidate(bars.index(i))


@source(90, x="*bf16", y="*bf16", z="*i32", rows="i32", columns="i32")
@gluon.jit
def padded_blocks(x, y, z, rows, columns):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 32], gl.bfloat16)
    whole: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=1)
    desc = tma.make_tensor_descriptor(x, [rows, columns], [columns, 1], [64, 32], shared, padding_option="nan")
    line = tma.make_tensor_descriptor(z, [rows], [1], [64], whole)
    memory = gl.allocate_shared_memory(gl.bfloat16, [64, 32], shared)
    ids = gl.allocate_shared_memory(gl.int32, [64], whole)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, desc.block_type.nbytes + line.block_type.nbytes)
    tma.async_copy_global_to_shared(desc, [0, 0], bar, memory)
    tma.async_copy_global_to_shared(line, [0], bar, ids)
    mbarrier.wait(bar, 0)
    i = gl.arange(0, 64, gl.SliceLayout(1, layout))
    j = gl.arange(0, 32, gl.SliceLayout(0, layout))
    gl.store(y + i[:, None] * 32 + j[None, :], memory.load(layout) + ids.load(gl.SliceLayout(1, layout))[:, None])


@source(90, a="*fp16", b="*fp16", c="*fp32", m="i32", n="i32", k="i32")
@gluon.jit
def wgmma_from_descriptors(a, b, c, m, n, k):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128, 16])
    left: gl.constexpr = gl.NVMMASharedLayout.get_default_for([128, 64], gl.float16)
    right: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 128], gl.float16)
    a_desc = tma.make_tensor_descriptor(a, [m, k], [k, 1], [128, 64], left)
    b_desc = tma.make_tensor_descriptor(b, [k, n], [n, 1], [64, 128], right)
    x = gl.allocate_shared_memory(gl.float16, [128, 64], left)
    y = gl.allocate_shared_memory(gl.float16, [64, 128], right)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    acc = warpgroup_mma_init(gl.zeros([128, 128], gl.float32, mma))
    phase = 0
    for start in range(0, k, 64):
        mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma.async_copy_global_to_shared(a_desc, [gl.program_id(0) * 128, start], bar, x)
        tma.async_copy_global_to_shared(b_desc, [start, gl.program_id(1) * 128], bar, y)
        mbarrier.wait(bar, phase)
        phase ^= 1
        acc = warpgroup_mma(x, y, acc, is_async=True)
        acc = warpgroup_mma_init(warpgroup_mma_wait(0, deps=(acc,)))
    value = warpgroup_mma_wait(num_outstanding=0, deps=(acc, x, y))[0]
    i = gl.program_id(0) * 128 + gl.arange(0, 128, gl.SliceLayout(1, mma))
    j = gl.program_id(1) * 128 + gl.arange(0, 128, gl.SliceLayout(0, mma))
    gl.store(c + i[:, None] * n + j[None, :], value)


@source(90, a="*bf16", b="*bf16", c="*fp32", flag="i32")
@gluon.jit
def wgmma_from_registers(a, b, c, flag):
    blocked: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], gl.bfloat16, transposed=True)
    i = gl.arange(0, 64, gl.SliceLayout(1, blocked))
    j = gl.arange(0, 64, gl.SliceLayout(0, blocked))
    at = i[:, None] * 64 + j[None, :]
    x = gl.convert_layout(gl.load(a + at), gl.DotOperandLayout(0, mma, 2))
    y = gl.allocate_shared_memory(gl.bfloat16, [64, 64], shared, gl.load(b + at))
    fence_async_shared()
    acc = warpgroup_mma(x, y, gl.full([64, 64], 1.0, gl.float32, mma), use_acc=flag > 0)
    acc = warpgroup_mma(x, y, acc, use_acc=False)
    i = gl.arange(0, 64, gl.SliceLayout(1, mma))
    j = gl.arange(0, 64, gl.SliceLayout(0, mma))
    gl.store(c + i[:, None] * 64 + j[None, :], acc)


@gluon.jit
def _twice(value, y):
    return value * 2, gl.load(y)


@gluon.jit
def _writer(x, memory, bar):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    memory.store(gl.load(x + gl.arange(0, 128, layout)))
    mbarrier.arrive(bar, count=1)


@gluon.jit
def _idle(n):
    pass


@source(90, x="*fp32", y="*fp32", n="i32")
@gluon.jit
def specialised_with_results(x, y, n):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    memory = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    i = gl.arange(0, 128, layout)
    value, scalar = gl.warp_specialize(
        [(_twice, (gl.load(x + i), y)), (_writer, (x, memory, bar)), (_idle, (n,))], [2, 1], [24, 40]
    )
    mbarrier.wait(bar, 0)
    gl.store(y + i, value + scalar + memory.load(layout))
