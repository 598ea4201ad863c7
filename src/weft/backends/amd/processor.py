"""What the back end has to know of a processor, all of it from its name and its row: `gfx942`, 64 lanes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from weft.base import Unsupported
from weft.machines import Machine

GFX10, GFX11, GFX12, GFX1250 = 0x1000, 0x1100, 0x1200, 0x1250
"""The first processors of families, by their number."""


@dataclass(frozen=True)
class Processor:
    """One of AMD's processors."""

    name: str
    """LLVM's: gfx942."""
    number: int
    """Its digits, which are hexadecimal: later ones are larger, and all of CDNA are below RDNA."""
    lanes: int

    @property
    def is_cdna(self) -> bool:
        """Whether its warps have 64 lanes, and its counters of waits are those of gfx9."""
        return self.number < GFX10

    @property
    def features(self) -> str:
        """What LLVM is told beside the name.

        Registers of 16 bits, which gfx11 has, are left alone: LLVM's code for them needs more moves than it saves.
        """
        return "-real-true16" if GFX11 <= self.number < GFX12 else ""


@lru_cache(maxsize=16)
def processor_of(machine: Machine) -> Processor:
    """The processor that a machine is.

    >>> from weft.machines import machine_of
    >>> processor_of(machine_of("hip:gfx942")).name, hex(processor_of(machine_of("hip:gfx1100")).number)
    ('gfx942', '0x1100')
    """
    name = machine.name.partition(":")[2]
    if machine.vendor != "amd" or not name.startswith("gfx"):
        raise Unsupported("compiling for an AMD GPU", machine.name)
    return Processor(name, int(name.removeprefix("gfx"), 16), machine.lanes)
