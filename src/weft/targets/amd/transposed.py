"""Reads of LDS that transpose: ds_read_b64_tr_b16 and _b8 of gfx950, ds_load_tr16_b128 and ds_load_tr8_b64 of gfx1250.

An operand of a product has some elements in a row along the summed dimension, k, in each lane. If rows of k are not
what lies in memory, such a read brings them there: each of 16 lanes gives the address of 8 or 16 bytes of a row, and
gets one element out of each of several rows, those of column l in lane l.

    gfx950   16 bits: lane i gives row i / 4, columns 4 (i mod 4) to + 3; four rows
              8 bits: lane i gives row i / 2, columns 8 (i mod 2) to + 7; eight rows
    gfx1250  16 bits: lane i gives row i mod 8, columns 8 (i / 8) to + 7; eight rows
              8 bits: lane i gives row i mod 4 + 4 (i / 8), columns 8 (i / 4 mod 2) to + 7; eight rows

The addresses may be anywhere, so that rows may lie as far from each other as swizzles and gaps put them. The meaning is
that of AMD's instruction set manual, of gfx1250 that by which Triton's products address it.
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
from .products import GFX11, GFX950, GFX1250

TOGETHER = 16
"""Lanes that exchange their elements: as many columns."""


@dataclass(frozen=True)
class _Kind:
    """One of the instructions."""

    name: str
    bits: int
    bytes: int
    """Of each lane."""
    given: tuple[int, ...]
    """What each bit of a lane's number adds to where it reads: below 16 columns, otherwise rows of 16."""
    intrinsic: str
    returns: str
    since: int
    until: int = 0

    @property
    def each(self) -> int:
        """Elements of each lane, and rows."""
        return 8 * self.bytes // self.bits


KINDS = (
    _Kind("ds_read_tr16.b64", 16, 8, (4, 8, 16, 32), "ds.read.tr16.b64.v4i16", "<4 x i16>", GFX950, GFX11),
    _Kind("ds_read_tr8.b64", 8, 8, (8, 16, 32, 64), "ds.read.tr8.b64.v2i32", "<2 x i32>", GFX950, GFX11),
    _Kind("ds_load_tr16.b128", 16, 16, (16, 32, 64, 8), "ds.load.tr16.b128.v8i16", "<8 x i16>", GFX1250),
    _Kind("ds_load_tr8.b64", 8, 8, (16, 32, 8, 64), "ds.load.tr8.b64.v2i32", "<2 x i32>", GFX1250),
)


def _kind_of(bits: int, machine: Machine) -> _Kind | None:
    """The one that a machine has for elements of so many bits."""
    generation = machine.generation
    fit = (k for k in KINDS if k.bits == bits and k.since <= generation and (not k.until or generation < k.until))
    return next(fit, None)


def transposed(rows: Array, given: tuple[int, ...] = (4, 8, 16, 32)) -> Array:
    """[warp, lane, element] as 16 lanes each read it -> as they get it.

    >>> read = np.arange(64).reshape(1, 16, 4)                     # four rows of sixteen
    >>> transposed(read)[0, 5].tolist()
    [5, 21, 37, 53]
    >>> read = np.array([[16 * (i % 8) + 8 * (i // 8) + np.arange(8) for i in range(16)]])
    >>> transposed(read, (16, 32, 64, 8))[0, 5].tolist()
    [5, 21, 37, 53, 69, 85, 101, 117]
    """
    warps, lanes, each = rows.shape
    read = rows.reshape(warps, lanes // TOGETHER, TOGETHER, each)
    tile = np.empty((warps, lanes // TOGETHER, each * TOGETHER), rows.dtype)
    for lane in range(TOGETHER):
        start = sum(x for bit, x in enumerate(given) if lane >> bit & 1)
        tile[:, :, start : start + each] = read[:, :, lane]
    columns = tile.reshape(warps, lanes // TOGETHER, each, TOGETHER)
    return np.swapaxes(columns, 2, 3).reshape(warps, lanes, each)


def _read(kind: _Kind) -> Callable[..., tuple[Array, ...]]:
    def run(memory: Memory, address: Array) -> tuple[Array, ...]:
        data = memory.read("shared", address[:, :, 0], kind.bytes, np.ones(address.shape[:2], bool))
        return (transposed(np.ascontiguousarray(data).view(f"i{kind.bits // 8}"), kind.given),)

    return run


def transposing_reads() -> Iterator[Instruction]:
    """All entries of this file."""
    for kind in KINDS:
        yield Instruction(
            kind.name, kind.since, f"llvm.amdgcn.{kind.intrinsic}", (Operand("address", "i32", 1, "r"),),
            (Operand("d", f"i{kind.bits}", kind.each, "r"),), _read(kind), 2, until=kind.until, touches="shared",
            width=kind.bytes, params={"arguments": (("ptr addrspace(3)", "address"),), "returns": kind.returns},
        )  # fmt: skip


@dataclass(frozen=True)
class TransposedRead:
    """How a tile is read from memory by such an instruction: offsets count elements."""

    instruction: str
    bytes: int
    """Of each lane."""
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
    kind = _kind_of(bits, machine)
    if kind is None:
        return None
    shape = tuple(wanted.out_dims.values())
    place = plan_local_access(wanted, memory, shape, bits, machine, gaps=gaps).place
    low = (1 << place.out_log("offset")) - 1
    registers, lanes, warps = ([x & low for x in place.in_columns(d)] for d in ("register", "lane", "warp"))
    each, rows = kind.each, kind.each.bit_length() - 1
    copies = wanted.free_variable_masks()["register"]
    kept = [i for i in range(len(registers)) if not copies >> i & 1]
    if any(registers[i] for i in f2.bits(copies)):
        return None
    first, rest = kept[:rows], kept[rows:]
    moving = [*lanes[rows:], *warps, *(registers[i] for i in kept)]
    is_cut = any(size % each for gap in gaps for size in gap)
    if len(first) < rows or lanes[:rows] != [1 << i for i in range(rows)] or any(x % each for x in moving) or is_cut:
        return None
    columns = {1 << i: x for i, x in enumerate(lanes[:4])}
    columns |= {TOGETHER << i: registers[r] for i, r in enumerate(first)}
    given = (*(columns[x] for x in kind.given), *lanes[4:])
    offsets = Offsets((), given, tuple(warps), gaps)
    taken, ideal = offsets.passes(given, bits.bit_length() - 1, rows, machine)
    starts = f2.span([registers[i] for i in rest])
    order = f2.span([1 << i for i in (*first, *rest)])
    cycles = len(starts) * (machine.access + machine.wavefront * taken)
    return TransposedRead(
        kind.name, kind.bytes, tuple(order), tuple(starts), given, tuple(warps), taken, ideal, cycles
    )
