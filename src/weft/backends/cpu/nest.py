"""A loop nest over the elements of a tile: which bits are lanes, which are loops, and what is done at each point.

Idea
----
On a CPU a tile is no set of registers: it is a loop. A nest has an iteration shape and a list of roots, things that
are done at every point: stores, writes of a buffer, reductions, atomics. All roots of a nest see the same points, so
what they have in common is computed once, and the whole chain of operations in front of them is fused into its body
(evaluate.py pulls values from the roots backwards).

The shape has powers of two as extents, so a point is a number of n bits, the last axis lowest. To vectorise and order
the loops is to divide these bits:

    lanes       the bits that run across a vector register
    unrolled    bits of which all values are in one body
    inner       bits of a reduced axis
    outer       the rest

Lanes are chosen by price: every run of bits along which some access is consecutive is a candidate; a candidate costs
the sum of what each access of the nest costs with these lanes, and the cheapest wins.

Example
-------
A 32x32 tile of floats is read by columns and written by rows, with vectors of 16 floats (four bits). A point has ten
bits, 0 to 4 the column and 5 to 9 the row. What each bit adds to the address of either access, in elements:

    >>> write = {b: 1 << b for b in range(10)}
    >>> read = {b: 1 << (b + 5) % 10 for b in range(10)}
    >>> for lanes in ((0, 1, 2, 3), (5, 6, 7, 8)):
    ...     print(lanes, [_access_cost(steps, lanes, 32, may) for steps, may in ((read, True), (write, False))])
    (0, 1, 2, 3) [5.0, 1.0]
    (5, 6, 7, 8) [1.0, 14.0]

Prices are in loads of one vector. Along the row bits, reading is a plain load, 1, and writing scatters, 14. Along the
column bits, writing is a plain store, 1, and reading costs 5, not 14: it is consecutive along four *other* bits, so
those are unrolled, 16 vectors are loaded along them and transposed in registers. 6 against 15: lanes (0, 1, 2, 3),
unrolled (5, 6, 7, 8), loops over bits 4 and 9.

Only reads are transposed: what is written is ready one point after the other. If the kernel loads by rows and stores
by columns, the lanes are the bits along which it stores, for the same prices.

Invariants
----------
* All roots are evaluated at a point, or at all points of an unrolled body, before any of them writes.
* A nest that may write one place twice goes through its points in row-major order, one vector of the last axis after
  the other, so that the last write stays.
* What does not depend on an inner loop is emitted outside of it (`hoist`): each bit belongs to one loop, and a value
  depends on the bits of its coordinates only.
* A body is emitted in more than one version (tiles wholly inside their masks, stores around the cache) only if it is
  short, and all versions compute the same.

Why bits, and not loops over axes
---------------------------------
The obvious nest has a loop for each axis and the last one vectorised, and LLVM would vectorise it. But `reshape`,
`trans`, `join` and `split` cut and exchange axes; on bits each of them is a renaming (coords.py), so a chain of them
still loads whole vectors where it can. LLVM's vectoriser, given scalar loops, must prove that iterations are
independent and addresses consecutive, which the language promises and the IR no longer says; it has no register
transposition at all.

Fusing by pulling values from stores is what Halide calls inlining (Ragan-Kelley et al., Halide, PLDI 2013, section 3);
index bits as the space of loops are layouts/linear.py's idea, and the prices are our own, measured on x86-64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Protocol

from weft.backends.cpu.coords import Coords, identity, log2, pinned, substitute
from weft.backends.cpu.evaluate import Buffer, Evaluator, LoopVar
from weft.backends.cpu.forms import int_const, vector_of
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.questions import (
    REMAINDERS,
    Analysis,
    Steps,
    Widened,
    buffer_steps,
    consecutive_run,
    operands_at,
)
from weft.backends.llvm.emit import I64, Function, const
from weft.backends.llvm.emit import Value as Reg

EFFECTS = frozenset({"tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store"})
"""What writes memory, or is read before what comes after it."""
GATHER, TRANSPOSE = 14.0, 5.0  # cost of a vector's worth of gathered or transposed elements, where one vector load is 1
MAX_TWICE = 160  # operations in a body that is emitted in two versions
LINE = 64  # bytes of a cache line
DEEP = 150  # operations from which a nest is evaluated in order rather than by recursion
MOST_TRANSPOSED = 40  # operations in a nest that is unrolled in order to transpose in registers


class Root(Protocol):
    """Something done at every point of a nest."""

    shape: tuple[int, ...]

    @property
    def op(self) -> Op | None:
        """The anchor, where there is one."""

    def inputs(self) -> list[tuple[Value, Coords]]:
        """Values needed at each point, with their coordinates in the nest."""

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        """Pointers (or a buffer) written at each point, with the element size in bits: for the choice of lanes."""

    def prepare(self, ev: Evaluator, coords: Callable[[Coords], Coords]) -> Callable[[], None]:
        """Evaluate at one point; the result does the writing (all roots evaluate before any writes)."""


def in_order(root: Root, analysis: Analysis) -> bool:
    """Whether a root writes memory and may do so twice at one place: then the last in row-major order has to stay."""
    op = root.op
    if op is None or op.name not in EFFECTS or not op.args[0].is_tile:
        return False
    return not analysis.injective(op.args[0], identity(root.shape))


def _access_cost(steps: Steps, lanes: Sequence[int], bits: int, may_transpose: bool) -> float:
    """Cost of one vector's worth of an access with these lane bits."""
    return access_form(steps, lanes, bits, may_transpose)[0]


