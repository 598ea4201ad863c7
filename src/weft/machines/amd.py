"""AMD's GPUs, a row for each processor that is compiled for: CDNA with waves of 64 lanes, RDNA and gfx1250 with 32.

A processor's generation is the number in LLVM's name of it, read as hexadecimal: gfx90a < gfx942 < gfx950 < gfx1100.
Code of one processor runs on no other.

>>> generation_of("sim:hip:gfx942") == generation_of("gfx942") == 0x942, generation_of("hip:gfx9420")
(True, 0)
>>> nearest(0x1030)
'code of AMD is for one processor alone; the nearest that are compiled for are hip:gfx950 and hip:gfx1100; '

Sizes are those of AMD's documents of instruction sets and of LLVM's tables of processors; none was measured here.
What nobody has said stands in a comment. Costs are cycles of a compute unit, whose SIMDs issue in turns: on CDNA four
of 16 lanes, so that an instruction of 64 lanes takes 1, on the others two of 32 lanes, so that it takes 1/2. They are
derived from widths of units, not measured either: local memory gives 128 bytes in a cycle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .machine import KIB, Machine

GFX950, GFX10, GFX1250 = 0x950, 0x1000, 0x1250
_NAME = re.compile(r"(?:sim:)?(?:hip:)?gfx([6-9][0-9a-f]{2}|1[0-9][0-9a-f]{2})(?::|$)")
"""The major version is one or two decimal digits, the minor one and the stepping are a digit each."""


def generation_of(text: str) -> int:
    """The generation that a text means: 0x90a for hip:gfx90a, gfx90a; 0 where it means none."""
    named = _NAME.match(text)
    return int(named[1], 16) if named else 0


def capability_of(generation: int) -> tuple[int, int]:
    """What PyTorch for ROCm says of it: (9, 4) of gfx942, (11, 0) of gfx1100.

    >>> capability_of(0x942), capability_of(0x1151)
    ((9, 4), (11, 5))
    """
    return int(f"{generation >> 8:x}"), generation >> 4 & 15


def nearest(generation: int) -> str:
    """Which processors that are compiled for are the nearest to one that is not, in words."""
    below = [row.name for row in ROWS if row.generation < generation][-1:]
    above = [row.name for row in ROWS if row.generation > generation][:1]
    are = "the nearest that are compiled for are" if below and above else "the nearest that is compiled for is"
    return f"code of AMD is for one processor alone; {are} {' and '.join(below + above)}; "


_QUADS = {0: (), 1: ("dpp.quad_perm.1032",), 2: ("dpp.quad_perm.2301",), 3: ("dpp.quad_perm.3210",)}
_FARTHER = {4: "dpp.row_half_mirror", 8: "dpp.row_ror.8", 12: "dpp.row_mirror"}
"""What crosses quads, beside 3 where it is a mirror, on processors without `row_xmask`."""


def exchange(generation: int, mask: int) -> tuple[str, ...]:
    """The instructions, one after the other, by which each lane reads the lane whose number differs by `mask`: entries
    of `targets/amd/lanes.py`, a swap with all that belongs to it, or a permutation through the crossbar.

    >>> exchange(0x942, 4), exchange(0x1100, 4), exchange(0x942, 32), exchange(0x950, 32), exchange(0x1201, 17)
    (('dpp.row_half_mirror', 'dpp.quad_perm.3210'), ('dpp.row_xmask.4',), ('ds_bpermute',), ('permlane32.swap',), \
('permlanex16',))
    """
    row, lane = mask >> 4, mask & 15
    if generation >= GFX10:
        return ("permlanex16",) if row else (f"dpp.row_xmask.{lane}",) if lane else ()
    far = lane & 12
    quad = _QUADS[lane & 3 ^ (3 if far in (4, 12) else 0)]
    within = ((_FARTHER[far],) if far else ()) + quad
    if not row:
        return within
    crossbar = (f"ds_swizzle.xor.{mask}",) if row == 1 else ("ds_bpermute",)
    if generation < GFX950:
        return crossbar
    swaps = tuple(f"permlane{width}.swap" for width in (16, 32) if mask & width)
    return min((*swaps, *within), crossbar, key=lambda names: _cycles(names, 64))


def _cycles(names: Sequence[str], lanes: int) -> float:
    """What such instructions cost a compute unit: a swap is followed by a choice, and the crossbar moves 128 bytes."""
    issue = 1.0 if lanes == 64 else 0.5
    crossbar = 2.0 * lanes * 4 / 128
    return sum(crossbar if n.startswith("ds_") else 2 * issue if n.endswith("swap") else issue for n in names)


_CDNA_PHASE = (1, 2, 20, 4, 8, 32)
"""By two public sources, and no counter of a GPU: 16 bytes of lanes 0 to 3 and 20 to 23 are loaded together, then of 4
to 7 and 16 to 19 ... Stores take 8 lanes in a row; for the 64 banks of gfx950, and for RDNA, nothing is known that can
be trusted, and loads are taken to do the same."""
_HALVES, _BOTH = (("f16", 2),), (("f16", 2), ("bf16", 2))


def _row(
    name: str,
    units: int,
    lanes: int,
    shared: int,
    *,
    registers: int,
    banks: int = 32,
    load_phase: tuple[int, ...] = (),
    copies: Sequence[int] = (),
    adds: tuple[tuple[str, int], ...] = (),
) -> Machine:
    """`units` compute units, `shared` KiB of local memory for a block, `registers` of 32 bits for a lane of a SIMD,
    which waves share."""
    cdna, generation = lanes == 64, generation_of(name)
    issue = 1.0 if cdna else 0.5
    return Machine(
        f"hip:{name}",
        "amd",
        generation,
        portable=False,
        lanes=lanes,
        banks=banks,
        load_phase=load_phase,
        shared_bytes=shared * KIB,
        most_threads=2048 if cdna else 1024,
        most_blocks=16 if cdna else 32,
        registers=registers * (4 if cdna else 2) * lanes,
        multiprocessors=units,
        async_copies=tuple(copies),
        stages=2,  # in registers and in one buffer (`passes/amd/load_ahead.py`)
        float32_products="ieee",
        atomic_adds=adds,
        select=issue,
        permute=issue,
        shuffle=_cycles(["ds_bpermute"], lanes),
        exchanges=tuple(_cycles(exchange(generation, mask), lanes) for mask in range(lanes)),
        wavefront=1.0,
        sector_bytes=64,
        access=issue,
        wait=issue / 2,
        address=issue,
        warp_barrier=2.0,  # a wave runs in lock step: nothing but that LDS is served in order
        block_barrier=30.0,
        trip=64.0 if cdna else 32.0,
    )


# gfx1250 is not sold: its compute units, banks, and whether a lane has more registers are not known; its row has those
# of gfx950 and gfx12 instead.
ROWS = (
    # MI210; an MI250 is two
    _row("gfx90a", 104, 64, 64, registers=512, load_phase=_CDNA_PHASE, copies=(4,), adds=_HALVES),
    _row("gfx942", 304, 64, 64, registers=512, load_phase=_CDNA_PHASE, copies=(4,), adds=_BOTH),  # MI300X
    _row("gfx950", 256, 64, 160, registers=512, banks=64, copies=(4, 16), adds=_BOTH),  # MI355X
    _row("gfx1100", 96, 32, 64, registers=1536),  # RX 7900 XTX
    _row("gfx1151", 40, 32, 64, registers=1536),  # Ryzen AI Max
    _row("gfx1200", 32, 32, 64, registers=1536, adds=_BOTH),  # RX 9060 XT
    _row("gfx1201", 64, 32, 64, registers=1536, adds=_BOTH),  # RX 9070 XT
    _row("gfx1250", 1, 32, 320, registers=1536, banks=64, copies=(4, 8, 16), adds=_BOTH),
)
