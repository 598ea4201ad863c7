"""Waits for accesses that are on their way: LLVM's intrinsics, which differ from generation to generation.

LLVM itself writes the waits for what is in registers. What it does not: copies that go to LDS past the registers, and
what other waves of a block are to see in LDS.
"""

from __future__ import annotations

from .processor import GFX11, GFX12, GFX1250


def awaiting(processor: int, pending: int) -> tuple[str, str, int]:
    """What waits until at most so many copies to LDS are on their way: an intrinsic, and its number.

    They are counted as loads are, on gfx1250 by themselves. `s_waitcnt` counts others too, in other bits, which say
    that it does not wait for those.

    >>> [hex(awaiting(p, 5)[2]) for p in (0x942, 0x1100, 0x1200)], hex(awaiting(0x942, 17)[2])
    (['0xf75', '0x17f7', '0x5'], '0x4f71')
    """
    pending = min(pending, 63)
    if processor >= GFX1250:
        return "llvm.amdgcn.s.wait.asynccnt", "i16", pending
    if processor >= GFX12:
        return "llvm.amdgcn.s.wait.loadcnt", "i16", pending
    if processor >= GFX11:
        return "llvm.amdgcn.s.waitcnt", "i32", pending << 10 | 0x3F7
    return "llvm.amdgcn.s.waitcnt", "i32", pending & 15 | 0xF70 | pending >> 4 << 14


def awaiting_local(processor: int) -> tuple[str, str, int]:
    """What waits for all of a wave's own accesses of local memory, likewise.

    >>> [(awaiting_local(p)[0][12:], hex(awaiting_local(p)[2])) for p in (0x942, 0x1100, 0x1200)]
    [('s.waitcnt', '0xc07f'), ('s.waitcnt', '0xfc07'), ('s.wait.dscnt', '0x0')]
    """
    if processor >= GFX12:
        return "llvm.amdgcn.s.wait.dscnt", "i16", 0
    return "llvm.amdgcn.s.waitcnt", "i32", 0xFC07 if processor >= GFX11 else 0xC07F