def access_form(steps: Steps, lanes: Sequence[int], bits: int, may_transpose: bool) -> tuple[float, str]:
    """Cost of one vector's worth of an access with these lane bits, and how it is done."""
    moves = [steps.get(b, 0) for b in lanes]
    scale = 1.0 if bits >= 32 else 2.0
    if not any(m != 0 for m in moves):
        return 0.6, "one value"
    good = 0
    while good < len(moves) and moves[good] == 1 << good:
        good += 1
    if good == len(moves):
        return 1.0, "whole vectors"
    run = consecutive_run(steps)
    if may_transpose and len(run) >= len(lanes) and not set(run[: len(lanes)]) & set(lanes):
        return TRANSPOSE, "transposed in registers"
    if moves == [2 << i for i in range(len(moves))]:
        return 1.5, "every other element"  # two copies of the body make whole vectors
    if all(m is not None for m in moves) and sum(abs(m or 0) for m in moves) < 64:
        return 2.5, "elements near each other"
    if good >= 2:
        return float(1 << (len(moves) - good)) * 1.3, f"runs of {1 << good} elements"
    return GATHER * scale, "element by element"


class Nest:
    """One loop nest about to be emitted."""

    def __init__(
        self,
        f: Function,
        env: dict[Value, Reg | Buffer],
        roots: list[Root],
        shape: tuple[int, ...],
        analysis: Analysis,
        vector_bits: int,
        reduce_bits: Sequence[int] = (),
    ) -> None:
        self.f, self.env, self.roots, self.shape, self.analysis = f, env, roots, shape, analysis
        self.count = sum(log2(s) for s in shape)
        self.coords = identity(shape)
        self.reduce_bits = tuple(reduce_bits)
        self.inputs = [i for r in roots for i in r.inputs()]
        self.visited = analysis.walk(self.inputs)
        for value, coords in self.visited:  # operands first: no question about a value asks many more
            analysis.deps(value, coords)
            analysis.steps(value, coords)
        self.vector_bits = vector_bits
        self._choose()

    # -- planning ---------------------------------------------------------------------------------------------------

    def _accesses(self) -> list[tuple[Steps, int, Value | None]]:
        accesses: list[tuple[Steps, int, Value | None]] = []
        for value, coords in self.visited:
            have = self.env.get(value)
            if isinstance(have, Buffer):
                accesses.append((buffer_steps(have, coords), element_bits(value.elem), value))
            elif value.op is not None and value.op.name == "tt.load":
                accesses.append((self.analysis.steps(value.op.args[0], coords), element_bits(value.elem), value))
        for root in self.roots:
            for target, coords, bits in root.accesses():
                steps = (
                    buffer_steps(target, coords) if isinstance(target, Buffer) else self.analysis.steps(target, coords)
                )
                accesses.append((steps, bits, None))
        return accesses

    def _data_bits(self, accesses: list[tuple[Steps, int, Value | None]]) -> int:
        widest = 8
        for value, _ in self.visited:
            if value.elem in ("f32", "f64"):
                widest = max(widest, element_bits(value.elem))
                continue
            small = value.elem in ("f16", "bf16") or value.elem.startswith("f8")
            if small and value.op is not None and value.op.name not in SHAPE_NAMES and value not in self.env:
                widest = max(widest, 32)  # computed in single precision
        for _, bits, _value in accesses:
            widest = max(widest, bits)
        return widest

    def _choose(self) -> None:
        accesses = self._accesses()
        self.data_bits = self._data_bits(accesses)
        self.prices: dict[tuple[int, ...], float] = {}  # of the lanes that were considered
        most = log2(max(1, self.vector_bits // self.data_bits))
        width = min(self.count, most)
        default = tuple(range(self.count))
        self.transposes: dict[int, tuple[int, ...]] = {}
        self.transpose_first: list[tuple[Value, tuple[tuple[int, ...], ...]]] = []
        self.along: tuple[int, ...] = ()  # bits to loop over first: a transposed read goes on where it is
        self.zips: dict[int, int] = {}
        self.unroll: tuple[int, ...] = ()
        if any(in_order(root, self.analysis) for root in self.roots):
            self.lane_bits, self.inner_bits, self.outer_bits = default[:width], [], list(default[width:])
            return
        candidates = {default[:width]}
        for steps, _, _value in accesses:
            run = consecutive_run(steps)
            if run:
                candidates.add((*run, *(b for b in default if b not in run))[:width])
        if self.reduce_bits:  # lanes along what stays: no sum across lanes at the end
            kept = tuple(b for b in default if b not in self.reduce_bits)
            candidates.add((*kept, *(b for b in default if b not in kept))[:width])
        small = len(self.visited) <= MOST_TRANSPOSED

        def price(lanes: tuple[int, ...]) -> float:
            total = sum(
                _access_cost(steps, lanes, bits, value is not None and small and width >= 2)
                for steps, bits, value in accesses
            )
            return total + 0.1 * sum(b in self.reduce_bits for b in lanes) + 0.001 * sum(lanes)

        self.prices = {lanes: price(lanes) for lanes in sorted(candidates)}
        self.lane_bits = min(self.prices, key=self.prices.__getitem__)
        unroll: tuple[int, ...] = ()
        if small and width >= 2:
            for steps, bits, value in accesses:
                run = consecutive_run(steps)[:width]
                if value is None or len(run) < width or set(run) & set(self.lane_bits):
                    continue
                if _access_cost(steps, self.lane_bits, bits, True) == TRANSPOSE and (not unroll or unroll == run):
                    unroll = run
                    self.transposes[id(value)] = run
                    self.along = consecutive_run(steps)[width:]
        if not small and width >= 2:
            self._transpose_first(width)
        for root in self.roots:
            for target, coords, _ in root.accesses():
                run = consecutive_run(buffer_steps(target, coords)) if isinstance(target, Buffer) else ()
                alternate = 0 < width < len(run) and run[1 : 1 + width] == self.lane_bits
                if alternate and unroll[:1] in ((), run[:1]) and not self.reduce_bits:
                    unroll = unroll or run[:1]  # if there are more, what alternates are copies next to each other
                    self.zips[id(root)] = run[0]
        rest = [b for b in default if b not in self.lane_bits and b not in unroll]
        inner = [b for b in rest if b in self.reduce_bits]
        if self.reduce_bits and not unroll:
            unroll = tuple(inner[:2])  # four accumulators hide the latency of the combining operation
            inner = inner[2:]
        self.unroll = unroll
        self.inner_bits = inner
        self.outer_bits = [b for b in rest if b not in self.reduce_bits]

    def _transpose_first(self, width: int) -> None:
        """Loads that a nest too large to unroll wants transposed by one of their own, in the layout it would read
        best.
        """
        rest = [b for b in range(self.count) if b not in self.lane_bits]
        rank = {b: i for i, b in enumerate([*self.lane_bits, *rest])}
        for value, coords in self.visited:
            if value in self.env or value.op is None or value.op.name != "tt.load":
                continue
            bits = [s for coord in coords for s in coord]
            run = consecutive_run(self.analysis.steps(value.op.args[0], coords))[:width]
            if len(run) == width and not set(run) & set(self.lane_bits) and sorted(bits) == list(range(self.count)):
                self.transpose_first.append((value, tuple(tuple(rank[s] for s in coord) for coord in coords)))

    def _loop_runs(self, bits: Sequence[int]) -> list[tuple[int, ...]]:
        """Loop bits grouped so that in no coordinate a group is torn apart; innermost first."""
        together: dict[int, bool] = {}
        coordinates = {coord for value, coords in self.visited if self._is_leaf(value) for coord in coords}
        for root in self.roots:
            for target, coords, _ in root.accesses():
                if isinstance(target, Buffer):
                    coordinates |= set(coords)
        for bit in bits:
            ok = bit + 1 in bits
            for coord in coordinates:
                here, there = bit in coord, bit + 1 in coord
                if here != there or (here and coord.index(bit) + 1 != coord.index(bit + 1)):
                    ok = False
            together[bit] = ok
        runs: list[tuple[int, ...]] = []
        current: list[int] = []
        order = sorted(bits, key=lambda b: (b not in self.along, b))
        for bit, following in zip(order, [*order[1:], -1]):
            current.append(bit)
            if not together[bit] or following != bit + 1:
                runs.append(tuple(current))
                current = []
        return runs

    def _is_leaf(self, value: Value) -> bool:
        return value in self.env or value.op is None or value.op.name == "tt.make_range"

    # -- emission ---------------------------------------------------------------------------------------------------

    def copies(self) -> list[dict[int, int]]:
        """For each copy of the unrolled body, the sources that replace the unrolled bits."""
        result = []
        for k in range(1 << len(self.unroll)):
            result.append({b: pinned(b, k >> i & 1) for i, b in enumerate(self.unroll)})
        return result

    def evaluator(self) -> Evaluator:
        """An evaluator for the points of this nest."""
        ev = Evaluator(self.f, self.env, self.lane_bits)
        ev.transposes, ev.zips = self.transposes, self.zips
        ev.aligned = self._aligned
        return ev

    def _aligned(self, op: Op, coords: Coords, lanes: Sequence[int]) -> bool:
        """Whether a quotient or remainder is taken of aligned runs of lanes by a multiple of their number."""
        count = 1 << len(lanes)
        (x, at), (y, there) = operands_at(op, op.result, coords)
        analysis = self.analysis
        return (
            analysis.nonnegative(x)
            and analysis.align(x, at, lanes) >= count
            and analysis.align(y, there, lanes) >= count
        )

    def loops(self, ev: Evaluator, bits: Sequence[int], body: Callable[[], None], available: set[int]) -> None:
        """Emit loops over `bits` around `body`, hoisting what does not depend on the inner ones."""
        runs = self._loop_runs(bits)

        def level(i: int) -> None:
            if i < 0:
                body()
                return
            run = runs[i]
            self.hoist(ev, available)
            with self.f.loop(const(I64, 0), const(I64, 1 << len(run)), const(I64, 1), at_least_once=True) as var:
                loop = LoopVar(var, run[0], len(run))
                for b in run:
                    ev.loops[b] = loop
                ev.enter()
                available.update(run)
                level(i - 1)
                available.difference_update(run)
                ev.leave()

        level(len(runs) - 1)

    def hoist(self, ev: Evaluator, available: set[int]) -> None:
        """Emit now what depends on nothing but the loops already open."""
        have = available | set(self.lane_bits)
        for copy in self.copies():
            for value, coords in self.visited:  # operands first
                at = substitute(coords, copy)
                if id(value) not in self.transposes and self.analysis.deps(value, at) <= have:
                    ev.eval(value, at)

    def emit(self, streaming: Callable[[int], Reg | None]) -> None:
        """Emit a nest of pointwise roots."""

        def version(ev: Evaluator) -> Sequence[Reg]:
            self.loops(ev, [*self.inner_bits, *self.outer_bits], lambda: self.body(ev, self.roots), set())
            return []

        self.versions(version, streaming)

    def versions(
        self, emit: Callable[[Evaluator], Sequence[Reg]], streaming: Callable[[int], Reg | None]
    ) -> Sequence[Reg]:
        """Emit the nest in one version, or more: for tiles that lie wholly inside their masks, without them, and for
        the others.

        The first exists in a version of its own where stores of whole vectors go around the cache, for launches that
        write more than fits into it: `streaming(bytes)` gives that condition for a nest that writes so many bytes each
        time.
        """
        if len(self.visited) > MAX_TWICE or len(self.visited) << len(self.unroll) > 4 * MAX_TWICE:
            return emit(self.evaluator())
        masks, holds = self._full_masks()
        stores, goes = self._streamed(masks, streaming)
        identities, below = self._unwrapped()

        def version(streamed: dict[int, int]) -> Sequence[Reg]:
            ev = self.evaluator()
            ev.full, ev.streaming, ev.identities = masks, streamed, identities
            return emit(ev)

        def either(conditions: list[Reg], yes: Version, no: Version) -> Sequence[Reg]:
            return self.f.if_else(reduce(self.f.and_, conditions), yes, no) if conditions else yes()

        def unmasked() -> Sequence[Reg]:
            return either(goes, lambda: version(stores), lambda: version({}))

        return either([*holds, *below], unmasked, lambda: emit(self.evaluator()))

    def _full_masks(self) -> tuple[set[Value], list[Reg]]:
        """Masks that hold everywhere if they hold at one point, and the conditions for that."""
        asked: set[Value] = set()
        for value, _ in self.visited:
            if value not in self.env and value.op is not None and value.op.name == "tt.load" and len(value.op.args) > 1:
                asked.add(value.op.args[1])
        for root in self.roots:
            if root.op is not None and root.op.name == "tt.store" and len(root.op.args) > 2:
                asked.add(root.op.args[2])
        conditions_of: dict[Value, list[Condition]] = {}
        refused: set[Value] = set()
        for mask, coords in self.visited:
            if mask in asked and mask not in refused:
                parts = self._monotone(mask, coords)
                if parts is None:
                    refused.add(mask)
                    conditions_of.pop(mask, None)
                else:
                    conditions_of.setdefault(mask, []).extend(parts)
        emit = _Conditions(self.f, self.env)
        for condition in dict.fromkeys(c for parts in conditions_of.values() for c in parts):
            emit.add(condition)
        return set(conditions_of), emit.regs

    def _unwrapped(self) -> tuple[set[Value], list[Reg]]:
        """Remainders that change nothing as all of the tile lies below the divisor, and the conditions for that."""
        places_of: dict[Value, list[tuple[Value, Coords, Value, Coords]]] = {}
        refused: set[Value] = set()
        emit = _Conditions(self.f, self.env)
        ordered: list[Condition] = []
        for value, coords in self.visited:
            op = value.op
            if op is None or value in self.env or op.name not in REMAINDERS or value in refused:
                continue
            dividend, divided_by = operands_at(op, value, coords)
            order = None if self._aligned(op, coords, self.lane_bits) else self._ordered(*dividend, "si" in op.name)
            still = not self.analysis.deps(*divided_by)
            moving = self.analysis.exact_steps(*dividend, [])
            if order is None or not still or not moving or any(s is None or s < 0 for s in moving.values()):
                refused.add(value)
                places_of.pop(value, None)
                continue
            ordered += order
            places_of.setdefault(value, []).append((*dividend, *divided_by))
        if not places_of:
            return set(), []
        for condition in dict.fromkeys(ordered):
            emit.add(condition)
        f = self.f
        for value, places in places_of.items():
            assert value.op is not None
            signed = value.op.name == "arith.remsi"
            for x, at, y, there in places:
                last, divisor = emit.scalar(x, substitute_live(at, -2)), emit.scalar(y, there)
                emit.regs.append(f.icmp("slt" if signed else "ult", last, divisor))
                if signed and not self.analysis.nonnegative(x):
                    first = emit.scalar(x, substitute_live(at, -1))
                    emit.regs.append(f.icmp("sge", first, const(first.type, 0)))
        return set(places_of), emit.regs

    def _ordered(self, value: Value, coords: Coords, signed: bool) -> list[Condition] | None:
        """Conditions under which an integer, and what it was widened from, does not wrap around within the tile: that
        its least element is below its greatest. None where its steps are not known.
        """
        needs: list[Widened] = []
        steps = self.analysis.exact_steps(value, coords, needs)
        if steps is None:
            return None
        result: list[Condition] = []
        for v, at, moves, sign in [*needs, (value, coords, steps, signed)]:
            if not moves:
                continue
            if sum(abs(s or 0) for s in moves.values()) >= 1 << (element_bits(v.elem) - 1):
                return None
            low = tuple(tuple(c if c < 0 else -1 if (moves.get(c) or 0) >= 0 else -2 for c in coord) for coord in at)
            high = tuple(tuple(c if c < 0 else -2 if (moves.get(c) or 0) >= 0 else -1 for c in coord) for coord in at)
            result.append(("sle" if sign else "ule", v, low, high))
        return result

    def _monotone(self, mask: Value, coords: Coords) -> list[Condition] | None:
        """The comparisons a mask is the conjunction of, each at the point where it is the least likely to hold, and
        what must be so for there to be such a point.
        """
        op = mask.op
        if not mask.is_tile or op is None or mask in self.env:
            return None
        if op.name in ("tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans"):
            ((inner, at),) = operands_at(op, mask, coords)
            return self._monotone(inner, at)
        if op.name == "arith.andi":
            parts: list[Condition] = []
            for inner, at in operands_at(op, mask, coords):
                conditions = self._monotone(inner, at)
                if conditions is None:
                    return None
                parts += conditions
            return parts
        if op.name in ("tt.splat", "arith.constant"):
            return [("holds", mask, coords, coords)]
        if op.name != "arith.cmpi" or op.attrs["predicate"] in (0, 1):
            return None
        less = op.attrs["predicate"] in (2, 3, 6, 7)  # a < b in some form, otherwise a > b
        low, high = (op.args[0], op.args[1]) if less else (op.args[1], op.args[0])
        ordered = [self._ordered(v, coords, op.attrs["predicate"] < 6) for v in (low, high)]
        if ordered[0] is None or ordered[1] is None:
            return None
        rising, falling = (list((self.analysis.exact_steps(v, coords, []) or {}).values()) for v in (low, high))
        gaps = [-(s or 0) for s in rising] + [s or 0 for s in falling]  # how the room between them changes
        if all(g <= 0 for g in gaps):
            return [*ordered[0], *ordered[1], ("holds", mask, substitute_live(coords, -2), coords)]
        if all(g >= 0 for g in gaps):
            return [*ordered[0], *ordered[1], ("holds", mask, substitute_live(coords, -1), coords)]
        return None

    def _streamed(self, masks: set[Value], streaming: Callable[[int], Reg | None]) -> tuple[dict[int, int], list[Reg]]:
        """Stores that may go around the cache in the version without masks, with their alignment in bytes, and when.

        A cache line has to be written at once. So a store is either a whole line, or the next iteration of the
        innermost loop goes on where it ends: then pieces of 16 bytes do, which is how NumPy aligns large arrays.
        """
        stores: dict[int, int] = {}
        conditions: list[Reg] = []
        f = self.f
        written = 0
        order = [*self.unroll, *(b for run in self._loop_runs([*self.inner_bits, *self.outer_bits]) for b in run)]
        following = tuple(order[:1])
        for root in self.roots:
            op = root.op
            if op is None or op.name != "tt.store" or (len(op.args) > 2 and op.args[2] not in masks):
                continue
            bits = element_bits(op.args[1].elem)
            size = bits // 8 << len(self.lane_bits)
            if size * 8 != self.vector_bits or bits < 8:
                continue
            count = len(self.lane_bits)
            steps = self.analysis.steps(op.args[0], identity(root.shape))
            run = consecutive_run(steps)
            alignment = 16 if run[count : count + 1] == following else LINE
            if run[:count] != self.lane_bits or alignment > size:
                continue
            if self.analysis.pointer_align(op.args[0], identity(root.shape), self.lane_bits) * (bits // 8) < alignment:
                continue
            first = Evaluator(f, self.env, ())
            pointer = first.pointer(op.args[0], substitute_live(identity(root.shape), -1))
            address = f.cast("ptrtoint", vector_of(f, pointer, 0), I64)
            conditions.append(f.icmp("eq", f.and_(address, const(I64, alignment - 1)), const(I64, 0)))
            stores[id(op)] = alignment
            written += bits // 8 << self.count
        if not stores:
            return stores, []
        large = streaming(written)
        return (stores, [large, *conditions]) if large is not None else ({}, [])

    def evaluate_in_order(self, ev: Evaluator) -> None:
        """In a long chain of operations, evaluate operands first, so that pulling never nests deeply."""
        if len(self.visited) > DEEP:
            for copy in self.copies():
                for value, coords in self.visited:
                    ev.eval(value, substitute(coords, copy))

    def body(self, ev: Evaluator, roots: Sequence[Root]) -> None:
        """All roots at all copies: first evaluate everything, then write."""
        self.evaluate_in_order(ev)
        writes = [root.prepare(ev, substitution(copy)) for copy in self.copies() for root in roots]
        for write in writes:
            write()


Version = Callable[[], Sequence[Reg]]
Condition = tuple[str, Value, Coords, Coords]
"""("holds", a mask, a place, -) or ("sle" or "ule", an integer, where it must be at most what it is, there)."""


class _Conditions:
    """Conditions at single points of a tile, emitted as scalars; those known to hold are left out."""

    def __init__(self, f: Function, env: dict[Value, Reg | Buffer]) -> None:
        self.f, self.points = f, Evaluator(f, env, ())
        self.regs: list[Reg] = []

    def scalar(self, value: Value, at: Coords) -> Reg:
        return vector_of(self.f, self.points.eval(value, at), 0)

    def add(self, condition: Condition) -> None:
        kind, value, first, second = condition
        if kind == "holds":
            self.regs.append(self.scalar(value, first))
            return
        low, high = self.scalar(value, first), self.scalar(value, second)
        x, y = int_const(low), int_const(high)
        if x is None or y is None or x > y or (kind == "ule" and x < 0 <= y):
            self.regs.append(self.f.icmp(kind, low, high))


def substitute_live(coords: Coords, source: int) -> Coords:
    """The coordinates with every live bit replaced by a constant: the first point of a nest, or the last."""
    return tuple(tuple(source if s >= 0 else s for s in coord) for coord in coords)


def substitution(copy: dict[int, int]) -> Callable[[Coords], Coords]:
    """The coordinates of one copy of an unrolled body."""
    return lambda coords: substitute(coords, copy)


SHAPE_NAMES = frozenset(
    {
        "tt.splat",
        "arith.constant",
        "tt.expand_dims",
        "tt.broadcast",
        "tt.reshape",
        "tt.trans",
        "tt.join",
        "tt.cat",
        "tt.split",
        "tt.load",
        "arith.select",
        "tt.bitcast",
        "arith.bitcast",
    }
)
