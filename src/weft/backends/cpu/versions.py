"""A nest in several versions: for tiles wholly inside their masks, for stores around the cache, and for all others.

    if (the last point of the tile is inside every mask)       one comparison for each mask, before the nest
        if (stores are aligned, and the launch writes more than the cache holds)       see `streaming.py`
            loops without masks, stores around the cache
        else
            loops without masks
    else
        loops with masks

A mask holds everywhere if it holds where it is the least likely to, at one corner of the tile: `i < n` at the last i,
if i rises along every axis. A remainder `i % n` of a tile that lies below n is i. Bodies are emitted again only if
they are short, and all versions compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from functools import reduce

from weft.backends.cpu.corners import ALL, Condition, Conditions, conjuncts, unwrapped
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.extents import Reached
from weft.backends.cpu.nest import Nest
from weft.backends.cpu.program import Op, Value
from weft.backends.llvm.values import Value as Reg

MAX_TWICE = 160  # operations in a body that is emitted in two versions
LEAST_POINTS = 4  # of a nest, for these to be in two versions

Version = Callable[[], Sequence[Reg]]
Streamed = Callable[[Nest, Set[Value]], tuple[dict[int, int], list[Reg]]]
"""What stores of a nest may go around the cache, and when (`Streaming.stores`)."""


def emit_pointwise(nest: Nest, streaming: Streamed, reached: Callable[[], Reached] | None = None) -> None:
    """Emit a nest of pointwise roots; where a tile is not wholly inside of its masks, up to ends, if there are such."""
    bits = [*nest.inner_bits, *nest.outer_bits]

    def version(ev: Evaluator) -> Sequence[Reg]:
        nest.loops(ev, bits, lambda ev: _point(nest, ev), set())
        return []

    def ended() -> Sequence[Reg]:
        assert reached is not None
        with nest.up_to(reached()):
            nest.loops(nest.evaluator(), bits, lambda ev: nest.body(ev, nest.roots), set())
        return []

    versions(nest, version, streaming, None if reached is None else ended)


def _point(nest: Nest, ev: Evaluator) -> None:
    """A point of a nest: without masks, in the version for tiles that are not wholly inside of them, where it is."""
    masks = masks_of_points(nest, ev.full)
    if not masks:
        nest.body(ev, nest.roots)
        return

    def one(inside: Set[Value]) -> Sequence[Reg]:
        full, ev.full = ev.full, ev.full | inside
        ev.enter()
        nest.body(ev, nest.roots)
        ev.leave()
        ev.full = full
        return []

    nest.f.if_else(all_hold(ev, masks), lambda: one(masks.keys()), lambda: one(frozenset()))


def masks_of_points(nest: Nest, full: Set[Value]) -> dict[Value, list[Condition]]:
    """What has to be so for all lanes and copies of a point to be inside of masks of which that is not known, if loops
    move the point and the body is short enough to be there twice. Nothing where ends that are known cut the loops, and
    where tiles are only seldom not wholly inside of their masks; of a table's columns few tiles go along, and the last
    is a large part of them.
    """
    if len(nest.visited) << len(nest.unroll) > MAX_TWICE or nest.ends.extents or nest.rows is not None:
        return {}
    if 1 << len(nest.inner_bits) + len(nest.outer_bits) < LEAST_POINTS:
        return {}
    moving = frozenset((*nest.lane_bits, *nest.unroll))
    conditions = mask_conditions(nest, moving, selections=True)
    along = set(nest.inner_bits) | set(nest.outer_bits)
    moved = [mask for mask, at in nest.visited if mask in conditions and along & nest.analysis.deps(mask, at)]
    asked = {mask: conditions[mask] for mask in moved if mask not in full}
    if nest.reduce_bits and not {*nest.lane_bits} & {*nest.reduce_bits}:
        return asked
    return asked if any(cuts_every_tile(mask) for mask in asked) else {}


def cuts_every_tile(mask: Value) -> bool:
    """Whether one of the comparisons that a mask is a conjunction of is the same for all tiles."""
    answers: dict[Value, bool] = {}
    return any(_is_everywhere(part, answers) for part in _parts(mask))


def _parts(mask: Value) -> Iterator[Value]:
    """The comparisons that a mask is a conjunction of, before they are spread over a tile."""
    op = mask.op
    if op is not None and mask.is_tile and op.name in ("arith.andi", "tt.broadcast", "tt.expand_dims"):
        for operand in op.args:
            yield from _parts(operand)
    else:
        yield mask


def _is_everywhere(value: Value, answers: dict[Value, bool]) -> bool:
    """Whether an integer, or a mask, is the same in all programs of a launch, or counts the turns of a loop that is, or
    the programs along one of several axes.

    What is not, as `program_id(0) * BLOCK + arange(0, BLOCK) < n`, cuts the last tile alone, and all others have a
    version for them; a row that is shorter than its tile, as with `arange(0, BLOCK) < n_columns`, is so each time, and
    one that a loop goes along, as with `start + arange(0, BLOCK) < n_columns`, at the end of each loop, which may have
    one turn only. Where programs have rows along one axis and parts of rows along another, the last part of each row is
    cut.
    """
    if value not in answers:
        op, block = value.op, value.block
        known = op is None and block is not None and block.parent is None and not block.predecessors
        loop = block.parent if op is None and block is not None else None
        if loop is not None and loop.name == "scf.for" and value is loop.regions[0][0].args[0]:
            known = all(_is_everywhere(a, answers) for a in loop.args[:3])  # from where, to where, by what
        if op is not None and op.name == "tt.get_program_id":
            known = _has_others_beside(op)
        elif op is not None and op.name != "tt.load" and not op.regions:
            known = all(_is_everywhere(a, answers) for a in op.args)
        answers[value] = known
    return answers[value]


def _has_others_beside(op: Op) -> bool:
    """Whether programs along another axis too do something of their own."""
    block = op.block
    while block.parent is not None:
        block = block.parent.block
    return any(o.name == op.name and o.attrs["axis"] != op.attrs["axis"] for o in block.ops)


def all_hold(ev: Evaluator, masks: dict[Value, list[Condition]]) -> Reg:
    """Whether masks hold at a point, by their conditions."""
    conditions = Conditions(ev.at_points())
    for condition in dict.fromkeys(c for parts in masks.values() for c in parts):
        conditions.add(condition)
    return conditions.all()


def versions(
    nest: Nest,
    emit: Callable[[Evaluator], Sequence[Reg]],
    streaming: Streamed,
    others: Version | None = None,
) -> Sequence[Reg]:
    """Emit the nest in one version, or more: for tiles that lie wholly inside their masks, without them, and for
    the others.

    The first exists in a version of its own where stores of whole vectors go around the cache, for launches that
    write more than fits into it: `streaming` gives these stores and the conditions for it. `others` emits the version
    for the others, where that is not the same with masks.
    """
    if len(nest.visited) > MAX_TWICE or len(nest.visited) << len(nest.unroll) > 4 * MAX_TWICE:
        return emit(nest.evaluator())
    others = others or (lambda: emit(nest.evaluator()))
    masks, holds = _full_masks(nest)
    stores, goes = streaming(nest, masks)
    identities, below = _unwrapped(nest)

    def version(streamed: dict[int, int]) -> Sequence[Reg]:
        ev = nest.evaluator()
        ev.full, ev.streaming, ev.identities = masks, streamed, identities
        return emit(ev)

    def either(conditions: list[Reg], yes: Version, no: Version) -> Sequence[Reg]:
        return nest.f.if_else(reduce(nest.f.and_, conditions), yes, no) if conditions else yes()

    if holds or below:
        left_out = " and ".join(["masks"] * bool(masks) + ["remainders"] * bool(identities))
        nest.versions.append(f"without {left_out}, for tiles that lie wholly within their bounds")
    if goes:
        nest.versions.append("that stores past the caches, for launches that write more than they hold")

    def unmasked() -> Sequence[Reg]:
        return either(goes, lambda: version(stores), lambda: version({}))

    return either([*holds, *below], unmasked, others)


def mask_conditions(nest: Nest, moving: Set[int] = ALL, *, selections: bool = False) -> dict[Value, list[Condition]]:
    """The masks of loads and stores that hold at all points that differ in some bits if they do at one, and the
    conditions for that; those of selections too, if they are asked for.
    """
    asked: set[Value] = set()
    for value, _ in nest.visited:
        if value not in nest.env and value.op is not None:
            if value.op.name == "tt.load" and len(value.op.args) > 1:
                asked.add(value.op.args[1])
            elif selections and value.op.name == "arith.select" and value.op.args[0].is_tile:
                asked.add(value.op.args[0])
    for root in nest.roots:
        if root.op is not None and root.op.name == "tt.store" and len(root.op.args) > 2:
            asked.add(root.op.args[2])
    conditions_of: dict[Value, list[Condition]] = {}
    refused: set[Value] = set()
    for mask, coords in nest.visited:
        if mask in asked and mask not in refused and not mask.is_inside:
            parts = conjuncts(nest.analysis, nest.env, mask, coords, moving)
            if parts is None:
                refused.add(mask)
                conditions_of.pop(mask, None)
            else:
                conditions_of.setdefault(mask, []).extend(parts)
    return conditions_of


def _full_masks(nest: Nest) -> tuple[set[Value], list[Reg]]:
    """Masks that hold everywhere if they hold at one point, and the conditions for that."""
    conditions_of = mask_conditions(nest)
    emit = Conditions(Evaluator(nest.f, nest.env, ()))
    hold = nest.ends.hold()
    for condition in dict.fromkeys(c for parts in conditions_of.values() for c in parts):
        if condition[0] != "holds" or condition[1] not in hold:
            emit.add(condition)
    return set(conditions_of), emit.regs


def _unwrapped(nest: Nest) -> tuple[set[Value], list[Reg]]:
    """Remainders that change nothing as all of the tile lies below the divisor, and the conditions for that."""
    emit = Conditions(Evaluator(nest.f, nest.env, ()))
    walked = nest.rows.divisions if nest.rows is not None else frozenset[Op]()
    found = nest.wrapping(lambda value: not value.is_inside and value.op not in walked)
    return unwrapped(nest.analysis, emit, found), emit.regs
