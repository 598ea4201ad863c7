"""Reductions: within registers, then by shuffles, then through shared memory, along the bits that the plan gives."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from xdsl.ir import Block, Operation

from weft.base.remarks import Reduced
from weft.ir import int_value, is_tensor
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import f2
from weft.layouts.plan import Reduction, plan_reduction

from .context import Context, elem_of, lowering, tile_shape
from .elements import evaluate
from .known_numbers import fold_numbers, number_of
from .partials import Partials, Place
from .row_reductions import reduced_in_runs
from .shapes import settle
from .telling import tell_combined

WORD_BITS = 32
MANY_WAYS = 8
"""From so many results of warps on, lanes divide the work of combining them."""
MANY_WORDS = 16
"""Words of results of warps above which lanes share them, as a thread that reads all has registers for nothing else."""
DEAR = 3
"""Operations of a combine function, its end among them, above which it is done with care."""


def combined(c: Context, body: Block, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    """The combine function on whole fragments."""
    count, start = max(v.count for v in a), len(c.build.block.ops)
    values = fold_numbers(c.build, start, evaluate(c, body, [*a, *b]))
    return [v if v.count == count else c.build.rename(v, [0] * count) for v in values]


def _from_lane(c: Context, value: Value, distance: int) -> Value:
    """What the lane at a distance holds; a known number all lanes do."""
    return c.build.shuffle_xor(value, [distance] * value.count) if number_of(value) is None else value


@lowering("tt.reduce")
def _reduce(c: Context, op: Operation) -> None:
    body = op.regions[0].blocks[0]
    axis = int_value(op.properties["axis"])
    source = op.operands[0]
    shape = tile_shape(source)
    bits = max(ELEMENT_BITS[elem_of(x.type)] for x in op.operands)
    plan = plan_reduction(c.layout(source), shape, axis, bits, c.machine)
    before = len(c.build.block.ops), len(c.program.shared)
    alive, taken = _without_copies(plan)
    in_runs = reduced_in_runs(c, op, lambda a, b: combined(c, body, [a], [b])[0])
    if in_runs is not None:
        alive, taken, values = _of_runs(c, plan, *in_runs)
    else:
        values = [c.build.rename(c.whole(x), alive) for x in op.operands]
    first = int(bits < WORD_BITS)  # small elements that are neighbours share a word, and words are combined whole
    for direction in (*plan.registers[first:], *plan.registers[:first]):
        if _rep(taken, direction[0]):
            alive, values = _within_registers(c, body, alive, taken, direction[0], values)
    for register, lane, _, _ in plan.lanes:
        other = [c.build.rename(v, [alive.index(_rep(taken, r ^ register)) for r in alive]) for v in values]
        moved = [_from_lane(c, v, lane) for v in other]
        values = combined(c, body, values, moved)
    if plan.warps:
        key = (
            None
            if plan.registers or plan.lanes
            else (id(c.build.block), *(id(c[x]) for x in op.operands), plan.layout, axis)
        )
        values = _between_warps(c, body, alive, plan, values, key)
    if plan.blocks:
        values = _between_blocks(c, op, alive, plan, values)
    sizes = [1 << len(x) for x in (plan.registers, plan.lanes, plan.warps, plan.blocks)]
    tell_combined(c, Reduced, op, axis, sizes, before)
    order = [alive.index(_rep(taken, r)) for r in f2.span(plan.kept)]
    for result, value in zip(op.results, values, strict=True):
        ordered = c.build.rename(value, order)
        if is_tensor(result.type):
            settle(c, result, ordered, plan.result)
        else:
            c[result] = ordered


def _rep(taken: f2.Echelon, register: int) -> int:
    """The register that stands for one, directions that are done with taken out."""
    return taken.reduce(register)[0]


def _without_copies(plan: Reduction) -> tuple[list[int], f2.Echelon]:
    """The registers that hold different elements, and the directions along which the others are copies."""
    columns = plan.layout.in_columns("register")
    taken = f2.Echelon(f2.kernel(columns))
    return sorted({_rep(taken, r) for r in range(1 << len(columns))}), taken


def _of_runs(
    c: Context, plan: Reduction, total: Value, order: Sequence[int]
) -> tuple[list[int], f2.Echelon, list[Value]]:
    """What runs of registers have been reduced to: which registers are left, along what, and what they hold."""
    taken = _without_copies(plan)[1]
    run = (1 << len(plan.layout.in_columns("register"))) // total.count
    for k in range(run.bit_length() - 1):
        taken.add(order[1 << k])
    firsts = {_rep(taken, r): k for k, r in enumerate(order[::run])}
    return sorted(firsts), taken, [c.build.rename(total, [firsts[r] for r in sorted(firsts)])]


def _within_registers(
    c: Context, body: Block, alive: list[int], taken: f2.Echelon, direction: int, values: list[Value]
) -> tuple[list[int], list[Value]]:
    """Combine pairs of registers; half of them are left."""
    partners = [_rep(taken, r ^ direction) for r in alive]
    before = {r: k for k, r in enumerate(alive)}
    pairs = dict(zip(alive, partners, strict=True))
    taken.add(direction)
    left = sorted({_rep(taken, r) for r in alive})
    a = [c.build.rename(v, [before[r] for r in left]) for v in values]
    b = [c.build.rename(v, [before[pairs[r]] for r in left]) for v in values]
    return left, combined(c, body, a, b)


def _between_warps(
    c: Context, body: Block, alive: list[int], plan: Reduction, values: list[Value], key: Hashable
) -> list[Value]:
    """One trip through shared memory; every thread combines the results of its row's warps itself, in one order.

    Where combining is more than an instruction or two, or of many words, or lanes exchange for nothing, and they have
    nothing else to tell apart, each lane reads one result and they are combined by shuffles. Reductions of the same
    elements, which have the same key, share the trip: the two halves of a compare-and-exchange.
    """
    same = [*_copies(plan), *((r, x, w) for r, x, w, _ in (*plan.registers, *plan.lanes))]
    apart = [(r, x, w) for r, x, w, _ in plan.warps]
    partials = Partials(c, plan.layout.in_log("register"), same, apart)
    ways = c.exchanged.get(key) if key is not None else None
    if ways is None:
        places = [partials.stored(v, alive) if number_of(v) is None else None for v in values]  # before the barrier
        lanes = partials.spread() if _are_shared(c, body, partials.ways, values) else None
        if lanes is not None and key is None:
            values = [
                partials.read_apart(v.elem, *place, alive, lanes) if place else v
                for v, place in zip(values, places, strict=True)
            ]
            for lane in lanes:
                values = combined(c, body, values, [_from_lane(c, v, lane) for v in values])
            return values
        each = [
            partials.read(v.elem, *place, alive) if place else [v] * partials.ways
            for v, place in zip(values, places, strict=True)
        ]
        ways = list(zip(*each, strict=True))
        c.exchanged[key] = ways
    return _in_order(c, body, [list(way) for way in ways])


def _is_dear(body: Block) -> bool:
    return len(list(body.ops)) > DEAR


def _are_shared(c: Context, body: Block, ways: int, values: Sequence[Value]) -> bool:
    """Whether lanes share the work of combining: where it is much, or where neighbours exchange for nothing."""
    words = ways * sum(max(1, ELEMENT_BITS[v.elem] // WORD_BITS) for v in values)
    return c.machine.exchange(1) <= c.machine.select or (ways >= MANY_WAYS and (words > MANY_WORDS or _is_dear(body)))


def _in_order(c: Context, body: Block, ways: list[list[Value]]) -> list[Value]:
    """One after the other; where that is dear, as a tree of neighbours: few steps wait for each other."""
    while _is_dear(body) and len(ways) > 1:
        ways = [combined(c, body, a, b) for a, b in zip(ways[::2], ways[1::2], strict=True)]
    total = ways[0]
    for others in ways[1:]:
        total = combined(c, body, total, others)
    return total


def _copies(plan: Reduction) -> list[Place]:
    """The directions along which the places of a block hold the same elements."""
    columns = [plan.layout.in_columns(d) for d in ("register", "lane", "warp")]
    logs = [len(x) for x in columns]
    return [
        (x & (1 << logs[0]) - 1, x >> logs[0] & (1 << logs[1]) - 1, x >> logs[0] + logs[1])
        for x in f2.kernel([x for part in columns for x in part])
    ]


def _between_blocks(c: Context, op: Operation, alive: list[int], plan: Reduction, values: list[Value]) -> list[Value]:
    """Every thread combines the results of all blocks itself, in one order. Each block's results are in its memory,
    where the vendor has no other way."""
    directions = [((r, x, w), b) for r, x, w, b in plan.blocks]
    each = c.adds.of_blocks(c, op, values, [rank for _, rank in directions])
    if each is None:
        same = [*_copies(plan), *((r, x, w) for r, x, w, _ in (*plan.registers, *plan.lanes, *plan.warps))]
        partials = Partials(c, plan.layout.in_log("register"), same, [])
        stored = [partials.stored(v, alive) for v in values]
        each = [
            partials.of_blocks(v.elem, base, width, alive, directions)
            for v, (base, width) in zip(values, stored, strict=True)
        ]
    ways = list(zip(*each, strict=True))
    total = list(ways[0])
    for others in ways[1:]:
        total = combined(c, op.regions[0].blocks[0], total, others)
    return total
