"""From where on all that a reduction combines is padding, as its masks say when the program gets there.

    x = tl.load(p + i, mask=i < n, other=0.0)      # i = tl.arange(0, 128), n = 65
    s = tl.sum(x, 0)

The elements from 65 on are zeros. One zero more or less is the same, so that the loop along the axis may end behind the
first point that has such (see extents.py for ends that are known to the compiler). So it may for an extremum with its
place (reduced_places.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import reduce
from typing import NamedTuple

from weft.backends.cpu.coords import Coords, row_major
from weft.backends.cpu.corners import Condition, Conditions, conjuncts
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.extents import repeats
from weft.backends.cpu.nest import Nest
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.questions import operands_at
from weft.backends.cpu.reduced_places import keeps_first
from weft.backends.llvm.values import I1, Value as Reg, const

MOST_READERS = 24
ENDLESS = (0, float("inf"), float("-inf"))
"""Numbers that every type of floats has."""


class Stop(NamedTuple):
    """When a mask holds nowhere behind a point."""

    ends: list[tuple[Value, Coords]]
    """Comparisons, each at an element of a point: if one does not hold there, the mask holds at no later point, and
    each output has had some padding.
    """
    orders: list[Condition]
    """What must be so for that."""
    places: list[tuple[Value, Coords]]
    """The same comparisons, wherever they are made."""


def stops_of(nest: Nest, reductions: Sequence[Op], moving: Set[int]) -> list[Stop]:
    """The masks that leave reductions nothing but padding where none of them holds at a point, which are copies and
    lanes that `moving` bits number; none where that is not known.
    """
    stops: list[Stop] = []
    for op in reductions:
        coords = row_major(op.args[0].shape)
        padding = _padding(op.args[0], coords, op.attrs["axis"])
        if padding is None or not (repeats if len(op.args) == 1 else keeps_first)(op, padding[0]):
            return []
        for mask, at in padding[1]:
            stop = _stop(nest, mask, at, moving)
            if stop is None:
                return []
            stops.append(stop)
    return stops


def reaches(ev: Evaluator, stops: Sequence[Stop]) -> Reg:
    """Whether any mask may hold somewhere behind the point where an evaluator is."""
    points = ev.at_points()
    some: list[Reg] = []
    for ends, orders, _ in stops:
        beyond, known = Conditions(points), Conditions(points)
        for value, at in dict.fromkeys(ends):
            beyond.regs.append(beyond.scalar(value, at))
        for condition in dict.fromkeys(orders):
            known.add(condition)
        some.append(beyond.all())
        if known.regs:
            some.append(ev.f.xor(known.all(), const(I1, 1)))
    return reduce(ev.f.or_, dict.fromkeys(some))


def unread(stops: Sequence[Stop], value: Value, done: Set[Op]) -> bool:
    """Whether nobody but some reductions reads a tile where a comparison that stops a nest does not hold: it is stored,
    or what is made of it element by element, under masks that say the same.
    """
    todo, seen = [value], {value}
    while todo:
        for user in todo.pop().users:
            if user in done:
                continue
            if user.name == "tt.store" and user.args[1] in seen and len(user.args) > 2:
                made = set(_comparisons(user.args[2], row_major(user.args[2].shape)))
                if any(not made.issuperset(stop.places) for stop in stops):
                    return False
            elif not _is_of_floats(user, value.shape):  # integers may be divided by
                return False
            elif user.result not in seen:
                seen.add(user.result)
                todo.append(user.result)
        if len(seen) > MOST_READERS:
            return False
    return True


def _is_of_floats(op: Op, shape: tuple[int, ...]) -> bool:
    """Whether an operation makes a tile of floats, element by element."""
    if not op.name.startswith(("arith.", "math.")) or op.regions or len(op.results) != 1:
        return False
    return op.result.elem[0] == "f" and op.result.shape == shape


def _comparisons(mask: Value, coords: Coords) -> Iterator[tuple[Value, Coords]]:
    """The comparisons that a mask is a conjunction of, and where they are made."""
    op = mask.op
    if op is not None and mask.is_tile and op.name in ("tt.broadcast", "tt.expand_dims", "arith.andi"):
        for part in operands_at(op, mask, coords):
            yield from _comparisons(*part)
    else:
        yield mask, coords


def _padding(value: Value, coords: Coords, axis: int) -> tuple[float | int, list[tuple[Value, Coords]]] | None:
    """What the elements of a tile are where none of some masks holds, and these masks: that number, or, where infinity
    was taken from infinity, NaN for all of a row.
    """
    op = value.op
    if op is None or not value.is_tile:
        return None
    if op.name == "tt.load" and len(op.args) > 2:
        return _chosen(op.args[1], op.args[2], coords)
    if op.name == "arith.select" and op.args[0].is_tile:
        return _chosen(op.args[0], op.args[2], coords)
    if op.name in ("arith.extf", "arith.truncf", "arith.extsi"):
        inner = _padding(op.args[0], coords, axis)
        return inner if inner is not None and inner[0] in ENDLESS else None
    if op.name == "arith.subf":  # less by what is the same along the axis, of which the greatest of a row is one
        inner = _padding(op.args[0], coords, axis)
        return inner if inner is not None and inner[0] == -float("inf") and _is_spread(op.args[1], axis) else None
    if op.name in ("math.exp", "math.exp2"):
        inner = _padding(op.args[0], coords, axis)
        return (0, inner[1]) if inner is not None and inner[0] == -float("inf") else None
    if op.name in ("arith.mulf", "arith.muli", "arith.addf", "arith.addi"):  # of zeros
        parts = [_padding(a, coords, axis) for a in op.args]
        return parts[0] if all(p is not None and p[0] == 0 for p in parts) and parts[0] == parts[1] else None
    return None


def _is_spread(value: Value, axis: int) -> bool:
    """Whether a tile is the same all along an axis."""
    op = value.op
    return op is not None and (op.name == "tt.splat" or (op.name == "tt.broadcast" and op.args[0].shape[axis] == 1))


def _chosen(mask: Value, other: Value, coords: Coords) -> tuple[float | int, list[tuple[Value, Coords]]] | None:
    """A constant that stands where a mask does not hold."""
    op = other.op
    while op is not None and op.name in ("tt.splat", "tt.broadcast"):
        op = op.args[0].op
    data = op.attrs["value"] if op is not None and op.name == "arith.constant" else None
    return (data, [(mask, coords)]) if isinstance(data, (int, float)) else None


def _stop(nest: Nest, mask: Value, coords: Coords, moving: Set[int]) -> Stop | None:
    """What ends the points of a nest at which a mask holds; None if nothing does."""
    stop = Stop([], [], [])
    todo = [(mask, coords)]
    while todo:
        value, at = todo.pop()
        op = value.op
        if op is None or not value.is_tile or value in nest.env:
            continue
        if op.name in ("tt.broadcast", "tt.expand_dims", "arith.andi"):
            todo += operands_at(op, value, at)
        elif op.name == "arith.cmpi":
            corner = _corner(nest, op, at, moving)
            here = conjuncts(nest.analysis, nest.env, value, at, moving)
            along = conjuncts(nest.analysis, nest.env, value, at, moving | set(nest.inner_bits))
            if corner and here is not None and along is not None:
                *_, least, most = here[-1]
                stop.ends.append((value, least if corner == LEAST_LIKELY else most))
                stop.orders.extend(along[:-1])
                stop.places.append((value, at))
    return stop if stop.ends else None


LEAST_LIKELY, MOST_LIKELY = 1, 2
"""The element of a point at which a comparison is asked."""


def _corner(nest: Nest, op: Op, coords: Coords, moving: Set[int]) -> int:
    """Where in a point a comparison has to hold for it to hold at later points; 0 if that is not known.

    It rises with the places of a reduced axis, for all outputs alike, and each point goes on where the one before ends:
    then at the last element. Or it is the same all along that axis: then anywhere.
    """
    if op.attrs["predicate"] in (0, 1):
        return 0
    less = op.attrs["predicate"] in (2, 3, 6, 7)
    low, high = (op.args[0], op.args[1]) if less else (op.args[1], op.args[0])
    steps = nest.analysis.exact_steps(low, coords, [])
    along, across = set(nest.reduce_bits), moving - set(nest.reduce_bits)
    if steps is None or nest.analysis.deps(high, coords) & along:
        return 0
    if not any(steps.get(bit, 0) != 0 for bit in along):
        return MOST_LIKELY
    if any(steps.get(bit, 0) != 0 for bit in across) or nest.analysis.deps(high, coords) & across:
        return 0
    reached = 0
    for bit in (*sorted(along - set(nest.inner_bits)), *nest.inner_bits):
        step = steps.get(bit, 0) or 0
        if step <= reached:  # each bit goes further than all those before it
            return 0
        reached += step
    return LEAST_LIKELY
