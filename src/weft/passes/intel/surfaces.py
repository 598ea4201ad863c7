"""Find the surface in memory of which a tile is a block, from the form of its addresses and its mask.

    tt.load %a + (64 pid + i) * stride + (32 k + j),    64 pid + i < M  and  32 k + j < K
is a block of
    base %a, rows of K elements, M of them, `stride` apart; its row is 64 pid, its column 32 k

The dimension whose step is 1 is that of columns, and the other's step is the pitch. If a mask bounds an index, that
index is the coordinate, and its limit the size of the surface: elements outside are 0, as with the mask. If no mask
bounds it, the block's own beginning is that of the surface, and its size the surface's.

    tt.load %p + i * stride + j                         base %p, 64 rows of 32 elements; row 0, column 0

The hardware requires surfaces that begin at multiples of 64 bytes. Others are made to begin earlier, by the remainder
of their address, and `width` and `x` grow by as much.

Other requirements of the hardware that the forms alone do not show become conditions: some are known to hold at compile
time, others are tested at run time, before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.analysis import AxisFacts, IntegerBounds
from weft.ir import Builder, bit_width, element_of, i1, i32, i64, int_value, pointee_of, shape_of, tt
from weft.machines.intel import BLOCKS

from ..affine import NOTHING, ONE, Forms, NotAffine, Sum, as_integer, as_type, is_outside
from ..fold import int_of

LESS, AT_MOST, MORE, AT_LEAST = 2, 3, 4, 5
"""Comparisons of integers with a sign, by xDSL's numbers."""
AWAY = 1 << 29
"""A row that no surface has."""


@dataclass(frozen=True)
class Condition:
    """What must hold when the program runs: a number of bytes is divided by `divisor`, or lies between two others."""

    total: Sum
    divisor: int = 0
    least: int = 0
    most: int | None = None
    address: SSAValue | None = None
    """A pointer that is added."""
    rest: bool = False
    """Whether what the surface begins before the address is added."""


@dataclass(frozen=True)
class Surface:
    """A surface and a block in it; numbers count elements, but for `size`."""

    base: SSAValue
    further: Sum
    """Elements from the base to where the surface begins."""
    size: int
    """Bytes of an element."""
    pitch: Sum
    width: Sum
    height: Sum
    x: Sum
    y: Sum
    shape: tuple[int, int]
    """Rows and columns of the block."""
    transposed: bool
    aligned: bool
    """Whether its address is known to be as the hardware wants it."""
    guards: tuple[SSAValue, ...] = ()
    """What must hold for anything to be accessed."""
    conditions: tuple[Condition, ...] = field(default=())

    def at(self, counter: SSAValue, instead: Sum) -> Surface:
        """The same in another iteration."""
        return replace(
            self,
            further=self.further.at(counter, instead),
            x=self.x.at(counter, instead),
            y=self.y.at(counter, instead),
        )

    def is_foreseen(self, loop: Operation, counter: SSAValue) -> bool:
        """Whether a loop's counter moves the block, and where it is in a later iteration is known before the loop."""
        moves = self.further.scalars | self.x.scalars | self.y.scalars
        return counter in moves and all(is_outside(v, loop) for v in (*moves - {counter}, *self.guards))

    def made(self, b: Builder, exists: SSAValue | None = None) -> list[SSAValue]:
        """Base, width, height, pitch, x and y. Nothing is there where `exists` does not hold."""
        size, base = self.size, self.base
        if self.further != NOTHING:
            base = b.create(tt.AddPtrOp, (base, self.further.made(b, i64)), (base.type,)).results[0]
        width = as_type(b, (self.width * size).made(b, i64), i32)
        x = clamped(b, self.x)
        if not self.aligned:
            rest = b.binary(arith.AndIOp, address_of(b, base), b.constant(BLOCKS.base - 1, i64))
            elements = b.binary(arith.ShRUIOp, rest, b.constant(size.bit_length() - 1, i64))
            back = b.binary(arith.SubiOp, b.constant(0, i64), elements)
            base = b.create(tt.AddPtrOp, (base, back), (base.type,)).results[0]
            width = b.binary(arith.AddiOp, width, as_type(b, rest, i32))
            x = b.binary(arith.AddiOp, x, as_type(b, elements, i32))
        width = b.binary(arith.MaxSIOp, width, b.constant(BLOCKS.least, i32)) if self.width.known else width
        height, y = as_type(b, self.height.made(b, i64), i32), clamped(b, self.y)
        for condition in (*self.guards, *((exists,) if exists is not None else ())):
            y = b.select(condition, y, b.constant(AWAY, i32))
        return [base, width, height, as_type(b, (self.pitch * size).made(b, i64), i32), x, y]


