"""Loops along the rows that an index is divided into, where no number of vectors fills a row.

    i = start + tl.arange(0, 1024)               row, place = start // 300, start % 300
    load at i // 300 * 700 + i % 300     ->      while points are left:
                                                     for each 16 places up to the end of the row:
                                                         load at row * 700 + place
                                                     the rest of the row, under a mask
                                                     row, place = row + 1, 0

A vector then lies within one row: quotients are scalars, what lies along a row is loaded by whole vectors, and nothing
is divided in a loop. All that an index is divided by is a multiple of one number, the length of the shortest rows.

`find_walk` says whether a nest is walked in this way: its lanes run along the axis of such an index, all that it reads
and writes along this axis it does element by element, and rows are not too short. The bits of the axis that are not
lanes are then no loops that count from zero, but a place that may be any number (`Walk.position`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from math import gcd

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import ZERO, Coords, live_bits, substitute
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.forms import vector_of
from weft.backends.cpu.planned import Planned, Root
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.questions import QUOTIENTS, REMAINDERS, constant_int, operands_at
from weft.backends.cpu.roots import AssertRoot, CheckRoot, StoreRoot, WriteRoot
from weft.backends.cpu.row_walk import Walk
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I64, Type, Value as Reg, const

MOST_WALKED = 160
"""Operations of a nest whose body is emitted once for vectors within a row, and once for the end of it."""
KNOWN_ROOTS = (AssertRoot, CheckRoot, StoreRoot, WriteRoot)
"""What may be done to a part of a vector."""
WHOLE_AXIS = ("tt.join", "tt.cat")
FEW = 4
"""Elements of a vector whose end, where no access can be under a mask, is emitted for each of them, with no loop."""


@dataclass(frozen=True)
class Rows:
    """Rows along an axis."""

    bits: tuple[int, ...]
    index: Value
    """What is divided into rows."""
    coords: Coords
    length: int
    divisions: frozenset[Op]
    """The quotients and remainders that follow from a row's number and a place in it."""


def find_rows(nest: Planned) -> Rows | None:
    """The rows that a nest is to be walked along, if any."""
    lanes = len(nest.lane_bits)
    if lanes < 2 or nest.transposes or nest.zips or len(nest.visited) > MOST_WALKED:
        return None
    bits = next((bits for bits in nest.coords if len(bits) > lanes and bits[:lanes] == nest.lane_bits), ())
    if not bits or not set(bits).isdisjoint(nest.reduce_bits) or not _whole(nest, bits):
        return None
    found = (_rows(nest, bits, index, coords) for index, coords in _indices(nest, bits))
    rows = next((rows for rows in found if rows is not None), None)
    return None if rows is None or (nest.reduce_bits and not can_mask(nest, rows)) else rows


def _indices(nest: Planned, bits: tuple[int, ...]) -> Iterator[tuple[Value, Coords]]:
    """The indices that go along an axis one by one and are divided."""
    asked = dict[tuple[Value, Coords], None]()
    for op, coords in _divisions(nest):
        asked[operands_at(op, op.result, coords)[0]] = None
    for index, coords in asked:
        steps = nest.analysis.exact_steps(index, coords, [])
        if steps == {b: 1 << i for i, b in enumerate(bits)} and nest.analysis.nonnegative(index):
            yield index, coords


def _divisions(nest: Planned) -> Iterator[tuple[Op, Coords]]:
    for value, coords in nest.visited:
        op = value.op
        if op is None or op.name not in (*REMAINDERS, *QUOTIENTS) or value in nest.env or value.is_inside:
            continue
        if (constant_int(op.args[1]) or 0) > 1:
            yield op, coords


