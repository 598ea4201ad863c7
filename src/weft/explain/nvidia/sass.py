"""The instructions of sm_90, as far as time needs them: which unit does each, and what its control word says.

    bits 0-11    the operation; of these 9-11 say of what kind the operands are
    bits 12-15   the predicate, and whether it is negated
    bits 105-    4 bits: cycles until the next instruction of the warp may issue; 1: whether others should go first;
                 3: the barrier that is set when the result is there, 3: when the operands were read (7: none);
                 6: the barriers that have to be down before it is issued

What takes a fixed time is waited for by counted cycles, what does not by one of six barriers: so the machine code says
by itself when a warp waits, without the registers being looked at.

The numbers of operations were found by comparing the code of some hundred kernels with what nvdisasm prints of them;
which unit does them, and for how long, from what Nsight Compute counts of the units for the same kernels
(benchmarks/results/explain-bounds.json): what is said here accounts for it within 1 %.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ALWAYS", "NAMES", "NONE", "PIPES", "Instruction", "decoded"]

NONE = 7
"""No barrier."""
ALWAYS = 7
"""The predicate that always holds."""
NAMES = {
    0x002: "MOV", 0x003: "P2R", 0x004: "R2P", 0x005: "CS2R", 0x006: "VOTE", 0x007: "SEL", 0x008: "FSEL", 0x009: "FMNMX",
    0x00B: "FSETP", 0x00C: "ISETP", 0x010: "IADD3", 0x011: "LEA", 0x012: "LOP3", 0x013: "IABS", 0x016: "PRMT",
    0x019: "SHF", 0x01A: "SGXT", 0x01C: "PLOP3", 0x020: "FMUL", 0x021: "FADD", 0x023: "FFMA", 0x024: "IMAD",
    0x025: "IMAD", 0x027: "IMAD", 0x028: "DMUL", 0x029: "DADD", 0x02A: "DSETP", 0x02B: "DFMA", 0x02F: "ELECT",
    0x030: "HADD2", 0x032: "HMUL2", 0x034: "HSETP2", 0x035: "HFMA2", 0x036: "VIADD", 0x037: "IMMA", 0x03B: "LDSM",
    0x03C: "HMMA", 0x03E: "F2FP", 0x03F: "DMMA", 0x040: "HMNMX2", 0x044: "STSM", 0x045: "I2FP", 0x046: "VIADDMNMX",
    0x047: "VHMNMX", 0x048: "VIMNMX", 0x082: "UMOV", 0x086: "VOTEU", 0x087: "USEL", 0x08C: "UISETP", 0x090: "UIADD3",
    0x091: "ULEA", 0x092: "ULOP3", 0x096: "UPRMT", 0x097: "UIADD3", 0x099: "USHF", 0x09A: "USGXT", 0x0A4: "UIMAD",
    0x0A5: "UIMAD", 0x0B9: "ULDC", 0x0C2: "S2UR", 0x1C6: "FENCE", 0x0CA: "R2UR", 0x102: "FCHK", 0x104: "F2F",
    0x105: "F2I", 0x106: "I2F", 0x107: "FRND", 0x108: "MUFU", 0x110: "F2F", 0x111: "F2I", 0x112: "I2F", 0x118: "NOP",
    0x119: "S2R", 0x11A: "DEPBAR", 0x11D: "BAR", 0x141: "BSYNC", 0x144: "CALL", 0x145: "BSSY", 0x147: "BRA",
    0x14D: "EXIT", 0x150: "RET", 0x181: "LDG", 0x182: "LDC", 0x183: "LDL", 0x184: "LDS", 0x186: "STG", 0x187: "STL",
    0x188: "STS", 0x189: "SHFL", 0x18C: "ATOMS", 0x18E: "REDG", 0x18F: "CCTL", 0x192: "MEMBAR", 0x1A3: "ATOMG",
    0x1A6: "REDG", 0x1A7: "SYNCS", 0x1A8: "ATOMG", 0x1AB: "ERRBAR", 0x1AE: "LDGSTS", 0x1AF: "LDGDEPBAR",
    0x1B1: "SYNCS", 0x1B2: "SYNCS", 0x1B4: "UTMALDG", 0x1B5: "UTMASTG", 0x1B7: "UTMACMDFLUSH", 0x1C3: "S2UR",
    0x1C5: "WARPGROUP", 0x1F0: "HGMMA", 0x1F1: "IGMMA", 0x1F3: "QGMMA",
}  # fmt: skip
"""By the low nine bits of an instruction."""
FLOATS = ("FADD", "FMUL", "FFMA", "HADD2", "HMUL2", "HFMA2")
SPECIAL = ("MUFU", "I2F", "F2I", "F2F", "FRND", "FCHK")
MEMORY = (
    *("LDG", "STG", "LDS", "STS", "LDSM", "STSM", "LDL", "STL", "LDGSTS", "SHFL", "ATOMS", "ATOMG", "REDG"),
    *("LDC", "S2R", "S2UR", "ULDC", "R2UR", "UTMALDG", "UTMASTG", "SYNCS", "VOTEU", "LDGDEPBAR"),
)
CONTROL = (
    *("BRA", "EXIT", "BSSY", "BSYNC", "CALL", "RET", "NOP", "BAR", "DEPBAR", "FENCE", "MEMBAR", "CCTL", "ERRBAR"),
    *("WARPGROUP", "UTMACMDFLUSH", "ELECT"),
)
PIPES = {
    **dict.fromkeys(FLOATS, "fma"),
    **dict.fromkeys(("IMAD", "VIADD"), "heavy"),
    **dict.fromkeys(SPECIAL, "xu"),
    **dict.fromkeys(("DADD", "DMUL", "DFMA", "DSETP"), "double"),
    **dict.fromkeys(("HMMA", "IMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA"), "tensor"),
    **dict.fromkeys(MEMORY, "memory"),
    **dict.fromkeys(CONTROL, "control"),
    **{name: "uniform" for name in NAMES.values() if name.startswith("U") and name not in (*MEMORY, *CONTROL)},
}
"""The unit of an operation; one that is not here is done by the unit of integers, comparisons and choices, "alu"."""
TWICE = (0x025, 0x027, 0x105, 0x111)
"""Operations that take their unit twice as long as others: IMAD.WIDE and IMAD.HI, F2I."""


@dataclass(frozen=True)
class Instruction:
    """One of them."""

    place: int
    """In the text, in bytes."""
    name: str
    """"" where the operation is not known."""
    pipe: str
    low: int
    high: int

    @property
    def takes(self) -> int:
        """How many times as long as others it takes its unit."""
        return 2 if self.low & 0x1FF in TWICE else 1

    @property
    def stall(self) -> int:
        """Cycles until the next instruction of the warp."""
        return self.high >> 41 & 15

    @property
    def sets(self) -> int:
        """The barrier that says that the result is there, or NONE."""
        return self.high >> 46 & 7

    @property
    def frees(self) -> int:
        """The barrier that says that operands were read, or NONE."""
        return self.high >> 49 & 7

    @property
    def awaits(self) -> int:
        """A bit for each barrier that is waited for."""
        return self.high >> 52 & 63

    @property
    def predicate(self) -> int:
        """0 to 7; ALWAYS where there is none."""
        return self.low >> 12 & 7

    @property
    def never(self) -> bool:
        """Whether its predicate is the negation of what always holds."""
        return self.low >> 12 & 15 == 15

    @property
    def target(self) -> int:
        """Where a branch goes."""
        offset = self.low >> 34 | (self.high & 0x3FFFF) << 30
        offset -= (offset >> 47) << 48
        return self.place + 16 + (offset << 10) + (self.low >> 16 & 255) * 4

    @property
    def pending(self) -> int:
        """Of DEPBAR and WARPGROUP.DEPBAR: how many groups need not be done."""
        return self.low >> 38 & 63 if self.name == "DEPBAR" else self.high >> 8 & 7

    @property
    def waits_for_products(self) -> bool:
        """Whether it is WARPGROUP.DEPBAR, and not WARPGROUP.ARRIVE."""
        return self.name == "WARPGROUP" and bool(self.high >> 16 & 1)

    @property
    def ends_group(self) -> bool:
        """Of a product of four warps: whether it is the last of those that are waited for together."""
        return self.high >> 8 & 7 != NONE

    @property
    def words(self) -> int:
        """Of an access: words of 32 bits for each lane, as far as it is one that spills."""
        return {5: 2, 6: 4}.get(self.high >> 9 & 7, 1)

    @property
    def columns(self) -> int:
        """Of a product of four warps: N."""
        return 8 * ((self.low >> 53 & 31) + 1)


def decoded(text: bytes) -> Iterator[Instruction]:
    """The instructions of a text in order, without those of no effect that fill it up at its end."""
    last = len(text)
    while last and struct.unpack_from("<H", text, last - 16)[0] & 0x1FF == 0x118:
        last -= 16
    for place in range(0, last, 16):
        low, high = struct.unpack_from("<QQ", text, place)
        name = NAMES.get(low & 0x1FF, "")
        yield Instruction(place, name, PIPES.get(name, "alu"), low, high)
