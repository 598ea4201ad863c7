"""Reads of LDS that transpose: ds_read_b64_tr_b16 and ds_read_b64_tr_b8 of gfx950.

An operand of a product has some elements in a row along the summed dimension, k, in each lane. If rows of k are not
what lies in memory, such a read brings them there: each of 16 lanes gives the address of 8 bytes of a row, and gets
one element out of each of several rows.

    16 bits: lane i gives row i / 4, columns 4 (i mod 4) to + 3; lane l gets column l of rows 0 to 3
     8 bits: lane i gives row i / 2, columns 8 (i mod 2) to + 7; lane l gets column l of rows 0 to 7

The addresses may be anywhere, so that rows may lie as far from each other as swizzles and gaps put them. The meaning is
that of AMD's instruction set manual, and agrees with how Triton's products address it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from weft.layouts import LinearLayout, f2
from weft.layouts.plan import plan_local_access
from weft.layouts.plan.access import Offsets
from weft.machines import Machine

from ..instruction import Array, Instruction, Memory, Operand
from .products import GFX11, GFX950

BYTES = 8
"""Of each lane."""
TOGETHER = 16
"""Lanes that exchange their elements."""


def transposed(rows: Array) -> Array:
    """[warp, lane, element] as 16 lanes each read it -> as they get it.

    >>> given = np.arange(64).reshape(1, 16, 4)                    # four rows of sixteen
    >>> transposed(given)[0, 5].tolist()
    [5, 21, 37, 53]
    """
    warps, lanes, each = rows.shape
    tile = rows.reshape(warps, lanes // TOGETHER, each, TOGETHER)  # [.., row, column]
    return np.swapaxes(tile, 2, 3).reshape(warps, lanes, each)


def _read(dtype: str) -> Callable[..., tuple[Array, ...]]:
    def run(memory: Memory, address: Array) -> tuple[Array, ...]:
        data = memory.read("shared", address[:, :, 0], BYTES, np.ones(address.shape[:2], bool))
        return (transposed(np.ascontiguousarray(data).view(dtype)),)

    return run


def transposing_reads() -> Iterator[Instruction]:
    """All entries of this file."""
    for bits, type, suffix in ((16, "<4 x i16>", "v4i16"), (8, "<2 x i32>", "v2i32")):
        yield Instruction(
            f"ds_read_tr{bits}.b64", GFX950, f"llvm.amdgcn.ds.read.tr{bits}.b64.{suffix}",
            (Operand("address", "i32", 1, "r"),), (Operand("d", f"i{bits}", 64 // bits, "r"),), _read(f"i{bits // 8}"),
            2, until=GFX11, touches="shared", width=BYTES,
            params={"arguments": (("ptr addrspace(3)", "address"),), "returns": type},
        )  # fmt: skip


@dataclass(frozen=True)
class TransposedRead:
    """How a tile is read from memory by such an instruction: offsets count elements."""

    instruction: str
    registers: tuple[int, ...]
    """The tile's registers, in the order in which instructions give them."""
    starts: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    wavefronts: int
    ideal: int
    cycles: float


def transposed_read(
    wanted: LinearLayout,
    memory: LinearLayout,
    bits: int,
    machine: Machine,
    gaps: tuple[tuple[int, int], ...] = (),
) -> TransposedRead | None:
    """How a tile in a layout is read so; None where it cannot be, or the machine has no such instruction.

    >>> from weft.layouts import DotOperandLayout, AMDMFMALayout, SwizzledSharedLayout
    >>> from weft.machines import machine_of
    >>> operand = DotOperandLayout(1, AMDMFMALayout(4, [32, 32, 16], True, [1, 1]), 8).to_linear([64, 128])
    >>> memory = SwizzledSharedLayout(32, 1, 4, [1, 0]).to_linear([64, 128])
    >>> read = transposed_read(operand, memory, 16, machine_of("hip:gfx950"))
    >>> read.instruction, read.lanes, read.wavefronts == read.ideal
    ('ds_read_tr16.b64', (4, 8, 160, 320, 16, 1024), True)
    """
    if bits not in (8, 16) or not GFX950 <= machine.generation < GFX11:
        return None
    shape = tuple(wanted.out_dims.values())
    place = plan_local_access(wanted, memory, shape, bits, machine, gaps=gaps).place
    low = (1 << place.out_log("offset")) - 1
    registers, lanes, warps = ([x & low for x in place.in_columns(d)] for d in ("register", "lane", "warp"))
    each, rows = 64 // bits, (64 // bits).bit_length() - 1
    copies = wanted.free_variable_masks()["register"]
    kept = [i for i in range(len(registers)) if not copies >> i & 1]
    if any(registers[i] for i in f2.bits(copies)):
        return None
    first, rest = kept[:rows], kept[rows:]
    moving = [*lanes[rows:], *warps, *(registers[i] for i in kept)]
    is_cut = any(size % each for gap in gaps for size in gap)
    if len(first) < rows or lanes[:rows] != [1 << i for i in range(rows)] or any(x % each for x in moving) or is_cut:
        return None
    given = (*lanes[rows:4], *(registers[i] for i in first), *lanes[4:])
    offsets = Offsets((), given, tuple(warps), gaps)
    taken, ideal = offsets.passes(given, bits.bit_length() - 1, rows, machine)
    starts = f2.span([registers[i] for i in rest])
    order = f2.span([1 << i for i in (*first, *rest)])
    cycles = len(starts) * (machine.access + machine.wavefront * taken)
    return TransposedRead(
        f"ds_read_tr{bits}.b64", tuple(order), tuple(starts), given, tuple(warps), taken, ideal, cycles
    )
