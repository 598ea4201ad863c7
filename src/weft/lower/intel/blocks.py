"""Access tiles by instructions for 2D blocks: `targets/intel/covers.py` says which, and where each of them begins.

    %v = ttig.block_load %p[%width, %height, %pitch][%x, %y] : tensor<32x32xf16, left operand>
becomes
    %w = instruction %p, %width, %height, %pitch, %x, %y {isa=load_block2d.d16.32x16x2} : f16 x 64
    %v = rename %w
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from weft.base import Unsupported
from weft.ir import bit_width, element_of, ints_of, pointee_of
from weft.ir.intel.blocks import BlockLoadOp, BlockPrefetchOp, BlockStoreOp, is_right
from weft.ir.lane import ELEMENT_BITS, Value
from weft.targets.intel.covers import Point, cover_of, prefetches

from ..context import Context, elem_of


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
    turned = op.transposed is not None
    cover = cover_of(layout, ELEMENT_BITS[elem], c.machine, transposed=turned, packed=is_right(op.result.type))
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


def lower_prefetch(c: Context, op: Operation) -> None:
    """Each warp asks for its part."""
    assert isinstance(op, BlockPrefetchOp)
    bits = bit_width(element_of(pointee_of(op.base.type)))
    entry, starts, warps = prefetches(ints_of(op.shape), bits, c.program.warps, c.machine)
    surface = _Surface(c, op)
    for start in starts:
        c.build.instruction(entry.name, surface.block(start, warps))
