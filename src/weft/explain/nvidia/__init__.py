"""What operations cost on NVIDIA's GPUs: on Hopper, the one of them that the model of time knows.

Sources: (a) Luo et al., arXiv 2402.13499 and 2501.12084, microbenchmarks of an H800, whose cycles are those of an H100;
(b) published measurements of an H100 SXM, clocks not pinned; (c) ptxas, whose control words say how long it takes
results to come; (d) our own measurements, docs/explanation/performance.md; (e) the tables of the CUDA programming
guide; (f) set by the half of the kernels of benchmarks/explain_time.py that is marked for it, on an H100 SXM,
2026-11-27; (g) benchmarks/calibrate.py; (h) Nsight Compute's counters of that half of the kernels,
benchmarks/results/explain-bounds.json.
"""

from __future__ import annotations

from dataclasses import replace

from weft.explain.costs import Costs, Use
from weft.ir.lane import LaneOp
from weft.machines import machine_of
from weft.targets.table import instruction

from .arithmetic import work
from .assembled import assembled, spilled_by_line

__all__ = ["COMBINED", "COSTS", "OWN_WAYS", "assembled", "spilled_by_line"]

OWN_WAYS = ("kind:wgmma", "kind:tcgen05", "kind:bulk")
"""How counters of instructions begin that read shared memory by a way of their own, which no bank of it slows down."""
COMBINED = ".reduce."
"""In the names of instructions by which the copy engine combines boxes with memory."""

MATRIX_LOADS = ("ldmatrix", "stmatrix")
MMA_FLOPS = 2680.0
"""Of mma.sync in a cycle of a multiprocessor, of 4,096 that wgmma reaches (b)."""
LEAST_WGMMA = ((8, 18.9), (16, 20.7), (32, 24.7), (64, 32.8), (128, 65.0), (256, 129.3))
"""Cycles of wgmma m64nNk16 of bf16, by N (b)."""
WORD_BITS = {"f16": 16, "bf16": 16, "e4m3": 16, "e5m2": 16, "tf32": 32, "f64": 64}
"""Of what mma.sync multiplies, as far as it is not 8; ptxas makes f16 of floats of 8 bits."""


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
    bits = WORD_BITS.get(isa.split(".")[4], 8)
    cycles = 2 * m * n * k / MMA_FLOPS * bits / 16
    return Use(count, "tensor", count * cycles, 33.0)  # (c): 24 cycles to the accumulator, 33 to anything else


_MACHINE = machine_of("cuda:90")
HOPPER = Costs(
    clock=_MACHINE.clock,
    matrix_clock=1.8,  # (h): 1.72 to 1.83 of kernels that have matrix units busy for 5 to 56 %
    busy_clock=1.59,  # (h): 1.56 to 1.60 where it is 75 % and more
    busy=(0.55, 0.72),  # (h)
    launch=790.0,  # (f); 900 in (g), between launches that follow each other at once
    profiled=1250.0,  # (h)
    block_start=_MACHINE.block_start / _MACHINE.multiprocessors / _MACHINE.clock,
    dram_read=3180.0,  # (g)
    dram_write=3290.0,  # (g)
    dram_peak=3354.0,  # (h), of an H100 SXM
    dram_turn=4.3e-5,  # (g): copies reach 3,020
    dram_scattered=96.0,  # (g): numbers looked up in 256 MB
    dirty=(3.2e6, 0.35, 30e6),  # (g): reads after a kernel that writes, and after one that reads
    left=19e6,  # (h)
    l2_bytes=50e6,
    l2=9800.0,  # (h), where products read it; (a) has 3,942 for plain loads
    schedulers=_MACHINE.schedulers,
    line=128,
    spilled=4.0,  # 3.2 to 4.6 in products of benchmarks/tune_ranks.py that spill
    special=2.0,  # (e), (g): 16 lanes a cycle
    double=0.5,  # (e)
    narrow=0.5,  # (e), (g): 64 lanes a cycle
    dram_latency=690.0,  # (g): a chain of loads; 570 in (b)
    l2_latency=263.0,  # (a)
    shared_latency=29.0,  # (a)
    shuffle_latency=24.0,  # (g): 30 cycles for each step of a sum
    special_latency=24.0,
    alu_latency=4.0,  # (c), (g)
    barrier_latency=14.0,  # (g)
    barrier_warp=2.0,  # (g)
    product_latency=100.0,  # (g): 64x64x64 takes 259 cycles, of which matrix units work 128
    atomics=(1.0, 21.0),  # (g), the most of rows of 512 f32
    bulk_atomics=18.0,  # boxes of f32 whose rows are lines, by all multiprocessors: 17.6 to 19
    atomic_alone=(0.73, 1.76),  # (g)
    atomic_latency=1290.0,  # (b): 651 ns
    bulk_latency=1180.0,  # (b): 595 ns from DRAM
    instruction=_use,
    work=work,
    uncertainty={  # (f): 95 % of its launches are within, on both cards
        "launch": (0.88, 1.15),
        "overlap": (0.6, 0.8),
        "DRAM": (0.89, 1.13),
        "starting blocks": (0.85, 1.1),
        "atomics": (0.8, 1.3),
        "L2": (0.75, 1.2),
        "latency": (0.82, 1.4),
        "shared memory": (0.85, 1.3),
        "L1": (0.75, 1.2),
        "": (0.9, 1.15),
    },
)
H200 = replace(  # by the same measurements of it; cycles are those of an H100
    HOPPER,
    launch=620.0,  # (f); 560 in (g)
    dram_read=4520.0,
    dram_write=4680.0,
    dram_peak=4800.0,  # (e), its data sheet
    dram_turn=3.3e-5,
    dram_scattered=109.0,
    dram_latency=665.0,
)
COSTS = {90: {"H100": HOPPER, "H200": H200}}
"""By generation and device, the usual one first."""
