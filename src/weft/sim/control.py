"""Control flow: regions, loops, branches, and how contexts split where warps disagree."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from weft.base import Unsupported, WeftError
from weft.ir.lane import Block, LaneOp, Value, barrier_of

from . import access, registers, special
from .access import need_defined
from .arithmetic import is_elementwise
from .errors import DivergenceError, SimulationError
from .machine import Context, Wait
from .proven import Proof
from .slopes import Slopes
from .steady import Steady
from .values import Array, Fragment, full

HANDLERS = {**registers.HANDLERS, **access.HANDLERS, **special.HANDLERS}

Values: TypeAlias = list[Fragment] | None
"""What a region hands on; None where all warps returned."""
Running: TypeAlias = Generator[Wait, None, Values]


class Uncountable(WeftError):
    """What a program does depends on data, so it cannot be counted without running it.

    >>> @weft.jit
    ... def total(x, n, out):
    ...     result = 0
    ...     for i in range(tl.load(n)):
    ...         result += tl.load(x + i)
    ...     tl.store(out, result)
    >>> x = weft.like((64,), "i32")
    >>> program = total.warmup(x, x, x, grid=(1,), target="sim:cuda:80").program
    >>> try:
    ...     weft.sim.count(program, 1)
    ... except weft.sim.Uncountable as error:
    ...     print(str(error).partition(" (")[0])
    the upper bound of `for` depends on data
    """


def start(context: Context) -> Iterator[Wait]:
    """Run the program's body, for each program of the blocks, which all have as many."""
    batch = context.batch
    sliced = batch.launch.sliced
    if sliced is not None:
        context.env.values.update(sliced.unknown)
    warps, env = context.warps, context.env
    blocks = np.unique(warps // batch.program.warps)
    for _ in range(int(batch.programs_of(blocks[:1])[0])):
        context.widen(warps, env)
        yield from region(context, batch.program.body)
        batch.next_program(blocks)


def region(context: Context, block: Block) -> Running:
    """Run the operations of a region; the values of its last, if that hands some on."""
    batch, names = context.batch, context.batch.launch.names
    slopes = batch.slopes
    told = batch.launch.told  # an operation of thousands of programs takes long
    if names is not None:
        names.enter(context, block)
    for op in block.ops if batch.launch.sliced is None else _followed(context, block):
        told()
        if names is not None:
            names.before(context, op)
        if batch.products:
            batch.adds.watch(context, op)
        if _is_done(context, op):
            if batch.products:
                batch.adds.carry(context, op)
        elif op.name in special.WAITING:
            yield from special.WAITING[op.name](context, op)
        elif op.name in ("yield", "condition"):
            return [context.env[v] for v in op.operands]
        elif op.name == "return":
            return None
        else:
            ended = yield from _control(context, op)
            if ended:
                return None
        if names is not None:
            names.after(context, op)
        for each in slopes:
            each.after(context, op)
    return []


def _is_done(context: Context, op: LaneOp) -> bool:
    """Do an operation at once, if it is one of those that neither wait nor have regions."""
    handler = HANDLERS.get(op.name)
    if handler is not None:
        handler(context, op)
    elif is_elementwise(op.name):
        registers.elementwise_op(context, op)
    else:
        return False
    return True


def _followed(context: Context, block: Block) -> Iterator[LaneOp]:
    """What the counter follows of a block; the rest is counted at once."""
    for ops, counted in context.batch.launch.sliced.blocks[id(block)]:
        for span, counts in counted:
            context.batch.report.add(span, **{name: n * context.count for name, n in counts.items()})
        yield from ops


def _control(context: Context, op: LaneOp) -> Generator[Wait, None, bool]:
    """An operation with regions; whether all warps returned in it."""
    if op.name == "if":
        results = yield from _if(context, op)
    elif op.name == "for":
        results = yield from _for(context, op)
    elif op.name == "while":
        results = yield from _while(context, op)
    elif op.name == "partitions":
        results = yield from _partitions(context, op)
    else:
        raise Unsupported(f"`{op.name}` in the simulator", context.batch.program.target, op.span)
    if results is None:
        return True
    for value, fragment in zip(op.results, results, strict=True):
        context.env.values[value] = fragment
    return False


def _per_warp(context: Context, op: LaneOp, fragment: Fragment, value: Value, name: str) -> Array:
    """One number for each warp, or one alone if it is the same for all; DivergenceError if lanes disagree."""
    if not fragment.known:
        launch = context.batch.launch
        if op.name == "if" and launch.suppose is not None:
            launch.report.exact = False
            return np.array([launch.suppose])
        raise Uncountable(f"{name} depends on {_unknown(context, value)}" + (f" ({op.span})" if op.span else ""))
    need_defined(context, op, value, name)
    data = fragment.data
    if data.shape[1] > 1:
        wrong = (data != data[:, :1]).any(axis=(1, 2))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            lanes = data[row, :, 0]
            lane = int(np.flatnonzero(lanes != lanes[0])[0])
            message = f"{name} is {lanes[0]} in lane 0 and {lanes[lane]} in lane {lane}"
            context.batch.launch.error(DivergenceError(message, op.span, thread=context.thread(row, lane)))
    of_warps: Array = data[:, 0, 0]
    return of_warps[:1] if (of_warps == of_warps[0]).all() else of_warps


def _unknown(context: Context, value: Value) -> str:
    """What is not known of that which a value is made from: arguments that were not given, else what memory holds."""
    program = context.batch.program
    makers: dict[Value, LaneOp] = {}
    for op in program.body.walk():
        makers.update(dict.fromkeys((*op.results, *(a for region in op.regions for a in region.arguments)), op))
    seen: set[Value] = set()
    open_values = [value]
    while open_values:
        now = open_values.pop()
        if now not in seen:
            seen.add(now)
            maker = makers.get(now)
            if maker is not None and maker.name != "load":
                ends = (last for region in maker.regions for last in region.ops[-1:])
                open_values += [*maker.operands, *(v for last in ends for v in last.operands)]
    pairs = zip(program.body.arguments, program.parameters, strict=True)
    names = [f"`{p.name}`" for v, p in pairs if v in seen and not context.env[v].known]
    if not names:
        return "data"
    return f"{' and '.join(names)}, which {'is' if len(names) == 1 else 'are'} not given"


def _split(context: Context, op: LaneOp, parts: Sequence[tuple[Array, Block | None]]) -> Running:
    """Run regions by parts of the warps, in turn, and join what they hand on; no region hands on nothing."""
    bodies = [_body(block) for _, block in parts]
    results = yield from _parallel(context, op, [rows for rows, _ in parts], bodies)
    return results


def _numbered(body: Callable[[int], Iterator[Wait]], index: int, part: Context) -> Iterator[Wait]:
    return body(index)


def _body(block: Block | None) -> Callable[[Context], Running]:
    return lambda part: region(part, block) if block is not None else _nothing()


def _nothing() -> Running:
    return []
    yield


def _parallel(
    context: Context,
    op: LaneOp,
    rows: Sequence[Array],
    bodies: Sequence[Callable[[Context], Running]],
    firsts: Sequence[int] = (),
) -> Running:
    """Contexts for parts of the warps; the values of all, joined. Warps that returned are left out."""
    outcomes: list[Values] = [None] * len(rows)
    parts = [context.part(r) for r in rows]
    for part, first in zip(parts, firsts, strict=False):
        part.first = first

    def body(index: int) -> Iterator[Wait]:
        outcomes[index] = yield from bodies[index](parts[index])

    for index, part in enumerate(parts):
        context.batch.add(part, partial(_numbered, body, index))
    yield Wait(lambda: all(p.done for p in parts), "its parts to join", op.span, parts=True)
    alive = [i for i, outcome in enumerate(outcomes) if outcome is not None]
    if not alive:
        return None
    survivors = [np.searchsorted(context.warps, parts[i].warps) for i in alive]  # some may have returned inside
    order = np.sort(np.concatenate(survivors))
    places = [np.searchsorted(order, s) for s in survivors]
    if len(order) < context.count:
        context.narrow(order)
        context.batch.counts_for(context)
    fragments = [outcomes[i] or [] for i in alive]
    return [_joined(context, places, [f[k] for f in fragments]) for k in range(len(fragments[0]))]


def _joined(context: Context, places: Sequence[Array], parts: Sequence[Fragment]) -> Fragment:
    """One value from the warps of several contexts."""
    lanes, count = context.batch.lanes, parts[0].data.shape[2]
    data = np.zeros((context.count, lanes, count), parts[0].data.dtype)
    undefined = np.zeros(data.shape, np.bool_) if any(p.undefined is not None for p in parts) else None
    for place, part in zip(places, parts, strict=True):
        data[place] = full(part.data, len(place), lanes)
        if undefined is not None and part.undefined is not None:
            undefined[place] = full(part.undefined, len(place), lanes)
    flights = tuple(dict.fromkeys(f for p in parts for f in p.flights))
    return Fragment(data, undefined, all(p.known for p in parts), flights)


def _partitions(context: Context, op: LaneOp) -> Running:
    """Each region by its warps, all at once; the warps of no partition have nothing to do."""
    local = context.warps % context.batch.program.warps
    starts, warps = op.attrs["starts"], op.attrs["warps"]
    rows = [np.flatnonzero((local >= s) & (local < s + n)) for s, n in zip(starts, warps, strict=True)]
    results = yield from _parallel(context, op, rows, [_body(r) for r in op.regions], starts)
    return results


def _if(context: Context, op: LaneOp) -> Running:
    condition = _per_warp(context, op, context.env[op.operands[0]], op.operands[0], "the condition of `if`")
    then, other = op.regions[0], op.regions[1] if len(op.regions) > 1 else None
    context.batch.report.add_kind(op.span, "if", context.count)
    counted = context.batch.launch.sliced
    if counted is not None:
        of_warps = np.broadcast_to(condition, context.count)
        context.batch.report.add_sides(op.span, counted.branches[op], of_warps)
    if len(condition) == 1:
        chosen = then if condition[0] else other
        results = yield from region(context, chosen) if chosen is not None else _nothing()
        return results
    parts = [(np.flatnonzero(condition), then), (np.flatnonzero(~condition), other)]
    results = yield from _split(context, op, parts)
    return results


def _for(context: Context, op: LaneOp) -> Running:
    results = yield from (_in_turns if "ping_pong" in op.attrs else _by_bounds)(context, op)
    return results


def _in_turns(context: Context, op: LaneOp) -> Running:
    """Two groups of warps, the second one a barrier behind the first."""
    is_late = context.warps % context.batch.program.warps >= op.attrs["ping_pong"]

    def body(part: Context, late: bool) -> Running:
        if late:
            yield from special.WAITING["barrier"](part, barrier_of(op))
        results = yield from _by_bounds(part, op)
        if not late and results is not None:
            yield from special.WAITING["barrier"](part, barrier_of(op))
        return results

    groups = [(np.flatnonzero(is_late == late), partial(body, late=late)) for late in (False, True)]
    results = yield from _parallel(context, op, [rows for rows, _ in groups], [run for _, run in groups])
    return results


def _by_bounds(context: Context, op: LaneOp) -> Running:
    """By all warps that have the same bounds."""
    names = ("the lower bound of `for`", "the upper bound of `for`", "the step of `for`")
    initial = [context.env[v] for v in op.operands[3:]]
    values = [context.env[v] for v in op.operands[:3]]
    turns = context.batch.launch.turns
    if turns is not None and not all(v.known for v in values):
        context.batch.launch.report.exact = False
        bounds = [np.array([0]), np.array([0]), np.array([1])]
        for i in (0, 2):
            if values[i].known:
                bounds[i] = _per_warp(context, op, values[i], op.operands[i], names[i])
        bounds[1] = bounds[0] + turns * bounds[2]
    else:
        bounds = [_per_warp(context, op, *each) for each in zip(values, op.operands[:3], names, strict=True)]
    if all(len(b) == 1 for b in bounds):
        results = yield from _iterate(context, op, [int(b[0]) for b in bounds], initial)
        return results
    table = np.stack([np.broadcast_to(b, (context.count,)) for b in bounds], axis=1)
    if context.batch.launch.counting and (shared := _as_often(table)) is not None:
        results = yield from _iterate(context, op, shared, initial, table[:, 0] - shared[0])
        return results
    distinct, group = np.unique(table, axis=0, return_inverse=True)
    rows = [np.flatnonzero(group.reshape(-1) == i) for i in range(len(distinct))]

    def iterate(i: int) -> Callable[[Context], Running]:
        return lambda part: _iterate(part, op, distinct[i].tolist(), [f.rows(rows[i]) for f in initial])

    bodies = [iterate(i) for i in range(len(distinct))]
    results = yield from _parallel(context, op, rows, bodies)
    return results


def _as_often(table: Array) -> list[int] | None:
    """The bounds of the warp that begins last, if all go through the loop as often and by the same step.

    >>> _as_often(np.array([[0, 8, 4], [2, 9, 4]])), _as_often(np.array([[0, 8, 4], [2, 11, 4]]))
    ([2, 9, 4], None)
    """
    lower, upper, step = table.T
    times = np.maximum(0, -(-(upper - lower) // np.maximum(1, step)))
    if (step != step[0]).any() or (times != times[0]).any():
        return None
    last: list[int] = table[int(np.argmax(lower))].tolist()
    return last


def _iterate(
    context: Context, op: LaneOp, bounds: list[int], carried: list[Fragment], before: Array | None = None
) -> Running:
    """`before`: how far each warp begins before the lower bound, as a number that is not positive; None for not."""
    body = op.regions[0]
    lower, upper, step = bounds
    dtype = np.int64 if body.arguments[0].elem == "i64" else np.int32
    if step <= 0:
        raise SimulationError(
            f"the step of this loop is {step}, which must be positive where it is known only now", op.span
        )
    last = lower + (upper - 1 - lower) // step * step
    if lower < upper and last + step > np.iinfo(dtype).max:
        raise SimulationError(
            f"the counter of this loop wraps: after {last} comes {last + step}, which is no {np.dtype(dtype).name}, "
            "so that a GPU goes on",
            op.span,
            hint="count in int64: range(start.to(tl.int64), ...)",
        )
    batch = context.batch
    outer: tuple[Slopes, ...] = batch.slopes
    for slopes in outer:
        slopes.enter(context, op)
    if batch.launch.sliced is not None and lower < upper:
        for each in batch.launch.sliced.before[id(body)]:
            _is_done(context, each)
            for slopes in outer:
                slopes.after(context, each)
    steady = Steady(context, op, lower, upper, step) if batch.launch.steady else None
    proof = Proof(context, op, upper, step) if steady is not None else None
    index = lower
    counter = np.full((1, 1, 1), index, dtype)
    if before is not None:
        counter = counter + before[:, None, None].astype(dtype)
    while index < upper:
        for slopes in outer if index > lower else ():
            slopes.again(op)
        if proof is not None:
            proof.before(index, carried)
        _step(context, op)
        context.env.values[body.arguments[0]] = Fragment(counter)
        for value, fragment in zip(body.arguments[1:], carried, strict=True):
            context.env.values[value] = fragment
        results = yield from region(context, body)
        if results is None:
            return None
        at = index
        index, carried = index + step, results
        if proof is not None:
            index, carried = proof.after(index, carried)
        if steady is not None and proof is not None and not proof.is_hopeful:
            index, carried = steady.after(index, carried)
            for slopes in outer:
                slopes.reason = "nothing is proven of a loop inside"
        counter = context.env[body.arguments[0]].data + dtype(index - at)  # without warps that returned
        if len(context.batch.contexts) > 1:  # others may move between any two iterations
            yield Wait(lambda: True, "its turn", op.span)
    for slopes in outer:
        slopes.leave(op, lower < upper)
    return carried


def _step(context: Context, op: LaneOp) -> None:
    launch = context.batch.launch
    context.batch.report.add_kind(op.span, op.counted_as, context.count)
    launch.steps += 1
    if launch.steps > launch.options.steps:
        raise WeftError(f"given up after {launch.options.steps} iterations of loops ({op.span or op.name})")


def _while(context: Context, op: LaneOp, carried: list[Fragment] | None = None) -> Running:
    before, after = op.regions
    values = [context.env[v] for v in op.operands] if carried is None else carried
    supposed = context.batch.launch.turns
    while True:
        _step(context, op)
        for value, fragment in zip(before.arguments, values, strict=True):
            context.env.values[value] = fragment
        results = yield from region(context, before)
        if results is None:
            return None
        if supposed is not None and not results[0].known:
            context.batch.launch.report.exact = False
            condition, supposed = np.array([supposed > 0]), supposed - 1
        else:
            condition = _per_warp(context, op, results[0], before.ops[-1].operands[0], "the condition of `while`")
        if len(condition) > 1:
            rest = yield from _part_ways(context, op, condition, results[1:])
            return rest
        if not condition[0]:
            return results[1:]
        again = yield from _again(context, after, results[1:])
        if again is None:
            return None
        values = again
        if len(context.batch.contexts) > 1:  # others may have to move before this loop can end
            yield Wait(lambda: True, "its turn", op.span)


def _again(context: Context, after: Block, values: list[Fragment]) -> Running:
    for value, fragment in zip(after.arguments, values, strict=True):
        context.env.values[value] = fragment
    results = yield from region(context, after)
    return results


def _part_ways(context: Context, op: LaneOp, condition: Array, values: list[Fragment]) -> Running:
    """Some warps are done with the loop, the others go on."""
    going, done = np.flatnonzero(condition), np.flatnonzero(~condition)

    def finished(part: Context) -> Running:
        return [f.rows(done) for f in values]
        yield

    def onward(part: Context) -> Running:
        again = yield from _again(part, op.regions[1], [f.rows(going) for f in values])
        if again is None:
            return None
        results = yield from _while(part, op, again)
        return results

    results = yield from _parallel(context, op, [going, done], [onward, finished])
    return results
