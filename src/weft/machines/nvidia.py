"""NVIDIA's GPUs from Turing on, a row for each compute capability that is compiled for.

Sizes are those of the CUDA programming guide, table "technical specifications per compute capability". What is
compiled for 9.0 uses instructions of that processor alone; the rest is portable.
"""

from __future__ import annotations

import re

from .machine import KIB, Machine


def generation_of(text: str) -> int:
    """The capability that a text means which names no target: 90 for sm_90, 90, cuda:90b; 0 where it means none."""
    digits = re.findall(r"\d+", text)[:1]
    return int(digits[0]) if digits and re.match(r"(sim:)?(cuda|sm_|\d)", text) else 0


def name_of(arch: str) -> str:
    """The target of an architecture: cuda:90 for sm90, sm_90, 90."""
    return f"cuda:{arch.removeprefix('sm').removeprefix('_')}"


CLOCK = 1.98
"""In GHz, of an H100 and an H200 while matrix units are idle."""
COPIED = 4300.0
"""GB/s of large copies on an H200; an H100, which runs the same code, reaches 3,020.

Choices by this rate are right for both cards, because a second limit that is close to that of memory costs time too.
For example, softmax of rows of 256 f32 needs memory for 124 cycles of a multiprocessor on an H200 and for 177 on an
H100, and starting a block takes 158. With several programs in each block it is predicted to take 133 and 183 us, and
with a block for each program 178 and 206.
"""
_PAIRS = (("f16", 2),)
_VECTORS = (("f16", 8), ("bf16", 8), ("f32", 4))


def _row(
    capability: int, multiprocessors: int, shared: int, threads: int = 2048, blocks: int = 32, *, portable: bool = True
) -> Machine:
    """What follows from the generation is said once: copies from 8.0 on, clusters and the copy engine from 9.0 on."""
    ampere, hopper = capability >= 80, capability >= 90
    return Machine(
        f"cuda:{capability}",
        "nvidia",
        capability,
        portable,
        is_default=capability == 80,
        matrix_loads="ldmatrix",
        matrix_stores="stmatrix" if hopper else "",
        shared_bytes=shared * KIB,
        reserved_bytes=KIB if ampere else 0,
        most_threads=threads,
        most_blocks=blocks,
        lines_at_a_time=60 * KIB if capability == 90 else 0,
        copied_at_a_time=42 * KIB if capability == 90 else 0,  # H200: 5 blocks of 8 KB, 3 of 16 KB, 2 of 32 KB
        l2_size=50 * KIB * KIB if capability == 90 else 0,
        rows_ahead=5 * KIB * KIB if capability == 90 else 0,  # H200: 2 to 8 MB within 3 %, mostly 4 to 6 are best
        multiprocessors=multiprocessors,
        # H200: 131,072 blocks of 1 or 2 warps in 157,000 to 162,000 cycles; H100: 262,144 that do nothing in 158 us
        block_start=158.0 if capability == 90 else 0.0,
        clock=CLOCK if capability == 90 else 1.0,
        streamed_bytes=round(COPIED / CLOCK / multiprocessors, 1) if capability == 90 else 0.0,
        async_copies=(4, 8, 16) if ampere else (),
        partial_copies=ampere,
        async_proxy=hopper,
        cluster_blocks=16 if hopper else 1,
        portable_cluster=8 if hopper else 1,
        atomic_adds=_VECTORS if hopper else _PAIRS,
    )


ROWS = (
    _row(75, 72, 64, 1024, 16),  # Titan RTX
    _row(80, 108, 163),  # A100
    _row(86, 84, 99, 1536, 16),  # A40
    _row(87, 16, 163, 1536, 16),  # Jetson AGX Orin
    _row(89, 142, 99, 1536, 24),  # L40S
    _row(90, 132, 227, portable=False),  # H100, H200
    _row(100, 148, 227),  # B200
    _row(103, 160, 227),  # B300
    _row(120, 188, 99, 1536, 24),  # RTX PRO 6000
    _row(121, 48, 99, 1536, 24),  # GB10
)
