"""From a tile program to loop nests: what is fused, what is materialised, and in which order memory is touched.

The walk over a block is in program order. Scalars are emitted at once. Elementwise and shape operations are *lazy*:
nothing is emitted until an *anchor* (a store, a reduction, a product, a loop's carried value) pulls them into its
nest. Anchors over the same space that do not need each other's results share one nest (together.py). When a nest is
emitted, what it computes at every point and somebody needs later is written to a scratch buffer on the way, if
computing it again would cost more than reading it (`_side_writes`).

Memory order is that of the program. A load is lazy too, so before anything may overwrite what it reads it is
materialised; a load and a later store share a nest only if they are the same address at every point, or their base
pointers are different parameters. The latter is a promise that the launcher checks (`aliases.py`): where it does not
hold, a variant compiled without it runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from weft.backends.cpu.aliases import Aliases
from weft.backends.cpu.arena import Arena
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, live_bits, log2, row_major
from weft.backends.cpu.costs import Costs
from weft.backends.cpu.elementwise import EMITTERS
from weft.backends.cpu.evaluate import SHAPE_OPS, Evaluator
from weft.backends.cpu.lifetimes import last_uses
from weft.backends.cpu.loops import LoopEmitter, fuse_loops, known_integers, scalars_from_outside
from weft.backends.cpu.nest import EFFECTS, MOST_TRANSPOSED, Nest, Root
from weft.backends.cpu.program import Block, FunctionProgram, Op, Value, element_bits
from weft.backends.cpu.questions import Analysis
from weft.backends.cpu.reduce import ReduceRoot, emit_nest as emit_reductions
from weft.backends.cpu.roots import WriteRoot
from weft.backends.cpu.store_ends import store_ends
from weft.backends.cpu.streaming import Streaming
from weft.backends.cpu.telling import site_of, tell_nest, tile_text, variable
from weft.backends.cpu.together import apart, same_places
from weft.backends.cpu.versions import emit_pointwise
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I1, Value as Reg
from weft.base import Unsupported, registry
from weft.base.remarks import InMemory, NotFused, Prefetched, RemarkCollector
from weft.targets import NEON

FETCH_LEAST, FETCH_MOST = 4 << 10, 256 << 10  # bytes of a tile worth fetching for the next program
HEAVY = 12  # cost from which a value is materialised rather than computed again under a broadcast
LONG_CHAIN = 100  # and that of all that it is computed from
ONE_FOR_MANY = 160  # cost up to which an integer is computed again that is the same for 16 elements: an address
MOST_GATHERED = 64  # loads from loaded addresses in one nest: LLVM compares every two loads of such addresses

AnchorHandler = Callable[["Scheduler", Op], None]
ANCHORS: dict[str, AnchorHandler] = {}
anchor = registry(ANCHORS)
"""Registers how an operation that is not lazy is emitted."""


def _forget(answers: dict[Value, bool], value: Value) -> None:
    """Drop what is known about a value and all that it is computed of."""
    stack = [value]
    while stack:
        current = stack.pop()
        if answers.pop(current, None) is not None and current.op is not None:
            stack.extend(current.op.args)


def is_lazy(op: Op) -> bool:
    """Whether an operation on tiles is evaluated only where it is needed."""
    if not op.results or not op.results[0].is_tile:
        return False
    if op.name == "tt.load":
        return not op.is_volatile
    return op.fused or op.name in SHAPE_OPS or op.name in EMITTERS


@dataclass
class Loop:
    """A loop being emitted: its body, its counter now and one step on, and what each carried value becomes."""

    block: Block
    iv: Value
    now: Reg
    upper: Reg
    step: Reg
    next_iv: Reg
    carried: list[tuple[Value, Value]]


class Scheduler:
    """Emits the body of a kernel; one for each function."""

    def __init__(self, f: Function, program: FunctionProgram, arena: Arena, context: Any) -> None:
        self.f, self.program, self.arena, self.context = f, program, arena, context
        self.env: dict[Value, Reg | Buffer] = {}
        self.vector_bits: int = context.vector_bits
        self.remarks: RemarkCollector = context.remarks
        self.position = 0
        self.open: list[Root] = []
        self.opened = 0  # the position of the first of them
        self.ending: Op | None = None  # the end of a block, while what it gives is written where that belongs
        self.pending_loads: list[Op] = []
        self.aliases = Aliases(program.params, context.assume_no_alias, lambda v: self.analysis().nonnegative(v))
        # on AArch64 pairs of vectors can go around the caches, and single ones not
        self.streaming = Streaming(program, self.aliases, self._turns, possible=not context.cpu.has(NEON))
        self.costs = Costs(self.env)
        self.known = known_integers(program)
        self.orders = fuse_loops(program, self.known, is_lazy, self.remarks)
        self._last = last_uses(program, is_lazy)
        self.trip_counts: list[Reg] = []
        self.loops: list[Loop] = []
        self.waiting: dict[Op, Any] = {}  # the slots of products that wait for those of further iterations
        self.loaded: list[Value] = []  # pointers of tiles loaded so far, outside of loops
        self.fetch_ahead: Callable[[Scheduler, Value], Root | None] = context.fetch_ahead
        self._taken: set[Buffer] = set()
        self._assertions: dict[Op, int] = {}  # those inside combine functions, which are emitted several times

    # -- walking ----------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Emit the operations of a block up to its terminator, which the caller handles."""
        for op in block.ops:
            self.position = op.index
            if op.name in ("scf.yield", "scf.condition", "tt.return", "cf.br", "cf.cond_br"):
                self.flush()
                return
            self.operation(op)

    def operation(self, op: Op) -> None:
        """Emit an operation, or put it off until somebody needs it."""
        if is_lazy(op):
            self.costs.note(op)
            if op.name == "tt.load":
                self.pending_loads.append(op)
            if op.fused:
                self.require(scalars_from_outside(op))
            return
        handler = ANCHORS.get(op.name)
        if handler is not None:
            self.f.cut()
            handler(self, op)
        elif op.results and not op.results[0].is_tile:
            self.scalar_op(op)
        else:
            raise Unsupported(f"the operation `{op.name}`", "cpu", span=op.span)

    def scalar_op(self, op: Op) -> None:
        """An operation on scalars."""
        self.require(op.args)
        self.env[op.result] = Evaluator(self.f, self.env, ()).scalar_op(op)

    def require(self, values: Sequence[Value]) -> None:
        """Make sure that scalars computed by a nest still open are there."""
        if self.open and any(v not in self.env for v in values if not v.is_tile):
            self.flush()

    def scalar(self, value: Value) -> Reg:
        """The register of a scalar, closing the open nest if it is still to come from there."""
        self.require([value])
        reg = self.env[value]
        assert isinstance(reg, Reg)
        return reg

    # -- nests ------------------------------------------------------------------------------------------------------

    def add_root(self, root: Root) -> None:
        """Put an anchor into the open nest, or begin another."""
        reason = apart(root, self.open, self.pending_loads, self.aliases, self.analysis()) if self.open else ""
        if reason:
            if self.remarks and root.op is not None:
                first = self.open[0]
                into = site_of(first.op if first.op is not None else getattr(first, "value").op)  # noqa: B009
                self.remarks.add(NotFused(root.op.span, site_of(root.op), into, reason))
            self.flush()
        if not self.open:
            self.opened = self.position
        self.open.append(root)

    def flush(self) -> None:
        """Emit the open nest."""
        if self.open:
            roots, self.open = self.open, []
            position = self.position
            begins = (r.op.index for r in roots if r.op is not None)
            self.position = min([position, *begins])  # when the nest is, not when it ends
            self.nest(roots)
            self.position = position
            self.pending_loads = [op for op in self.pending_loads if self.last_use(op.result) >= position]

    def nest(self, roots: list[Root]) -> None:
        """Emit one nest: first what it needs materialised, then itself with its side writes."""
        shape = roots[0].shape
        count = sum(log2(s) for s in shape)
        ops = {r.op for r in roots if r.op is not None}
        while True:
            analysis = self.analysis()
            inputs = [i for r in roots for i in r.inputs()]
            visited = analysis.walk(inputs)
            before = self._needed_first(roots, visited, count, ops)
            if before is not None:
                self.materialise(before[0], why=before[1])
                continue
            crowded = self._gathered_first(inputs, visited)
            if crowded is not None:
                self.materialise(crowded, why=f"{MOST_GATHERED} loads from loaded addresses are enough for one nest")
                continue
            transposed = (
                Nest(self.f, self.env, roots, shape, analysis, self.vector_bits, visited=visited).transpose_first
                if len(visited) > MOST_TRANSPOSED
                else []
            )
            written = {r.value for r in roots if isinstance(r, WriteRoot)}
            transposed = [(value, weights) for value, weights in transposed if value not in written]
            if not transposed:
                break
            for value, weights in transposed:
                self.materialise(value, weights, why="it is transposed, and the nest is too long to be unrolled")
        more = self._side_writes(roots, visited, count, shape, ops)
        more += self._fetch_ahead(visited, roots + more)
        roots = roots + more
        reductions = [r for r in roots if isinstance(r, ReduceRoot)]
        reduce_bits: list[int] = []
        if reductions:
            reduce_bits = list(row_major(shape)[reductions[0].axis])
        self.f.cut()
        emit_loop = LoopEmitter(self.context.polling).emit
        rest = None if more else visited
        nest = Nest(self.f, self.env, roots, shape, analysis, self.vector_bits, reduce_bits, emit_loop, rest)
        if reductions:
            pointwise = [r for r in roots if not isinstance(r, ReduceRoot)]
            emit_reductions(nest, reductions, pointwise, self.env, self.streaming.stores)
        else:
            ends = store_ends(self, nest)
            emit_pointwise(nest, self.streaming.stores, None if ends is None else lambda: ends.emit(self))
        if self.remarks:
            tell_nest(nest, roots, self.program, self.remarks)
        for root in roots:
            if isinstance(root, WriteRoot) and root.keep:
                self.env.setdefault(root.value, root.buffer)
        self.pending_loads = [op for op in self.pending_loads if op.result not in self.env]

    def _turns(self) -> Reg:
        """How often the launch runs the nest that is emitted now."""
        total: Reg = self.context.total_programs(self.f)
        for count in self.trip_counts:
            total = self.f.mul(total, count)
        return total

    def _fetch_ahead(self, visited: dict[tuple[Value, Coords], None], roots: list[Root]) -> list[Root]:
        """In a nest that leaves memory alone, prefetches of what the next program will load where this one did."""
        loads = [
            (v.op, c)
            for v, c in visited
            if v not in self.env and v.op is not None and v.op.name == "tt.load" and not v.is_inside
        ]
        if self.loops or roots[0].shape == ():
            return []
        if loads:
            self.loaded += [
                op.args[0]
                for op, coords in loads
                if coords == row_major(op.result.shape)
                and FETCH_LEAST <= op.result.numel * element_bits(op.result.elem) // 8 <= FETCH_MOST
            ]
            return []
        if any(r.op is not None and r.op.name in EFFECTS for r in roots):
            return []
        ahead = [(p, self.fetch_ahead(self, p)) for p in self.loaded if p.shape == roots[0].shape]
        self.loaded = [p for p in self.loaded if p.shape != roots[0].shape]
        for p in (p for p, root in ahead if self.remarks and root is not None and p.op is not None):
            why = "its cache lines are fetched by loops that otherwise only compute"
            self.remarks.add(Prefetched(p.op.span if p.op else None, "what the next program loads here", why))
        return [root for _, root in ahead if root is not None]

    def _gathered_first(
        self, inputs: Sequence[tuple[Value, Coords]], visited: dict[tuple[Value, Coords], None]
    ) -> Value | None:
        """A value to materialise before the nest as it is made of many loads from addresses that are loaded too."""
        if len(visited) <= 2 * MOST_GATHERED:
            return None
        ends = {value for value, _ in inputs}
        loaded: set[Value] = set()  # what a load is a part of
        below: dict[Value, frozenset[Value]] = {}
        for value, _ in visited:  # operands first
            op = value.op
            if value in self.env or op is None or value in below:
                continue
            gathered = frozenset[Value]().union(*(below[a] for a in op.args if a in below))
            if op.name == "tt.load" and op.args[0] in loaded:
                gathered |= {value}
            if op.name == "tt.load" or any(a in loaded for a in op.args):
                loaded.add(value)
            below[value] = gathered
            if len(gathered) >= MOST_GATHERED and value not in ends and self.costs.worth_keeping(value):
                return value
        return None

    def _needed_first(
        self, roots: list[Root], visited: dict[tuple[Value, Coords], None], count: int, ops: set[Op]
    ) -> tuple[Value, str] | None:
        """A value to materialise before the nest, and why: dear under a broadcast, or a load that a store here may
        hit."""
        stores = [r.op for r in roots if r.op is not None and r.op.name in EFFECTS]
        places: dict[Value, Coords] = {}
        for value, coords in visited:
            if value in self.env or value.op is None or value.is_inside:
                continue
            broadcast = len(live_bits(coords)) < count
            elsewhere = value in places and places[value] != coords
            places[value] = coords
            dear = self.costs.alone(value) >= HEAVY if not elsewhere else self.costs.worth_keeping(value)
            dear = dear or (self.costs.of(value) >= LONG_CHAIN and self.costs.worth_keeping(value))
            again = (broadcast or elsewhere) and dear and value.numel > 1
            if again and not any(isinstance(r, WriteRoot) and r.value is value for r in roots):
                again_for = "each element that it is spread over" if broadcast else "another place of it as well"
                return value, f"it would be computed for {again_for}"
            if value.op.name != "tt.load":
                continue
            for store in stores:
                if store.index < value.op.index:
                    continue
                same_place = coords == row_major(store.args[0].shape) and same_places(
                    store.args[0], value.op.args[0], self.analysis()
                )
                if same_place and store.args[0] is value.op.args[0]:
                    continue
                if self.aliases.may_meet(value.op.args[0], store.args[0], same_place):
                    return value, "the same loops may store over what it loads"
        if stores:
            inside = {v for v, _ in visited}
            answers: dict[Value, bool] = {}
            for load in self.pending_loads:
                if load.result in self.env or load.result in inside:
                    continue
                if not self.needed_later(load.result, ops, answers=answers):
                    continue
                if any(s.index > load.index and self.aliases.may_meet(load.args[0], s.args[0], False) for s in stores):
                    return load.result, "a store before it is used may overwrite it"
        return None

    def _overwritten(self, value: Value, coords: Coords, roots: list[Root]) -> bool:
        """Whether a nest of these roots may write over what a value is loaded from: it is not loaded again then."""
        walked = self.analysis().walk([(value, coords)])
        loads = [v.op for v, _ in walked if v not in self.env and v.op is not None and v.op.name == "tt.load"]
        writers = [r.op for r in roots if r.op is not None and r.op.name in EFFECTS]
        return any(self.aliases.may_meet(load.args[0], w.args[0], False) for load in loads for w in writers)

    def _side_writes(
        self,
        roots: list[Root],
        visited: dict[tuple[Value, Coords], None],
        count: int,
        shape: tuple[int, ...],
        ops: set[Op],
    ) -> list[Root]:
        writes: list[Root] = []
        analysis = self.analysis()
        written = {r.value for r in roots if isinstance(r, WriteRoot) and r.keep}
        done = ops if self.ending is None else ops | {self.ending}
        answers: dict[Value, bool] = {}  # users are asked about first
        for value, coords in reversed(visited):
            if value in self.env or value in written or value.op is None or not is_lazy(value.op):
                continue
            bits = [s for coord in coords for s in coord]
            if len(bits) != count or len(set(bits)) != count or min(bits, default=0) < 0:
                continue
            if not self.costs.worth_keeping(value) or not self.needed_later(value, done, written, answers):
                continue
            cheap = value.elem[0] == "i" and self.costs.of(value) <= ONE_FOR_MANY
            spread = cheap and not {0, 1, 2, 3} & analysis.steps(value, coords).keys()
            if spread and not self._overwritten(value, coords, roots):
                continue  # one element for all of a vector: read back, it would be taken for many
            self.tell_kept(value, "it is used again later, and costs more to compute than to read")
            buffer = self._dying(value, coords, visited, ops) or self.allocate(value)
            writes.append(WriteRoot(value, buffer, coords, shape))
            written.add(value)
            _forget(answers, value)
        return writes

    def _dying(
        self, value: Value, coords: Coords, visited: dict[tuple[Value, Coords], None], ops: set[Op]
    ) -> Buffer | None:
        """A buffer read for the last time by this nest, at the same places, which `value` can take over."""
        for other, at in visited:
            held_in = self.env.get(other)
            if (
                at == coords
                and isinstance(held_in, Buffer)
                and held_in.elem == value.elem
                and held_in.weights == row_major(value.shape)
                and other.op is not None
                and other.op.name != "scf.for"
                and other.block is value.block
                and held_in not in self._taken
                and not self.needed_later(other, ops, {value})
                and all(v is other or self.env.get(v) is not held_in for v in self.env)
                and all(v is not other or c == coords for v, c in visited)
            ):
                held_in.last = max(held_in.last, self.last_use(value))
                self._taken.add(held_in)
                return held_in
        return None

    def tell_kept(self, value: Value, why: str) -> None:
        """That a tile is written to memory, and why."""
        if self.remarks and value.op is not None:
            self.remarks.add(InMemory(value.op.span, tile_text(value), variable(value), why))

    def materialise(
        self,
        value: Value,
        weights: Coords | None = None,
        why: str = "it is taken from memory",
        end: tuple[int, Reg] | None = None,
    ) -> Buffer:
        """Have a tile in a buffer, computing it now if it is not; with `weights`, in one laid out so; with `end`, an
        axis and a place along it, perhaps only up to there.
        """
        self.flush()
        held_in = self.env.get(value)
        if isinstance(held_in, Buffer) and (weights is None or held_in.weights == weights):
            return held_in
        self.tell_kept(value, why)
        target = self.allocate(value, weights)
        self.nest([WriteRoot(value, target, row_major(value.shape), value.shape, held_in is None, end)])
        return target

    def write_into(self, value: Value, buffer: Buffer) -> None:
        """Write a tile into a buffer that is somebody else's."""
        self.add_root(WriteRoot(value, buffer, row_major(value.shape), value.shape, keep=False))

    def prepare(self, values: Iterable[Value]) -> None:
        """Before a region that pulls `values`, perhaps many times: materialise what is not cheap to compute."""
        seen: set[Value] = set()
        for first in values:
            stack = [first]
            while stack:
                value = stack.pop()
                if value in seen or not value.is_tile or value in self.env or value.op is None:
                    continue
                seen.add(value)
                if self.costs.worth_keeping(value):
                    self.materialise(value, why="it would be computed again in each iteration of what follows")
                else:
                    stack += reversed(value.op.args)

    def failed(self, op: Op, broken: Reg) -> None:
        """Report an assertion that does not hold in some lane."""
        if broken.type.lanes:
            broken = self.f.call(f"llvm.vector.reduce.or.v{broken.type.lanes}i1", I1, [broken])
        index = self._assertions.get(op)
        if index is None:
            index = self._assertions[op] = self.context.add_assert(op)
        self.f.when(broken, lambda: self.context.report(self.f, index))

    def allocate(self, value: Value, weights: Coords | None = None) -> Buffer:
        """A scratch buffer that lives until the last use of `value`, or until it is written if there is none. What the
        open nest reads is still in use.
        """
        now = min(self.position, self.opened) if self.open else self.position
        return self.arena.allocate(value, now, max(self.position, self.last_use(value)), weights=weights)

    def temporary(self, shape: tuple[int, ...], elem: str) -> Buffer:
        """A scratch buffer for one operation alone."""
        tile = Value(shape, elem, "", None, 0, None)
        return self.arena.allocate(tile, self.position, self.position)

    def keep_whole(self, buffer: Buffer) -> None:
        """Let no other value take over a buffer while it is read: it is read at places that are not known."""
        self._taken.add(buffer)

    # -- questions --------------------------------------------------------------------------------------------------

    def needed_later(
        self,
        value: Value,
        now: set[Op],
        written: set[Value] | frozenset[Value] = frozenset(),
        answers: dict[Value, bool] | None = None,
    ) -> bool:
        """Whether some anchor beyond `now` will pull `value`, not through a value with a buffer (or one in `written`).

        `answers` keeps them for further questions with the same `now` and `written`.
        """
        answers = {} if answers is None else answers
        path = [(value, self._pulled_by(value, now))]
        while path:
            current, uses = path[-1]
            for use in uses:
                if use is not None:
                    if use in self.env or use in written:
                        continue
                    is_needed = answers.get(use)
                    if is_needed is None:
                        path.append((use, self._pulled_by(use, now)))
                        break
                    if not is_needed:
                        continue
                answers.update((waiting, True) for waiting, _ in path)
                return True
            else:
                answers[current] = False
                path.pop()
        return False

    def _pulled_by(self, value: Value, now: set[Op]) -> Iterator[Value | None]:
        """What may pull a value beyond `now`: tiles that are lazy too, and None for an anchor that is still to come.

        What comes next is asked first: of many users most are either long done or far away.
        """
        following = bisect_left(value.users, self.position, key=lambda user: user.index)
        for user in chain(islice(value.users, following, None), islice(value.users, following)):
            if user not in now:
                if is_lazy(user):
                    yield from user.results
                elif user.name == "scf.yield" and user.block.parent is not None and user.block.parent.fused:
                    yield from user.block.parent.results
                elif user.last >= self.position:
                    yield None

    def last_use(self, value: Value) -> int:
        """The index of the last operation that may read `value`, directly or through lazy ones."""
        return self._last.get(value, 0)

    # -- memory -----------------------------------------------------------------------------------------------------

    def analysis(self) -> Analysis:
        """Questions about what a nest would touch, given what is known now."""
        return Analysis(self.env, self.known)

    def settle_loads(self, effects: Sequence[Op], now: set[Op]) -> None:
        """Materialise loads still pending that `effects` (about to happen out of their nest) might overwrite."""
        answers: dict[Value, bool] = {}
        for load in list(self.pending_loads):
            if load.result in self.env or not self.needed_later(load.result, now, answers=answers):
                continue
            if any(e.index > load.index and self.aliases.may_meet(load.args[0], e.args[0], False) for e in effects):
                self.materialise(load.result, why="what comes before its use may overwrite it")
