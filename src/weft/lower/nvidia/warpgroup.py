"""Products by wgmma: four warps at a time, operands in shared memory, asynchronous.

The result's layout says which rows and columns each warp group has in each register. Divided by the instruction's
layout, it gives the origins of the instructions. For each origin and each step along K, an operand is the matrix of the
instruction's size at that place of the buffer, or the registers that hold it.

    wgmma.fence
    for each instruction's tile, for each step along K:   d = wgmma a, b, d
    wgmma.commit_group
    await d                                               now, or where warp_group_dot_wait stands

Products side by side (`ttng.SIDE_BY_SIDE`) are one: an instruction of all their columns, whose accumulator is the
registers of one after those of the other. It reads their left operand once.

If warp groups divide the columns, each group's columns are treated as a matrix of their own. For two groups, every
other 8 columns are such a matrix, with twice the stride of the buffer from 8 columns to the next:

    columns           0-7   8-15   16-23   24-31   32-39   40-47        two products of 32 and 16 columns side by side
    warp group         0     1      0       1       0       1           each instruction has 24 columns
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from weft.base import Unsupported
from weft.ir import bit_width, int_value, is_tensor, type_text
from weft.ir.gpu import MemDescType
from weft.ir.lane import ELEMENT_BITS, Value
from weft.ir.nvidia.ttng import WarpGroupDotOp
from weft.layouts import LinearLayout, f2
from weft.machines import MACHINES
from weft.targets.instruction import Instruction
from weft.targets.nvidia import descriptor, instruction, with_columns
from weft.targets.table import products

from ..context import Context, elem_of, tile_shape
from ..fragments import assembled, held, points
from ..telling import tell_product
from ..unfit import named, not_readable, other_lanes
from .matrices import Matrix, matrix_of, origin, places, start
from .mbarriers import holds
from .table import lowering

GROUP = 4
"""Warps that multiply together."""


class _Buffer:
    """An operand in shared memory: `rows` are those along M or N. If they are more than the buffer has, other
    buffers follow it. `others` are the strides, in rows, from one warp group to another: rows of other groups are left
    out of the matrix of one group."""

    def __init__(
        self, c: Context, value: SSAValue, side: str, rows: int, depth: int, others: Sequence[int] = ()
    ) -> None:
        type = value.type
        assert isinstance(type, MemDescType)
        c.only_own(value, "a product with")
        self.c, self.base, self.offset = c, c[value], c.offset_of(value)
        self.bits = bit_width(type.element_type)
        self.rows, self.depth = _places(type, side)
        self.own = _of_one(type, self.rows, rows, others)
        matrix = matrix_of(self.own, self.depth, rows, depth, self.bits) if not type.gaps else None
        if matrix is None:
            raise not_readable(value, side, rows, depth, self.bits, c.build.span)
        self.matrix: Matrix = matrix
        blocks = type.linear.bases["block"] if type.linear.has_in("block") else ()
        self.divided = [basis if side == "left" else basis[::-1] for basis in blocks]

    def by_block(self, rows: Sequence[int]) -> list[int]:
        """The rows by which blocks of a cluster move in their own memory, if those of the result move by `rows`."""
        c, bases = self.c, []
        for i, row in enumerate(rows):
            divided_row, summed = self.divided[i] if i < len(self.divided) else (0, 0)
            if summed or divided_row not in (0, row):
                raise Unsupported(
                    "a wgmma product whose operand is divided among the blocks of a cluster in another way than its "
                    "result",
                    c.program.target,
                    c.build.span,
                    hint="blocks that share rows of the left operand, or columns of the right one, have copies: 0 "
                    "there in cga_layout, and along K",
                )
            bases.append(row ^ divided_row)
        return bases

    def descriptors(self, at: Sequence[tuple[int, int]], by_warp: Sequence[int], rows: Sequence[int]) -> Value:
        """i64: one register for each tile of a group, which begins at (row, k); `by_warp` and `rows` are the strides of
        warps and blocks."""
        m = self.matrix
        blocks = [start(m, f2.multiply(self.rows, row)) for row in self.by_block(rows)]
        registers = [start(m, origin(self.own, self.depth, row, k) ^ self.offset) for row, k in at]
        warps = [start(m, f2.multiply(self.rows, row)) for row in by_warp]
        c = self.c
        rest = descriptor(0, m.leading, m.stride, m.swizzle)
        rest -= 1 << 64 if rest >> 63 else 0
        apart = not any(r & w for r in registers for w in (*warps, *blocks))
        address = c.plus(c.build.linear([0] if apart else registers, (), warps, blocks, uniform=True), self.base)
        low = c.build.op("arith.andi", [address, c.number(0x3FFFF)], "i32")
        field = c.build.op("arith.shrui", [low, c.number(4)], "i32")
        wide = c.build.op("arith.extui", [field], "i64")
        first = c.build.op("arith.ori", [wide, c.number(rest, "i64")], "i64")
        if not apart:
            return first
        # The addresses of a buffer do not leave the field, so that the distance of a tile can be added to the whole.
        steps = c.build.op("arith.extui", [c.build.linear([r >> 4 for r in registers])], "i64")
        return c.build.op("arith.addi", [first, steps], "i64")


def _places(type: MemDescType, side: str) -> list[list[int]]:
    """Where the rows along M or N are in memory, and the places along K."""
    by_dim = places(type.linear, bit_width(type.element_type) // 8)
    return by_dim if side == "left" else by_dim[::-1]


def _of_one(type: MemDescType, rows: Sequence[int], count: int, others: Sequence[int]) -> list[int]:
    """Where `count` rows of one group are, which moves by the rows `others` to be another one."""
    own = [place for i, place in enumerate(rows) if 1 << i not in others]
    whole = type.linear.in_dims["offset"] * bit_width(type.element_type) // 8
    return [*own, *(whole << i for i in range((count - 1).bit_length() - len(own)))]


def _candidates(c: Context, a: SSAValue, b: SSAValue, total: str) -> tuple[Instruction, ...]:
    """The instructions by which a group of warps multiplies elements of these types."""
    left, right = elem_of(a.type) if is_tensor(a.type) else _element(a), _element(b)
    entries = products(c.program.machine, left, right, total, GROUP)
    if not entries:
        works_on = [m.name for m in MACHINES.values() if products(m, left, right, total, GROUP)][:1]
        feature = f"a product of {left} and {right} into {total} by warps together (wgmma)"
        raise Unsupported(feature, c.program.target, c.build.span, works_on=works_on)
    return entries


def _element(value: SSAValue) -> str:
    assert isinstance(value.type, MemDescType)
    return type_text(value.type.element_type)


def _widths(entries: Sequence[Instruction], layout: LinearLayout) -> list[int]:
    """The columns of the instructions whose tiles divide the result's layout, the widest first."""
    shape = tuple(layout.out_dims.values())
    names = list(layout.out_dims)
    bases = layout.sublayout(["register", "lane", "warp"], names).bases
    found = []
    for n, entry in sorted({x.shape[1]: x for x in entries}.items(), reverse=True):
        tile = entry.results[0].layout
        assert tile is not None
        wanted = tile.transpose_outs(["dim0", "dim1"]).bases
        fits = entry.shape[0] <= shape[0] and n <= shape[1]
        if fits and all(bases[d][: len(wanted[d])] == wanted[d] for d in ("register", "lane", "warp")):
            found.append(n)
    return found


