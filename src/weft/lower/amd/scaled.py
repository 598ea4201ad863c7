"""Scaled products by MFMA and WMMA: for each instance of the instruction the registers that hold its elements.

    tt.dot_scaled of 64 x 128 e4m3 and 128 x 32 e2m1, one warp of gfx950: two parts of 64 along K, of each two tiles
    along rows, so that there are four of mfma.scale.f32.32x32x64. The second part takes bytes 64 to 127 of rows of A,
    bytes 32 to 63 of columns of B, and scales 2 and 3 of both.

Lanes must hold exactly the elements that the instruction names, along K too: a scale belongs to 32 consecutive
elements, so K cannot be summed in another order, as in other products.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from weft.base import CompilationError, Unsupported
from weft.ir import tt
from weft.ir.amd.scaled import BLOCK, ONE, depth_of, kinds_of
from weft.ir.lane import Value
from weft.layouts import LinearLayout
from weft.targets.amd import scaled_products
from weft.targets.instruction import Instruction

from .. import fragments
from ..context import Context
from ..telling import tell_product
from ..unfit import left_over, other_lanes, other_warps

Point = tuple[int, ...]


def lower_scaled(c: Context, op: Operation) -> None:
    """One product."""
    assert isinstance(op, tt.DotScaledOp)
    kinds = kinds_of(op)
    entries = scaled_products(c.machine, *kinds) if kinds is not None else ()
    if kinds is None or not entries:
        raise Unsupported(
            "a product with scales by one instruction (mfma_scale_f32, wmma_scale_f32)",
            c.program.target,
            c.build.span,
            hint="gfx950 and gfx1250 multiply e4m3, e5m2 and e2m1 (in pairs along K), a scale of i8 for 32 elements",
        )
    product = _Product(c, op, kinds)
    for entry in entries:
        if product.fits(entry):
            c[op.d] = product.by_instruction(entry)
            tell_product(c, op, entry, product.count)
            return
    raise product.unfit(entries[0])


class _Product:
    """The operands a, b, c and the scales of both, each as the fragment of all its registers."""

    def __init__(self, c: Context, op: tt.DotScaledOp, kinds: tuple[str, str]) -> None:
        self.c, self.kinds, self.depth, self.count = c, kinds, depth_of(op), 0
        self.given: list[SSAValue | None] = [op.a, op.b, op.c, op.a_scale, op.b_scale]
        self.layouts = [None if x is None else c.layout(x) for x in self.given]
        self.rows, self.columns = self.layout(2).out_dims.values()

    def layout(self, index: int) -> LinearLayout:
        """Of an operand that is there."""
        layout = self.layouts[index]
        assert layout is not None
        return layout

    # -- whether an instruction does it --------------------------------------------------------------------------------

    def fits(self, entry: Instruction) -> bool:
        """Whether the operands are whole numbers of the instruction's, and lie so."""
        sizes = left_over(entry, (self.rows, self.columns), self.depth, None) is None
        return sizes and self.stray_warps() is None and self.stray_lanes(entry) is None

    def stray_warps(self) -> int | None:
        """An operand of which warps hold other rows or columns than of the result."""
        for dim in ("warp", "block"):
            for i, (row, column) in enumerate(self.layout(2).bases[dim]):
                wanted = ((row, 0), (0, column), (row, column), (row, 0), (column, 0))
                for index, (layout, at) in enumerate(zip(self.layouts, wanted, strict=True)):
                    if layout is not None and layout.bases[dim][i] != at:
                        return index
        return None

    def stray_lanes(self, entry: Instruction) -> int | None:
        """An operand of which lanes hold other elements than the instruction takes."""
        for index, (layout, operand) in enumerate(zip(self.layouts, entry.operands, strict=True)):
            if layout is None:
                continue
            assert operand.layout is not None
            tile, sizes = operand.layout.transpose_outs(["dim0", "dim1"]), list(layout.out_dims.values())
            if layout.bases["lane"] != tuple((x % sizes[0], y % sizes[1]) for x, y in tile.bases["lane"]):
                return index
        return None

    def unfit(self, entry: Instruction) -> CompilationError:
        """Why none does it."""
        span = self.c.build.span
        error = left_over(entry, (self.rows, self.columns), self.depth, span)
        if error is not None:
            return error
        warps, lanes = self.stray_warps(), self.stray_lanes(entry)
        values = [x for x in self.given[:3] if x is not None]
        if warps is not None and warps < 2:
            return other_warps(warps, values, [self.layout(i) for i in range(3)], span)
        index = lanes if lanes is not None else warps
        assert index is not None
        value = self.given[index]
        assert value is not None
        wanted = ("DotOperandLayout(0, result, 16)", "DotOperandLayout(1, result, 16)", "AMDMFMALayout")
        scales = f"amd.{'cdna4.get_mfma' if entry.name.startswith('mfma') else 'gfx1250.get_wmma'}_scale_layout(...)"
        return other_lanes(entry, index, value, self.layout(index), span, (*wanted, scales, scales)[index])

    # -- by the instruction --------------------------------------------------------------------------------------------

    def by_instruction(self, entry: Instruction) -> Value:
        """Instance by instance, one part of the sum after the other."""
        c, (m, n, k) = self.c, entry.shape
        values = [self.value(index, entry) for index in range(5)]
        held = [None if x is None else fragments.held(x) for x in self.layouts]
        points = [fragments.points(o.layout) for o in entry.operands if o.layout is not None]
        packed = [2 if kind == "e2m1" else 1 for kind in self.kinds]
        totals = held[2]
        assert totals is not None
        origins = sorted({(i // m * m, j // n * n) for i, j in totals})
        registers = [[totals[(i + x) % self.rows, (j + y) % self.columns] for x, y in points[2]] for i, j in origins]
        running = [c.build.rename(values[2], r) for r in registers]
        for at in range(0, self.depth, k):
            for number, (i, j) in enumerate(origins):
                firsts = ((i, at // packed[0]), (at // packed[1], j), (0, 0), (i, at // BLOCK), (j, at // BLOCK))
                operands = [self.part(values[x], x, held[x], points[x], firsts[x]) for x in (0, 1, 3, 4)]
                total = running[number]
                operands.insert(2, total)
                running[number] = c.build.instruction(entry.name, operands, [(total.elem, total.count)]).result
                self.count += 1
        order = [r for part in registers for r in part]
        place = {r: i for i, r in enumerate(order)}
        joined = c.build.add("join", running, [(running[0].elem, len(order))]).result
        return c.build.rename(joined, [place[totals[p]] for p in fragments.elements(self.layout(2))])

    def value(self, index: int, entry: Instruction) -> Value:
        """The fragment of an operand, with the elements that the instruction has; scales that are missing are 1."""
        given = self.given[index]
        if given is None:
            return self.c.build.constant("i8", ONE)
        value, elem = self.c.whole(given), entry.operands[index].elem
        return value if value.elem == elem else self.c.build.op("arith.bitcast", [value], elem)

    def part(
        self,
        value: Value,
        index: int,
        held: dict[Point, int] | None,
        points: Sequence[Point],
        first: Point,
    ) -> Value:
        """What an instance takes of an operand whose first element is there."""
        if held is None:
            return self.c.build.rename(value, [0] * len(points))
        height, width = self.layout(index).out_dims.values()
        registers = [held[(first[0] + x) % height, (first[1] + y) % width] for x, y in points]
        return self.c.build.rename(value, registers)
