"""Gluon kernels for Hopper whose layout IR, as Triton makes it, stands in tests/data/hopper (see make_ttgir.py).

Only make_ttgir.py imports this file: it needs the real Triton.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@dataclass(frozen=True)
class Source:
    """A kernel, the types of its arguments, its compile-time values, and options."""

    kernel: Any
    signature: dict[str, Any]
    constexprs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


SOURCES: dict[str, Source] = {}
NAMES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "fp8": "fp8e4nv", "fp8e5": "fp8e5", "i8": "i8", "i32": "i32"}
TYPES = {"fp16": gl.float16, "bf16": gl.bfloat16, "fp32": gl.float32, "fp8e4nv": gl.float8e4nv, "fp8e5": gl.float8e5,
         "i8": gl.int8, "i32": gl.int32}  # fmt: skip
BITS = {"fp16": 16, "bf16": 16, "fp32": 32, "fp8e4nv": 8, "fp8e5": 8, "i8": 8, "i32": 32}


def shared(block: list[int], name: str) -> str:
    """The type of a descriptor for blocks of that shape, in the widest swizzle."""
    layout = gl.NVMMASharedLayout.get_default_for(block, TYPES[name])
    return f"tensordesc<{name}{block},{layout!r}>"


# -- products ---------------------------------------------------------------------------------------------------------


@gluon.jit
def pipelined_matmul(a, b, c, K, BK: gl.constexpr, STAGES: gl.constexpr, TRANS: gl.constexpr, ACC: gl.constexpr):
    """c = a @ b, or a @ b.T: loads run ahead, one product is left under way while the next is begun."""
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    dtype: gl.constexpr = a.dtype
    k_instr: gl.constexpr = 256 // dtype.primitive_bitwidth
    n_instr: gl.constexpr = BN if BN < 256 else 256
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, n_instr, k_instr])
    a_buffers = gl.allocate_shared_memory(dtype, [STAGES] + a.block_type.shape, a.layout)
    b_buffers = gl.allocate_shared_memory(dtype, [STAGES] + b.block_type.shape, b.layout)
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(ready.index(i), count=1)
    m = gl.program_id(0) * BM
    n = gl.program_id(1) * BN
    for i in gl.static_range(STAGES - 1):
        _load(a, b, m, n, i * BK, a_buffers.index(i), b_buffers.index(i), ready.index(i), TRANS, i * BK < K)
    acc = gl.zeros((BM, BN), ACC, layout)
    for k in range(0, K, BK):
        iteration = k // BK
        slot = iteration % STAGES
        mbarrier.wait(ready.index(slot), (iteration // STAGES) & 1)
        x = a_buffers.index(slot)
        y = b_buffers.index(slot)
        if TRANS:
            acc = warpgroup_mma(x, y.permute((1, 0)), acc, is_async=True)
        else:
            acc = warpgroup_mma(x, y, acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        ahead = (iteration + STAGES - 1) % STAGES
        later = k + (STAGES - 1) * BK
        _load(a, b, m, n, later, a_buffers.index(ahead), b_buffers.index(ahead), ready.index(ahead), TRANS, later < K)
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    out.store(acc.to(c.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(c, [m, n], out)
    tma.store_wait(pendings=0)


@gluon.jit
def _load(a, b, m, n, k, x, y, bar, TRANS: gl.constexpr, pred):
    mbarrier.expect(bar, a.block_type.nbytes + b.block_type.nbytes, pred=pred)
    tma.async_copy_global_to_shared(a, [m, k], bar, x, pred=pred)
    if TRANS:
        tma.async_copy_global_to_shared(b, [n, k], bar, y, pred=pred)
    else:
        tma.async_copy_global_to_shared(b, [k, n], bar, y, pred=pred)


def matmul_source(
    name: str,
    dtype: str,
    bm: int,
    bn: int,
    bk: int,
    trans: bool,
    warps: int = 4,
    out: str = "f32",
    acc: Any = gl.float32,
) -> None:
    """One variant of `pipelined_matmul`."""
    kind = NAMES[dtype]
    types = {
        "a": shared([bm, bk], kind),
        "b": shared([bn, bk] if trans else [bk, bn], kind),
        "c": shared([bm, bn], NAMES[out]),
        "K": "i32",
    }
    constants = {"BK": bk, "STAGES": 3, "TRANS": trans, "ACC": acc}
    SOURCES[name] = Source(pipelined_matmul, types, constants, {"num_warps": warps})


matmul_source("matmul_f16_64x64x64_nn", "f16", 64, 64, 64, False)
matmul_source("matmul_f16_64x64x64_nt", "f16", 64, 64, 64, True)
matmul_source("matmul_bf16_128x128x64_nt_w8", "bf16", 128, 128, 64, True, 8, "bf16")
matmul_source("matmul_bf16_128x256x32_nn", "bf16", 128, 256, 32, False)
matmul_source("matmul_f16_64x16x128_nt", "f16", 64, 16, 128, True)
matmul_source("matmul_f16_f16_64x32x32_nn", "f16", 64, 32, 32, False, 4, "f16", gl.float16)
matmul_source("matmul_tf32_64x64x32_nt", "f32", 64, 64, 32, True)
matmul_source("matmul_fp8_128x64x128_nt", "fp8", 128, 64, 128, True)
matmul_source("matmul_fp8e5_64x64x64_nt", "fp8e5", 64, 64, 64, True)
matmul_source("matmul_i8_64x64x128_nt", "i8", 64, 64, 128, True, 4, "i32", gl.int32)


@gluon.jit
def matmul_a_from_registers(a, b, c, K, BK: gl.constexpr):
    """The left operand is loaded to registers and scaled before the product; the right one is read transposed."""
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    x = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    y = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    m = gl.program_id(0) * BM
    n = gl.program_id(1) * BN
    acc = gl.zeros((BM, BN), gl.float32, layout)
    phase = 0
    for k in range(0, K, BK):
        _load(a, b, m, n, k, x, y, bar, True, True)
        mbarrier.wait(bar, phase)
        phase ^= 1
        left = x.load(gl.DotOperandLayout(0, layout, 2)) * 2
        acc = warpgroup_mma(left, y.permute((1, 0)), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc, left, y))[0]
    mbarrier.invalidate(bar)
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    out.store(acc.to(c.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(c, [m, n], out)
    tma.store_wait(pendings=0)


SOURCES["matmul_a_from_registers"] = Source(
    matmul_a_from_registers,
    {"a": shared([64, 64], "fp16"), "b": shared([64, 64], "fp16"), "c": shared([64, 64], "fp32"), "K": "i32"},
    {"BK": 64},
)


@gluon.jit
def two_products_under_way(a, b, c, K, BK: gl.constexpr):
    """The wait leaves one product outstanding, its buffers are not touched meanwhile."""
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    x = gl.allocate_shared_memory(a.dtype, [3] + a.block_type.shape, a.layout)
    y = gl.allocate_shared_memory(b.dtype, [3] + b.block_type.shape, b.layout)
    bars = gl.allocate_shared_memory(gl.int64, [3, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(3):
        mbarrier.init(bars.index(i), count=1)
    m = gl.program_id(0) * BM
    n = gl.program_id(1) * BN
    _load(a, b, m, n, 0, x.index(0), y.index(0), bars.index(0), True, True)
    acc = gl.zeros((BM, BN), gl.float32, layout)
    for k in range(0, K, BK):
        iteration = k // BK
        slot = iteration % 3
        ahead = (iteration + 1) % 3
        _load(a, b, m, n, k + BK, x.index(ahead), y.index(ahead), bars.index(ahead), True, k + BK < K)
        mbarrier.wait(bars.index(slot), (iteration // 3) & 1)
        acc = warpgroup_mma(x.index(slot), y.index(slot).permute((1, 0)), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
    acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    out.store(acc.to(c.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(c, [m, n], out)
    tma.store_wait(pendings=0)


SOURCES["two_products_under_way"] = Source(
    two_products_under_way,
    {"a": shared([64, 64], "fp16"), "b": shared([64, 64], "fp16"), "c": shared([64, 64], "fp32"), "K": "i32"},
    {"BK": 64},
)


# -- partitions -------------------------------------------------------------------------------------------------------


@gluon.jit
def _producer(a, b, x, y, ready, empty, first, step, tiles, tiles_n, K, BK: gl.constexpr, STAGES: gl.constexpr):
    BM: gl.constexpr = a.block_type.shape[0]
    BN: gl.constexpr = b.block_type.shape[0]
    iteration = 0
    for tile in range(first, tiles, step):
        m = tile // tiles_n * BM
        n = tile % tiles_n * BN
        for k in range(0, K, BK):
            slot = iteration % STAGES
            mbarrier.wait(empty.index(slot), ((iteration // STAGES) & 1) ^ 1)
            _load(a, b, m, n, k, x.index(slot), y.index(slot), ready.index(slot), True, True)
            iteration += 1


@gluon.jit
def _consumer(c, x, y, ready, empty, out, first, step, tiles, tiles_n, K, BK: gl.constexpr, STAGES: gl.constexpr):
    BM: gl.constexpr = c.block_type.shape[0]
    BN: gl.constexpr = c.block_type.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BN, 16])
    iteration = 0
    for tile in range(first, tiles, step):
        acc = gl.zeros((BM, BN), gl.float32, layout)
        for k in range(0, K, BK):
            slot = iteration % STAGES
            mbarrier.wait(ready.index(slot), (iteration // STAGES) & 1)
            acc = warpgroup_mma(x.index(slot), y.index(slot).permute((1, 0)), acc, is_async=True)
            acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
            mbarrier.arrive(empty.index(slot), count=1)
            iteration += 1
        tma.store_wait(pendings=0)
        out.store(acc.to(c.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(c, [tile // tiles_n * BM, tile % tiles_n * BN], out)
    tma.store_wait(pendings=0)


@gluon.jit
def specialized_matmul(a, b, c, tiles, tiles_n, K, BK: gl.constexpr, STAGES: gl.constexpr, REGISTERS: gl.constexpr):
    """A persistent product: one warp loads, four multiply; each program takes every so-many-th tile."""
    x = gl.allocate_shared_memory(a.dtype, [STAGES] + a.block_type.shape, a.layout)
    y = gl.allocate_shared_memory(b.dtype, [STAGES] + b.block_type.shape, b.layout)
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(ready.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    first = gl.program_id(0)
    step = gl.num_programs(0)
    gl.warp_specialize(
        [
            (_consumer, (c, x, y, ready, empty, out, first, step, tiles, tiles_n, K, BK, STAGES)),
            (_producer, (a, b, x, y, ready, empty, first, step, tiles, tiles_n, K, BK, STAGES)),
        ],
        [1],
        [REGISTERS],
    )


SOURCES["specialized_matmul"] = Source(
    specialized_matmul,
    {
        "a": shared([64, 64], "fp16"),
        "b": shared([64, 64], "fp16"),
        "c": shared([64, 64], "fp16"),
        "tiles": "i32",
        "tiles_n": "i32",
        "K": "i32",
    },
    {"BK": 64, "STAGES": 2, "REGISTERS": 24},
)


@gluon.jit
def _add_one(x, bar, done):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    mbarrier.wait(bar, 0)
    x.store(x.load(layout) + 1)
    mbarrier.arrive(done, count=1)


@gluon.jit
def _double(x, bar, done):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    mbarrier.wait(bar, 0)
    x.store(x.load(layout) * 2)
    mbarrier.arrive(done, count=1)


@gluon.jit
def _whole(x, y, z, bar, done, seven):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    x.store(gl.arange(0, 128, layout=layout))
    y.store(gl.arange(0, 128, layout=layout))
    mbarrier.arrive(bar, count=1)
    mbarrier.wait(done, 0)
    return x.load(layout) + y.load(layout) * 1000 + seven, seven + 1


@gluon.jit
def results_of_partitions(z, n):
    """Two partitions of different sizes, a default region with results, and something before and after."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    x = gl.allocate_shared_memory(gl.int32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    y = gl.allocate_shared_memory(gl.int32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    total = gl.zeros([128], gl.int32, layout)
    for i in range(n):
        mbarrier.init(bar, count=1)
        mbarrier.init(done, count=2)
        value, seven = gl.warp_specialize(
            [(_whole, (x, y, z, bar, done, i + 7)), (_add_one, (x, bar, done)), (_double, (y, bar, done))],
            [2, 1],
            [24, 24],
        )
        total += value * seven
        mbarrier.invalidate(bar)
        mbarrier.invalidate(done)
    gl.store(z + gl.arange(0, 128, layout=layout), total)


