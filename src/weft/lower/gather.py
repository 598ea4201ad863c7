"""Gathers: by shuffles where a warp holds whole columns, else through shared memory, as the plan says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation

from weft.ir import int_value
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2
from weft.layouts.plan import Gather, plan_gather
from weft.layouts.plan.picking import Picking

from .blocks import in_each_block, without_blocks
from .context import Context, lowering, tile_shape
from .convert import convert
from .shapes import settle
from .shared import store_tile
from .telling import tell_gather


@lowering("tt.gather")
def _gather(c: Context, op: Operation) -> None:
    source, index = op.operands
    axis = int_value(op.properties["axis"])
    shape = tile_shape(source)
    layouts = c.layout(source), c.layout(index)
    value, at = c.whole(source), c.whole(index)
    natural = layouts[1]
    if c.program.blocks > 1:
        whole = [in_each_block(x) for x in layouts]
        value, at = (convert(c, v, x, w) for v, x, w in zip((value, at), layouts, whole, strict=True))
        layouts, natural = (without_blocks(whole[0]), without_blocks(whole[1])), whole[1]
    bits = max(8, ELEMENT_BITS[value.elem])
    at = wrapped(c, at, shape[axis])
    elem = value.elem
    if elem == "i1":
        value = c.build.op("arith.extui", [value], "i8")
    plan = plan_gather(*layouts, shape, tile_shape(index), axis, bits, c.machine)
    tell_gather(c, plan, elem)
    if plan.kind == "shared":
        gathered = _through_memory(c, plan, value, at, bits)
    elif plan.picking is not None:
        gathered = _in_words(c, plan, plan.picking, value, at)
    else:
        gathered = _in_warp(c, plan, value, at)
    if elem == "i1":
        gathered = c.build.op("arith.trunci", [gathered], "i1")
    settle(c, op.results[0], gathered, natural)


def wrapped(c: Context, index: Value, size: int) -> Value:
    """Indices of any width as i32, within an axis of this size."""
    if index.elem != "i32":
        index = c.build.op("arith.extsi" if ELEMENT_BITS[index.elem] < 32 else "arith.trunci", [index], "i32")
    return c.build.op("arith.andi", [index, c.number(size - 1)], "i32")


def _linear_of(c: Context, index: Value, columns: Sequence[int]) -> Value:
    """What a linear map makes of an index: runs of bits that stay together are moved at once."""
    parts: list[Value] = []
    i = 0
    while i < len(columns):
        if not columns[i]:
            i += 1
            continue
        run = 1
        single = not columns[i] & columns[i] - 1
        while single and i + run < len(columns) and columns[i + run] == columns[i] << run:
            run += 1
        bits = c.build.op("arith.andi", [index, c.number(((1 << run) - 1) << i)], "i32")
        if single:
            shift = columns[i].bit_length() - 1 - i
            name = "arith.shli" if shift > 0 else "arith.shrui"
            parts.append(c.build.op(name, [bits, c.number(abs(shift))], "i32") if shift else bits)
        else:
            bits_at_zero = c.build.op("arith.shrui", [bits, c.number(i)], "i32")
            parts.append(c.build.op("arith.muli", [bits_at_zero, c.number(columns[i])], "i32"))
        i += run
    total = parts[0] if parts else c.number(0)
    for part in parts[1:]:
        total = c.build.op("arith.xori", [total, part], "i32")
    return total


class Wanted:
    """The element of the source that each register of the index wants, and linear functions of it."""

    def __init__(self, c: Context, layout: LinearLayout, source: Mapping[str, int], axis: str, index: Value) -> None:
        self.c, self.layout, self.index, self.axis = c, layout, index, axis
        self.shifts: dict[str, int] = {}
        shift = 0
        for name, size in source.items():  # the index may be shorter along the axis
            self.shifts[name] = shift
            shift += size.bit_length() - 1
        self.shift, self.bits = self.shifts[axis], source[axis].bit_length() - 1

    def fixed(self, where: Sequence[int], dim: str) -> list[int]:
        """What the coordinates that the index does not give add, for each bit of registers, lanes or warps."""
        names = list(self.layout.out_dims)
        numbers = []
        for basis in self.layout.bases[dim]:
            others = [x << self.shifts[n] for n, x in zip(names, basis, strict=True) if n != self.axis]
            numbers.append(f2.multiply(where, sum(others)))
        return numbers

    def moved(self, where: Sequence[int]) -> Value:
        """What the index adds."""
        return _linear_of(self.c, self.index, where[self.shift : self.shift + self.bits])

    def place(self, where: Sequence[int], *, registers: bool = True) -> Value:
        """A linear function of the element, given by its values at powers of two; or what lanes and warps add to it."""
        offsets = f2.span(self.fixed(where, "register")) if registers else [0]
        block = self.fixed(where, "block") if self.layout.has_in("block") else ()
        at = self.c.build.linear(offsets, self.fixed(where, "lane"), self.fixed(where, "warp"), block)
        return self.c.build.op("arith.xori", [at, self.moved(where)], "i32")


def _through_memory(c: Context, plan: Gather, value: Value, index: Value, bits: int) -> Value:
    """The source is stored, swizzled, and every element loaded by itself."""
    width = bits // 8
    names = plan.source.out_dims
    flat = LinearLayout.from_bases({"offset": [(x,) for x in plan.memory]}, {"x": 1 << len(plan.memory)})
    memory = flat.reshape_outs(names)
    base = c.allocate(width << len(plan.memory), "gather")
    store_tile(c, value, plan.source, memory, base, width)
    place = f2.Echelon(plan.memory)
    where = [(place.coefficients(1 << i) or 0) * width for i in range(len(plan.memory))]
    address = c.plus(Wanted(c, plan.index, plan.source.out_dims, plan.axis, index).place(where), base)
    return c.build.load("shared", address, value.elem)


def _places(c: Context, plan: Gather) -> tuple[list[int], list[int]]:
    """For each bit of an element of the source the lane and the register that it adds."""
    log = plan.source.in_log("register")
    columns = plan.where.columns
    return [x >> log & c.program.lanes - 1 for x in columns], [x & (1 << log) - 1 for x in columns]


def _in_words(c: Context, plan: Gather, picking: Picking, value: Value, index: Value) -> Value:
    """The words that may hold the elements, shuffled if they are another lane's; those that are meant are put together.

    Elements of one lane's column are chosen as many at once as a word has, those of other lanes one by one.
    """
    to_lane, to_register = _places(c, plan)
    wanted = Wanted(c, plan.index, plan.source.out_dims, plan.axis, index)
    packed = c.build.rename(value, picking.order)
    packed = c.build.add("pack", [packed], [("i32", packed.count // picking.each)]).result
    read = f2.span(wanted.fixed(to_register, "register"))
    together = picking.each if plan.kind == "registers" else 1
    results = picking.results(read, together)
    columns = [picking.column(read[r[0]]) for r in results]
    words = [c.build.rename(packed, [k * picking.words + i for k in columns]) for i in range(picking.words)]
    if plan.kind == "shuffles":
        lane = c.build.rename(wanted.place(to_lane), [r[0] for r in results])
        words = [c.build.shuffle(word, lane) for word in words]
    place = wanted.place([picking.place(x) for x in to_register])
    selectors = _selectors(c, [c.build.rename(place, [r[k] for r in results]) for k in range(together)], picking)
    pairs = zip(words[0::2], words[1::2] or words, strict=True)
    for selector in selectors:
        words = [
            c.build.add("permute", [a, b, selector], [("i32", a.count)], {"each": picking.each}).result
            for a, b in pairs
        ]
        pairs = zip(words[0::2], words[1::2], strict=False)
    elements = c.build.add("unpack", words, [(value.elem, len(results) * picking.each)]).result
    at = {r: word * picking.each + k for word, of in reversed([*enumerate(results)]) for k, r in enumerate(of)}
    return c.build.rename(elements, [at[r] for r in range(len(read))])


def _selectors(c: Context, places: Sequence[Value], picking: Picking) -> list[Value]:
    """What chooses among the elements of two words, and for each further bit of places between two such choices."""
    bits, each = len(picking.within), picking.each

    def of(value: Value, name: str, number: int) -> Value:
        return c.build.op(name, [value, c.number(number)], "i32") if number else value

    def masked(value: Value, shift: int, mask: int, more: int) -> Value:
        value = of(value, "arith.shrui" if shift > 0 else "arith.shli", abs(shift))
        return of(of(value, "arith.andi", mask), "arith.ori", more)

    numbers = []  # four bits of each place, for each byte of the result
    for at in range(0, bits, 4):
        parts = [p if bits <= 4 else masked(p, at, 15, 0) for p in places]
        number = parts[-1]
        for part in reversed(parts[:-1]):
            number = c.build.op("arith.ori", [of(number, "arith.shli", 16 // each), part], "i32")
        numbers.append(number if each == 4 else of(number, "arith.muli", 0x11))
    if each == 2:  # both bytes of a half
        first = masked(numbers[0], -1, 0x6666, 0x1010)
    else:
        first = numbers[0] if bits < 4 else masked(numbers[0], 0, 0x7777, 0)
    further = range(each.bit_length(), bits)
    return [first, *[masked(numbers[bit // 4], bit % 4 - 2, 0x4444, 0x3210) for bit in further]]


def _in_warp(c: Context, plan: Gather, value: Value, index: Value) -> Value:
    """The registers that may hold the element, shuffled if they are another lane's; that which is meant is kept."""
    to_lane, to_register = _places(c, plan)
    wanted = Wanted(c, plan.index, plan.source.out_dims, plan.axis, index)
    lane = None if plan.kind == "registers" else wanted.place(to_lane)
    offsets = f2.span(wanted.fixed(to_register, "register"))
    along = to_register[wanted.shift : wanted.shift + wanted.bits]
    rows = f2.Echelon()
    steps = [x for x in (*along, *wanted.fixed(to_register, "lane"), *wanted.fixed(to_register, "warp")) if rows.add(x)]
    candidates = [c.build.rename(value, [r ^ step for r in offsets]) for step in f2.span(steps)]
    if lane is not None:
        candidates = [c.build.shuffle(x, lane) for x in candidates]
    return _meant(c, candidates, steps, wanted.place(to_register, registers=False)) if steps else candidates[0]


def _meant(c: Context, candidates: list[Value], steps: Sequence[int], number: Value) -> Value:
    """That of the values, one for each sum of steps, which `number` names; each step halves them, by one bit."""
    tests = [next((b for b in f2.bits(x) if not any(y >> b & 1 for y in steps if y != x)), None) for x in steps]
    if None not in tests:
        for bit in tests:
            bit_of_step = c.build.op("arith.andi", [number, c.number(1 << (bit or 0))], "i32")
            odd = c.build.op("arith.cmpi", [bit_of_step, c.number(0)], "i1", predicate=1)
            candidates = [c.build.select(odd, b, a) for a, b in zip(candidates[0::2], candidates[1::2], strict=True)]
        return candidates[0]
    result = candidates[0]
    for step, value in zip(f2.span(steps)[1:], candidates[1:], strict=True):
        meant = c.build.op("arith.cmpi", [number, c.number(step)], "i1", predicate=0)
        result = c.build.select(meant, value, result)
    return result
