"""Gathers: by shuffles where a warp holds whole columns, else through shared memory, as the plan says."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from weft.ir import int_value
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2
from weft.layouts.plan import Gather, plan_gather

from .context import Context, lowering, tile_shape
from .shapes import settle
from .shared import store_tile


@lowering("tt.gather")
def _gather(c: Context, op: Operation) -> None:
    source, index = op.operands
    axis = int_value(op.properties["axis"])
    shape = tile_shape(source)
    layouts = c.layout(source), c.layout(index)
    value, at = c.whole(source), c.whole(index)
    bits = max(8, ELEMENT_BITS[value.elem])
    if at.elem != "i32":
        at = c.build.op("arith.extsi" if ELEMENT_BITS[at.elem] < 32 else "arith.trunci", [at], "i32")
    at = c.build.op("arith.andi", [at, c.number(shape[axis] - 1)], "i32")
    elem = value.elem
    if elem == "i1":
        value = c.build.op("arith.extui", [value], "i8")
    plan = plan_gather(*layouts, shape, tile_shape(index), axis, bits, c.machine)
    found = _through_memory(c, plan, value, at, bits) if plan.kind == "shared" else _in_warp(c, plan, value, at)
    if elem == "i1":
        found = c.build.op("arith.trunci", [found], "i1")
    settle(c, op.results[0], found, layouts[1])


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
            one = c.build.op("arith.shrui", [bits, c.number(i)], "i32")
            parts.append(c.build.op("arith.muli", [one, c.number(columns[i])], "i32"))
        i += run
    total = parts[0] if parts else c.number(0)
    for part in parts[1:]:
        total = c.build.op("arith.xori", [total, part], "i32")
    return total


class _Wanted:
    """The element of the source that each register of the index wants, and linear functions of it."""

    def __init__(self, c: Context, plan: Gather, index: Value) -> None:
        self.c, self.layout, self.index, self.axis = c, plan.index, index, plan.axis
        self.shifts: dict[str, int] = {}
        shift = 0
        for name, size in plan.source.out_dims.items():  # the index may be shorter along the axis
            self.shifts[name] = shift
            shift += size.bit_length() - 1
        self.shift, self.bits = self.shifts[plan.axis], plan.source.out_log(plan.axis)

    def fixed(self, where: Sequence[int], dim: str) -> list[int]:
        """What the coordinates that the index does not give add, for each bit of registers, lanes or warps."""
        names = list(self.layout.out_dims)
        found = []
        for basis in self.layout.bases[dim]:
            others = [x << self.shifts[n] for n, x in zip(names, basis, strict=True) if n != self.axis]
            found.append(f2.multiply(where, sum(others)))
        return found

    def moved(self, where: Sequence[int]) -> Value:
        """What the index adds."""
        return _linear_of(self.c, self.index, where[self.shift : self.shift + self.bits])

    def place(self, where: Sequence[int], *, registers: bool = True) -> Value:
        """A linear function of the element, given by its values at powers of two; or what lanes and warps add to it."""
        own = f2.span(self.fixed(where, "register")) if registers else [0]
        at = self.c.build.linear(own, self.fixed(where, "lane"), self.fixed(where, "warp"))
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
    address = c.plus(_Wanted(c, plan, index).place(where), base)
    return c.build.load("shared", address, value.elem)


def _in_warp(c: Context, plan: Gather, value: Value, index: Value) -> Value:
    """The registers that may hold the element, shuffled if they are another lane's; that which is meant is kept."""
    log = plan.source.in_log("register")
    columns = plan.where.columns
    to_lane = [x >> log & c.program.lanes - 1 for x in columns]
    to_register = [x & (1 << log) - 1 for x in columns]
    wanted = _Wanted(c, plan, index)
    lane = None if plan.kind == "registers" else wanted.place(to_lane)
    own = f2.span(wanted.fixed(to_register, "register"))
    along = to_register[wanted.shift : wanted.shift + wanted.bits]
    rows = f2.Echelon()
    steps = [x for x in (*along, *wanted.fixed(to_register, "lane"), *wanted.fixed(to_register, "warp")) if rows.add(x)]
    held = [c.build.rename(value, [r ^ step for r in own]) for step in f2.span(steps)]
    if lane is not None:
        held = [c.build.shuffle(x, lane) for x in held]
    return _meant(c, held, steps, wanted.place(to_register, registers=False)) if steps else held[0]


def _meant(c: Context, held: list[Value], steps: Sequence[int], which: Value) -> Value:
    """That of the values, one for each sum of steps, which `which` names; each step halves them, by one bit."""
    tests = [next((b for b in f2.bits(x) if not any(y >> b & 1 for y in steps if y != x)), None) for x in steps]
    if None not in tests:
        for bit in tests:
            one = c.build.op("arith.andi", [which, c.number(1 << (bit or 0))], "i32")
            odd = c.build.op("arith.cmpi", [one, c.number(0)], "i1", predicate=1)
            held = [c.build.select(odd, b, a) for a, b in zip(held[0::2], held[1::2], strict=True)]
        return held[0]
    result = held[0]
    for step, value in zip(f2.span(steps)[1:], held[1:], strict=True):
        meant = c.build.op("arith.cmpi", [which, c.number(step)], "i1", predicate=0)
        result = c.build.select(meant, value, result)
    return result