@lowering("ttng.warp_group_dot")
def _warp_group_dot(c: Context, op: Operation) -> None:
    assert isinstance(op, WarpGroupDotOp)
    row = op.row()
    if op is not row[-1]:
        return
    if len(row) > 1 and not all(x.useC is None or c.is_true(x.useC) for x in row):
        feature = "products side by side that may not add to what they are given"
        raise Unsupported(feature, c.program.target, c.build.span)
    product = _Product(c, row)
    totals = product.written(op.useC, op.imprecise)
    count = len(product.origins) * (product.depth // product.entry.shape[2])
    for each, total in zip(row, totals, strict=True):
        tell_product(c, each, product.entry, count)
        c[each.d] = total if holds(op, "isAsync") else _awaited(c, total)


def _awaited(c: Context, total: Value) -> Value:
    return c.build.add("await", [total], [(total.elem, total.count)], {"kind": "product", "pending": 0}).result


def _entries(c: Context, op: WarpGroupDotOp) -> list[Instruction]:
    """The instructions with the most columns whose tile divides the result's layout, and which read the right operand
    where it is: what a warp group has of it need not be one matrix, such as two halves of lines that are far apart."""
    layout = c.layout(op.d)
    candidates = _candidates(c, op.a, op.b, elem_of(op.d.type))
    widths = _widths(candidates, _of_group(layout))
    if not widths:
        smallest = min(candidates, key=lambda x: (x.shape[1], len(x.name)))
        wanted = "NVMMADistributedLayout([3, 0], [4, 1], [16, N, K]), four warps or more along the rows"
        raise other_lanes(smallest, 2, op.d, layout, c.build.span, wanted)
    memory, others = op.b.type, _columns_of_groups(layout)
    assert isinstance(memory, MemDescType)
    rows, depth = _places(memory, "right")
    bits, k = bit_width(memory.element_type), candidates[0].shape[2]
    readable = (n for n in widths if matrix_of(_of_one(memory, rows, n, others), depth, n, k, bits))
    n = next(readable, widths[0])
    return [x for x in candidates if x.shape[1] == n]


class _Product:
    """One warp_group_dot, or several side by side: their instructions, and the registers that each of these works on.

    `by_tile` says for each warp_group_dot which of its registers an instruction's tile has, by the tile's origin.
    """

    def __init__(self, c: Context, ops: Sequence[WarpGroupDotOp]) -> None:
        entries = [_entries(c, op) for op in ops]
        a, b, k = ops[0].a, ops[0].b, entries[0][0].shape[2]
        self.c, self.ops, self.layout, self.result = c, ops, c.layout(ops[0].d), named(ops[0].d)
        self.columns = sum(x[0].shape[1] for x in entries)
        self.buffer_a = _Buffer(c, a, "left", 64, k) if not is_tensor(a.type) else None
        self.buffer_b = _Buffer(c, b, "right", self.columns, k, _columns_of_groups(self.layout))
        trans = (self.buffer_a is not None and self.buffer_a.matrix.trans, self.buffer_b.matrix.trans)
        variant = {"registers": is_tensor(a.type), "trans": trans}
        chosen = [next(x for x in those if variant.items() <= x.params.items()) for those in entries]
        self.entry = instruction(with_columns(chosen[0].name, self.columns))
        self.by_tile = [_by_tile(_of_group(c.layout(op.d)), entry) for op, entry in zip(ops, chosen, strict=True)]
        self.origins = sorted(self.by_tile[0])
        # warps of a group hold rows 16 apart; from the third bit on they are other groups, at other rows or columns
        groups = [tuple(basis) for basis in self.layout.bases["warp"]][2:]
        self.group_rows = [0, 0, *(i for i, _ in groups)]
        self.group_columns = [0, 0, *(j for _, j in groups)]
        divided = self.layout.bases["block"]
        self.block_rows, self.block_columns = [i for i, _ in divided], [j for _, j in divided]
        self.depth = (tile_shape(a) if is_tensor(a.type) else a.type.shape)[-1]  # type: ignore[attr-defined]
        self.registers_a = self._in_registers(a) if is_tensor(a.type) else []

    def _in_registers(self, a: SSAValue) -> list[tuple[Value, int, int]]:
        """For each origin and step the registers of the left operand."""
        layout = self.c.layout(a)
        tile = self.entry.operands[0].layout
        assert tile is not None
        lanes, wanted = layout.bases["lane"], tile.transpose_outs(["dim0", "dim1"]).bases["lane"]
        if lanes != wanted:
            width = 32 // ELEMENT_BITS[elem_of(a.type)]
            fitting = f"DotOperandLayout(0, {self.result}, {width})"
            raise other_lanes(self.entry, 0, a, layout, self.c.build.span, fitting)
        where, at, value = held(layout), points(tile), self.c.whole(a)
        k = self.entry.shape[2]
        rows = sorted({i for i, _ in self.origins})
        return [
            (self.c.build.rename(value, [where[i + x, step + y] for x, y in at]), i, step)
            for i in rows
            for step in range(0, self.depth, k)
        ]

    def written(self, use_acc: SSAValue | None, limit: int) -> list[Value]:
        """All instructions; the accumulator of each warp_group_dot, under way."""
        c, build = self.c, self.c.build
        scale = c.number(1)
        if use_acc is not None and not c.is_true(use_acc):
            is_known = c.known(use_acc) is not None
            scale = c.number(0) if is_known else build.op("arith.extui", [c[use_acc]], "i32")
        before = [(c.whole(op.c), of_tile) for op, of_tile in zip(self.ops, self.by_tile, strict=True)]
        running = {at: build.gather([(v, r) for v, of_tile in before for r in of_tile[at]]) for at in self.origins}
        k = self.entry.shape[2]
        steps = list(range(0, self.depth, k))
        if limit:
            return self._apart(self._in_parts(running, scale, max(1, limit // k)))
        build.instruction("wgmma.fence", [])
        running = self._steps(running, steps, scale)
        build.instruction("wgmma.commit_group", [])
        return self._apart(running)

    def _apart(self, running: dict[tuple[int, int], Value]) -> list[Value]:
        """What each warp_group_dot has of the accumulators."""
        found, first = list[Value](), 0
        for op, of_tile in zip(self.ops, self.by_tile, strict=True):
            count = len(of_tile[self.origins[0]])
            own = range(first, first + count)
            parts = {at: (self.c.build.rename(running[at], own), of_tile[at]) for at in self.origins}
            found.append(assembled(self.c, parts, self.c.layout(op.d)))
            first += count
        return found

    def _steps(
        self, running: dict[tuple[int, int], Value], steps: Sequence[int], scale: Value
    ) -> dict[tuple[int, int], Value]:
        c, one = self.c, self.c.number(1)
        distances = {}
        by_row = (
            self.buffer_a.descriptors([(i, s) for i in self._rows() for s in steps], self.group_rows, self.block_rows)
            if self.buffer_a
            else None
        )
        starts = [(j, s) for j in self._columns() for s in steps]
        by_column = self.buffer_b.descriptors(starts, self.group_columns, self.block_columns)
        for at, acc in running.items():
            for index, step in enumerate(steps):
                if by_row is not None:
                    left = c.build.rename(by_row, [self._rows().index(at[0]) * len(steps) + index])
                else:
                    left = next(v for v, i, s in self.registers_a if (i, s) == (at[0], step))
                right = c.build.rename(by_column, [self._columns().index(at[1]) * len(steps) + index])
                acc = c.build.instruction(
                    self.entry.name, [left, right, acc, one if index else scale], [(acc.elem, acc.count)]
                ).result
            distances[at] = acc
        return distances

    def _in_parts(
        self, running: dict[tuple[int, int], Value], scale: Value, each: int
    ) -> dict[tuple[int, int], Value]:
        """Sums of `each` steps from zero, added in full precision."""
        c, build = self.c, self.c.build
        k = self.entry.shape[2]
        steps = list(range(0, self.depth, k))
        kept = build.op("arith.cmpi", [scale, c.number(0)], "i1", predicate=1)
        sums = {at: build.select(kept, v, build.constant(v.elem, 0)) for at, v in running.items()}
        for first in range(0, len(steps), each):
            build.instruction("wgmma.fence", [])
            parts = self._steps(running, steps[first : first + each], c.number(0))
            build.instruction("wgmma.commit_group", [])
            values = list(parts.values())
            done = build.add(
                "await", values, [(v.elem, v.count) for v in values], {"kind": "product", "pending": 0}
            ).results
            sums = {at: build.op("arith.addf", [sums[at], d], d.elem) for at, d in zip(parts, done, strict=True)}
        return sums

    def _rows(self) -> list[int]:
        return sorted({i for i, _ in self.origins})

    def _columns(self) -> list[int]:
        return sorted({j for _, j in self.origins})


def _columns_of_groups(layout: LinearLayout) -> list[int]:
    """The column strides of warp groups, if each is a bit that no register, lane or block strides over; else none."""
    moves = [basis for d in ("register", "lane", "block") for basis in layout.bases.get(d, ())]
    groups = layout.bases["warp"][2:]
    found = [j for i, j in groups if j and not i]
    others = [j for _, j in (*moves, *layout.bases["warp"][:2], *(x for x in groups if x[0]))]
    is_bit = all(not j & (j - 1) for j in found) and len({*found}) == len(found)
    return found if is_bit and not any(j & x for j in found for x in others) else []


def _of_group(layout: LinearLayout) -> LinearLayout:
    """The layout of a result in the first warp group, with the columns of other groups left out."""
    bits = sorted(_columns_of_groups(layout), reverse=True)

    def counted(column: int) -> int:
        for bit in bits:
            column = column & (bit - 1) | (column & ~(bit - 1)) >> 1 if not column & bit else 0
        return column

    bases = {d: [(i, counted(j)) for i, j in those] for d, those in layout.bases.items()}
    rows, columns = layout.out_dims.items()
    return LinearLayout.from_bases(bases, dict((rows, (columns[0], columns[1] >> len(bits)))))


def _by_tile(layout: LinearLayout, entry: Instruction) -> dict[tuple[int, int], list[int]]:
    """The registers that each tile of an instruction has of a result, by the tile's origin."""
    _, n, _ = entry.shape
    tile = entry.results[0].layout
    assert tile is not None
    register_at, inside = held(layout), points(tile)
    origins = {(i // 16 * 16, j // n * n) for i, j in register_at}
    return {at: [register_at[at[0] + x, at[1] + y] for x, y in inside] for at in sorted(origins)}


@lowering("ttng.warp_group_dot_wait")
def _wait(c: Context, op: Operation) -> None:
    pending = int_value(op.properties["pendings"])
    tiles = [x for x in op.operands if is_tensor(x.type)]
    values = [c.whole(x) for x in tiles]
    op_made = c.build.add("await", values, [(v.elem, v.count) for v in values], {"kind": "product", "pending": pending})
    awaited = dict(zip(tiles, op_made.results, strict=True))
    for operand, result in zip(op.operands, op.results, strict=True):
        c[result] = awaited.get(operand, c[operand])
        if not is_tensor(operand.type):
            c.stays(result, operand)
