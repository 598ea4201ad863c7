"""Asynchronous copies and matrix products of Ampere."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import ampere
from triton.experimental.gluon.language.nvidia.ampere import async_copy as cp, mbarrier, mma_v2

from gluon.sources import Sources

SOURCES = source = Sources()


@source(x="*fp32", y="*fp32", n="i32", constexprs={"BLOCK": 512, "layout": gl.BlockedLayout([4], [32], [4], [0])})
@gluon.jit
def memcpy_1d_cpasync(x, y, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = offsets < n
    memory = gl.allocate_shared_memory(gl.float32, [BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    cp.async_copy_global_to_shared(memory, x + offsets, mask=mask)
    cp.commit_group()
    cp.wait_group(0)
    gl.store(y + offsets, memory.load(layout), mask=mask)


@gluon.jit
def issue_loads(copy_idx, a_smem, b_smem, a, b, at, stride, n, BLOCK: gl.constexpr, buffers: gl.constexpr):
    mask = copy_idx * BLOCK + gl.arange(0, BLOCK, gl.SliceLayout(0, gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])))
    mask = mask[None, :] < n
    cp.async_copy_global_to_shared(a_smem.index(copy_idx % buffers), a + at + copy_idx * BLOCK, mask=mask)
    cp.async_copy_global_to_shared(
        b_smem.index(copy_idx % buffers), b + at + copy_idx * BLOCK, mask=mask, eviction_policy="evict_last"
    )
    cp.commit_group()
    return copy_idx + 1


@source(a="*fp32", b="*fp32", c="*fp32", n="i32", stride="i32", constexprs={"XBLOCK": 16, "YBLOCK": 128, "buffers": 3})
@gluon.jit
def elementwise_add_pipelined(a, b, c, n, stride, XBLOCK: gl.constexpr, YBLOCK: gl.constexpr, buffers: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    rows = gl.program_id(0) * XBLOCK + gl.arange(0, XBLOCK, gl.SliceLayout(1, layout))
    columns = gl.arange(0, YBLOCK, gl.SliceLayout(0, layout))
    at = rows[:, None] * stride + columns[None, :]
    a_smem = gl.allocate_shared_memory(a.dtype.element_ty, [buffers, XBLOCK, YBLOCK], layout=shared)
    b_smem = gl.allocate_shared_memory(b.dtype.element_ty, [buffers, XBLOCK, YBLOCK], layout=shared)
    copy_idx = 0
    read_idx = 0
    for _ in gl.static_range(buffers - 1):
        copy_idx = issue_loads(copy_idx, a_smem, b_smem, a, b, at, stride, n, YBLOCK, buffers)
    for _ in range(gl.cdiv(n, YBLOCK) - (buffers - 1)):
        copy_idx = issue_loads(copy_idx, a_smem, b_smem, a, b, at, stride, n, YBLOCK, buffers)
        cp.wait_group(buffers - 1)
        value = a_smem.index(read_idx % buffers).load(layout) + b_smem.index(read_idx % buffers).load(layout)
        gl.store(c + at + read_idx * YBLOCK, value, mask=(read_idx * YBLOCK + columns)[None, :] < n)
        read_idx += 1
    for i in gl.static_range(buffers - 1):
        cp.wait_group(buffers - 2 - i)
        value = a_smem.index(read_idx % buffers).load(layout) + b_smem.index(read_idx % buffers).load(layout)
        gl.store(c + at + read_idx * YBLOCK, value, mask=(read_idx * YBLOCK + columns)[None, :] < n)
        read_idx += 1


@gluon.jit
def _offsets(ROWS: gl.constexpr, COLUMNS: gl.constexpr, stride, layout: gl.constexpr):
    i = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    j = gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
    return i[:, None] * stride + j[None, :]


@source(a="*fp16", b="*fp16", c="*fp32", k="i32:16", n="i32:16", constexprs={"M": 64, "N": 64, "K": 32})
@gluon.jit
def matmul_cpasync(a, b, c, k, n, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    blocked: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])
    shared: gl.constexpr = gl.SwizzledSharedLayout(8, 2, 4, [1, 0])
    wide: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    x = gl.allocate_shared_memory(gl.float16, [2, M, K], shared)
    y = gl.allocate_shared_memory(gl.float16, [2, K, N], wide)
    from_a = a + gl.program_id(0) * M * k + _offsets(M, K, k, blocked)
    from_b = b + gl.program_id(1) * N + _offsets(K, N, n, blocked)
    acc = gl.zeros([M, N], gl.float32, mma)
    cp.async_copy_global_to_shared(x.index(0), from_a)
    cp.async_copy_global_to_shared(y.index(0), from_b)
    cp.commit_group()
    for step in range(gl.cdiv(k, K)):
        more = step + 1 < gl.cdiv(k, K)
        from_a += K
        from_b += K * n
        cp.async_copy_global_to_shared(x.index((step + 1) % 2), from_a, mask=gl.full([M, K], more, gl.int1, blocked))
        cp.async_copy_global_to_shared(y.index((step + 1) % 2), from_b, mask=gl.full([K, N], more, gl.int1, blocked))
        cp.commit_group()
        cp.wait_group(1)
        left = x.index(step % 2).load(gl.DotOperandLayout(0, mma, 2))
        right = y.index(step % 2).load(gl.DotOperandLayout(1, mma, 2))
        acc = mma_v2(left, right, acc)
        gl.thread_barrier()
    out = c + gl.program_id(0) * M * n + gl.program_id(1) * N
    gl.store(out + _offsets(M, N, n, mma), acc)


@source(a="*fp32", b="*fp32", c="*fp32")
@gluon.jit
def matmul_tf32(a, b, c):
    blocked: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    x = gl.convert_layout(gl.load(a + _offsets(64, 32, 32, blocked)), gl.DotOperandLayout(0, mma, 1))
    y = gl.convert_layout(gl.load(b + _offsets(32, 64, 64, blocked)), gl.DotOperandLayout(1, mma, 1))
    acc = ampere.mma_v2(x, y, gl.zeros([64, 64], gl.float32, mma))
    acc = ampere.mma_v2(x, y, acc, input_precision="tf32")
    gl.store(c + _offsets(64, 64, 64, mma), acc)


@source(a="*i8", b="*i8", c="*i32")
@gluon.jit
def matmul_int8(a, b, c):
    blocked: gl.constexpr = gl.BlockedLayout([1, 16], [8, 4], [4, 1], [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [1, 4], [16, 8])
    x = gl.convert_layout(gl.load(a + _offsets(32, 64, 64, blocked)), gl.DotOperandLayout(0, mma, 4))
    y = gl.convert_layout(gl.load(b + _offsets(64, 32, 32, blocked)), gl.DotOperandLayout(1, mma, 4))
    gl.store(c + _offsets(32, 32, 32, mma), mma_v2(x, y, gl.zeros([32, 32], gl.int32, mma)))


@source(x="*fp32", y="*fp32")
@gluon.jit
def copies_at_a_barrier(x, y):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    memory = gl.allocate_shared_memory(gl.float32, [512], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=128)
    at = gl.arange(0, 512, layout)
    cp.async_copy_global_to_shared(memory, x + at, cache_modifier=".cg", volatile=True)
    cp.mbarrier_arrive(bar, increment_count=False)
    mbarrier.wait(bar, 0, pred=True, deps=[memory])
    mbarrier.invalidate(bar)
    gl.store(y + at, memory.load(layout))
