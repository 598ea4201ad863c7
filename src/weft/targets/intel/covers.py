"""How tiles are made of 2D blocks: which instruction a layout allows for, and where each of them begins.

An instruction gives lanes and registers some elements of a block (`blocks.py`). It serves a tile's layout where both
say the same of lanes, and the instruction's registers are among the tile's:

    tile of 32 x 32 f16, left operand     lane: column 1, 2, 4, 8    register: row 1, 2, 4, column 16, row 8, 16
    load_block2d.d16.32x16x2              lane: column 1, 2, 4, 8    register: row 1, 2, 4, 8, 16, column 16

which is one instruction, whose registers are renamed. Registers that it leaves over, and the warp, say where the other
instructions begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from weft.layouts import LinearLayout, f2
from weft.machines import Machine
from weft.machines.intel import BLOCKS, blocks_of

from ..instruction import Instruction
from .blocks import INSTRUCTIONS_BY_NAME, LOAD, PREFETCH, STORE, TRANSFORM, TRANSPOSE, Block

Point = tuple[int, int]


@dataclass(frozen=True)
class Cover:
    """How a tile is made of blocks by one instruction."""

    entry: Instruction
    registers: tuple[tuple[int, ...], ...]
    """For each of its uses, the tile's registers in the order in which it has them."""
    starts: tuple[Point, ...]
    """(row, column) in the surface where each of them begins."""
    warps: tuple[Point, ...]
    """What each bit of the warp's number adds to it."""
    copies: int
    """The bits of registers that hold what others hold."""


def blocks_with(machine: Machine, kind: str, bits: int) -> Iterator[Instruction]:
    """The instructions of a kind for such elements, the largest first."""
    entries = INSTRUCTIONS_BY_NAME.values() if blocks_of(machine) is not None else ()
    chosen = [e for e in entries if e.params["block"].kind == kind and 8 * e.params["block"].bytes == bits]
    return iter(sorted(chosen, key=lambda e: -prod(_block(e).sizes)))


def _block(entry: Instruction) -> Block:
    block: Block = entry.params["block"]
    return block


@lru_cache(maxsize=256)
def cover_of(
    layout: LinearLayout,
    bits: int,
    machine: Machine,
    *,
    stores: bool = False,
    transposed: bool = False,
    packed: bool = False,
) -> Cover | None:
    """By which instruction a tile in a layout is loaded or stored; None where there is none.

    A transforming load and a plain one may give lanes the same elements. With `packed` neighbouring rows are wanted in
    one word, as in right operands of products: the first is taken then, where there is one.

    >>> from weft.layouts import DotOperandLayout, IntelDPASLayout
    >>> from weft.machines import machine_of
    >>> dpas = IntelDPASLayout(8, 8, 16, 2, [1, 1], [1, 1], 16)
    >>> cover = cover_of(DotOperandLayout(1, dpas, 2).to_linear([32, 32]), 16, machine_of("xpu:pvc"), packed=True)
    >>> cover.entry.name, cover.starts
    ('load_block2d.d16.32x16x2.transform', ((0, 0),))
    """
    loads = (TRANSPOSE,) if transposed else (TRANSFORM, LOAD) if packed else (LOAD,)
    bases = layout.transpose_outs(["dim1", "dim0"] if transposed else ["dim0", "dim1"]).bases
    for kind in (STORE,) if stores else loads:
        for entry in blocks_with(machine, kind, bits):
            cover = _cover(entry, bases["register"], bases["lane"], bases.get("warp", ()))
            if cover is not None:
                return cover
    return None


def _cover(
    entry: Instruction,
    registers: Sequence[Sequence[int]],
    lanes: Sequence[Sequence[int]],
    warps: Sequence[Sequence[int]],
) -> Cover | None:
    tile = _block(entry).layout().bases
    if [tuple(b) for b in lanes] != [tuple(b) for b in tile["lane"]]:
        return None
    have = [tuple(b) for b in registers]
    wanted = [tuple(b) for b in tile["register"]]
    if any(b not in have for b in wanted):
        return None
    places = [1 << have.index(b) for b in wanted]
    zero = sum(1 << i for i, b in enumerate(have) if not any(b))
    rest = [i for i, b in enumerate(have) if any(b) and not sum(places) >> i & 1]
    first = f2.span([1 << i for i in rest])
    inside = f2.span(places)

    def start(register: int) -> Point:
        chosen = [have[i] for i in range(len(have)) if register >> i & 1]
        return sum(b[0] for b in chosen), sum(b[1] for b in chosen)

    return Cover(
        entry,
        tuple(tuple(r | s for r in inside) for s in first),
        tuple(start(s) for s in first),
        tuple((b[0], b[1]) for b in warps),
        zero,
    )


def prefetches(
    shape: Sequence[int], bits: int, warps: int, machine: Machine
) -> tuple[Instruction, list[Point], list[Point]]:
    """The instruction by which warps prefetch their parts of a tile; where each use begins, and what the bits of a
    warp's number add. Warps have rows of their own, as far as there are any.

    >>> from weft.machines import machine_of
    >>> entry, starts, warps = prefetches((128, 32), 16, 32, machine_of("xpu:pvc"))
    >>> entry.name, starts, warps
    ('prefetch_block2d.d16.4x16x2', [(0, 0)], [(4, 0), (8, 0), (16, 0), (32, 0), (64, 0)])
    """
    rows, columns = shape
    entries = list(blocks_with(machine, PREFETCH, bits))
    widths = {_width(e) for e in entries}
    width = max((w for w in widths if w <= columns), default=min(widths))
    across = max(1, columns // width)
    each = max(1, min(rows, rows * across // warps, BLOCKS.rows))
    entry = next(e for e in entries if _width(e) == width and _block(e).rows == each)
    steps = [(each << i, 0) for i in range((rows // each).bit_length() - 1)]
    steps += [(0, width << i) for i in range(across.bit_length() - 1)]
    bits_of_warps = warps.bit_length() - 1
    by_warp = steps[:bits_of_warps] + [(0, 0)] * (bits_of_warps - len(steps))
    starts = [(0, 0)]
    for step in steps[bits_of_warps:]:
        starts += [(a + step[0], b + step[1]) for a, b in starts]
    return entry, starts, by_warp


def _width(entry: Instruction) -> int:
    return _block(entry).columns * _block(entry).count
