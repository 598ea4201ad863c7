"""Products of tiles: by matrix instructions, or each lane multiplies what it holds.

The operands' layouts were chosen for one or the other, so each lane holds the elements that it needs. What is left is
to find, for each instance of the instruction, the registers that hold its elements.

The order in which an instruction sums is free. Along the summed dimension, lanes may therefore hold other elements than
the instruction names, as long as both operands agree. Operands that were loaded in narrower types and widened make use
of this: with f16 from fp8 a lane has four neighbours instead of two.

    the instruction's k        0 1 | 2 3 | 4 5 | 6 7      8 9 | 10 11 | ...
    of lanes                   0   | 1   | 2   | 3        0   | 1     | ...
    k in layouts of width 4    0 1 | 4 5 | 8 9 | 12 13    2 3 | 6 7   | ...
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from weft.base import CompilationError
from weft.ir import tt
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2
from weft.targets.instruction import Instruction
from weft.targets.table import available, instruction, products

from . import fragments
from .context import Context, lowering, tile_shape
from .telling import tell_product
from .unfit import left_over, named, no_instruction, other_lanes, other_sums, other_warps

LONGEST = ((1 << 31) - 1) // (128 * 128)
"""How many products of int8 cannot leave int32 together."""

Point = tuple[int, ...]


@lowering("tt.dot")
def _dot(c: Context, op: Operation) -> None:
    assert isinstance(op, tt.DotOp)
    shape, depth = tile_shape(op.results[0]), tile_shape(op.operands[0])[-1]
    product = _Product(c, [c.layout(x) for x in op.operands], [c.whole(x) for x in op.operands], shape, depth)
    product.precise = op.is_precise
    if not product.agrees() or not product.agrees("block"):
        raise other_warps(product.elsewhere(), [*op.operands], product.layouts, c.build.span)
    if product.holds_rows():
        c[op.results[0]] = product.by_multiplying()
        tell_product(c, op, None, depth * len(fragments.elements(product.layouts[2])), _why_multiplied(c, op, product))
        return
    for entry in product.candidates():
        along = product.summed_order(entry)
        if along is not None:
            if entry.params.get("saturating") and _cannot_overflow(c, op, product.depth):
                entry = instruction(entry.params["saturating"])
            c[op.results[0]] = product.by_instruction(entry, along)
            count = depth // entry.shape[2] * len(product.origins(entry, fragments.held(product.layouts[2])))
            tell_product(c, op, entry, count)
            return
    raise _unfit(c, op, product)


def _why_multiplied(c: Context, op: Operation, product: _Product) -> str:
    """Why lanes multiply element by element."""
    left, right, total = (v.elem for v in product.values)
    if product.precise and not products(c.machine, left, right, total, precise=True):
        return "f32 is multiplied in full precision, as input_precision asks"
    entries = product.candidates()
    if not entries:
        return f"{c.machine.name} has none for {left} times {right} summed in {total}"
    m, n, k = (min(entry.shape[i] for entry in entries) for i in range(3))
    rows, columns = product.shape[-2:]
    if rows < m or columns < n or product.depth < k:
        return f"the smallest is {m}x{n}x{k}, the product {rows}x{columns}x{product.depth}"
    return "the layouts give each lane whole rows of the left operand and whole columns of the right one"


def _cannot_overflow(c: Context, op: Operation, depth: int) -> bool:
    """Whether a sum of products of int8 begins with 0 and is too short to leave int32.

    Then it makes no difference whether sums wrap, as they do in Weft, or saturate; the instruction that is written is
    the saturating one, which is Triton's, so that who looks for it in PTX finds it.
    """
    return c.known(op.operands[2]) == 0 and depth <= LONGEST


def _unfit(c: Context, op: Operation, product: _Product) -> CompilationError:
    """Why no instruction can do it: of those that there are, the one that comes nearest."""
    entries = product.candidates()
    if not entries:
        of_warps = (e for e in available(c.program.machine) if e.shape and e.params.get("warps", 1) == 1)
        types = dict.fromkeys(e.params["types"][0] for e in of_warps)
        return no_instruction([v.elem for v in product.values], c.program.machine, c.build.span, list(types))
    fits = (e for e in entries if left_over(e, product.shape, product.depth, c.build.span) is None)
    entry = next(fits, entries[-1])
    error = left_over(entry, product.shape, product.depth, c.build.span)
    if error is not None:
        return error
    side = product.misfit(entry)
    if side is None:
        return other_sums(entry, list(op.operands[:2]), product.layouts, c.build.span)
    wanted = described = entry.params.get("described", "")
    if side < 2:
        result = named(op.results[0])
        wanted = f"DotOperandLayout({side}, {result}, k_width)"
        if named(op.operands[side]).startswith(wanted.removesuffix("k_width)")):  # it is the result's that is none
            wanted = f"DotOperandLayout({side}, {described}, k_width), and that layout for the result"
    return other_lanes(entry, side, op.operands[side], product.layouts[side], c.build.span, wanted)


def _lanes(tile: LinearLayout | None) -> tuple[Point, ...]:
    assert tile is not None
    return tile.transpose_outs(["dim0", "dim1"]).bases["lane"]


def _load_of(value: Value, register: int) -> int | None:
    """Which access a register was loaded by, if it comes from one."""
    while value.op is not None and value.op.name == "rename":
        register, value = value.op.attrs["table"][register], value.op.operands[0]
    if value.op is None or value.op.name not in ("load", "instruction") or not value.op.operands:
        return None
    return register // max(1, value.count // value.op.operands[0].count)


class _Product:
    """a, b and the accumulator; coordinates have the batch first, if there is one, then rows and columns."""

    def __init__(
        self, c: Context, layouts: Sequence[LinearLayout], values: list[Value], shape: Sequence[int], depth: int
    ) -> None:
        self.c, self.layouts, self.values, self.shape, self.depth = c, layouts, values, shape, depth
        self.batch = len(shape) - 2
        self.precise = False
        """Whether all bits of f32 are to be multiplied, where an instruction does so."""

    def agrees(self, dim: str = "warp") -> bool:
        """Whether warps, or lanes, hold the rows and columns of the operands that they hold of the result."""
        row, column = self.batch, self.batch + 1
        for a, b, t in zip(*(x.bases[dim] for x in self.layouts), strict=True):
            if a != (*t[:row], t[row], 0) or b != (*t[:row], 0, t[column]):
                return False
        return True

    def elsewhere(self) -> int:
        """The operand of which warps or blocks hold other rows or columns than of the result."""
        row = self.batch
        for dim in ("warp", "block"):
            for a, t in zip(self.layouts[0].bases[dim], self.layouts[2].bases[dim], strict=True):
                if a != (*t[: row + 1], 0):
                    return 0
        return 1

    def holds_rows(self) -> bool:
        """Whether each lane has whole rows of the left operand and whole columns of the right one."""
        return self.agrees("lane")

    def by_multiplying(self) -> Value:
        """Each lane multiplies and adds."""
        c, (a, b, total) = self.c, self.values
        left, right = fragments.held(self.layouts[0]), fragments.held(self.layouts[1])
        points = fragments.elements(self.layouts[2])
        elem = total.elem if ELEMENT_BITS[total.elem] >= 32 else "f32"
        running = self.widened(total, elem)
        for k in range(self.depth):
            x = self.widened(c.build.rename(a, [left[(*p[:-1], k)] for p in points]), elem)
            y = self.widened(c.build.rename(b, [right[(*p[:-2], k, p[-1])] for p in points]), elem)
            if elem[0] == "i":
                running = c.build.op("arith.addi", [running, c.build.op("arith.muli", [x, y], elem)], elem)
            else:
                running = c.build.op("math.fma", [x, y, running], elem)
        return running if elem == total.elem else c.build.op("arith.truncf", [running], total.elem)

    def widened(self, value: Value, elem: str) -> Value:
        """Elements in the type that is summed in."""
        if value.elem == elem:
            return value
        return self.c.build.op("arith.extsi" if elem[0] == "i" else "arith.extf", [value], elem)

    # -- matrix instructions ----------------------------------------------------------------------------------------

    def candidates(self) -> tuple[Instruction, ...]:
        """The matrix instructions of the machine for these types."""
        machine, elements = self.c.program.machine, [v.elem for v in self.values]
        exact = products(machine, *elements, precise=True) if self.precise else ()
        return exact or products(machine, *elements)

    def summed_order(self, entry: Instruction) -> list[int] | None:
        """Where the bits of the instruction's k lie in the layouts; None where lanes do not hold what it wants."""
        m, n, k = entry.shape
        if self.depth % k or self.exceeds(m, 0) or self.exceeds(n, 1) or not self.holds_whole(entry):
            return None
        tiles = [_lanes(o.layout) for o in entry.operands]
        left, right = self.placed(0, 1, tiles[0]), self.placed(1, 0, tiles[1])
        wanted = tuple((0,) * self.batch + p for p in tiles[2])
        lanes = self.layouts[2].bases["lane"]
        if (
            left is None
            or right is None
            or any(left[x] != right[x] for x in left.keys() & right.keys())
            or any(b != w and b != self.wrapped(w) for b, w in zip(lanes, wanted, strict=True))
        ):
            return None
        left |= right
        bits = f2.identity(self.depth.bit_length() - 1)
        free = sorted((b for b in bits if b not in left.values()), key=lambda b: (b > 1 and self.is_far(b), b))
        return [left[b] if b in left else free.pop(0) for b in bits]

    def holds_whole(self, entry: Instruction) -> bool:
        """Whether each warp holds all of the parts of the result that it holds something of."""
        held, points = fragments.held(self.layouts[2]), self.points(entry.operands[2].layout)
        return all(self.moved(origin, p) in held for origin in self.origins(entry, held) for p in points)

    def exceeds(self, size: int, axis: int) -> bool:
        """Whether the result has no whole number of an instruction's rows or columns, nor these of it.

        A tile that is smaller than the instruction is repeated in it: the layouts have copies in those lanes and
        registers, and the instruction makes copies of the result.
        """
        extent = self.shape[self.batch + axis]
        return bool(extent % size and size % extent)

    def misfit(self, entry: Instruction) -> int | None:
        """The operand whose lanes hold other elements than the instruction wants; None if all fit, each for itself."""
        tiles = [_lanes(o.layout) for o in entry.operands]
        for side in (0, 1):
            if self.placed(side, 1 - side, tiles[side]) is None:
                return side
        wanted = tuple((0,) * self.batch + p for p in tiles[2])
        lanes = self.layouts[2].bases["lane"]
        return 2 if any(b != w and b != self.wrapped(w) for b, w in zip(lanes, wanted, strict=True)) else None

    def is_far(self, bit: int) -> bool:
        """Whether elements at this distance along the sum come with different loads: they are better used apart."""
        for side, zero in ((0, [0] * (self.batch + 2)), (1, [0] * (self.batch + 2))):
            registers, moved = fragments.held(self.layouts[side]), list(zero)
            moved[self.batch + 1 - side] = bit
            places = [_load_of(self.values[side], registers[tuple(p)]) for p in (zero, moved)]
            if None in places or places[0] != places[1]:
                return True
        return False

    def wrapped(self, point: Point) -> Point:
        """A coordinate of an instruction in a tile that is smaller than it."""
        return tuple(x % s for x, s in zip(point, self.shape, strict=True))

    def placed(self, side: int, axis: int, tile: tuple[Point, ...]) -> dict[int, int] | None:
        """From the instruction's k to that of the layout, for the bits that lanes hold."""
        places: dict[int, int] = {}
        for basis, wanted in zip(self.layouts[side].bases["lane"], tile, strict=True):
            place = basis[self.batch :]
            if wanted[axis]:
                if place[1 - axis] or not place[axis] or place[axis] & place[axis] - 1:
                    return None
                places[wanted[axis]] = place[axis]
            elif (
                place[axis]
                or place[1 - axis] != wanted[1 - axis] % self.layouts[side].out_dims[f"dim{self.batch + 1 - axis}"]
            ):
                return None
        return places

    def by_instruction(self, entry: Instruction, along: Sequence[int]) -> Value:
        """Instance by instance: one part of the sum after the other, so that few operands are needed at a time."""
        k, (rows, columns) = entry.shape[2], self.shape[-2:]
        places = [fragments.held(x) for x in self.layouts]
        points = [self.points(o.layout) for o in entry.operands]
        origins = self.origins(entry, places[2])
        registers = [[places[2][self.moved(o, p)] for p in points[2]] for o in origins]
        running = [self.c.build.rename(self.values[2], r) for r in registers]
        order = [f2.multiply(along, x) for x in range(self.depth)]
        for at in range(0, self.depth, k):
            for number, (*batch, i, j) in enumerate(origins):
                left = [places[0][(*batch, (i + x) % rows, order[at + y])] for x, y in points[0]]
                right = [places[1][(*batch, order[at + x], (j + y) % columns)] for x, y in points[1]]
                operands = [self.c.build.rename(v, t) for v, t in zip(self.values, (left, right), strict=False)]
                total = running[number]
                op = self.c.build.instruction(entry.name, [*operands, total], [(total.elem, total.count)])
                running[number] = op.result
        return self.assembled(running, [r for part in registers for r in part], places[2])

    def origins(self, entry: Instruction, places: dict[Point, int]) -> list[Point]:
        """The first element of each part of the result, row by row."""
        m, n, _ = entry.shape
        b = self.batch
        return sorted({(*p[:b], p[b] // m * m, p[b + 1] // n * n) for p in places})

    def moved(self, origin: Point, point: Point) -> Point:
        """A point of an instruction in the tile."""
        *batch, i, j = origin
        return self.wrapped((*batch, i + point[0], j + point[1]))

    @staticmethod
    def points(tile: LinearLayout | None) -> list[Point]:
        """The coordinates of the registers of lane 0 in an instruction's operand."""
        assert tile is not None
        return fragments.points(tile)

    def assembled(self, parts: Sequence[Value], registers: Sequence[int], registers_of: dict[Point, int]) -> Value:
        """One fragment of registers that were computed in pieces; copies are where what they copy is."""
        joined = self.c.build.add("join", parts, [(parts[0].elem, len(registers))]).result
        place = {r: i for i, r in enumerate(registers)}
        return self.c.build.rename(joined, [place[registers_of[p]] for p in fragments.elements(self.layouts[2])])
