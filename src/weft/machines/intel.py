"""Intel's GPUs, a row for each kind of Xe core that is compiled for.

A generation is the number of the core's architecture, times a hundred: 12.55 of DG2, 12.60 of Ponte Vecchio, 20.01 and
20.04 of Xe2, 30.00 of Xe3. Code is SPIR-V, which the driver compiles for the GPU that it finds.

>>> generation_of("sim:xpu:pvc"), generation_of("bmg"), generation_of("xpu:9")
(1260, 2001, 0)

Sizes are those of Intel's public guides and of Linux's driver; none was measured here, and costs are derived from the
widths of units: shared local memory gives a core 128 bytes in a cycle, a vector engine issues an instruction of 16
lanes in one (of 8 on DG2). What nobody has said stands in a comment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .machine import KIB, Machine

DG2, PVC, XE2, XE3 = 1255, 1260, 2001, 3000
LANES = 16
"""Of a subgroup, on all of them but DG2."""


def _row(
    name: str, generation: int, cores: int, *, shared: int = 128, engines: int = 8, words: int = 16, lanes: int = LANES
) -> Machine:
    """`cores` Xe cores of `engines` vector engines, which have 8 threads each; `shared` KiB of local memory for a
    block. A thread has 128 registers of so many words of 32 bits, and is a warp of so many `lanes`."""
    threads = engines * 8 * lanes
    return Machine(
        f"xpu:{name}",
        "intel",
        generation,
        portable=False,
        lanes=lanes,
        banks=32,  # a guess: 128 bytes a cycle, in words of 32 bits
        shared_bytes=shared * KIB,
        most_threads=threads,
        most_blocks=threads // lanes,
        registers=engines * 8 * 128 * words,
        multiprocessors=cores,
        float32_products="ieee",
        select=0.25,
        permute=0.5,
        shuffle=1.0,
        wavefront=1.0,
        access=1.0,
        wait=0.25,
        address=0.5,
        warp_barrier=2.0,  # a warp is one thread of the hardware: only its own accesses are waited for
        block_barrier=30.0,
        trip=30.0,
    )


_GPUS = (
    _row("dg2", DG2, 32, shared=64, engines=16, words=8, lanes=8),  # Arc A770: its DPAS is for subgroups of 8
    _row("pvc", PVC, 128),  # Data Center GPU Max 1550
    _row("bmg", XE2, 20),  # Arc B580
    _row("lnl", 2004, 8),  # Core Ultra 200V
    _row("ptl", XE3, 12),  # Core Ultra Series 3: of its cores' threads, eight of ten are counted
)

WHOLE_WARPS = ":simd"
"""How the names of machines end for which one work item is a whole warp: those have no operations of subgroups."""
ROWS = (*_GPUS, *(replace(row, name=row.name + WHOLE_WARPS) for row in _GPUS))


@dataclass(frozen=True)
class BlockLimits:
    """What 2D blocks ask of a surface in memory, and how large they may be.

    Block sizes are those of OpenCL's extension cl_intel_subgroup_2d_block_io. What a surface must be is known from
    Intel's public code that fills in such instructions; that a row may not be longer than the pitch, and that the first
    byte of a block is a multiple of 4, was not confirmed on a GPU, nor was anything else of this.
    """

    base: int = 64
    """What divides the surface's address."""
    least: int = 64
    """Bytes that a row and the pitch have at least."""
    most: int = 1 << 24
    """Bytes of a row and of the pitch, and rows, are fewer than this or as many."""
    width: int = 4
    """What divides the bytes of a row, and the place of a block in it."""
    pitch: int = 16
    """What divides the pitch."""
    row_bytes: int = 64
    rows: int = 32
    """Of one instruction that loads or prefetches."""
    stored_rows: int = 8


BLOCKS = BlockLimits()
WITHOUT_BLOCKS = "ttig.without_blocks"
"""Attribute of a module: there are to be no 2D blocks, as the compiler that it goes to does not know them."""


def blocks_of(machine: Machine) -> BlockLimits | None:
    """The limits of 2D blocks on a machine; None where it has none.

    >>> blocks_of(ROWS[0]) is None, blocks_of(ROWS[1]) is BLOCKS
    (True, True)
    """
    has_blocks = machine.vendor == "intel" and machine.generation >= PVC
    return BLOCKS if has_blocks and not machine.name.endswith(WHOLE_WARPS) else None


def generation_of(text: str) -> int:
    """The generation that a text means: 1260 for xpu:pvc, pvc; 0 where it means none."""
    name = text.removeprefix("sim:").removeprefix("xpu:")
    return next((row.generation for row in ROWS if row.name == f"xpu:{name}"), 0)


def capability_of(generation: int) -> tuple[int, int]:
    """(12, 60) of Ponte Vecchio.

    >>> capability_of(1260)
    (12, 60)
    """
    return divmod(generation, 100)


def nearest(generation: int) -> str:
    """Which of these are compiled for, in words, where another one was asked for."""
    return f"of Intel's GPUs {', '.join(row.name for row in _GPUS)} are compiled for; "
