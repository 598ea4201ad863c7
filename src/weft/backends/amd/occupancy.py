"""How many waves fit on a SIMD of RDNA by their registers, how few registers let one more fit, and how LLVM saves some.

>>> waves(254), waves(240), registers_for_one_more(Processor("gfx1201", 0x1201, 32), 254)
(5, 6, 240)

LLVM takes LDS into account: where blocks take so much of it that no more than four waves fit, it uses up to 256
registers, and some more than it needs. Asked for a few less, it most often does without them and spills nothing.
"""

from __future__ import annotations

from enum import Flag, auto

from .processor import Processor


class Saving(Flag):
    """What LLVM is kept from where registers are few."""

    NOTHING = 0
    SLICES = auto()
    """Its scheduler from looking at more than a slice of products (`slice.narrow`)."""
    ADDRESSES = auto()
    """Holding addresses through a loop that can be computed there (`held.narrow`)."""
    LOCAL = auto()
    """Seeing how much LDS a block takes (`local_size`)."""


REGISTERS, GRANULE, MOST_WAVES = 1536, 24, 16
"""Of a lane of a SIMD, as many as a wave takes at once, and how many waves there can be."""
NEAR = 8
"""A limit is near from one register in so many less."""


def waves(registers: int) -> int:
    """How many waves of so many registers fit."""
    return min(MOST_WAVES, REGISTERS // (-(-max(registers, 1) // GRANULE) * GRANULE))


def registers_for_one_more(processor: Processor, registers: int) -> int:
    """How many registers let one more wave fit, if that is near; else 0.

    Not on CDNA, which has as many registers again for products: there none of what products leave is missing.
    """
    now = waves(registers)
    if processor.is_cdna or now == MOST_WAVES:
        return 0
    most = REGISTERS // (now + 1) // GRANULE * GRANULE
    return most if registers - most <= registers // NEAR else 0
