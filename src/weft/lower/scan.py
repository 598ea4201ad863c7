"""Prefix scans: in registers, then by shuffles, then through shared memory, from the fastest bits of the axis on.

The bits of the axis fall into segments, runs that registers, lanes or warps hold. A segment combines what it has,
hands its total on to the next one, and gets back what comes before it. Within a warp every step is one shuffle: the
lanes of the upper half take what the last lane of the lower half has in front of what they have (Sklansky,
Conditional-sum addition logic, 1960). What precedes a lane is then what its predecessor has, and the
total what the last one has. Those are two shuffles more. Where a few lanes add up numbers, every step is a butterfly
instead: each lane gets the total of the other half, which the upper half takes in front of what it has, and both add
to their totals. That combines twice a step, but has both at its end, and one instruction is less than a shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation

from weft.analysis import commutes
from weft.base.remarks import Scanned
from weft.ir import int_value
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import BlockedLayout, LinearLayout, f2

from .blocks import in_each_block
from .context import Context, lowering, tile_shape
from .convert import convert
from .reduce import combined
from .shapes import settle
from .telling import tell_combined

Values = list[Value]

VECTOR_BYTES = 16
FEW_LANES = 3
"""Steps up to which combining twice each costs less than two shuffles more, where it is one instruction: a shuffle
takes as long as four."""


@dataclass(frozen=True)
class _Segment:
    """Consecutive bits of the axis, the fastest first, and the bits of the place that they are."""

    kind: str
    bits: tuple[int, ...]


@dataclass(frozen=True)
class _Before:
    """What precedes the elements of some registers: nothing (None), or values; where `exists` holds, or everywhere."""

    registers: list[int]
    values: Values | None
    exists: Value | None = None


def _segments(layout: LinearLayout, axis: int) -> list[_Segment] | None:
    """The segments of an axis; None where a bit of a place is not one bit of the coordinates, or two are the same."""
    columns = [x for x in layout.columns if x]
    if any(x & x - 1 for x in columns) or len(set(columns)) != len(columns):
        return None
    name = list(layout.out_dims)[axis]
    part = layout.sublayout(layout.in_dims, [name])
    place = {x: (dim, 1 << i) for dim in part.in_dims for i, x in enumerate(part.in_columns(dim)) if x}
    segments: list[tuple[str, list[int]]] = []
    for i in range(layout.out_log(name)):
        dim, bit = place[1 << i]
        if not segments or segments[-1][0] != dim:
            segments.append((dim, []))
        segments[-1][1].append(bit)
    return [_Segment(kind, tuple(bits)) for kind, bits in segments]


def _plain(shape: Sequence[int], axis: int, lanes: int, warps: int, blocks: int) -> LinearLayout:
    """A layout that has segments: the axis in lanes, what is left of them along the other dimensions.

    All blocks of a cluster hold the same.
    """
    order = [axis, *(d for d in range(len(shape)) if d != axis)]
    parts = []
    room = list(shape)
    for left in (lanes, warps):
        part = [1] * len(shape)
        for d in order:
            part[d] = min(left, room[d])
            left, room[d] = left // part[d], room[d] // part[d]
        part[order[-1]] *= left
        parts.append(part)
    same = [[0] * len(shape)] * (blocks.bit_length() - 1)
    return BlockedLayout([1] * len(shape), parts[0], parts[1], order, same).to_linear(list(shape))


class _Scan:
    """One scan: the program, how elements are combined, and the layout."""

    def __init__(self, c: Context, body: Block, layout: LinearLayout, segments: list[_Segment], reverse: bool) -> None:
        self.c, self.body, self.layout, self.segments = c, body, layout, segments
        self.reverse, self.commutes = reverse, commutes(body)

    def combine(self, a: Values, b: Values) -> Values:
        """a, which comes first, with b."""
        return combined(self.c, self.body, a, b)

    def take(self, values: Values, numbers: Sequence[int], want: Sequence[int]) -> Values:
        """Some registers of values that have others."""
        at = {r: i for i, r in enumerate(numbers)}
        return [self.c.build.rename(v, [at[r] for r in want]) for v in values]

    def select(self, condition: Value, a: Values, b: Values) -> Values:
        """a where the condition holds, else b."""
        return [self.c.build.select(condition, x, y) for x, y in zip(a, b, strict=True)]

    def either(self, a: Value, b: Value) -> Value:
        """a or b."""
        return self.c.build.op("arith.ori", [a, b], "i1")

    def equal(self, value: Value, number: int) -> Value:
        """i1: whether an i32 is a number."""
        return self.c.build.op("arith.cmpi", [value, self.c.number(number)], "i1", predicate=0)

    def place(self, bits: Sequence[int], k: int) -> int:
        """The bits of a place that is the k-th of a segment in the order of the scan."""
        return f2.multiply(bits, k ^ (1 << len(bits)) - 1 if self.reverse else k)

    # -- the steps --------------------------------------------------------------------------------------------------

    def inclusive(self, values: Values, registers: list[int]) -> Values:
        """The scan itself, of values that have these registers."""
        first = self.segments[0]
        bits = first.bits if first.kind == "register" else ()
        rows = self.rows(bits, values, registers)
        base = _without(registers, bits)
        if first.kind == "lane" and not self.by_butterflies(first.bits):
            rows = [self.along_lanes(first.bits, values)]
            groups = self.before(1, self.total_of_lanes(0, rows[0]), registers)
        else:
            groups = self.before(1 if bits else 0, rows[-1], base)
        parts, names = [], []
        for group in groups:
            whole = self.joined([self.take(row, base, group.registers) for row in rows])
            if group.values is not None:
                front = self.take(group.values, group.registers, group.registers * len(rows))
                both = self.combine(front, whole)
                whole = self.select(group.exists, both, whole) if group.exists is not None else both
            parts.append(whole)
            names += [r | self.place(bits, k) for k in range(len(rows)) for r in group.registers]
        return self.take(self.joined(parts), names, registers)

    def joined(self, parts: Sequence[Values]) -> Values:
        """The registers of several, one after the other."""
        if len(parts) == 1:
            return parts[0]
        add = self.c.build.add
        total = sum(p[0].count for p in parts)
        return [add("join", column, [(column[0].elem, total)]).result for column in zip(*parts, strict=True)]

    def rows(self, bits: Sequence[int], values: Values, registers: list[int]) -> list[Values]:
        """The values of a segment of registers, each combined with those before it."""
        base = _without(registers, bits)
        rows: list[Values] = []
        for k in range(1 << len(bits)):
            row = self.take(values, registers, [r | self.place(bits, k) for r in base])
            rows.append(self.combine(rows[-1], row) if rows else row)
        return rows

    def before(self, level: int, values: Values, registers: list[int]) -> list[_Before]:
        """What comes before each element, counting segments from a level on."""
        if level == len(self.segments):
            return [_Before(registers, None)]
        segment = self.segments[level]
        if segment.kind == "register":
            return self.before_in_registers(level, values, registers)
        in_warps = segment.kind == "warp"
        prefix, exists, total = (self.between_warps if in_warps else self.between_lanes)(level, values, registers)
        return [self.after(g, prefix, exists, registers) for g in self.before(level + 1, total, registers)]

    def after(self, group: _Before, prefix: Values, exists: Value, registers: list[int]) -> _Before:
        """What the segment itself has before each place, after what comes before the segment."""
        prefix = self.take(prefix, registers, group.registers)
        if group.values is None:
            return _Before(group.registers, prefix, exists)
        both = self.select(exists, self.combine(group.values, prefix), group.values)
        if group.exists is None:
            return _Before(group.registers, both)
        return _Before(group.registers, self.select(group.exists, both, prefix), self.either(exists, group.exists))

    def before_in_registers(self, level: int, values: Values, registers: list[int]) -> list[_Before]:
        """The first of each segment has what comes before it, the others also their predecessors."""
        bits = self.segments[level].bits
        rows, base = self.rows(bits, values, registers), _without(registers, bits)
        totals = []
        for group in self.before(level + 1, rows[-1], base):
            totals.append(_Before([r | self.place(bits, 0) for r in group.registers], group.values, group.exists))
            prefix = self.joined([self.take(row, base, group.registers) for row in rows[:-1]])
            names = [r | self.place(bits, k) for k in range(1, len(rows)) for r in group.registers]
            if group.values is not None:
                front = self.take(group.values, group.registers, group.registers * (len(rows) - 1))
                both = self.combine(front, prefix)
                prefix = self.select(group.exists, both, prefix) if group.exists is not None else both
            totals.append(_Before(names, prefix))
        return totals

    def between_lanes(self, level: int, values: Values, registers: list[int]) -> tuple[Values, Value, Values]:
        """(what precedes each lane in its segment, where there is something, the segment's total)."""
        c, bits = self.c, self.segments[level].bits
        if self.by_butterflies(bits):
            return self.butterflies(level, values)
        scanned = self.along_lanes(bits, values)
        before = self.predecessor(bits)
        prefix = [c.build.shuffle(v, before) for v in scanned]
        number = c.plus(c.index("lane", sum(bits)), c.number(-sum(bits) if self.reverse else 0))
        exists = c.build.op("arith.cmpi", [number, c.number(0)], "i1", predicate=1)
        return prefix, exists, self.total_of_lanes(level, scanned)

    def by_butterflies(self, bits: Sequence[int]) -> bool:
        """Whether a segment of lanes is scanned by butterflies."""
        return self.commutes and len(bits) <= FEW_LANES

    def butterflies(self, level: int, values: Values) -> tuple[Values, Value, Values]:
        """The same for few lanes, of a function whose operands may be exchanged; the total is in all lanes."""
        c, bits = self.c, self.segments[level].bits
        prefix, exists, total = values, c.parity(bits[0]), values
        for i, bit in enumerate(bits):
            other = [c.build.shuffle_xor(v, [bit] * v.count) for v in total]
            upper = c.negated(c.parity(bit)) if self.reverse else c.parity(bit)
            if i == 0:
                prefix, exists = other, upper
            else:
                longer = self.select(exists, self.combine(other, prefix), other)
                prefix, exists = self.select(upper, longer, prefix), self.either(exists, upper)
            if i + 1 < len(bits) or level + 1 < len(self.segments):
                total = self.combine(total, other)
        return prefix, exists, total

    def along_lanes(self, bits: Sequence[int], values: Values) -> Values:
        """The scan along a segment of lanes."""
        c = self.c
        for i, bit in enumerate(bits):
            last = self.lanes_but(bits[: i + 1], bit if self.reverse else sum(bits[:i]))
            other = [c.build.shuffle(v, last) for v in values]
            upper = c.parity(bit)
            if self.reverse:
                upper = c.negated(upper)
            values = self.select(upper, self.combine(other, values), values)
        return values

    def total_of_lanes(self, level: int, scanned: Values) -> Values:
        """The totals of a segment of lanes: in all of them, or in the last one if only that is to hand it to others."""
        bits = self.segments[level].bits
        if level + 1 == len(self.segments) or self.segments[level + 1].kind == "warp":
            return scanned
        last = self.lanes_but(bits, 0 if self.reverse else sum(bits))
        return [self.c.build.shuffle(v, last) for v in scanned]

    def lanes_but(self, bits: Sequence[int], place: int) -> Value:
        """The lane that has other values of some bits."""
        kept = (self.c.program.lanes - 1) & ~sum(bits)
        return self.c.build.linear((place,), tuple(1 << i & kept for i in range(kept.bit_length())))

    def predecessor(self, bits: Sequence[int]) -> Value:
        """The lane before each in a segment; of the first, any."""
        c, mask = self.c, sum(bits)
        kept = (c.program.lanes - 1) & ~mask
        if list(bits) == sorted(bits):  # a number with gaps: what is kept is 1 where a carry is to pass, else 0
            near = c.plus(c.index("lane", mask), c.number(kept + 1 if self.reverse else -1))
            near = c.build.op("arith.andi", [near, c.number(mask)], "i32")
        else:
            by_lane = [0] * mask.bit_length()
            for i, bit in enumerate(bits):
                by_lane[bit.bit_length() - 1] = 1 << i
            number = c.plus(c.build.linear((0,), by_lane), c.number(1 if self.reverse else -1))
            near = c.number(0)
            for i, bit in enumerate(bits):
                number_bit = c.build.op("arith.shrui", [number, c.number(i)], "i32")
                number_bit = c.build.op("arith.andi", [number_bit, c.number(1)], "i32")
                near = c.plus(near, c.build.op("arith.muli", [number_bit, c.number(bit)], "i32"))
        return c.plus(near, c.index("lane", kept)) if kept else near

    def between_warps(self, level: int, values: Values, registers: list[int]) -> tuple[Values, Value, Values]:
        """The same for warps: totals go through shared memory, and each lane reads those of all warps."""
        c, bits = self.c, self.segments[level].bits
        count = 1 << len(bits)
        by_warp = [0] * (c.program.warps.bit_length() - 1)
        for i, bit in enumerate(bits):
            by_warp[bit.bit_length() - 1] = 1 << i
        number = c.build.linear((count - 1 if self.reverse else 0,), (), by_warp)
        rows = self.exchanged(level, values, registers)
        prefix = total = rows[0]
        for k in range(1, count):
            if k > 1:
                is_behind = c.build.op("arith.cmpi", [number, c.number(k)], "i1", predicate=5)
                prefix = self.select(is_behind, total, prefix)
            if k + 1 < count or level + 1 < len(self.segments):
                total = self.combine(total, rows[k])
        return prefix, c.build.op("arith.cmpi", [number, c.number(0)], "i1", predicate=1), total

    def exchanged(self, level: int, values: Values, registers: list[int]) -> list[Values]:
        """The totals of all warps of a segment, in the order of the scan, in every lane that belongs to them."""
        c, bits = self.c, self.segments[level].bits
        summed = dict.fromkeys(("lane", "warp"), 0)
        for segment in self.segments[:level]:
            if segment.kind in summed:
                summed[segment.kind] |= sum(segment.bits)
        apart = {d: [1 << i for i, x in enumerate(self.layout.in_columns(d)) if x] for d in summed}
        lanes = [b for b in apart["lane"] if not b & summed["lane"]]
        warps = [b for b in apart["warp"] if not b & summed["warp"] and b not in bits]
        places = {("warp", b): 1 << i for i, b in enumerate([*bits])}
        for key in [("lane", b) for b in lanes] + [("warp", b) for b in warps]:
            places[key] = 1 << len(places)
        size = 1 << len(places)
        columns = {d: [places.get((d, 1 << i), 0) for i in range(self.layout.in_log(d))] for d in summed}
        others = {"lane": (c.program.lanes - 1) & ~sum(lanes), "warp": (c.program.warps - 1) & ~sum((*bits, *warps))}
        last = {"lane": 0 if self.reverse else summed["lane"], "warp": 0}
        once = c.all_of([self.equal(c.index(d, m), last[d]) for d, m in others.items() if m])
        stored = [c.build.op("arith.extui", [v], "i8") if v.elem == "i1" else v for v in values]
        bases = []
        for v in stored:
            width = max(8, ELEMENT_BITS[v.elem]) // 8
            base = c.allocate(size * len(registers) * width, "scan")
            c.build.store("shared", self.address(base, columns, size, len(registers), width), v, 1, once)
            bases.append((base, width))
        columns["warp"] = [x if x >= 1 << len(bits) else 0 for x in columns["warp"]]
        loaded = [
            self.loaded(v, columns, base, width, (size, 1 << len(bits)))
            for v, (base, width) in zip(stored, bases, strict=True)
        ]
        narrow = c.build.op
        loaded = [
            narrow("arith.trunci", [x], "i1") if v.elem == "i1" else x for x, v in zip(loaded, values, strict=True)
        ]
        ways = 1 << len(bits)
        order = range(ways - 1, -1, -1) if self.reverse else range(ways)
        return [[c.build.rename(x, [r * ways + k for r in range(len(registers))]) for x in loaded] for k in order]

    def loaded(
        self, value: Value, columns: dict[str, list[int]], base: Value, width: int, sizes: tuple[int, int]
    ) -> Value:
        """The totals of all warps of the segment, for each register."""
        size, ways = sizes
        vector = min(ways, VECTOR_BYTES // width)
        starts = [r * size + k for r in range(value.count) for k in range(0, ways, vector)]
        c = self.c
        by_lane, by_warp = ([x * width for x in columns[d]] for d in ("lane", "warp"))
        address = c.plus(c.build.linear([x * width for x in starts], by_lane, by_warp), base)
        return c.build.load("shared", address, value.elem, vector)

    def address(self, base: Value, columns: dict[str, list[int]], size: int, count: int, width: int) -> Value:
        """Where each register's total is stored."""
        by_lane, by_warp = ([x * width for x in columns[d]] for d in ("lane", "warp"))
        starts = [r * size * width for r in range(count)]
        return self.c.plus(self.c.build.linear(starts, by_lane, by_warp), base)


def _without(registers: Sequence[int], bits: Sequence[int]) -> list[int]:
    """The registers in which none of some bits is set."""
    return [r for r in registers if not any(r & b for b in bits)]


@lowering("tt.scan")
def _scan(c: Context, op: Operation) -> None:
    axis, reverse = int_value(op.properties["axis"]), bool(int_value(op.properties["reverse"]))
    shape = tile_shape(op.operands[0])
    source_layout = c.layout(op.operands[0])
    layout = in_each_block(source_layout, axis)
    values = [c.whole(x) for x in op.operands]
    if layout != source_layout:
        values = [convert(c, v, source_layout, layout) for v in values]
    segments = _segments(layout, axis)
    if segments is None:
        plain = _plain(shape, axis, c.program.lanes, c.program.warps, c.program.blocks)
        values = [convert(c, v, layout, plain) for v in values]
        layout, segments = plain, _segments(plain, axis)
    assert segments is not None
    before = len(c.build.block.ops), len(c.program.shared)
    if segments:
        columns = layout.in_columns("register")
        registers = f2.span([1 << i for i, x in enumerate(columns) if x])
        scan = _Scan(c, op.regions[0].blocks[0], layout, segments, reverse)
        scanned = scan.inclusive([c.build.rename(v, registers) for v in values], registers)
        at = {f2.multiply(columns, r): i for i, r in enumerate(registers)}
        values = [c.build.rename(v, [at[x] for x in f2.span(columns)]) for v in scanned]
    sizes = [1 << sum(len(s.bits) for s in segments if s.kind == kind) for kind in ("register", "lane", "warp", "")]
    tell_combined(c, Scanned, op, axis, sizes, before)
    for result, value in zip(op.results, values, strict=True):
        settle(c, result, value, layout)
