"""How much of a product is asked for: the rows and columns that somebody reads, and the part of K that is not padding.

Blocks seldom divide the sizes of matrices, and the masks of a kernel know where these end:

    a = tl.load(a_ptr + ..., mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
    b = tl.load(b_ptr + ..., mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
    acc = tl.dot(a, b, acc)
    ...
    tl.store(c_ptr + ..., acc, mask=(m[:, None] < M) & (n[None, :] < N))

From K on both operands are zeros, which add nothing. Rows from M on and columns from N on are not stored, and nothing
else reads `acc`, so that they need not be computed. What is zero in one operand alone is multiplied: the other may be
infinite there. The ends are numbers that are known when the product is begun, and `blocks` goes as far as they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weft.backends.cpu.coords import Coords, row_major
from weft.backends.cpu.corners import Condition, Conditions, ordered, substitute_live
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.questions import MOVES, operands_at
from weft.backends.cpu.schedule import Scheduler
from weft.backends.llvm.values import I64, Value as Reg, const

LESS, MORE = 2, 4  # predicates of comparisons of signed integers
MOST_READERS = 24
WIDENING = ("arith.extf", "arith.truncf", "tt.fp_to_fp")  # of zero make zero


class ProductEnds(NamedTuple):
    """How many rows, columns and elements of K are multiplied (i64); None where it is all that there are."""

    rows: Reg | None = None
    columns: Reg | None = None
    depth: Reg | None = None


class Bound(NamedTuple):
    """`low < high` for a place: `low` rises by one with each place along an axis, `high` is the same everywhere."""

    low: Value
    low_at: Coords
    high: Value
    high_at: Coords
    orders: tuple[Condition, ...]


def product_ends(s: Scheduler, op: Op) -> ProductEnds:
    """The ends of a product of two matrices that begins now."""
    a, b, _ = op.args
    if len(a.shape) != 2:
        return ProductEnds()
    rows, columns = (_of_readers(s, op.result, axis) for axis in (0, 1))
    zeros = [_of_zeros(s, a, 1), _of_zeros(s, b, 0)]
    depth = None if zeros[0] is None or zeros[1] is None else _greatest(s, [zeros[0], zeros[1]])
    return ProductEnds(rows, columns, depth)


def _greatest(s: Scheduler, ends: list[Reg]) -> Reg:
    greatest, *others = ends
    for end in others:
        greatest = s.f.select(s.f.icmp("ult", greatest, end), end, greatest)
    return greatest


def _of_zeros(s: Scheduler, value: Value, axis: int) -> Reg | None:
    """From where on an operand is zero along an axis, as its mask says."""
    while value.op is not None and value.op.name in WIDENING and value not in s.env:
        value = value.op.args[0]
    load = value.op
    if load is None or load.name != "tt.load" or len(load.args) < 3 or not _is_zero(load.args[2]):
        return None
    bounds = list(_bounds(s, load.args[1], axis))
    return _end(s, bounds, value.shape[axis]) if bounds else None


def _is_zero(value: Value) -> bool:
    while value.op is not None and value.op.name in ("tt.splat", "tt.broadcast"):
        value = value.op.args[0]
    return value.op is not None and value.op.name == "arith.constant" and value.op.attrs["value"] == 0


def _of_readers(s: Scheduler, value: Value, axis: int) -> Reg | None:
    """Where all that read a tile, directly or element by element, stop along an axis: at the masks of stores that are
    the same throughout a program."""
    ends: list[Reg] = []
    todo, seen = [value], {value}
    while todo:
        current = todo.pop()
        if current.elem[0] not in "fb" or len(seen) > MOST_READERS:  # what is not written may be any number
            return None
        following: list[Value] = []
        for user in current.users:
            if user.name == "tt.store" and user.args[1] is current and len(user.args) > 2:
                bounds = [bound for bound in _bounds(s, user.args[2], axis) if _is_settled(s, bound)]
                if not bounds:
                    return None
                ends.append(_end(s, bounds, value.shape[axis]))
            elif user.name == "scf.yield" and user.block.parent is not None and user.block.parent.name == "scf.for":
                loop = user.block.parent
                carried = list(zip(user.args, loop.results, user.block.args[1:], strict=True))
                following += [v for arg, *more in carried if arg is current for v in more]
            elif user.name == "scf.for":
                inits = user.args[len(user.args) - len(user.results) :]
                carried = list(zip(inits, user.results, user.regions[0][0].args[1:], strict=True))
                following += [v for arg, *more in carried if arg is current for v in more]
            elif user.name == "tt.dot" and current is user.args[2] and current not in user.args[:2]:
                following.append(user.result)
            elif user.name.startswith(("arith.", "math.")) and len(user.results) == 1 and not user.regions:
                if user.result.shape != value.shape:
                    return None
                following.append(user.result)
            else:
                return None
        todo += [v for v in following if v not in seen]
        seen.update(following)
    return _greatest(s, list(dict.fromkeys(ends))) if ends else None


def _bounds(s: Scheduler, mask: Value, axis: int) -> Iterator[Bound]:
    """The comparisons that a mask is a conjunction of and that end an axis."""
    analysis, start = s.analysis(), row_major(mask.shape)
    step_of = {bit: 1 << i for i, bit in enumerate(start[axis])}
    todo = [(mask, start)]
    while todo:
        value, coords = todo.pop()
        op = value.op
        if op is None or not value.is_tile or value in s.env:
            continue
        if op.name in MOVES[:4] or op.name == "arith.andi":
            todo += operands_at(op, value, coords)
        elif op.name == "arith.cmpi" and op.attrs["predicate"] in (LESS, MORE):
            low, high = operands_at(op, value, coords)[:: 1 if op.attrs["predicate"] == LESS else -1]
            steps = analysis.exact_steps(*low, [])
            orders = ordered(analysis, *low, True)
            if steps is None or orders is None or analysis.deps(*high) or not _is_known(s, [low[0], high[0]]):
                continue
            if {bit: step for bit, step in steps.items() if step} == step_of:
                yield Bound(*low, *high, tuple(orders))


def _leaves(s: Scheduler, values: list[Value]) -> Iterator[Value]:
    """The scalars and tiles in memory that tiles are computed from, and what they are loaded by."""
    todo, seen = list(values), set(values)
    while todo:
        value = todo.pop()
        if not value.is_tile or value in s.env or value.op is None or value.op.name == "tt.load" or value.op.regions:
            yield value
            continue
        todo += [a for a in value.op.args if a not in seen]
        seen.update(value.op.args)


def _is_known(s: Scheduler, values: list[Value]) -> bool:
    """Whether integers are made of nothing but places and scalars that there are by now."""
    return all(not leaf.is_tile and isinstance(s.env.get(leaf), Reg) for leaf in _leaves(s, values))


def _is_settled(s: Scheduler, bound: Bound) -> bool:
    """Whether a bound is the same throughout a program: its scalars are of the block that a kernel begins with."""
    blocks = [leaf.block for leaf in _leaves(s, [bound.low, bound.high])]
    return all(block is not None and block.parent is None and not block.predecessors for block in blocks)


def _end(s: Scheduler, bounds: list[Bound], size: int) -> Reg:
    """Where the first of some bounds ends an axis, which is so long."""
    f, least = s.f, const(I64, size)
    for bound in bounds:
        conditions = Conditions(Evaluator(f, s.env, ()))
        for condition in bound.orders:
            conditions.add(condition)
        first = conditions.scalar(bound.low, substitute_live(bound.low_at, -1))
        end = conditions.scalar(bound.high, substitute_live(bound.high_at, -1))
        low, high = (f.cast("sext", reg, I64) if reg.type != I64 else reg for reg in (first, end))
        room = f.select(f.icmp("slt", low, high), f.sub(high, low), const(I64, 0))
        rises = conditions.all()
        if rises.name != "true":
            room = f.select(rises, room, const(I64, size))
        least = f.select(f.icmp("ult", room, least), room, least)
    return least
