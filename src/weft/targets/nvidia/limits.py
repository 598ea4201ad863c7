"""How much a block may have of what a multiprocessor has, and how many blocks fit, by compute capability (CUDA's
programming guide, table "technical specifications per compute capability")."""

from __future__ import annotations

__all__ = ["REGISTERS", "blocks_at_a_time", "shared_limit"]

KIB = 1024
SHARED = {
    70: 96 * KIB, 75: 64 * KIB, 80: 163 * KIB, 86: 99 * KIB, 87: 163 * KIB, 89: 99 * KIB, 90: 227 * KIB,
    100: 227 * KIB, 103: 227 * KIB, 110: 227 * KIB, 120: 99 * KIB, 121: 99 * KIB,
}  # fmt: skip

THREADS = {75: 1024, 86: 1536, 87: 1536, 89: 1536, 120: 1536, 121: 1536}  # others have 2048
BLOCKS = {75: 16, 86: 16, 87: 16, 89: 24, 120: 24, 121: 24}  # others have 32
REGISTERS = 64 * KIB


def blocks_at_a_time(capability: int, threads: int, shared: int, registers: int = 0) -> int:
    """How many blocks of so many threads a multiprocessor runs at a time; a thread may have any number of registers
    where `registers` is 0. From 8.0 on each block has 1 KiB of shared memory beside its own.

    >>> blocks_at_a_time(90, 256, 96 << 10), blocks_at_a_time(90, 256, 96 << 10, 130), blocks_at_a_time(80, 32, 0)
    (2, 1, 32)
    """
    found = min(THREADS.get(capability, 2048) // threads, BLOCKS.get(capability, 32))
    own = KIB if capability >= 80 else 0
    if shared + own:
        found = min(found, (SHARED.get(capability, 48 * KIB) + own) // (shared + own))
    if registers:
        found = min(found, REGISTERS // (-(-registers // 8) * 8 * threads))
    return found


def shared_limit(target: str) -> int:
    """Bytes of shared memory that a block may have at most; of a target that is not known, what all have: 48 KiB.

    >>> shared_limit("cuda:80"), shared_limit("sim:cuda:90a"), shared_limit("hip:gfx942")
    (166912, 232448, 49152)
    """
    capability = target.rpartition(":")[2].rstrip("abcdefghijklmnopqrstuvwxyz")
    return SHARED.get(int(capability), 48 * KIB) if capability.isdigit() else 48 * KIB
