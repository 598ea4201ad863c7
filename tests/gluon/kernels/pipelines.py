"""Longer kernels: rings of buffers between partitions, persistent programs, products fed by bulk copies."""

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
from triton.language.core import _aggregate as aggregate

from gluon.sources import Sources

SOURCES = source = Sources()

BLOCK = gl.NVMMASharedLayout.get_default_for([32, 64], gl.float32)
LEFT = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)


@aggregate
class Ring:
    """Buffers that one partition fills and another empties."""

    memory: gl.shared_memory_descriptor
    ready: gl.shared_memory_descriptor
    empty: gl.shared_memory_descriptor
    count: gl.constexpr

    @gluon.constexpr_function
    def __init__(self, memory, ready, empty, count):
        self.memory = memory
        self.ready = ready
        self.empty = empty
        self.count = gl.constexpr(count)

    @gluon.jit
    def begin_to_fill(self, k):
        mbarrier.wait(self.empty.index(k % self.count), (k // self.count & 1) ^ 1)
        return self.memory.index(k % self.count), self.ready.index(k % self.count)

    @gluon.jit
    def wait_until_full(self, k):
        mbarrier.wait(self.ready.index(k % self.count), k // self.count & 1)
        return self.memory.index(k % self.count)

    @gluon.jit
    def give_back(self, k):
        mbarrier.arrive(self.empty.index(k % self.count), count=1)


@gluon.jit
def make_ring(desc, COUNT: gl.constexpr):
    memory = gl.allocate_shared_memory(desc.dtype, [COUNT] + desc.block_type.shape, desc.layout)
    ready = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(COUNT):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    return Ring(memory, ready, empty, COUNT)


@gluon.jit
def _read_tiles(source, target, ring, steps):
    for k in range(steps):
        memory, ready = ring.begin_to_fill(k)
        mbarrier.expect(ready, source.block_type.nbytes)
        tma.async_copy_global_to_shared(source, [gl.program_id(0) * 32, k * 64], ready, memory)


@gluon.jit
def _scale_tiles(target, ring, steps, factor, layout: gl.constexpr):
    out = gl.allocate_shared_memory(target.dtype, target.block_type.shape, target.layout)
    for k in range(steps):
        value = ring.wait_until_full(k).load(layout)
        fence_async_shared()
        ring.give_back(k)
        tma.store_wait(0)
        out.store(value * factor)
        fence_async_shared()
        tma.async_copy_shared_to_global(target, [gl.program_id(0) * 32, k * 64], out)
    tma.store_wait(0)


@source(90, x=f"tensordesc<fp32[32, 64],{BLOCK!r}>", y=f"tensordesc<fp32[32, 64],{BLOCK!r}>", columns="i32",
        factor="fp32", constexprs={"COUNT": 3, "num_warps": 4})  # fmt: skip
@gluon.jit
def scaled_through_a_ring(x, y, columns, factor, COUNT: gl.constexpr, num_warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [num_warps, 1], [1, 0])
    ring = make_ring(x, COUNT)
    steps = gl.cdiv(columns, 64)
    gl.warp_specialize(
        [(_scale_tiles, (y, ring, steps, factor, layout)), (_read_tiles, (x, y, ring, steps))], [1], [24]
    )


@gluon.jit
def _feed(a, b, ring_a, ring_b, tiles_n, tiles, steps):
    k = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, column = tile // tiles_n * 64, tile % tiles_n * 64
        for step in range(steps):
            memory, ready = ring_a.begin_to_fill(k)
            mbarrier.expect(ready, a.block_type.nbytes)
            tma.async_copy_global_to_shared(a, [row, step * 64], ready, memory)
            memory, ready = ring_b.begin_to_fill(k)
            mbarrier.expect(ready, b.block_type.nbytes)
            tma.async_copy_global_to_shared(b, [step * 64, column], ready, memory)
            k += 1


@gluon.jit
def _multiply(c, ring_a, ring_b, n, tiles_n, tiles, steps, mma: gl.constexpr):
    k = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        acc = warpgroup_mma_init(gl.zeros([64, 64], gl.float32, mma))
        for _ in range(steps):
            x = ring_a.wait_until_full(k)
            y = ring_b.wait_until_full(k)
            acc = warpgroup_mma(x, y, acc, is_async=True)
            acc = warpgroup_mma_init(warpgroup_mma_wait(0, deps=(acc,)))
            ring_a.give_back(k)
            ring_b.give_back(k)
            k += 1
        value = warpgroup_mma_wait(0, deps=(acc,))
        i = tile // tiles_n * 64 + gl.arange(0, 64, gl.SliceLayout(1, mma))
        j = tile % tiles_n * 64 + gl.arange(0, 64, gl.SliceLayout(0, mma))
        gl.store(c + i[:, None] * n + j[None, :], value)


@source(90, a=f"tensordesc<fp16[64, 64],{LEFT!r}>", b=f"tensordesc<fp16[64, 64],{LEFT!r}>", c="*fp32", m="i32",
        n="i32", k="i32")  # fmt: skip
@gluon.jit
def persistent_matmul(a, b, c, m, n, k):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    ring_a, ring_b = make_ring(a, 2), make_ring(b, 2)
    tiles_n, steps = gl.cdiv(n, 64), gl.cdiv(k, 64)
    tiles = gl.cdiv(m, 64) * tiles_n
    gl.warp_specialize(
        [
            (_multiply, (c, ring_a, ring_b, n, tiles_n, tiles, steps, mma)),
            (_feed, (a, b, ring_a, ring_b, tiles_n, tiles, steps)),
        ],
        [1],
        [24],
    )
