"""Reductions: a combining region applied over an axis, in vector registers.

Each lane (and each of four unrolled copies) accumulates on its own; at the end copies and then lanes are combined
pairwise. The order of combination is unspecified, as in Triton: the region must be associative and commutative. Where
the region is one known operation its identity starts the accumulators; otherwise the first element does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.backends.cpu import access, casts
from weft.backends.cpu.coords import Coords, identity, substitute
from weft.backends.cpu.elementwise import EMITTERS, FLOAT_ARITHMETIC, memory_type
from weft.backends.cpu.evaluate import Buffer, Evaluator, LoopVar, const_of
from weft.backends.cpu.forms import Form, Uniform, Varying, vector_of
from weft.backends.cpu.nest import Nest, Root, substitution
from weft.backends.cpu.program import Block, Op, Value
from weft.backends.llvm.emit import I64, Function, const
from weft.backends.llvm.emit import Value as Reg
from weft.base import Unsupported

Regs = list[Reg]


Failed = Callable[[Op, Reg], None]
"""Told of an assertion inside a combine function and of where it does not hold, one bit for each lane."""


def emit_region(
    f: Function, block: Block, args: Sequence[Reg], env: dict[Value, Reg | Buffer], failed: Failed | None = None
) -> Regs:
    """Apply a region of scalar operations to values of any lane count."""
    lanes = args[0].type.lanes
    local: dict[Value, Reg] = dict(zip(block.args, args, strict=True))

    def get(value: Value) -> Reg:
        found = local.get(value)
        if found is None:
            outer = env.get(value)
            if not isinstance(outer, Reg):
                raise Unsupported("a combine function that uses a tile from outside", "cpu")
            found = outer
        return f.splat(found, lanes) if lanes and not found.type.lanes else found

    for op in block.ops:
        if op.name in ("tt.reduce.return", "tt.scan.return", "scf.yield"):
            return [get(a) for a in op.args]
        if op.name == "arith.constant":
            local[op.result] = const_of(op.result.elem, op.attrs["value"])
        elif op.name == "scf.if":
            _emit_if(f, op, local, get, env, failed)
        elif op.name == "tt.assert" and failed is not None:
            held = [get(a) for a in op.args]
            broken = f.xor(held[0], const(held[0].type, 1))
            failed(op, broken if len(held) == 1 else f.and_(broken, held[1]))
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


_IDENTITIES: dict[str, Callable[[str], float | int]] = {
    "arith.addf": lambda e: -0.0, "arith.mulf": lambda e: 1.0, "arith.addi": lambda e: 0, "arith.muli": lambda e: 1,
    "arith.maxnumf": lambda e: float("nan"), "arith.minnumf": lambda e: float("nan"),
    "arith.maximumf": lambda e: float("-inf"), "arith.minimumf": lambda e: float("inf"),
    "arith.andi": lambda e: -1, "arith.ori": lambda e: 0, "arith.xori": lambda e: 0,
    "arith.maxui": lambda e: 0, "arith.minui": lambda e: -1,
    "arith.maxsi": lambda e: -(1 << (int(e[1:]) - 1)), "arith.minsi": lambda e: (1 << (int(e[1:]) - 1)) - 1,
}  # fmt: skip


def identity_of(op: Op) -> float | int | None:
    """The neutral element where the region is one known operation on its two arguments."""
    ops = op.regions[0][0].ops
    if len(ops) != 2 or len(op.args) != 1 or ops[0].name not in _IDENTITIES:
        return None
    if {id(a) for a in ops[0].args} != {id(a) for a in op.regions[0][0].args} or ops[1].args != ops[0].results:
        return None
    elem = op.args[0].elem
    if elem.startswith("f8"):
        return None
    if elem == "i1" and ops[0].name in ("arith.maxsi", "arith.minsi"):
        return None
    return _IDENTITIES[ops[0].name](elem)


class ReduceRoot:
    """One `tt.reduce`: its accumulators while the nest runs, its results when an output point is finished."""

    def __init__(self, op: Op, outputs: list[Buffer | None], failed: Failed | None = None) -> None:
        self.op: Op = op
        self.outputs = outputs  # None: the result is a scalar
        self.failed = failed
        self.shape = op.args[0].shape
        self.coords = identity(self.shape)
        self.axis: int = op.attrs["axis"]
        self.identity = identity_of(op)
        self.block = op.regions[0][0]
        self.name = self.block.ops[0].name if self.identity is not None else ""
        self.elem = op.args[0].elem
        # Known operations accumulate halves in single precision and round once.
        self.wide = "f32" if self.name.endswith("f") and self.elem in ("f16", "bf16") else self.elem
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

    def combine(self, ev: Evaluator, a: Regs, b: Regs) -> Regs:
        """Accumulators with more elements, or other accumulators, combined in."""
        f = ev.f
        if self.pick:
            # One instruction each, in which a NaN element loses to any accumulator. Both extremes are kept, because
            # only a tile without a single number leaves both at their start: see `finish`.
            other = "olt" if self.pick == "ogt" else "ogt"
            return [f.select(f.fcmp(p, y, x), y, x) for p, x, y in zip((self.pick, other), a, b, strict=True)]
        if self.wide != self.elem:
            return [FLOAT_ARITHMETIC[self.name](f, [a[0], b[0]])]
        return emit_region(f, self.block, [*a, *b], ev.env, self.failed)

    def start(self, ev: Evaluator) -> Regs | None:
        """The accumulators before the first element; None where that has to be the first element itself."""
        if self.identity is None:
            return None
        numbers: list[float | int] = [self.identity]
        if self.pick:
            worst = float("-inf") if self.pick == "ogt" else float("inf")
            numbers = [worst, -worst]
        ones = [const_of(self.wide, n) for n in numbers]
        return [ev.f.splat(one, ev.lanes) if ev.lanes else one for one in ones]

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

    def across_lanes(
        self, ev: Evaluator, accumulators: Regs, reduce_bits: Sequence[int]
    ) -> tuple[Regs, tuple[int, ...]]:
        """Combine the lanes that lie on the axis; gives the values and the lane bits that remain."""
        f = ev.f
        bits = list(ev.lane_bits)
        values = accumulators
        for bit in [b for b in ev.lane_bits if b in reduce_bits]:
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
    streaming: Callable[[int], Reg | None],
) -> None:
    """A nest with reductions (all over the same axis of the same shape) and pointwise roots beside them."""
    scalars = [
        r for root in reductions for r, buffer in zip(root.op.results, root.outputs, strict=True) if buffer is None
    ]

    def version(ev: Evaluator) -> Regs:
        _emit(nest, ev, reductions, pointwise, env)
        found = [env.pop(r) for r in scalars]
        return [v for v in found if isinstance(v, Reg)]

    for r, reg in zip(scalars, nest.versions(version, streaming), strict=True):
        env[r] = reg


def _emit(
    nest: Nest, ev: Evaluator, reductions: list[ReduceRoot], pointwise: Sequence[Root], env: dict[Value, Reg | Buffer]
) -> None:
    copies = nest.copies()
    off_axis = [b for b in nest.unroll if b not in nest.reduce_bits]

    def group(copy_index: int) -> int:
        """Copies of the body that differ only along the axis share an output."""
        key = 0
        for i, b in enumerate(nest.unroll):
            if b in off_axis:
                key |= (copy_index >> i & 1) << off_axis.index(b)
        return key

    def body(accumulators: list[list[Regs]] | None) -> list[list[Regs]]:
        """One point: evaluate all, combine, then write. accumulators[root][copy]."""
        nest.evaluate_in_order(ev)
        writes = [root.prepare(ev, substitution(copy)) for copy in copies for root in pointwise]
        result = []
        for r, root in enumerate(reductions):
            row = []
            for k, copy in enumerate(copies):
                values = root.values(ev, copy)
                row.append(values if accumulators is None else root.combine(ev, accumulators[r][k], values))
            result.append(row)
        for write in writes:
            write()
        return result

    def flatten(state: list[list[Regs]]) -> Regs:
        return [reg for row in state for regs in row for reg in regs]

    def unflatten(regs: Regs) -> list[list[Regs]]:
        state, i = [], 0
        for root in reductions:
            row = []
            for _ in copies:
                row.append(regs[i : i + root.width])
                i += root.width
            state.append(row)
        return state

    def reduce_here() -> None:
        bits = nest.inner_bits
        starts = [root.start(ev) for root in reductions]
        available = set(nest.outer_bits) & set(ev.loops)
        if not bits:
            ev.enter()
            state = body(None)
            ev.leave()
        else:
            nest.hoist(ev, available)
            state = _reduce_loop(ev, bits, starts, len(copies), body, flatten, unflatten)
        finish(state)

    def finish(state: list[list[Regs]]) -> None:
        for root, row in zip(reductions, state, strict=True):
            merged: dict[int, Regs] = {}
            where: dict[int, dict[int, int]] = {}
            for k, regs in enumerate(row):
                key = group(k)
                merged[key] = regs if key not in merged else root.combine(ev, merged[key], regs)
                where.setdefault(key, copies[k])
            for key, regs in merged.items():
                values, bits = root.across_lanes(ev, regs, nest.reduce_bits)
                values = root.finish(ev, values)
                _write_results(ev, root, values, bits, where[key], env)

    if nest.outer_bits:
        nest.loops(ev, nest.outer_bits, reduce_here, set())
    else:
        reduce_here()


def _reduce_loop(
    ev: Evaluator,
    bits: Sequence[int],
    starts: list[Regs | None],
    copies: int,
    body: Callable[[list[list[Regs]] | None], list[list[Regs]]],
    flatten: Callable[[list[list[Regs]]], Regs],
    unflatten: Callable[[Regs], list[list[Regs]]],
) -> list[list[Regs]]:
    f = ev.f
    count = 1 << len(bits)

    def bind(var: Reg) -> None:
        if list(bits) == list(range(bits[0], bits[0] + len(bits))):
            loop = LoopVar(var, bits[0], len(bits))
            for b in bits:
                ev.loops[b] = loop
            return
        for i, b in enumerate(bits):
            bit = f.and_(f.lshr(var, const(I64, i)), const(I64, 1))
            ev.loops[b] = LoopVar(bit, b, 1)

    if all(s is not None for s in starts):
        inits = [reg for s in starts for _ in range(copies) for reg in (s or [])]
        first = const(I64, 0)
    else:
        bind(const(I64, 0))
        ev.enter()
        inits = flatten(body(None))
        ev.leave()
        first = const(I64, 1)

    def step(i: Reg, carried: Regs) -> Regs:
        bind(i)
        ev.enter()
        result = flatten(body(unflatten(carried)))
        ev.leave()
        return result

    return unflatten(f.loop_carrying(first, const(I64, count), const(I64, 1), inits, step, at_least_once=True))


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
            form: Form = Varying(stored) if bits else Uniform(stored)
            access.store_lanes(f, memory_type(result.elem), pointer, ev.lanes, form, None)
    finally:
        ev.lane_bits, ev.lanes = lane_bits, lanes


__all__ = ["ReduceRoot", "emit_nest", "emit_region", "identity_of"]
