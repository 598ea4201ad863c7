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

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, log2, pinned, row_major, substitute
from weft.backends.cpu.evaluate import Evaluator, LoopVar
from weft.backends.cpu.extents import Ends, Extent, Reached
from weft.backends.cpu.loads_first import Group, find_group
from weft.backends.cpu.planned import Root as Root
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.questions import (
    REMAINDERS,
    Analysis,
    Steps,
    buffer_steps,
    consecutive_run,
    constant_int,
    operands_at,
)
from weft.backends.cpu.row_bits import DIVISIONS, cuts, inside_row
from weft.backends.cpu.row_ends import row_lengths
from weft.backends.cpu.walks import Rows, find_rows, walk
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I64, Value as Reg, const

EFFECTS = frozenset({"tt.store", "tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store"})
"""What writes memory, or is read before what comes after it."""
GATHER, TRANSPOSE = 14.0, 5.0  # cost of a vector's worth of gathered or transposed elements, where one vector load is 1
DEEP = 150  # operations from which a nest is evaluated in order rather than by recursion
MOST_OF_EIGHT = 16  # operations in a nest around a loop that has eight accumulators for each result, not four
MOST_TRANSPOSED = 40  # operations in a nest that is unrolled in order to transpose in registers


def in_order(root: Root, analysis: Analysis) -> bool:
    """Whether a root writes memory and may do so twice at one place: then the last in row-major order has to stay."""
    op = root.op
    if op is None or op.name not in EFFECTS or not op.args[0].is_tile:
        return False
    return not analysis.injective(op.args[0], row_major(root.shape))


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


