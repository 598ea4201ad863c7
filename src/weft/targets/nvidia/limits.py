"""How much a block may have of what a multiprocessor has, by compute capability (CUDA's programming guide, table
"technical specifications per compute capability")."""

from __future__ import annotations

__all__ = ["shared_limit"]

KIB = 1024
SHARED = {
    70: 96 * KIB, 75: 64 * KIB, 80: 163 * KIB, 86: 99 * KIB, 87: 163 * KIB, 89: 99 * KIB, 90: 227 * KIB,
    100: 227 * KIB, 103: 227 * KIB, 110: 227 * KIB, 120: 99 * KIB, 121: 99 * KIB,
}  # fmt: skip


def shared_limit(target: str) -> int:
    """Bytes of shared memory that a block may have at most; of a target that is not known, what all have: 48 KiB.

    >>> shared_limit("cuda:80"), shared_limit("sim:cuda:90a"), shared_limit("hip:gfx942")
    (166912, 232448, 49152)
    """
    capability = target.rpartition(":")[2].rstrip("abcdefghijklmnopqrstuvwxyz")
    return SHARED.get(int(capability), 48 * KIB) if capability.isdigit() else 48 * KIB