def clamped(b: Builder, total: Sum) -> SSAValue:
    """A coordinate in 32 bits; one that does not fit into them is outside of every surface, and stays so."""
    value = total.made(b, as_integer(total))
    if value.type == i32:
        return value
    for op, limit in ((arith.MinSIOp, AWAY), (arith.MaxSIOp, -AWAY)):
        value = b.binary(op, value, b.constant(limit, i64))
    return as_type(b, value, i32)


def address_of(b: Builder, pointer: SSAValue) -> SSAValue:
    """A pointer as an integer."""
    return b.create(tt.PtrToIntOp, (pointer,), (i64,)).results[0]


class Finder:
    """Finds surfaces in one function."""

    def __init__(self) -> None:
        self.forms, self.facts, self.bounds = Forms(), AxisFacts(), IntegerBounds(wrapping=False)

    def of(self, op: tt.LoadOp | tt.StoreOp, where: Operation) -> Surface:
        """That of an access. `where` is the loop, or the access itself, before which conditions are asked. NotAffine
        where there is none."""
        shape = shape_of(op.ptr.type)
        if len(shape) != 2:
            raise NotAffine("do not have two dimensions")
        size = bit_width(pointee_of(element_of(op.ptr.type))) // 8
        if size not in (1, 2, 4):
            raise NotAffine(f"are of elements of {size} bytes" if size else "are of single bits")
        form = self.forms.of(op.ptr)
        if form.base is None:
            raise NotAffine("do not begin at a known pointer")
        column = next((d for d in (1, 0) if form.steps[d] == ONE and form.steps[1 - d] != ONE), None)
        if column is None:
            raise NotAffine("are not known to be consecutive along either dimension (is a stride 1?)")
        row = 1 - column
        pitch = form.steps[row]
        limits, lower, guards = self._limits(op.mask, where)
        index, bound = [NOTHING, NOTHING], [Sum.number(shape[0]), Sum.number(shape[1])]
        conditions: list[Condition] = []
        for d in (0, 1):
            if d in limits:
                index[d], bound[d] = limits[d]
                if d not in lower and not index[d].is_positive(self.bounds):
                    conditions.append(Condition(index[d]))
        further = form.offset - index[row] * pitch - index[column]
        divisor = min((further * size).divisor(self.facts), self.facts.of(form.base).divisibility[0])
        aligned = divisor % BLOCKS.base == 0
        is_fixed = all(is_outside(v, where) for v in further.scalars)
        if divisor % BLOCKS.width:
            conditions.append(Condition(further * size, BLOCKS.width, address=form.base))
        wide, bytes = bound[column] * size, pitch * size
        most_rest = 0 if aligned or is_fixed else BLOCKS.base - BLOCKS.width
        conditions.append(Condition(bytes, least=BLOCKS.least, most=BLOCKS.most))
        conditions.append(Condition(bytes - wide - Sum.number(most_rest), rest=is_fixed and not aligned))
        if bytes.divisor(self.facts) % BLOCKS.pitch:
            conditions.append(Condition(bytes, BLOCKS.pitch))
        if column in limits:
            conditions.append(Condition(wide, least=BLOCKS.least))
            if wide.divisor(self.facts) % BLOCKS.width:
                conditions.append(Condition(wide, BLOCKS.width))
        if (index[column] * size).divisor(self.facts) % BLOCKS.width:
            conditions.append(Condition(index[column] * size, BLOCKS.width))
        if row in limits:
            conditions.append(Condition(bound[row], least=1, most=BLOCKS.most))
        for c in conditions:
            if any(not is_outside(v, where) for v in c.total.scalars):
                raise NotAffine("or the limits of its mask depend on conditions that change in the loop")
        kept = tuple(c for c in dict.fromkeys(conditions) if not self._holds(c))
        if any(c.total.known is not None and c.address is None and not c.rest for c in kept):
            raise NotAffine("have rows that are too short, or not far enough apart")
        return Surface(
            form.base, further, size, pitch, bound[column], bound[row], index[column], index[row],
            (shape[row], shape[column]), column == 0, aligned, tuple(guards), kept,
        )  # fmt: skip

    def _holds(self, c: Condition) -> bool:
        """Whether a condition is known to hold."""
        number = c.total.known
        if number is None or c.address is not None or c.rest:
            return False
        if c.divisor:
            return number % c.divisor == 0
        return c.least <= number and (c.most is None or number <= c.most)

    def _limits(
        self, mask: SSAValue | None, where: Operation
    ) -> tuple[dict[int, tuple[Sum, Sum]], set[int], list[SSAValue]]:
        """For the dimensions that a mask limits, the index and its bound; those where it may not be less than 0; what
        must hold for all elements."""
        upper: dict[int, tuple[Sum, Sum]] = {}
        found: set[tuple[int, Sum]] = set()
        guards: list[SSAValue] = []
        todo: list[tuple[SSAValue, tuple[int, ...]]] = [(mask, (0, 1))] if mask is not None else []
        while todo:
            value, dims = todo.pop()
            op = value.owner
            number = int_of(value)
            if number is not None and number:
                continue
            if not isinstance(op, Operation):
                raise NotAffine("are masked by a loop-carried value")
            if isinstance(op, arith.AndIOp):
                todo += [(x, dims) for x in op.operands]
            elif isinstance(op, tt.BroadcastOp) or op.name == "ttg.convert_layout":
                todo.append((op.operands[0], dims))
            elif isinstance(op, tt.ExpandDimsOp):
                axis = int_value(op.properties["axis"])
                todo.append((op.operands[0], tuple(d for i, d in enumerate(dims) if i != axis)))
            elif isinstance(op, tt.SplatOp) and op.operands[0].type == i1:
                guards.append(op.operands[0])
            elif isinstance(op, arith.CmpiOp):
                self._compared(op, dims, where, upper, found)
            else:
                raise NotAffine("are masked by conditions other than limits of rows and columns")
        for d, index in found:  # an index that is not the coordinate, but may not be less than 0
            if d not in upper or upper[d][0] != index:
                raise NotAffine("are masked from below by another index than from above")
        return upper, {d for d, _ in found}, guards

    def _compared(
        self,
        op: arith.CmpiOp,
        dims: Sequence[int],
        where: Operation,
        upper: dict[int, tuple[Sum, Sum]],
        lower: set[tuple[int, Sum]],
    ) -> None:
        kind, (a, b) = int_value(op.predicate), (self.forms.of(x) for x in op.operands)
        if kind in (MORE, AT_LEAST):
            a, b, kind = b, a, {MORE: LESS, AT_LEAST: AT_MOST}[kind]
        if kind not in (LESS, AT_MOST):
            raise NotAffine("are masked by a comparison other than <, <=, > and >=")
        more = ONE if kind == AT_MOST else NOTHING
        if (at := a.counts_beyond(b)) is not None:
            bound = b.offset + more
            fixed, moving = bound.split(lambda v: is_outside(v, where))
            limit = a.offset - moving, fixed
            d = dims[at]
            if upper.setdefault(d, limit) != limit:
                raise NotAffine("are masked by two limits of one index")
        elif (at := b.counts_beyond(a)) is not None:
            lower.add((dims[at], b.offset - a.offset + more - ONE))
        else:
            raise NotAffine("are masked by conditions other than limits of rows and columns")


def asked(b: Builder, surface: Surface) -> list[SSAValue]:
    """The conditions of a surface that are to be asked, each as a bit."""
    answers: list[SSAValue] = []
    for c in surface.conditions:
        value = c.total.made(b, i64)
        if c.address is not None:
            value = b.binary(arith.AddiOp, value, address_of(b, c.address))
        if c.rest:  # the surface begins before, and its rows are so much longer
            begin = address_of(b, surface.base)
            begin = b.binary(arith.AddiOp, begin, (surface.further * surface.size).made(b, i64))
            value = b.binary(arith.SubiOp, value, b.binary(arith.AndIOp, begin, b.constant(BLOCKS.base - 1, i64)))
        if c.divisor:
            rest = b.binary(arith.AndIOp, value, b.constant(c.divisor - 1, i64))
            answers.append(b.cmpi("eq", rest, b.constant(0, i64)))
            continue
        answers.append(b.cmpi("sge", value, b.constant(c.least, i64)))
        if c.most is not None:
            answers.append(b.cmpi("sle", value, b.constant(c.most, i64)))
    return answers
