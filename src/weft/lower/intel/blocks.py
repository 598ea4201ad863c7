"""Tiles by instructions for 2D blocks: which instruction a layout allows for, and where each of them begins.

An instruction gives lanes and registers some elements of a block (`targets/intel/blocks.py`). It serves a tile's layout
where both say the same of lanes, and the instruction's registers are among the tile's:

    tile of 32 x 32 f16, left operand     lane: column 1, 2, 4, 8    register: row 1, 2, 4, column 16, row 8, 16
    load_block2d.d16.32x16x2              lane: column 1, 2, 4, 8    register: row 1, 2, 4, 8, 16, column 16

which is one instruction, whose registers are renamed. Registers that it leaves over, and the warp, say where the other
instructions begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Operation

from weft.base import Unsupported
from weft.ir import bit_width, element_of, ints_of, pointee_of
from weft.ir.intel.blocks import BlockLoadOp, BlockPrefetchOp, BlockStoreOp
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2
from weft.machines import Machine
from weft.machines.intel import BLOCKS
from weft.targets.instruction import Instruction
from weft.targets.intel.blocks import LOAD, PREFETCH, STORE, TRANSFORM, TRANSPOSE, Block
from weft.targets.table import available

from ..context import Context, elem_of

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


def blocks_with(machine: Machine, kinds: Sequence[str], bits: int) -> Iterator[Instruction]:
    """The instructions of these kinds for such elements, the largest first."""
    entries = [e for e in available(machine) if "block" in e.params]
    chosen = [e for e in entries if e.params["block"].kind in kinds and 8 * e.params["block"].bytes == bits]
    return iter(sorted(chosen, key=lambda e: -prod(_block(e).sizes)))


def _block(entry: Instruction) -> Block:
    block: Block = entry.params["block"]
    return block


def cover_of(
    layout: LinearLayout, bits: int, machine: Machine, *, stores: bool = False, transposed: bool = False
) -> Cover | None:
    """By which instruction a tile in a layout is loaded or stored; None where there is none.

    >>> from weft.layouts import DotOperandLayout, IntelDPASLayout
    >>> from weft.machines import machine_of
    >>> dpas = IntelDPASLayout(8, 8, 16, 2, [1, 1], [1, 1], 16)
    >>> cover = cover_of(DotOperandLayout(1, dpas, 2).to_linear([32, 32]), 16, machine_of("xpu:pvc"))
    >>> cover.entry.name, cover.starts
    ('load_block2d.d16.32x16x2.transform', ((0, 0),))
    """
    kinds = (STORE,) if stores else (TRANSPOSE,) if transposed else (LOAD, TRANSFORM)
    dims = ["dim1", "dim0"] if transposed else ["dim0", "dim1"]
    bases = layout.transpose_outs(dims).bases
    for entry in blocks_with(machine, kinds, bits):
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


class _Surface:
    """The operands of the instructions for one tile."""

    def __init__(self, c: Context, op: BlockLoadOp | BlockStoreOp | BlockPrefetchOp) -> None:
        self.c = c
        self.shape = [c[v] for v in (op.base, op.width, op.height, op.pitch)]
        self.x, self.y = c[op.x], c[op.y]

    def block(self, start: Point, warps: Sequence[Point]) -> list[Value]:
        """Those of the block that begins at (row, column), moved by the warp's part."""
        return [*self.shape, self.moved(self.x, start[1], [w[1] for w in warps]),
                self.moved(self.y, start[0], [w[0] for w in warps])]  # fmt: skip

    def moved(self, at: Value, by: int, warps: Sequence[int]) -> Value:
        """A coordinate, so much further, and in a warp by what its bits add."""
        if any(warps):
            at = self.c.plus(at, self.c.build.linear((0,), warp=tuple(warps), uniform=True))
        return self.c.plus(at, self.c.number(by)) if by else at


def lower_load(c: Context, op: Operation) -> None:
    """One instruction for each block; its elements go where the layout has them."""
    assert isinstance(op, BlockLoadOp)
    elem, layout = elem_of(op.result.type), c.layout(op.result)
    cover = cover_of(layout, ELEMENT_BITS[elem], c.machine, transposed=op.transposed is not None)
    if cover is None:
        raise Unsupported("a 2D block in this layout", c.program.target, c.build.span)
    surface, parts = _Surface(c, op), []
    for start in cover.starts:
        operands = surface.block(start, cover.warps)
        count = cover.entry.results[0].count
        parts.append(c.build.instruction(cover.entry.name, operands, [(elem, count)]).result)
    place = {r: (part, i) for part, row in zip(parts, cover.registers, strict=True) for i, r in enumerate(row)}
    c[op.result] = c.build.gather([place[r & ~cover.copies] for r in range(layout.in_dims["register"])])


def lower_store(c: Context, op: Operation) -> None:
    """The same for what is stored. What warps hold alike, each of them stores."""
    assert isinstance(op, BlockStoreOp)
    c.has_stored = True
    elem, layout = elem_of(op.value.type), c.layout(op.value)
    cover = cover_of(layout, ELEMENT_BITS[elem], c.machine, stores=True)
    if cover is None:
        raise Unsupported("a 2D block in this layout", c.program.target, c.build.span)
    surface, value = _Surface(c, op), c.whole(op.value)
    for start, registers in zip(cover.starts, cover.registers, strict=True):
        operands = [*surface.block(start, cover.warps), c.build.rename(value, registers)]
        c.build.instruction(cover.entry.name, operands)


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
    entries = list(blocks_with(machine, (PREFETCH,), bits))
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


def lower_prefetch(c: Context, op: Operation) -> None:
    """Each warp asks for its part."""
    assert isinstance(op, BlockPrefetchOp)
    bits = bit_width(element_of(pointee_of(op.base.type)))
    entry, starts, warps = prefetches(ints_of(op.shape), bits, c.program.warps, c.machine)
    surface = _Surface(c, op)
    for start in starts:
        c.build.instruction(entry.name, surface.block(start, warps))
