"""Shared memory: layouts of every kind, views, buffers, and what depends on bank conflicts."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from gluon.sources import Sources

SOURCES = source = Sources()

ROWS = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
COLUMNS = gl.BlockedLayout([8, 1], [8, 4], [1, 4], [0, 1])


@gluon.jit
def tile_offsets(layout: gl.constexpr, stride):
    i = gl.arange(0, 64, gl.SliceLayout(1, layout))
    j = gl.arange(0, 64, gl.SliceLayout(0, layout))
    return i[:, None] * stride + j[None, :]


@source(x="*fp16", y="*fp16", constexprs={"shared": gl.SwizzledSharedLayout(8, 1, 8, [1, 0])})
@gluon.jit
def transpose_through_shared(x, y, shared: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    memory = gl.allocate_shared_memory(gl.float16, [64, 64], shared)
    memory.store(gl.load(x + tile_offsets(rows, 64)))
    gl.thread_barrier()
    value = memory.permute((1, 0)).load(rows)
    gl.store(y + tile_offsets(rows, 64), value)


@source(x="*fp16", y="*fp16", constexprs={"width": 128})
@gluon.jit
def nvmma_memory(x, y, width: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=width, element_bitwidth=16, rank=2)
    at = tile_offsets(rows, 64)
    memory = gl.allocate_shared_memory(gl.float16, [64, 64], shared, gl.load(x + at))
    other = gl.allocate_shared_memory(x.dtype.element_ty, memory.shape, memory.layout)
    other.store(memory.permute([1, 0]).load(rows) * 2)
    gl.static_assert(memory.rank == 2 and memory.numel == 4096)
    gl.store(y + at, other.load(rows))


@source(x="*fp32", y="*fp32", n="i32")
@gluon.jit
def buffers(x, y, n):
    line: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    memory = gl.allocate_shared_memory(gl.float32, [3, 512], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    i = gl.arange(0, 512, line)
    for k in range(n):
        memory.index(k % 3).store(gl.load(x + i + k * 512))
    acc = gl.zeros([512], gl.float32, line)
    for k in gl.static_range(3):
        acc += memory.index(k).load(line)
    gl.store(y + i, acc)


@source(x="*fp32", y="*fp32")
@gluon.jit
def slices(x, y):
    wide: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    memory = gl.allocate_shared_memory(gl.float32, [64, 64], gl.SwizzledSharedLayout(4, 1, 8, [1, 0]))
    at = tile_offsets(wide, 64)
    memory.store(gl.load(x + at))
    acc = gl.zeros([32, 32], gl.float32, wide)
    for k in gl.static_range(2):
        half = memory.slice(k * 32, 32)
        for n in gl.static_range(2):
            acc += half.slice(n * 32, 32, dim=1).load(wide)
    i = gl.arange(0, 32, gl.SliceLayout(1, wide))
    j = gl.arange(0, 32, gl.SliceLayout(0, wide))
    gl.store(y + i[:, None] * 32 + j[None, :], acc)


@source(x="*fp32", y="*i32")
@gluon.jit
def reinterpreted(x, y):
    line: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    memory = gl.allocate_shared_memory(gl.float32, [1024], shared, gl.load(x + gl.arange(0, 1024, line)))
    bits = memory._reinterpret(gl.int32, [1024], shared)
    i = gl.arange(0, 1024, line)
    gl.store(y + i, bits.load(line) ^ 1)
    memory._keep_alive()


@source(x="*fp32", y="*fp32")
@gluon.jit
def memory_in_functions(x, y):
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    at = tile_offsets(rows, 64)
    pair = (_allocated(x, at), _allocated(y, at))
    first, second = pair
    for _ in range(2):
        first, second = second, first
    gl.store(y + at, first.load(rows) - second.load(rows))


@gluon.jit
def _allocated(x, at):
    return gl.allocate_shared_memory(gl.float32, [64, 64], gl.SwizzledSharedLayout(4, 1, 8, [1, 0]), gl.load(x + at))


@source(x="*fp32", y="*fp32")
@gluon.jit
def conflicts_known(x, y):
    turned: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    swizzled: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 32, [1, 0])
    tile: gl.constexpr = gl.distributed_type(gl.float32, [64, 64], turned)
    before: gl.constexpr = gl.bank_conflicts(
        tile, gl.shared_memory_descriptor_type(gl.float32, [64, 64], plain, [64, 64])
    )
    after: gl.constexpr = gl.bank_conflicts(
        tile, gl.shared_memory_descriptor_type(gl.float32, [64, 64], swizzled, [64, 64])
    )
    i = gl.arange(0, 64, gl.SliceLayout(1, turned))
    gl.store(y + i, gl.load(x + i) * before + after)


@source(x="*fp32", y="*fp32")
@gluon.jit
def reshaped_memory(x, y):
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    cube: gl.constexpr = gl.BlockedLayout([1, 1, 4], [2, 4, 4], [4, 1, 1], [2, 1, 0])
    at = tile_offsets(rows, 64)
    memory = gl.allocate_shared_memory(gl.float32, [64, 64], gl.SwizzledSharedLayout(4, 1, 8, [1, 0]), gl.load(x + at))
    value = memory.reshape([64, 4, 16]).permute([1, 0, 2]).load(cube)
    gl.store(y + at, memory.load(rows) + gl.sum(gl.sum(gl.sum(value, 2), 1), 0))
