"""Loops that are evaluated where what they give is read, so that the tiles they carry stay in registers.

    acc = tl.zeros([1, 2048])                          for each 64 of the 2048 places:
    for i in range(0, n, 2048):                            acc = 0, in registers
        x = tl.load(p + i + r, i + r < n)                  for i in range(0, n, 2048):
        acc = tl.where(i + r < n, acc + x, acc)   ->           acc += the x of these places
    s = tl.sum(acc, 1)                                     s += acc

A loop over pieces of a row carries accumulators as large as a piece. Emitted as it stands, each iteration reads all
of them from memory and writes them back. What an element of them becomes depends on nothing but that element and on
what is loaded, so the loop can just as well run for each vector of them by itself: it is *fused* into the nest that
reads what it gives, as an operation on tiles would be. It does the same operations in the same order for each element.

`fuse_loops` finds such loops: all that they carry are tiles of one shape, their bodies have no effects, memory is read
along the last dimension or along the one before, and all that reads what they give are reductions along the last that
follow before anything is written. A branch in the body (`if first iteration`) whose sides load nothing computes both of
them.

`LoopEmitter` emits one at a point of a nest, for all copies of an unrolled body at once. Masks hold for most vectors:
each iteration finds out by a comparison or two whether they hold for all of the lanes (and whether indices lie below
what remainders of them are taken by), and if not, whether for none, where the carried values stay as they are. If the
body asks whether this is the first iteration, that one is emitted by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from weft.backends.cpu.affine_ops import AFFINE_OPS
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, row_major, substitute, unpin
from weft.backends.cpu.corners import Condition, Conditions, conjuncts, unwrapped
from weft.backends.cpu.elementwise import EMITTERS
from weft.backends.cpu.evaluate import DIVISIONS, Evaluator
from weft.backends.cpu.forms import form_of, vector_of
from weft.backends.cpu.polling import Polling
from weft.backends.cpu.program import Block, FunctionProgram, Op, Value, element_bits
from weft.backends.cpu.questions import Analysis, Steps, consecutive_run
from weft.backends.llvm.values import I1, I64, PTR, Value as Reg, const
from weft.base import each_once
from weft.base.remarks import LoopFused, RemarkCollector
from weft.ops.bounds import Bounds, any_of, two_part
from weft.ops.table import ROWS

if TYPE_CHECKING:
    from weft.backends.cpu.nest import Nest

MOST_INSIDE = 64  # operations in the body of a fused loop, which is emitted several times
DEAR = 12  # the cost of an operation that is not to be done again for each element it is spread over
NOWHERE = Buffer(Reg(PTR, "null"), "", ())  # where a tile lies that is not computed where it is read
RUN = 6  # bits along which loads are consecutive: the lanes of a vector and four copies of it
LEAST_RUN = 4  # and where the copies lie in another dimension

Lazy = Callable[[Op], bool]
Weights = tuple[tuple[int, ...], ...]


# -- what is known of integers ----------------------------------------------------------------------------------------


def known_integers(program: FunctionProgram) -> dict[Value, Bounds]:
    """What a launch promises of parameters, and what the counters of loops may be."""
    known = {
        p: any_of(element_bits(p.elem), two_part(int(attrs["tt.divisibility"])))
        for p, attrs in zip(program.params, program.arg_attrs, strict=True)
        if p.elem != "ptr" and "tt.divisibility" in attrs
    }
    for op in _loops(program.blocks):
        counter = op.regions[0][0].args[0]
        lower, upper, step = (constant(a) for a in op.args[:3])
        if lower is None or step is None or step <= 0:
            continue
        every = any_of(element_bits(counter.elem))
        high = every.high if upper is None else max(lower, min(every.high, upper - 1))
        known[counter] = Bounds(lower, high, min(two_part(lower), two_part(step)))
    return known


def constant(value: Value) -> int | None:
    """The integer that a scalar is known to be."""
    if value.op is None or value.op.name != "arith.constant":
        return None
    data = value.op.attrs["value"]
    return data if isinstance(data, int) else None


def all_ops(blocks: Sequence[Block]) -> Iterator[Op]:
    """All operations, those in loops and branches included."""
    for block in blocks:
        for op in block.ops:
            yield op
            for region in op.regions:
                yield from all_ops(region)


def _loops(blocks: Sequence[Block]) -> Iterator[Op]:
    return (op for op in all_ops(blocks) if op.name == "scf.for")


# -- which loops are fused --------------------------------------------------------------------------------------------


def fuse_loops(
    program: FunctionProgram, known: dict[Value, Bounds], lazy: Lazy, remarks: RemarkCollector
) -> dict[Op, Weights]:
    """Mark the loops that are evaluated where what they give is read; of others, tells in which order the elements of
    what they carry lie in memory if not row by row.
    """
    orders: dict[Op, Weights] = {}
    loops = list(_loops(program.blocks))
    if not loops:
        return orders
    at_hand = {r: NOWHERE for op in all_ops(program.blocks) if not lazy(op) for r in op.results if r.is_tile}
    analysis = Analysis(dict(at_hand), known)
    for op in loops:
        inside = _body(op, lazy)
        if inside is not None and _only_reduced(op, lazy):
            branches = [o for o in inside if o.name == "scf.if"]
            for marked in (op, *branches):
                marked.fused = True
            if _place_by_place(op, analysis):
                why = "it runs where a reduction reads what it gives, and the tiles that it carries stay in registers"
                remarks.add(LoopFused(op.span, "the loop", why))
                continue
            for marked in (op, *branches):
                marked.fused = False
        order = _order(op, analysis, lazy)
        if order is not None:
            orders[op] = order
    return orders


def _order(op: Op, analysis: Analysis, lazy: Lazy) -> Weights | None:
    """Where each bit of the coordinates of carried tiles lies, if all tiles of their size that are loaded for them are
    consecutive along other bits than those of a row.
    """
    block = op.regions[0][0]
    shapes = {v.shape for v in block.args[1:]}
    if len(shapes) != 1 or len(shape := shapes.pop()) < 2 or any(v.elem == "ptr" for v in block.args[1:]):
        return None
    if not all(_only_elements(v, lazy) for v in (*block.args[1:], *op.results)):
        return None
    start = row_major(shape)
    every = {b for coord in start for b in coord}
    runs = set[tuple[int, ...]]()
    for value, coords in analysis.walk([(v, start) for v in block.ops[-1].args]):
        if value.op is not None and value.op.name == "tt.load" and value not in analysis.env:
            steps = analysis.steps(value.op.args[0], coords)
            if every == {b for b, step in steps.items() if step != 0}:  # what is spread over a dimension is small
                runs.add(consecutive_run(steps))
    if len(runs) != 1 or not (run := runs.pop()) or run[0] == 0:
        return None
    bits = [*run, *sorted(every - set(run))]
    place = {b: i for i, b in enumerate(bits)}
    return tuple(tuple(place[b] for b in coord) for coord in start)


def _only_elements(first: Value, lazy: Lazy) -> bool:
    """Whether a tile is read element by element: by stores, reductions and what a loop goes on with."""
    todo = [first]
    for value in each_once(todo):
        for user in value.users:
            if lazy(user):
                todo += user.results
            elif user.name not in ("tt.store", "tt.reduce", "scf.yield"):
                return False
    return True


def _body(op: Op, lazy: Lazy) -> list[Op] | None:
    """The operations of a loop that carries tiles of one shape and has no effects; None of any other."""
    block = op.regions[0][0]
    carried = block.args[1:]
    shapes = {v.shape for v in carried}
    step = constant(op.args[2])
    if len(shapes) != 1 or not carried[0].is_tile or step is None or step <= 0:
        return None
    if any(v.elem in ("ptr", "i1") for v in carried):
        return None
    inside: list[Op] = []
    for inner in block.ops[:-1]:
        inside.append(inner)
        if inner.name == "scf.if":
            plain = len(inner.regions) == 2 and all(len(region) == 1 for region in inner.regions)
            if not plain or not all(r.is_tile and r.elem != "ptr" for r in inner.results):
                return None
            sides = [o for region in inner.regions for o in region[0].ops[:-1]]
            if not all(_harmless(o, lazy) and o.name != "tt.load" and o.name not in DIVISIONS for o in sides):
                return None
            inside += sides
        elif not _harmless(inner, lazy):
            return None
    dear = [o for o in inside if o.results and _cost(o) >= DEAR and o.result.numel < carried[0].numel]
    return inside if len(inside) <= MOST_INSIDE and not dear else None


def _cost(op: Op) -> int:
    row = ROWS.get(op.name)
    return 0 if row is None or not op.result.is_tile else row.cost


def _harmless(op: Op, lazy: Lazy) -> bool:
    """Whether an operation may be done whenever what it gives is read."""
    if op.regions or not op.results:
        return False
    if op.result.is_tile:
        return lazy(op)
    return op.name == "arith.constant" or (op.name != "tt.load" and (op.name in EMITTERS or op.name in AFFINE_OPS))


def _only_reduced(op: Op, lazy: Lazy) -> bool:
    """Whether what a loop gives is read by reductions along the last dimension alone, and before memory changes."""
    shape = op.results[0].shape
    todo, last = list(op.results), op.last
    for value in each_once(todo):
        for user in value.users:
            if user.block is not op.block:
                return False
            if user.name == "tt.reduce":
                if user.args[0].shape != shape or user.attrs["axis"] != len(shape) - 1:
                    return False
                last = max(last, user.index)
            elif lazy(user):
                todo += user.results
            else:
                return False
    between = [o for o in op.block.ops if op.index < o.index <= last]
    return last > op.last and all(o.name == "tt.reduce" or _harmless(o, lazy) for o in between)


def _place_by_place(op: Op, analysis: Analysis) -> bool:
    """Whether an element that is carried depends on that element alone, and all loads go along the last dimension, or
    all along the one before, which reductions keep.
    """
    block = op.regions[0][0]
    shape = op.results[0].shape
    start = row_major(shape)
    loads: list[Steps] = []
    for value, coords in analysis.walk([(v, start) for v in block.ops[-1].args]):
        if value in block.args and coords != start:
            return False
        if value.is_inside and value.op is not None and value.op.name == "tt.load":
            loads.append(analysis.steps(value.op.args[0], coords))
    reduced = start[-1]
    kept = start[-2] if len(shape) > 1 else ()
    along_kept = [steps for steps in loads if any(steps.get(b, 0) != 0 for b in kept[:LEAST_RUN])]
    if along_kept and _go_along(along_kept, kept, LEAST_RUN):
        return True
    return _go_along([steps for steps in loads if any(steps.get(b, 0) != 0 for b in reduced)], reduced, RUN)


def _go_along(loads: Iterable[Steps], bits: Sequence[int], run: int) -> bool:
    """Whether a dimension has the lanes of a vector, and loads are consecutive along the first bits of it."""
    return len(bits) >= LEAST_RUN and all(consecutive_run(steps)[:run] == tuple(bits[:run]) for steps in loads)


def scalars_from_outside(op: Op) -> list[Value]:
    """The scalars that a loop reads and does not make."""
    block = op.regions[0][0]
    inside = [*block.ops, *(o for inner in block.ops for region in inner.regions for o in region[0].ops)]
    inner_values = {r for o in inside for r in o.results} | set(block.args)
    return [a for o in (op, *inside) for a in o.args if not a.is_tile and a not in inner_values]


# -- emission ---------------------------------------------------------------------------------------------------------


class LoopEmitter:
    """Emits fused loops."""

    def __init__(self, polling: Polling) -> None:
        self.polling = polling

    def emit(self, nest: Nest, ev: Evaluator, op: Op, coords: Coords) -> None:
        """Have the results of a loop known at a place, and at that place in all copies of the body."""
        base = unpin(coords, nest.unroll)
        places = list(dict.fromkeys(substitute(base, copy) for copy in nest.copies()))
        loop = _Loop(nest, ev, op, places)
        finals = loop.emit()
        count = len(places) << len(ev.lane_bits)
        self.polling.after(ev.f, op, lambda: ev.f.mul(loop.iterations(), const(I64, count)))
        for (result, at), reg in zip(loop.carried(op.results), finals, strict=True):
            ev.scopes[-1][(result, at, ev.lane_bits)] = form_of(reg)


class _Loop:
    """One loop at some places of a nest."""

    def __init__(self, nest: Nest, ev: Evaluator, op: Op, places: Sequence[Coords]) -> None:
        self.nest, self.ev, self.op, self.places = nest, ev, op, places
        self.f = ev.f
        self.block = op.regions[0][0]
        self.ends = self.block.ops[-1].args
        self.lower, self.upper, self.step = (ev.scalar(a) for a in op.args[:3])
        moving = frozenset(nest.lane_bits) | frozenset(nest.unroll)
        self.masks = self._masks(moving)
        self.moving, self.remainders = moving, nest.wrapping(self._makes)

    def carried(self, values: Sequence[Value]) -> list[tuple[Value, Coords]]:
        """Carried values, in the order of the registers that hold them."""
        return [(v, at) for at in self.places for v in values]

    def iterations(self) -> Reg:
        """How many iterations there are."""
        span = self.f.cast("sext", self.f.sub(self.upper, self.lower), I64)
        return self.f.bin("sdiv", span, self.f.cast("sext", self.step, I64))

    def emit(self) -> list[Reg]:
        """The loop; gives the registers that are carried out of it."""
        f = self.f
        inits = self._registers(self.op.args[3:])
        first = self._asks_for_first()
        lower, upper, step = (constant(a) for a in self.op.args[:3])
        start = self.lower
        if first and lower is not None and upper is not None and lower < upper and step is not None:
            inits = self._iteration(start, inits, {cmp: const(I1, eq) for cmp, eq in first.items()})
            start = const(self.lower.type, lower + step)
        else:
            first = {}
        facts = {cmp: const(I1, 1 - eq) for cmp, eq in first.items()}
        return f.loop_carrying(
            start, self.upper, self.step, inits, lambda i, regs: self._iteration(i, regs, facts), may_wrap=True
        )

    def _asks_for_first(self) -> dict[Value, int]:
        """Comparisons of the counter with its first value: 1 where they hold then, 0 where they hold later."""
        counter, lower = self.block.args[0], constant(self.op.args[0])
        conditions = {}
        for op in self.block.ops:
            if op.name == "arith.cmpi" and op.attrs["predicate"] in (0, 1) and not op.result.is_tile:
                others = [a for a in op.args if a is not counter]
                if len(others) == 1 and lower is not None and constant(others[0]) == lower:
                    conditions[op.result] = 1 - int(op.attrs["predicate"])
        return conditions

    def _registers(self, values: Sequence[Value]) -> list[Reg]:
        return [vector_of(self.f, self.ev.eval(v, at), self.ev.lanes) for v, at in self.carried(values)]

    def _iteration(self, counter: Reg, regs: Sequence[Reg], facts: dict[Value, Reg]) -> list[Reg]:
        """One iteration: what is carried into the next."""
        ev = self.ev
        ev.enter()
        ev.env[self.block.args[0]] = counter
        scalars = self._scalars(self.block, facts)
        for (value, at), reg in zip(self.carried(self.block.args[1:]), regs, strict=True):
            ev.scopes[-1][(value, at, ev.lane_bits)] = form_of(reg)
        result = self._versions(list(regs))
        for value in (*scalars, self.block.args[0]):
            del ev.env[value]
        ev.leave()
        return result

    def _scalars(self, block: Block, facts: dict[Value, Reg]) -> list[Value]:
        """Emit the scalars of a body, those of its branches too."""
        scalars = []
        for op in block.ops:
            for region in op.regions:
                scalars += self._scalars(region[0], facts)
            if op.results and not op.result.is_tile:
                fact = facts.get(op.result)
                self.ev.env[op.result] = self.ev.scalar_op(op) if fact is None else fact
                scalars.append(op.result)
        return scalars

    # -- versions: masks hold everywhere, nowhere, or somewhere -------------------------------------------------------

    def _versions(self, regs: list[Reg]) -> list[Reg]:
        f = self.f
        conditions = Conditions(self._points())
        for condition in dict.fromkeys(c for parts in self.masks.values() for c in parts):
            conditions.add(condition)
        identities = unwrapped(self.nest.analysis, conditions, self.remainders, self.moving)
        if not self.masks and not identities:
            return self._results()
        everywhere = conditions.all()
        if everywhere.name == "true":
            return self._full(identities)
        guard = self._guard()

        def otherwise() -> list[Reg]:
            if guard is None:
                return self._results()
            return f.if_else(self._nowhere(self.masks[guard]), lambda: regs, self._results)

        return f.if_else(everywhere, lambda: self._full(identities), otherwise)

    def _results(self) -> list[Reg]:
        self.ev.enter()
        result = self._registers(self.ends)
        self.ev.leave()
        return result

    def _full(self, identities: set[Value]) -> list[Reg]:
        """Where masks hold for all lanes, and all indices lie below what these remainders are taken by."""
        full, others = self.ev.full, self.ev.identities
        self.ev.full, self.ev.identities = full | set(self.masks), others | identities
        result = self._results()
        self.ev.full, self.ev.identities = full, others
        return result

    def _points(self) -> Evaluator:
        return self.ev.at_points()

    def _masks(self, moving: frozenset[int]) -> dict[Value, list[Condition]]:
        """The masks made in the body that loads and selections ask for, as comparisons at corners of a vector."""
        asked = set[Value]()
        for value, _ in self.nest.visited:
            if value.op is not None and self._makes(value):
                if value.op.name == "tt.load" and len(value.op.args) > 1:
                    asked.add(value.op.args[1])
                if value.op.name == "arith.select" and value.op.args[0].is_tile:
                    asked.add(value.op.args[0])
        conditions: dict[Value, list[Condition] | None] = {}
        for mask, coords in self.nest.visited:
            if mask in asked and self._makes(mask) and conditions.get(mask, []) is not None:
                parts = conjuncts(self.nest.analysis, self.ev.env, mask, coords, moving)
                conditions[mask] = None if parts is None else [*(conditions.get(mask) or []), *parts]
        return {mask: parts for mask, parts in conditions.items() if parts}

    def _makes(self, value: Value) -> bool:
        """Whether a value is made in the body, not in that of another loop of the nest."""
        block = value.block
        while block is not None and block.parent is not self.op:
            block = block.parent.block if block.parent is not None else None
        return block is not None

    def _guard(self) -> Value | None:
        """The mask without which all that is carried stays as it is, if there is one."""
        guards = set[Value]()
        for value, carried in zip(self.ends, self.block.args[1:], strict=True):
            op = value.op
            if op is None or op.name != "arith.select" or op.args[2] is not carried:
                return None
            guards.add(op.args[0])
        guard = guards.pop()
        return guard if not guards and guard in self.masks else None

    def _nowhere(self, parts: Sequence[Condition]) -> Reg:
        """Whether a mask holds nowhere, as some part of it does not where it is the most likely to."""
        sure = Conditions(self._points())
        never = const(I1, 0)
        for condition in dict.fromkeys(parts):
            kind, mask, _, most = condition
            if kind == "holds":
                holds = sure.scalar(mask, most)
                never = self.f.or_(never, self.f.xor(holds, const(I1, 1)))
            else:
                sure.add(condition)
        return self.f.and_(never, sure.all())