def no_loops(nest: Nest, ev: Evaluator, op: Op, coords: Coords) -> None:
    """What a nest that is only asked about does with a fused loop."""
    raise RuntimeError(f"{op!r} in a nest without loops")


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
        emit_loop: Callable[[Nest, Evaluator, Op, Coords], None] = no_loops,
        visited: dict[tuple[Value, Coords], None] | None = None,
    ) -> None:
        """`visited` is what `analysis.walk` finds for the inputs of the roots, where that is known."""
        self.f, self.env, self.roots, self.shape, self.analysis = f, env, roots, shape, analysis
        self.count = sum(log2(s) for s in shape)
        self.coords = row_major(shape)
        self.reduce_bits = tuple(reduce_bits)
        self.inputs = [i for r in roots for i in r.inputs()]
        self.visited = analysis.walk(self.inputs) if visited is None else visited
        for value, coords in self.visited:  # operands first: no question about a value asks many more
            analysis.deps(value, coords)
            analysis.steps(value, coords)
        self.vector_bits = vector_bits
        self.row_lengths = row_lengths(self.visited)
        self._rows: dict[tuple[Op, Coords, tuple[int, ...]], dict[int, int]] = {}
        self.versions: list[str] = []  # besides the plain one, for remarks
        self.emit_loop = emit_loop
        self._choose()
        if self.rows is not None:
            self.versions.append(f"along rows of {self.rows.length} elements that an index is divided into")
        self.ends = Ends(self, () if self.rows is None else self.rows.bits)
        self.unsettled = self.ends.bits | set(self.rows.bits if self.rows is not None else ())
        """The bits of axes that end early, or are walked along, before their loops begin."""
        self.group = find_group(self) if self.rows is None else Group()

    # -- planning ---------------------------------------------------------------------------------------------------

    def accesses(self) -> list[tuple[Steps, int, Value | None]]:
        """All that is loaded and stored: the steps of its address, the bits of an element, and what is loaded."""
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
        along = range(log2(self.vector_bits // 8))  # the bits that lanes run along, if nothing speaks against it
        for steps, bits, _value in accesses:
            if any(steps.get(b, 0) != 0 for b in along):  # what is the same for all of them, a row's index, is a scalar
                widest = max(widest, bits)
        return widest

    def _choose(self) -> None:
        accesses = self.accesses()
        self.data_bits = self._data_bits(accesses)
        self.prices: dict[tuple[int, ...], float] = {}  # of the lanes that were considered
        most = log2(max(1, self.vector_bits // self.data_bits))
        width = min([self.count, most, *self._alternating()])
        default = tuple(range(self.count))
        self.transposes: dict[int, tuple[int, ...]] = {}
        self.transpose_first: list[tuple[Value, tuple[tuple[int, ...], ...]]] = []
        self.along: tuple[int, ...] = ()  # bits to loop over first: a transposed read goes on where it is
        self.zips: dict[int, tuple[int, ...]] = {}
        self.unroll: tuple[int, ...] = ()
        self.rows: Rows | None = None
        if any(in_order(root, self.analysis) for root in self.roots):
            self.lane_bits, self.inner_bits, self.outer_bits = default[:width], [], list(default[width:])
            self.rows = find_rows(self)
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
                for ways in (1, 2):  # how many bits count the copies whose elements alternate
                    alternate = 0 < width < len(run) and run[ways : ways + width] == self.lane_bits
                    if alternate and unroll[:ways] in ((), run[:ways]) and not self.reduce_bits:
                        unroll = unroll or run[:ways]  # if there are more, what alternates are copies side by side
                        self.zips[id(root)] = run[:ways]
        rest = [b for b in default if b not in self.lane_bits and b not in unroll]
        inner = [b for b in rest if b in self.reduce_bits]
        outer = [b for b in rest if b not in self.reduce_bits]
        self.rows = find_rows(self)
        if self.reduce_bits and not unroll:  # four accumulators hide the latency of the combining operation
            loads = any(v.op is not None and v.op.name == "tt.load" and v not in self.env for v, _ in self.visited)
            few = len(inner) <= (3 if loads else 2)  # vectors, as a power of two
            short = few and min(width, len(outer)) >= 2 and set(self.lane_bits) <= set(self.reduce_bits)
            fused = any(v.op is not None and v.op.fused for v, _ in self.visited)
            if short and not fused:
                unroll = tuple(outer[:2])  # of four rows, whose lanes are combined together
            elif not set(self.lane_bits) & set(self.reduce_bits) and len(outer) > 1:
                most = 2 if self.rows is None else min(2, len(outer) - 1, log2(self.rows.length >> width + 1))
                unroll = tuple(outer[: max(0, most)])  # the loop reads four vectors side by side in each row
            else:
                # a loop goes on in the next page each time: eight vectors of it take less time than twice four
                unroll = tuple(inner[: 3 if fused and len(self.visited) <= MOST_OF_EIGHT else 2])
        self.unroll = unroll
        if self.rows is not None and {*self.lane_bits, *unroll} >= set(self.rows.bits):
            self.rows = None
        self.inner_bits, self.outer_bits = ([b for b in bits if b not in unroll] for bits in (inner, outer))

    def _alternating(self) -> Iterator[int]:
        """How many bits of lanes a buffer takes at most in which elements of several rows alternate."""
        for root in self.roots:
            for target, coords, _ in root.accesses():
                run = consecutive_run(buffer_steps(target, coords)) if isinstance(target, Buffer) else ()
                if 0 in run[1:3]:
                    row = run[run.index(0) :]
                    yield next((i for i, bit in enumerate(row) if bit != i), len(row))

    def _transpose_first(self, width: int) -> None:
        """Loads that a nest too large to unroll wants transposed by one of their own, in the layout it would read
        best.
        """
        rest = [b for b in range(self.count) if b not in self.lane_bits]
        rank = {b: i for i, b in enumerate([*self.lane_bits, *rest])}
        for value, coords in self.visited:
            if value in self.env or value.op is None or value.op.name != "tt.load" or value.is_inside:
                continue
            bits = [s for coord in coords for s in coord]
            run = consecutive_run(self.analysis.steps(value.op.args[0], coords))[:width]
            if len(run) == width and not set(run) & set(self.lane_bits) and sorted(bits) == list(range(self.count)):
                self.transpose_first.append((value, tuple(tuple(rank[s] for s in coord) for coord in coords)))

    def loop_runs(self, bits: Sequence[int]) -> list[tuple[int, ...]]:
        """Loop bits grouped so that in no coordinate a group is torn apart; innermost first."""
        together: dict[int, bool] = {}
        coordinates = {coord for value, coords in self.visited if self._is_leaf(value) for coord in coords}
        for root in self.roots:
            for target, coords, _ in root.accesses():
                if isinstance(target, Buffer):
                    coordinates |= set(coords)
        ends = self._row_ends(bits) - set(self.rows.bits if self.rows is not None else ())
        for bit in bits:
            ok = bit + 1 in bits and bit not in ends
            for coord in coordinates:
                has_bit, has_next = bit in coord, bit + 1 in coord
                if has_bit != has_next or (has_bit and coord.index(bit) + 1 != coord.index(bit + 1)):
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

    def _row_ends(self, bits: Sequence[int]) -> set[int]:
        divided = [(v.op, c) for v, c in self.visited if v.op is not None and v.op.name in DIVISIONS]
        return cuts(
            (self.inside_row(op, c, self.lane_bits) for op, c in divided if self.aligned(op, c, self.lane_bits)), bits
        )

    def inside_row(self, op: Op, coords: Coords, lanes: Sequence[int]) -> dict[int, int]:
        """The bits along which what a quotient or remainder is taken of stays within a row; see row_bits.py.

        `lanes`: those of the vector, which are not the nest's where a block is loaded along another axis.
        """
        key = op, coords, tuple(lanes)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = inside_row(self.analysis, op, coords, lanes)
        return row

    def _is_leaf(self, value: Value) -> bool:
        return value in self.env or value.op is None or value.op.name == "tt.make_range"

    # -- emission ---------------------------------------------------------------------------------------------------

    def copies(self) -> list[dict[int, int]]:
        """For each copy of the unrolled body, the sources that replace the unrolled bits."""
        result = []
        for k in range(1 << len(self.unroll)):
            result.append({b: pinned(b, k >> i & 1) for i, b in enumerate(self.unroll)})
        return [copy for copy in result if self.ends.reach(copy)[0]]

    def evaluator(self) -> Evaluator:
        """An evaluator for the points of this nest."""
        ev = Evaluator(self.f, self.env, self.lane_bits)
        ev.transposes, ev.zips = self.transposes, self.zips
        if self.rows is None:
            ev.aligned, ev.row_length, ev.inside_row = self.aligned, self.row_length, self.inside_row
        ev.loop = lambda op, coords: self.emit_loop(self, ev, op, coords)
        return ev

    def aligned(self, op: Op, coords: Coords, lanes: Sequence[int]) -> bool:
        """Whether a quotient or remainder is taken of aligned runs of lanes by a multiple of their number."""
        count = 1 << len(lanes)
        (x, at), (y, there) = operands_at(op, op.result, coords)
        analysis = self.analysis
        return (
            analysis.nonnegative(x)
            and analysis.align(x, at, lanes) >= count
            and analysis.align(y, there, lanes) >= count
        )

    def wrapping(self, wanted: Callable[[Value], bool]) -> list[tuple[Value, Coords]]:
        """Remainders whose vectors may go on in the next row."""
        found = [
            (v, c)
            for v, c in self.visited
            if v.op is not None and v.op.name in REMAINDERS and v not in self.env and wanted(v)
        ]
        rows = {v for v, c in found if v.op is not None and self.aligned(v.op, c, self.lane_bits)}
        return [(v, c) for v, c in found if v not in rows]

    def row_length(self, op: Op) -> int:
        """The length of the rows at whose ends vectors of an index that is divided are split; 0 where they are not."""
        index, lanes = op.args[0], 1 << len(self.lane_bits)
        length = self.row_lengths.get(index, 0)
        if length < lanes:
            length = constant_int(op.args[1]) or 0
        good = length >= lanes and element_bits(index.elem) >= 32 and self.analysis.nonnegative(index)
        return length if good else 0

    def loops(self, ev: Evaluator, bits: Sequence[int], body: Callable[[Evaluator], None], available: set[int]) -> None:
        """Emit loops over `bits` around `body`, hoisting what does not depend on the inner ones."""
        runs = self.loop_runs(bits)

        def level(ev: Evaluator, i: int) -> None:
            if i < 0:
                body(ev)
                return
            run = runs[i]
            self.hoist(ev, available)

            def inside(ev: Evaluator) -> None:
                available.update(run)
                level(ev, i - 1)
                available.difference_update(run)

            def iteration(var: Reg) -> None:
                counted = [b for b in run if b not in self.unroll]
                ev.loops.update(dict.fromkeys(counted, LoopVar(var, run[-len(counted)], len(counted))))
                ev.enter()
                inside(ev)
                ev.leave()

            if self.rows is not None and run[0] in self.rows.bits:
                self.unsettled -= set(self.rows.bits)
                walk(self, ev, self.rows, inside, available)
                self.unsettled |= set(self.rows.bits)
            else:
                self.counted(ev, run, iteration)

        level(ev, len(runs) - 1)

    def counted(self, ev: Evaluator, run: Sequence[int], iteration: Callable[[Reg], None]) -> None:
        """A loop that counts the bits of a run, up to the end of their axis, if it has one; what is left of that is
        behind the loop.
        """
        f, extent = self.f, self.ends.of_loop(run)
        if extent is None:
            count, left = 1 << len(run), 0
        else:
            count, left = self.ends.parts(extent)
            self.unsettled -= set(extent.bits)
        reached = self.ends.reached
        axis = None if reached is None else reached.of_loop(run, self.ends.at_once)
        if reached is not None and axis is not None:
            self._up_to_end(ev, reached, axis, iteration)
            return
        limit = self.ends.limit_of_loop(f, run)
        if limit is not None:
            with f.loop(const(I64, 0), limit, const(I64, 1)) as var:
                iteration(var)
        else:
            group = self.group.of_loop(run, ev.full)
            with self._repeated(group):
                self._known_loop(0, count >> len(group), iteration)
            self._known_loop(count >> len(group) << len(group), count, iteration)
        if extent is not None and left:
            full, ev.full = ev.full, set()
            with self.ends.rest(extent, left):
                iteration(const(I64, count))
            ev.full = full
        if extent is not None:
            self.unsettled |= set(extent.bits)

    def _known_loop(self, first: int, end: int, iteration: Callable[[Reg], None]) -> None:
        """The iterations from a number on up to another one."""
        if end == first + 1:
            iteration(const(I64, first))
        elif end > first:
            with self.f.loop(const(I64, first), const(I64, end), const(I64, 1), at_least_once=True) as var:
                iteration(var)

    @contextmanager
    def _repeated(self, group: tuple[int, ...]) -> Iterator[None]:
        """While a loop is emitted whose body is repeated for some of the bits that it would count."""
        planned, self.unroll = self.unroll, (*self.unroll, *group)
        yield
        self.unroll = planned

    @contextmanager
    def up_to(self, reached: Reached) -> Iterator[None]:
        """While loops are emitted that end where axes do at run time."""
        bits = {b for extent, _ in reached.ends for b in extent.bits}
        self.ends.reached = reached
        self.unsettled |= bits
        yield
        self.unsettled -= bits
        self.ends.reached = None

    def _up_to_end(
        self, ev: Evaluator, reached: Reached, axis: tuple[Extent, Reg], iteration: Callable[[Reg], None]
    ) -> None:
        """A loop along an axis up to its end. If it is that of the lanes, vectors before the end are without masks;
        what is left is a loop with them, of one vector at most if the end is known.
        """
        f, (extent, end) = self.f, axis
        shift = self.ends.at_once(extent)
        self.unsettled -= set(extent.bits)
        if not shift:
            with f.loop(const(I64, 0), end, const(I64, 1)) as var:
                iteration(var)
        else:
            none = const(I64, 0)
            whole = f.lshr(end, const(I64, shift))
            last = f.lshr(f.add(end, const(I64, (1 << shift) - 1)), const(I64, shift))
            full, ev.full = ev.full, set(reached.inside)
            first, whole = none, f.select(reached.known, whole, none)
            group = self.group.of_loop(extent.bits[shift:], ev.full)
            if group:
                groups = f.lshr(whole, const(I64, len(group)))
                first = f.shl(groups, const(I64, len(group)))
                with self._repeated(group), f.loop(none, groups, const(I64, 1)) as var:
                    iteration(var)
            with f.loop(first, whole, const(I64, 1)) as var:
                iteration(var)
            ev.full = full
            with f.loop(whole, last, const(I64, 1)) as var:
                iteration(var)
        self.unsettled |= set(extent.bits)

    def hoist(self, ev: Evaluator, available: set[int]) -> None:
        """Emit now what depends on nothing but the loops already open."""
        settled = available | {*self.lane_bits, *self.unroll}  # in a copy of the body unrolled bits are known
        settled -= self.unsettled  # before the end of a loop, and in what is left, masks differ
        deps, transposes = self.analysis.deps, self.transposes
        ready = [x for x in self.visited if not (x[0].is_inside or id(x[0]) in transposes) and deps(*x) <= settled]
        for copy in self.copies():
            for value, coords in ready:  # operands first
                ev.eval(value, substitute(coords, copy))

    def evaluate_in_order(self, ev: Evaluator) -> None:
        """In a long chain of operations, evaluate operands first, so that pulling never nests deeply."""
        if len(self.visited) > DEEP:
            for copy in self.copies():
                for value, coords in self.visited:
                    if not value.is_inside:
                        ev.eval(value, substitute(coords, copy))

    def body(self, ev: Evaluator, roots: Sequence[Root]) -> None:
        """All roots at all copies: first evaluate everything, then write."""
        self.evaluate_in_order(ev)
        write_by_root([[root.prepare(ev, substitution(copy)) for root in roots] for copy in self.copies()])


def write_by_root(writes: Sequence[Sequence[Callable[[], None]]]) -> None:
    """Write what the roots prepared in each copy of a body: the first root's writes of all copies, then the second's.

    So a cache line is written by stores that follow each other. If two arrays take turns, each store of a vector that
    begins and ends within a line waits for both of its lines, in order: a rotary embedding then takes 1.8 times as
    long. Roots of one nest do not write the same place at different points.
    """
    for writes_of_root in zip(*writes, strict=True):
        for write in writes_of_root:
            write()


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