def _rows(nest: Planned, bits: tuple[int, ...], index: Value, coords: Coords) -> Rows | None:
    length, divisions, along, apart = 0, set[Op](), {(index, coords)}, False
    for op, at in _divisions(nest):  # operands first
        if operands_at(op, op.result, at)[0] in along:
            length = gcd(length, constant_int(op.args[1]) or 1)
            divisions.add(op)
            apart = apart or not nest.aligned(op, at, nest.lane_bits)
            if op.name in REMAINDERS:
                along.add((op.result, at))
    if not apart or length < max(4, 1 << len(nest.lane_bits) - 1):
        return None
    if any(op in divisions and operands_at(op, op.result, at)[0] not in along for op, at in _divisions(nest)):
        return None  # at another place as well
    return Rows(bits, index, coords, length, frozenset(divisions)) if _for_addresses(nest, divisions) else None


def _for_addresses(nest: Planned, divisions: set[Op]) -> bool:
    """Whether what is loaded or stored lies where these divisions say."""
    pointers = [(v.op.args[0], c) for v, c in nest.visited if v not in nest.env and v.op and v.op.name == "tt.load"]
    pointers += [(r.op.args[0], nest.coords) for r in nest.roots if isinstance(r, StoreRoot)]
    return not divisions.isdisjoint(v.op for v, _ in nest.analysis.walk(pointers) if v.op is not None)


def _whole(nest: Planned, bits: tuple[int, ...]) -> bool:
    """Whether all of a nest takes the bits of an axis together, and knows what to do with a part of a vector."""
    if any(not isinstance(root, KNOWN_ROOTS) and not _reduces(root) for root in nest.roots):
        return False
    places = set[tuple[int, ...]]()
    for value, coords in nest.visited:
        op, stored = value.op, nest.env.get(value)
        if isinstance(stored, Buffer):
            places |= _places(stored, coords)
        elif op is None or op.name == "tt.make_range":
            places |= set(coords)
        elif op.name in WHOLE_AXIS:
            return False
    for root in nest.roots:
        for target, coords, _ in root.accesses():
            if isinstance(target, Buffer):
                places |= _places(target, coords)
    ours = set(bits)
    return all(place == bits for place in places if not ours.isdisjoint(place))


def _reduces(root: Root) -> bool:
    return root.op is not None and root.op.name == "tt.reduce"


def _places(buffer: Buffer, coords: Coords) -> set[tuple[int, ...]]:
    """The coordinates of what lies in a buffer; one whose bits lie apart there is none."""
    return {
        coord if list(weights) == list(range(weights[0], weights[0] + len(weights))) else (*coord, -1)
        for coord, weights in zip(coords, buffer.weights, strict=True)
        if coord
    }


def walk(nest: Planned, ev: Evaluator, rows: Rows, body: Callable[[Evaluator], None], available: Set[int]) -> None:
    """Emit loops along the rows of an axis around a body; `available` are the bits of the loops around them."""
    f, bits = nest.f, rows.bits
    at_once = 1 << sum(b in nest.lane_bits or b in nest.unroll for b in bits)
    origin = tuple(tuple(ZERO if s in bits else s for s in coord) for coord in rows.coords)
    index = vector_of(f, ev.at_points().eval(rows.index, origin), 0)
    steady = _steady(nest, rows, ev.full, available)
    length, points = const(index.type, rows.length), const(I64, 1 << len(bits))
    first = f.bin("udiv", index, length)
    begin = _cast(f, "zext", f.sub(index, f.mul(first, length)), I64)
    last = f.bin("udiv", f.add(begin, const(I64, (1 << len(bits)) - 1)), const(I64, rows.length))

    def row(number: Reg, state: list[Reg]) -> list[Reg]:
        start, place = state
        left = f.intrinsic("umin", I64, [f.sub(const(I64, rows.length), place), f.sub(points, start)])
        stop, whole = f.add(start, left), f.add(start, f.and_(left, const(I64, -at_once)))
        here = f.add(first, _cast(f, "trunc", number, first.type))
        shift = f.sub(place, start)

        def iteration(ev: Evaluator, position: Reg, rest: Reg | None) -> None:
            along = Walk(bits, position, shift, here, rows.length, rows.divisions, rest)
            ev.loops.update(dict.fromkeys(bits, along))
            ev.enter()
            body(ev)
            ev.leave()

        ev.loops.update(dict.fromkeys(bits, Walk(bits, start, shift, here, rows.length, rows.divisions, None)))
        ev.enter()
        for copy in nest.copies():
            for value, coords in steady:
                ev.eval(value, substitute(coords, copy))
        with f.loop(start, whole, const(I64, at_once)) as position:
            iteration(ev, position, None)
        if can_mask(nest, rows):
            rest = f.sub(stop, whole)
            f.when(f.icmp("ne", rest, const(I64, 0)), lambda: iteration(ev, whole, rest))
        elif at_once <= FEW:
            few(one_by_one(ev), iteration, whole, stop, at_once - 1)
        else:
            single = one_by_one(ev)
            with f.loop(whole, stop, const(I64, 1)) as position:
                iteration(single, position, None)
        ev.leave()
        return [stop, const(I64, 0)]

    def few(single: Evaluator, iteration: Callable[..., None], position: Reg, stop: Reg, most: int) -> None:
        """The elements from a position on, of which there are at most so many, without a loop."""

        def one() -> None:
            iteration(single, position, None)
            if most > 1:
                few(single, iteration, f.add(position, const(I64, 1)), stop, most - 1)

        f.when(f.icmp("slt", position, stop), one)

    number = f.add(last, const(I64, 1))
    f.loop_carrying(const(I64, 0), number, const(I64, 1), [const(I64, 0), begin], row, at_least_once=True)
    for b in bits:
        ev.loops.pop(b, None)


