"""What operations cost on NVIDIA's GPUs: on Hopper, the one of them that the model of time knows.

Sources: (a) Luo et al., arXiv 2402.13499 and 2501.12084, microbenchmarks of an H800, whose cycles are those of an H100;
(b) published measurements of an H100 SXM, clocks not pinned; (c) ptxas, whose control words say how long it takes
results to come; (d) our own measurements, docs/explanation/performance.md; (e) the tables of the CUDA programming
guide; (f) set by the half of the kernels of benchmarks/explain_time.py that is marked for it, on an H100 SXM,
2026-11-27.
"""

from __future__ import annotations

from weft.explain.costs import Costs, Use
from weft.ir.lane import LaneOp
from weft.targets.table import instruction

__all__ = ["COSTS", "OWN_WAYS"]

OWN_WAYS = ("kind:wgmma", "kind:tcgen05", "kind:bulk")
"""How counters of instructions begin that read shared memory by a way of their own, which no bank of it slows down."""

MATRIX_LOADS = ("ldmatrix", "stmatrix")
MMA_FLOPS = 2680.0
"""Of mma.sync in a cycle of a multiprocessor, of 4,096 that wgmma reaches (b)."""
LEAST_WGMMA = ((8, 18.9), (16, 20.7), (32, 24.7), (64, 32.8), (128, 65.0), (256, 129.3))
"""Cycles of wgmma m64nNk16 of bf16, by N (b)."""
WGMMA_LATENCY = 128.0
"""Of m64n256 (a)."""
WORD_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64}


def _use(op: LaneOp, count: int) -> Use:
    isa = op.attrs["isa"]
    if isa.startswith(MATRIX_LOADS):
        matrices = int(isa[-1])
        return Use(count, "shared", count * matrices, 29.0 + 4 * count)  # (a): a load of shared memory takes 29
    if isa.startswith("wgmma.m64"):
        _, n, _ = instruction(isa).params["shape"]
        cycles = dict(LEAST_WGMMA).get(n, n / 2 + 1)
        return Use(count, "tensor", count * cycles / 4, cycles, "later")  # four warps share one instruction
    if isa.startswith("mma.sync"):
        return _mma(isa, count)
    if isa.startswith("bar"):
        return Use(1, latency=30.0)
    if isa == "wgmma.commit_group":
        return Use(1, latency=1.0, when="commit")
    if isa.startswith("cp.async.bulk.tensor"):
        return Use(count * 2, latency=1.0, when="copy")
    if isa.startswith(("mbarrier.wait", "mbarrier.try_wait")):
        return Use(2, latency=1.0, when="arrival")
    return Use(count, latency=6.0)


def _mma(isa: str, count: int) -> Use:
    """mma.sync, by the products of an instruction and the width of its operands."""
    m, n, k = instruction(isa).params["shape"]
    bits = next((b for name, b in WORD_BITS.items() if f".{name}." in isa.replace("f32.f16", "f16")), 8)
    cycles = 2 * m * n * k / MMA_FLOPS * bits / 16
    return Use(count, "tensor", count * cycles, 33.0)  # (c): 24 cycles to the accumulator, 33 to anything else


HOPPER = Costs(
    clock=1.98,  # (d) of an H100 and H200 without tensor work
    busy_clock=1.55,  # (d): 790 TFLOP/s of 4,096 FLOP a cycle on 132 multiprocessors
    launch=1240.0,  # (b), 128 blocks and more
    dram=2885.0,  # (f); copies alone reach 3,000 (d)
    l2_bytes=50e6,
    l2=8000.0,  # (f), of 132 x 64 that there could be; (a) has 3,942 for plain loads
    schedulers=4,
    line=128,
    special=2.0,  # (e): 16 lanes a cycle
    double=0.5,  # (e)
    dram_latency=570.0,  # (b)
    l2_latency=263.0,  # (a)
    shared_latency=29.0,  # (a)
    shuffle_latency=24.0,
    special_latency=24.0,
    alu_latency=4.0,  # (c)
    barrier_latency=30.0,
    atomic_latency=1290.0,  # (b): 651 ns
    bulk_latency=1180.0,  # (b): 595 ns from DRAM
    instruction=_use,
    uncertainty=(0.85, 1.15),
)
COSTS = {90: HOPPER}
