"""Reductions: a combining region applied over an axis, in vector registers.

Each lane (and each of four unrolled copies) accumulates on its own; at the end copies and then lanes are combined
pairwise. The order of combination is unspecified, as in Triton: the region must be associative and commutative. Where
the region is one known operation its identity starts the accumulators; otherwise the first element does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from weft.backends.cpu import access
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, row_major, substitute
from weft.backends.cpu.corners import Condition
from weft.backends.cpu.elementwise import ARITHMETIC, EMITTERS, const_of, memory_type
from weft.backends.cpu.evaluate import Evaluator, LoopVar, exchange
from weft.backends.cpu.extents import Extent, padding_of
from weft.backends.cpu.forms import form_of, vector_of
from weft.backends.cpu.nest import Nest, Root, substitution, write_by_root
from weft.backends.cpu.paddings import Stop, reaches, stops_of, unread
from weft.backends.cpu.program import Block, Op, Value
from weft.backends.cpu.reduced_places import known_of_places
from weft.backends.cpu.roots import WriteRoot
from weft.backends.cpu.versions import Streamed, all_hold, cuts_every_tile, mask_conditions, masks_of_points, versions
from weft.backends.llvm import casts
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I1, I64, Value as Reg, const
from weft.base import Unsupported
from weft.ops import ELEMENTS
from weft.ops.table import ROWS

Regs = list[Reg]


Failed = Callable[[Op, Reg], None]
"""Told of an assertion inside a combine function and of where it does not hold, one bit for each lane."""


def emit_region(
    f: Function,
    block: Block,
    args: Sequence[Reg],
    env: dict[Value, Reg | Buffer],
    failed: Failed | None = None,
    known: Set[Value] = frozenset(),
) -> Regs:
    """Apply a region of scalar operations to values of any lane count; conditions in `known` hold."""
    lanes = args[0].type.lanes
    local: dict[Value, Reg] = dict(zip(block.args, args, strict=True))

    def get(value: Value) -> Reg:
        reg = local.get(value)
        if reg is None:
            outer = env.get(value)
            if not isinstance(outer, Reg):
                raise Unsupported("a combine function that uses a tile from outside", "cpu")
            reg = outer
        return f.splat(reg, lanes) if lanes and not reg.type.lanes else reg

    for op in block.ops:
        if op.name in ("tt.reduce.return", "tt.scan.return", "scf.yield"):
            return [get(a) for a in op.args]
        if known and op.results and op.result in known:
            local[op.result] = const(I1.with_lanes(lanes), 1)
        elif op.name == "arith.constant":
            local[op.result] = const_of(op.result.elem, op.attrs["value"])
        elif op.name == "scf.if":
            _emit_if(f, op, local, get, env, failed)
        elif op.name == "tt.assert" and failed is not None:
            operands = [get(a) for a in op.args]
            broken = f.xor(operands[0], const(operands[0].type, 1))
            failed(op, broken if len(operands) == 1 else f.and_(broken, operands[1]))
        else:
            emit = EMITTERS.get(op.name)
            if emit is None:
                raise Unsupported(f"`{op.name}` in a combine function", "cpu", span=op.span)
            local[op.result] = emit(f, op, [get(a) for a in op.args])
    return []


def _emit_if(
    f: Function,
    op: Op,
    local: dict[Value, Reg],
    get: Callable[[Value], Reg],
    env: dict[Value, Reg | Buffer],
    failed: Failed | None,
) -> None:
    """A branch inside a combine function becomes selects: both sides are free of side effects, assertions apart."""
    cond = get(op.args[0])

    def on_side(taken: Reg) -> Failed | None:
        return None if failed is None else lambda at, broken: failed(at, f.and_(broken, taken))

    merged: dict[Value, Reg | Buffer] = {**env, **local}
    sides = []
    for region, taken in zip(op.regions, (cond, f.xor(cond, const(cond.type, 1))), strict=True):
        block = region[0]
        marker = [cond]  # lanes come from the condition
        inner = Block(None)
        inner.args, inner.ops = [Value((), "i1", "", None, 0, None)], block.ops
        sides.append(emit_region(f, inner, marker, merged, on_side(taken)))
    for result, yes, no in zip(op.results, sides[0], sides[1], strict=True):
        local[result] = f.select(cond, yes, no)


def identity_of(op: Op) -> float | int | None:
    """The neutral element where the region is one known operation on its two arguments."""
    ops = op.regions[0][0].ops
    if len(ops) != 2 or len(op.args) != 1 or (row := ROWS.get(ops[0].name)) is None or row.neutral is None:
        return None
    if {id(a) for a in ops[0].args} != {id(a) for a in op.regions[0][0].args} or ops[1].args != ops[0].results:
        return None
    elem = op.args[0].elem
    if elem.startswith("f8"):
        return None
    if elem == "i1" and ops[0].name in ("arith.maxsi", "arith.minsi"):
        return None
    return row.neutral(ELEMENTS[elem])


class ReduceRoot:
    """One `tt.reduce`: its accumulators while the nest runs, its results when an output point is finished."""

    def __init__(self, op: Op, outputs: list[Buffer | None], failed: Failed | None = None) -> None:
        self.op: Op = op
        self.outputs = outputs  # None: the result is a scalar
        self.failed = failed
        self.shape = op.args[0].shape
        self.coords = row_major(self.shape)
        self.axis: int = op.attrs["axis"]
        self.identity = identity_of(op)
        self.padding: float | int | None = None
        """What is reduced beyond the end of the axis, where the nest does not go there."""
        self.block = op.regions[0][0]
        self.name = self.block.ops[0].name if self.identity is not None else ""
        self.elem = op.args[0].elem
        # Known operations accumulate halves in single precision and round once.
        self.wide = "f32" if self.name.endswith("f") and self.elem in ("f16", "bf16") else self.elem
        self.known_further = known_of_places(op)
        self.pick = {"arith.maxnumf": "ogt", "arith.minnumf": "olt"}.get(self.name)

    def inputs(self) -> list[tuple[Value, Coords]]:
        return [(a, self.coords) for a in self.op.args]

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        return []

    def prepare(self, ev: Evaluator, at: Callable[[Coords], Coords]) -> Callable[[], None]:
        raise RuntimeError("reductions are emitted by reduce.emit_nest")

    def values(self, ev: Evaluator, copy: dict[int, int]) -> Regs:
        """The elements at the current point."""
        coords = substitute(self.coords, copy)
        result = []
        for a in self.op.args:
            v = vector_of(ev.f, ev.eval(a, coords), ev.lanes)
            if ev.lanes and not v.type.lanes:
                v = ev.f.splat(v, ev.lanes)
            if self.wide != self.elem:
                v = casts.convert_float(ev.f, v, self.elem, self.wide)
            result.append(v)
        return result * 2 if self.pick else result

    def combine(self, ev: Evaluator, a: Regs, b: Regs, *, further: bool = False) -> Regs:
        """Accumulators with more elements, which may all be `further` along the axis, or other accumulators, combined
        in.
        """
        f = ev.f
        if self.pick:
            # One instruction each, in which a NaN element loses to any accumulator. Both extremes are kept, because
            # only a tile without a single number leaves both at their start: see `finish`.
            other = "olt" if self.pick == "ogt" else "ogt"
            return [f.select(f.fcmp(p, y, f.bound(x)), y, x) for p, x, y in zip((self.pick, other), a, b, strict=True)]
        if self.wide != self.elem:
            return [ARITHMETIC[self.name](f, [a[0], b[0]])]
        known = self.known_further if further else frozenset[Value]()
        return emit_region(f, self.block, [*a, *b], ev.env, self.failed, known)

    def start(self, ev: Evaluator) -> Regs | None:
        """The accumulators before the first element; None where that has to be the first element itself."""
        if self.identity is None and self.padding is None:
            return None
        numbers = [self.identity or 0] * self.width if self.padding is None else [self.padding] * self.width
        if self.pick and self.padding is None:
            worst = float("-inf") if self.pick == "ogt" else float("inf")
            numbers = [worst, -worst]
        ones = [const_of(self.wide, n) for n in numbers]
        return [ev.f.splat(one, ev.lanes) if ev.lanes else one for one in ones]

    def before_first(self, ev: Evaluator) -> Regs | None:
        """What the first element is combined with; None where it is the accumulator. No extremum may be NaN."""
        return self.start(ev) if self.pick or self.padding is not None else None

    def finish(self, ev: Evaluator, values: Regs) -> Regs:
        """From accumulators to results."""
        f = ev.f
        if self.pick:
            best, worst = values
            start = float("-inf") if self.pick == "ogt" else float("inf")
            nothing = f.and_(
                f.fcmp("oeq", best, const(best.type, start)), f.fcmp("oeq", worst, const(best.type, -start))
            )
            values = [f.select(nothing, const(best.type, float("nan")), best)]
        if self.wide != self.elem:
            values = [casts.convert_float(f, values[0], self.wide, self.elem)]
        return values

    @property
    def width(self) -> int:
        """Number of accumulators of one copy."""
        return 2 if self.pick else len(self.op.args)

    def rows_together(self, ev: Evaluator, rows: list[Regs], bits: Sequence[int]) -> tuple[Regs, tuple[int, ...]]:
        """Combine lanes of several rows, which `bits` number, until all are in one vector:

            a0 a1 a2 a3, b0 b1 b2 b3  ->  a0 b0 a2 b2  +  a1 b1 a3 b3

        Gives the vector, and what its lanes are.
        """
        for bit in range(len(bits)):
            pairs = zip(rows[::2], rows[1::2], strict=True)
            exchanged = [[exchange(ev.f, x, y, bit) for x, y in zip(*pair, strict=True)] for pair in pairs]
            rows = [self.combine(ev, [x for x, _ in both], [y for _, y in both]) for both in exchanged]
        return rows[0], (*bits, *ev.lane_bits[len(bits) :])

    def across_lanes(
        self, ev: Evaluator, accumulators: Regs, reduce_bits: Sequence[int], lane_bits: Sequence[int]
    ) -> tuple[Regs, tuple[int, ...]]:
        """Combine the lanes that lie on the axis; gives the values and the lane bits that remain."""
        f = ev.f
        bits = list(lane_bits)
        values = accumulators
        for bit in [b for b in lane_bits if b in reduce_bits]:
            position = bits.index(bit)
            count = 1 << len(bits)
            low = [lane for lane in range(count) if not lane >> position & 1]
            high = [lane | 1 << position for lane in low]
            if len(low) == 1:
                values = self.combine(ev, [f.extract(v, 0) for v in values], [f.extract(v, 1) for v in values])
            else:
                values = self.combine(
                    ev, [f.shuffle(v, None, low) for v in values], [f.shuffle(v, None, high) for v in values]
                )
            bits.remove(bit)
        return values, tuple(bits)


def emit_nest(
    nest: Nest,
    reductions: list[ReduceRoot],
    pointwise: Sequence[Root],
    env: dict[Value, Reg | Buffer],
    streaming: Streamed,
) -> None:
    """A nest with reductions (all over the same axis of the same shape) and pointwise roots beside them."""
    scalars = [
        r for root in reductions for r, buffer in zip(root.op.results, root.outputs, strict=True) if buffer is None
    ]

    def version(ev: Evaluator) -> Regs:
        _Reductions(nest, ev, reductions, pointwise, env).emit()
        totals = [env.pop(r) for r in scalars]
        return [v for v in totals if isinstance(v, Reg)]

    for r, reg in zip(scalars, versions(nest, version, streaming), strict=True):
        env[r] = reg


State = list[list[Regs]]
"""Accumulators: of each root, of each copy of the body."""


class _Reductions:
    """The emission of one version of a nest with reductions."""

    def __init__(
        self,
        nest: Nest,
        ev: Evaluator,
        reductions: list[ReduceRoot],
        pointwise: Sequence[Root],
        env: dict[Value, Reg | Buffer],
    ) -> None:
        self.nest, self.ev, self.reductions, self.pointwise, self.env = nest, ev, reductions, pointwise, env
        self.copies = nest.copies()
        self.extent = next((e for e in nest.ends.extents if e.bits == nest.reduce_bits), None)
        for root in reductions:
            padding = padding_of(root.op) if self.extent is not None else None
            root.padding = None if padding is None else padding[1]

    def emit(self) -> None:
        """The loops over what is not reduced, with the reduction inside."""
        if self.nest.outer_bits:
            self.nest.loops(self.ev, self.nest.outer_bits, lambda ev: self.reduce_here(), set())
        else:
            self.reduce_here()

    def reduce_here(self) -> None:
        """Go along the axis, then write the results."""
        nest, ev = self.nest, self.ev
        extent = self.extent
        starts = [root.start(ev) for root in self.reductions]
        if nest.inner_bits:
            nest.hoist(ev, set(nest.outer_bits) & set(ev.loops))
        if extent is not None:
            state = self._up_to(extent, starts)
        elif nest.inner_bits:
            state = self._loop(starts, 1 << len(nest.inner_bits))
        else:
            state = self._point(None)
        self._finish(state)

    def _up_to(self, extent: Extent, starts: list[Regs | None]) -> State:
        """Go along the axis up to its end: what lies beyond is what the accumulators begin with."""
        ends, ev = self.nest.ends, self.ev
        state: State = [[start or [] for _ in self.copies] for start in starts]
        count, left = ends.parts(extent)
        self.nest.unsettled -= set(extent.bits)
        if count > 1:
            state = self._loop(starts, count)
        elif count:
            self._bind(const(I64, 0))
            state = self._point(state)
        if left:
            full = ev.full
            self._bind(const(I64, count))
            with ends.rest(extent, left):
                state = self._point(state, full)
            ev.full = full
        self.nest.unsettled |= set(extent.bits)
        return state

    def _point(self, accumulators: State | None, full: set[Value] | None = None) -> State:
        """One point: evaluate all, combine, then write. Of what is left at the end of the axis, copies that lie beyond
        do nothing, and in those that lie before the masks of `full` hold.
        """
        ev, ends = self.ev, self.nest.ends
        ev.enter()
        ev.full = ev.full if full is None else set()
        self.nest.evaluate_in_order(ev)

        def reached(copy: dict[int, int]) -> bool:
            some, every = ends.reach(copy)
            if full is not None:
                ev.full = full if every else set()
            return some

        writes = [
            [root.prepare(ev, substitution(copy)) for root in self.pointwise] for copy in self.copies if reached(copy)
        ]
        result = []
        for r, root in enumerate(self.reductions):
            row = []
            for k, copy in enumerate(self.copies):
                if not reached(copy):
                    assert accumulators is not None
                    row.append(accumulators[r][k])
                    continue
                values = root.values(ev, copy)
                before = root.before_first(ev) if accumulators is None else accumulators[r][k]
                row.append(values if before is None else root.combine(ev, before, values, further=True))
            result.append(row)
        write_by_root(writes)
        ev.leave()
        return result

    def _loop(self, starts: list[Regs | None], count: int) -> State:
        """A loop over points of the axis.  Roots without a neutral element start with the first point."""
        nest, ev, f = self.nest, self.ev, self.ev.f
        if all(s is not None for s in starts):
            inits = [reg for s in starts for _ in self.copies for reg in (s or [])]
            first = const(I64, 0)
        else:
            self._bind(const(I64, 0))
            inits = _flatten(self._point(None))
            first = const(I64, 1)

        def step(i: Reg, carried: Regs) -> Regs:
            self._bind(i)
            return _flatten(self._point(self._unflatten(carried)))

        stop = const(I64, count)
        masks = masks_of_points(nest, ev.full) if len(nest.inner_bits) > 1 else {}
        if masks:
            first, inits = self._while_whole(masks, first, stop, inits, step)
        stops = self._stops(unmasked=not masks)
        if stops:
            return self._unflatten(self._until_padding(stops, first, stop, inits, step))
        return self._unflatten(f.loop_carrying(first, stop, const(I64, 1), inits, step, at_least_once=not masks))

    def _stops(self, *, unmasked: bool) -> list[Stop]:
        """What ends the loop along the axis where only padding follows. `unmasked`: it has no points without masks
        besides; then that is asked where nothing in the nest has a mask, as what was kept of a load has none.
        """
        nest, ops = self.nest, [root.op for root in self.reductions]
        if unmasked and (nest.ends.extents or nest.rows is not None or mask_conditions(nest, selections=True)):
            return []
        stops = stops_of(nest, ops, {*nest.lane_bits, *nest.unroll})
        if unmasked and not any(cuts_every_tile(value) for stop in stops for value, _ in stop.places):
            return []
        written = [root for root in self.pointwise if root.op is not None or root.accesses()]
        kept = [root.value for root in written if isinstance(root, WriteRoot) and root.keep]
        return stops if len(kept) == len(written) and all(unread(stops, v, set(ops)) for v in kept) else []

    def _while_whole(
        self,
        masks: dict[Value, list[Condition]],
        first: Reg,
        stop: Reg,
        inits: Regs,
        step: Callable[[Reg, Regs], Regs],
    ) -> tuple[Reg, Regs]:
        """The points that lie before the first one which is not wholly inside of its masks, without these: a row that
        is shorter than its tile has some, and only the others make masks.
        """
        ev = self.ev

        def holds(i: Reg) -> Reg:
            self._bind(i)
            return all_hold(ev, masks)

        def whole(i: Reg, carried: Regs) -> Regs:
            full = ev.full
            ev.full = full | set(masks)
            carried = step(i, carried)
            ev.full = full
            return carried

        return ev.f.loop_while(first, stop, inits, holds, whole)

    def _until_padding(
        self, stops: list[Stop], first: Reg, stop: Reg, inits: Regs, step: Callable[[Reg, Regs], Regs]
    ) -> Regs:
        """Points up to the first one that has padding for each output, if there is one: some of it has to be combined
        in, as it may be told from none.
        """
        f = self.ev.f

        def holds(i: Reg) -> Reg:
            self._bind(f.sub(i, const(I64, 1)))
            return f.or_(f.icmp("eq", i, first), reaches(self.ev, stops))

        return f.loop_while(first, stop, inits, holds, step)[1]

    def _bind(self, var: Reg) -> None:
        """Let the bits of the loop's variable be the iteration bits along the axis."""
        f, bits, loops = self.ev.f, self.nest.inner_bits, self.ev.loops
        if not bits:
            return
        if list(bits) == list(range(bits[0], bits[0] + len(bits))):
            loop = LoopVar(var, bits[0], len(bits))
            for b in bits:
                loops[b] = loop
            return
        for i, b in enumerate(bits):
            bit = f.and_(f.lshr(var, const(I64, i)), const(I64, 1))
            loops[b] = LoopVar(bit, b, 1)

    def _unflatten(self, regs: Regs) -> State:
        state, i = [], 0
        for root in self.reductions:
            row = []
            for _ in self.copies:
                row.append(regs[i : i + root.width])
                i += root.width
            state.append(row)
        return state

    def _output_of(self, copy_index: int) -> int:
        """Copies of the body that differ only along the axis share an output: its number."""
        off_axis = [i for i, b in enumerate(self.nest.unroll) if b not in self.nest.reduce_bits]
        return sum((copy_index >> i & 1) << k for k, i in enumerate(off_axis))

    def _finish(self, state: State) -> None:
        """Combine copies and lanes that share an output, and write it."""
        nest = self.nest
        for root, row in zip(self.reductions, state, strict=True):
            on_axis = [b in nest.reduce_bits for b in nest.unroll]
            if on_axis and not any(on_axis) and set(nest.lane_bits) <= set(nest.reduce_bits):
                self._write(root, *root.rows_together(self.ev, row, nest.unroll), {})
                continue
            merged: dict[int, Regs] = {}
            where: dict[int, dict[int, int]] = {}
            for k, regs in enumerate(row):
                key = self._output_of(k)
                merged[key] = regs if key not in merged else root.combine(self.ev, merged[key], regs)
                where.setdefault(key, self.copies[k])
            for key, regs in merged.items():
                self._write(root, regs, self.ev.lane_bits, where[key])

    def _write(self, root: ReduceRoot, regs: Regs, lane_bits: tuple[int, ...], copy: dict[int, int]) -> None:
        """Combine the lanes that lie on the axis, and write what becomes of them."""
        values, bits = root.across_lanes(self.ev, regs, self.nest.reduce_bits, lane_bits)
        _write_results(self.ev, root, root.finish(self.ev, values), bits, copy, self.env)


def _flatten(state: State) -> Regs:
    return [reg for row in state for regs in row for reg in regs]


def _write_results(
    ev: Evaluator,
    root: ReduceRoot,
    values: Regs,
    bits: tuple[int, ...],
    copy: dict[int, int],
    env: dict[Value, Reg | Buffer],
) -> None:
    f = ev.f
    coords = substitute(root.coords, copy)
    out = coords[: root.axis] + coords[root.axis + 1 :]
    lane_bits, lanes = ev.lane_bits, ev.lanes
    ev.lane_bits, ev.lanes = bits, 1 << len(bits) if bits else 0
    try:
        for result, buffer, value in zip(root.op.results, root.outputs, values, strict=True):
            if buffer is None:
                env[result] = value
                continue
            pointer = ev.buffer_pointer(buffer, out)
            stored = f.cast("zext", value, value.type.with_elem("i8")) if result.elem == "i1" else value
            mask = ev.under_rest(None, out)
            access.store_lanes(f, memory_type(result.elem), pointer, ev.lanes, form_of(stored), mask)
    finally:
        ev.lane_bits, ev.lanes = lane_bits, lanes