def _cast(f: Function, op: str, value: Reg, type: Type) -> Reg:
    return value if value.type == type else f.cast(op, value, type)


def _moving(
    nest: Planned, rows: Rows, full: Set[Value] = frozenset(), *, inside: bool = False
) -> set[tuple[Value, Coords]]:
    """What is not the same all along a row; `inside`: and all that is inside of loops, which is not the same there."""
    moving = set[tuple[Value, Coords]]()
    for value, coords in nest.visited:  # operands first
        op = value.op
        if op is None or value in nest.env or op.name == "tt.make_range":
            moves = not live_bits(coords).isdisjoint(rows.bits)
        elif op in rows.divisions and op.name in QUOTIENTS:
            moves = False
        else:
            parts = operands_at(op, value, coords)
            moves = (inside and value.is_inside) or op.fused or any(p in moving and p[0] not in full for p in parts)
        if moves:
            moving.add((value, coords))
    return moving


def _steady(nest: Planned, rows: Rows, full: Set[Value], available: Set[int]) -> list[tuple[Value, Coords]]:
    """What is the same all along a row, operands first: what a row is scaled by, say, and all that is made of it."""
    settled = {*available, *rows.bits, *(b for b in (*nest.lane_bits, *nest.unroll) if b not in nest.unsettled)}
    moving, steady = _moving(nest, rows, full, inside=True), list[tuple[Value, Coords]]()
    for value, coords in nest.visited:
        if (value, coords) not in moving and value.op is not None and value not in nest.env:
            deps = nest.analysis.deps(value, coords)
            if settled >= deps and not deps.isdisjoint(rows.bits):
                steady.append((value, coords))
    return steady


def can_mask(nest: Planned, rows: Rows) -> bool:
    """Whether all that a nest loads and stores along the rows may be under masks."""
    moving, sizes = _moving(nest, rows), set[int]()
    for value, coords in nest.visited:
        have, op = nest.env.get(value), value.op
        is_read = isinstance(have, Buffer) and not live_bits(coords).isdisjoint(rows.bits)
        if is_read or (op is not None and op.name == "tt.load" and (op.args[0], coords) in moving):
            sizes.add(element_bits(value.elem))
    sizes |= {bits for root in nest.roots for _, _, bits in root.accesses()}
    return sizes <= set(nest.f.module.masked_bits)


def one_by_one(ev: Evaluator) -> Evaluator:
    """An evaluator for single elements of what another evaluates in vectors."""
    single = ev.at_points()
    single.full, single.identities, single.loop = ev.full, ev.identities, ev.loop
    single.loops = dict(ev.loops)
    return single