SOURCES["results_of_partitions"] = Source(results_of_partitions, {"z": "*i32", "n": "i32"})


# -- faults -----------------------------------------------------------------------------------------------------------


@gluon.jit
def faulty_copy(x, y, FAULT: gl.constexpr):
    """A tile through shared memory, doubled; with one mistake."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    memory = gl.allocate_shared_memory(x.dtype, x.block_type.shape, x.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    if FAULT != "no init":
        mbarrier.init(bar, count=2 if FAULT == "one arrival of two" else 1)
    size: gl.constexpr = x.block_type.nbytes
    if FAULT == "too few bytes":
        mbarrier.expect(bar, size // 2)
    elif FAULT == "too many bytes":
        mbarrier.expect(bar, size * 2)
    else:
        mbarrier.expect(bar, size)
    tma.async_copy_global_to_shared(x, [0, 0], bar, memory)
    if FAULT == "two arrivals":
        mbarrier.arrive(bar, count=2)
    if FAULT != "no wait":
        mbarrier.wait(bar, 1 if FAULT == "wrong phase" else 0)
    if FAULT == "second phase":
        mbarrier.wait(bar, 1)
    value = memory.load(layout) * 2
    if FAULT == "invalidated":
        mbarrier.invalidate(bar)
        mbarrier.arrive(bar, count=1)
    memory.store(value)
    if FAULT != "no fence":
        fence_async_shared()
    tma.async_copy_shared_to_global(y, [0, 0], memory)
    if FAULT == "overwritten":
        memory.store(value)
    if FAULT != "no store wait":
        tma.store_wait(pendings=0)


FAULTS = (
    "none", "no init", "one arrival of two", "too few bytes", "too many bytes", "two arrivals", "no wait",
    "wrong phase", "second phase", "invalidated", "no fence", "overwritten", "no store wait",
)  # fmt: skip
for fault in FAULTS:
    SOURCES[f"faulty_copy_{fault.replace(' ', '_')}"] = Source(
        faulty_copy, {"x": shared([64, 64], "fp16"), "y": shared([64, 64], "fp16")}, {"FAULT": fault}
    )


@gluon.jit
def faulty_product(a, b, c, FAULT: gl.constexpr):
    """A product of two tiles; with one mistake."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    x = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    y = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    _load(a, b, 0, 0, 0, x, y, bar, True, True)
    mbarrier.wait(bar, 0)
    left = x.load(gl.DotOperandLayout(0, layout, 2))
    if FAULT == "unfenced operand":
        x.store(left + 1)
    acc = gl.zeros((64, 64), gl.float32, layout)
    acc = warpgroup_mma(x, y.permute((1, 0)), acc, is_async=True)
    if FAULT == "operand overwritten":
        x.store(left + 1)
    if FAULT == "operand reloaded":
        mbarrier.expect(bar, a.block_type.nbytes)
        tma.async_copy_global_to_shared(a, [0, 0], bar, x)
        mbarrier.wait(bar, 1)
    if FAULT == "one outstanding":
        acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))
    else:
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    out = gl.allocate_shared_memory(c.dtype, c.block_type.shape, c.layout)
    out.store(acc)
    fence_async_shared()
    tma.async_copy_shared_to_global(c, [0, 0], out)
    tma.store_wait(pendings=0)


for fault in ("none", "unfenced operand", "operand overwritten", "operand reloaded", "one outstanding"):
    SOURCES[f"faulty_product_{fault.replace(' ', '_')}"] = Source(
        faulty_product,
        {"a": shared([64, 64], "fp16"), "b": shared([64, 64], "fp16"), "c": shared([64, 64], "fp32")},
        {"FAULT": fault},
    )


@gluon.jit
def _wait_then_arrive(here, there):
    mbarrier.wait(here, 0)
    mbarrier.arrive(there, count=1)


@gluon.jit
def deadlocked_partitions(x):
    """Each partition waits for the other."""
    ping = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    pong = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ping, count=1)
    mbarrier.init(pong, count=1)
    gl.warp_specialize([(_wait_then_arrive, (ping, pong)), (_wait_then_arrive, (pong, ping))], [1], [24])


SOURCES["deadlocked_partitions"] = Source(deadlocked_partitions, {"x": "*i32"})
