"""Where masks end the axes of a tile: the comparisons that a mask is a conjunction of, and the numbers they come to.

    mask = (m[:, None] < M) & (k[None, :] < K)      # m = first_row + tl.arange(0, 32)

ends the first axis after `M - first_row` places, and the second likewise. Such an end is known when the program gets
there, not when it is compiled (see extents.py for ends that are constants).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, row_major
from weft.backends.cpu.corners import Condition, Conditions, ordered, substitute_live
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.program import Value
from weft.backends.cpu.questions import MOVES, Analysis, operands_at
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I64, Value as Reg, const

MOST_READERS = 24
LESS, MORE = 2, 4  # predicates of comparisons of signed integers

Key = tuple[object, ...]


class Emission(Protocol):
    """What has been emitted of a program by now."""

    f: Function
    env: dict[Value, Reg | Buffer]

    def analysis(self) -> Analysis:
        """Questions about values."""


class Bound(NamedTuple):
    """`low < high` for a place: `low` rises by one with each place along an axis, `high` is the same everywhere."""

    low: Value
    low_at: Coords
    high: Value
    high_at: Coords
    orders: tuple[Condition, ...]
    """What must hold for `low` not to wrap around within the tile."""
    key: Key
    """Equal for bounds that end an axis at the same place."""


class Bounds(NamedTuple):
    """What a mask says of where the axes of a tile end, and whether it says nothing else."""

    axes: tuple[list[Bound], ...]
    complete: bool


def bounds_of(s: Emission, mask: Value) -> Bounds:
    """The bounds that a mask is a conjunction of, by the axis that they end."""
    analysis, start = s.analysis(), row_major(mask.shape)
    axes: tuple[list[Bound], ...] = tuple([] for _ in start)
    steps_of = [{bit: 1 << i for i, bit in enumerate(bits)} for bits in start]
    complete = True
    todo = [(mask, start)]
    while todo:
        value, coords = todo.pop()
        op = value.op
        if op is not None and value.is_tile and value not in s.env:
            if op.name in MOVES[:4] or op.name == "arith.andi":
                todo += operands_at(op, value, coords)
                continue
            if op.name == "arith.cmpi" and op.attrs["predicate"] in (LESS, MORE):
                low, high = operands_at(op, value, coords)[:: 1 if op.attrs["predicate"] == LESS else -1]
                steps = analysis.exact_steps(*low, [])
                orders = ordered(analysis, *low, True)
                along = {bit: step for bit, step in (steps or {}).items() if step}
                is_known = orders is not None and not analysis.deps(*high) and _is_known(s, [low[0], high[0]])
                if is_known and along and along in steps_of:
                    axis = steps_of.index(along)
                    key = (_key(s, *low, start[axis]), _key(s, *high, start[axis]))
                    axes[axis].append(Bound(*low, *high, tuple(orders or ()), key))
                    continue
        complete = False
    return Bounds(axes, complete)


def _key(s: Emission, value: Value, coords: Coords, bits: Sequence[int]) -> Key:
    """How an integer at a place along an axis of some bits is computed, so that others are seen to be the same."""
    op = value.op
    while op is not None and value not in s.env and op.name in (*MOVES[:4], "tt.splat"):
        ((value, coords),) = operands_at(op, value, coords)
        op = value.op
    is_made = op is not None and op.name.startswith(("arith.", "tt.make_range")) and not op.regions
    if op is None or not is_made or (value.is_tile and value in s.env):
        return (id(value), tuple(tuple(bits.index(b) if b in bits else b for b in coord) for coord in coords))
    at = tuple(tuple(bits.index(b) if b in bits else b for b in coord) for coord in coords)
    parts = tuple(_key(s, v, c, bits) for v, c in operands_at(op, value, coords))
    return (op.name, value.elem, repr(sorted(op.attrs.items())), at if op.name == "tt.make_range" else (), parts)


def _leaves(s: Emission, values: list[Value]) -> Iterator[Value]:
    """The scalars and tiles in memory that tiles are computed from, and what they are loaded by."""
    todo, seen = list(values), set(values)
    while todo:
        value = todo.pop()
        if not value.is_tile or value in s.env or value.op is None or value.op.name == "tt.load" or value.op.regions:
            yield value
            continue
        todo += [a for a in value.op.args if a not in seen]
        seen.update(value.op.args)


def _is_known(s: Emission, values: list[Value]) -> bool:
    """Whether integers are made of nothing but places and scalars that there are by now."""
    return all(not leaf.is_tile and isinstance(s.env.get(leaf), Reg) for leaf in _leaves(s, values))


def _is_settled(s: Emission, bound: Bound) -> bool:
    """Whether a bound is the same throughout a program: its scalars are of the block that a kernel begins with."""
    blocks = [leaf.block for leaf in _leaves(s, [bound.low, bound.high])]
    return all(block is not None and block.parent is None and not block.predecessors for block in blocks)


def end_of(s: Emission, bounds: Sequence[Bound], size: int) -> Reg:
    """Where the first of some bounds ends an axis, which is so long; its whole length where indices wrap around."""
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


def keys_of(bounds: Sequence[Bound]) -> set[Key]:
    """The keys of some bounds."""
    return {bound.key for bound in bounds}


def last_end(s: Emission, ends: Sequence[Sequence[Bound]], size: int) -> Reg | None:
    """The last of some ends, each of which is the first of some bounds."""
    if not ends:
        return None
    different = {frozenset(keys_of(bounds)): bounds for bounds in ends}
    greatest, *others = (end_of(s, bounds, size) for bounds in different.values())
    for end in others:
        greatest = s.f.select(s.f.icmp("ult", greatest, end), end, greatest)
    return greatest


def ends_of_readers(s: Emission, value: Value, axis: int) -> list[list[Bound]]:
    """Where those that read a tile, directly or element by element, stop along an axis: at the masks of stores that are
    the same throughout a program. Nothing if one of them does not.
    """
    ends: list[list[Bound]] = []
    todo, seen = [value], {value}
    while todo:
        current = todo.pop()
        if current.elem == "ptr" or len(seen) > MOST_READERS:
            return []
        following: list[Value] = []
        for user in current.users:
            if user.name == "tt.store" and user.args[1] is current and len(user.args) > 2:
                bounds = [bound for bound in bounds_of(s, user.args[2]).axes[axis] if _is_settled(s, bound)]
                if not bounds:
                    return []
                ends.append(bounds)
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
                traps = user.name.startswith(("arith.div", "arith.rem")) and not user.name.endswith("f")
                if user.result.shape != value.shape or traps:  # what is not written may be any number
                    return []
                following.append(user.result)
            else:
                return []
        todo += [v for v in following if v not in seen]
        seen.update(following)
    return ends
