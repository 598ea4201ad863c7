"""Reduce rows run by run: the elements of each run are combined first, then the results of all runs (row_parts.py).

If the whole row is in shared memory and nothing else differs from run to run, the reduction is a loop over runs:

    for each run k:                                        %first = the total of runs 0 and 1
      %s.k = if any of the warp's run is there       =>    %total = for k = 2, 4, ... from %first:
               { ... } else { ... }                          if all of the warp's runs k and k + 1 are there
    %s = all %s.k                                              { ... } else { for each of both, as on the left }

A layer norm of 50,257 elements of bf16 by 8 warps in a cluster of two blocks has 4,600 instructions this way, stores
included, instead of 9,700 as straight-line code, which the instruction cache of an H200 does not hold. It takes 179 us,
where one block took 1,020.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from weft.ir.lane import Block, Value

from .context import Context
from .row_parts import AT_A_TIME, Parts
from .row_runs import Runs

Combine = Callable[[Value, Value], Value]


def reduced_in_runs(c: Context, op: Operation, combine: Combine) -> tuple[Value, list[int]] | None:
    """What a reduction gives of each of a thread's runs, and the registers run by run; None where it is not done so.

    Beyond a row all elements are the same: those of a run are combined once, before.
    """
    value = op.operands[0]
    parts = c.parts.get(op.parent) if op.parent is not None else None
    if parts is None or op not in parts.sinks.get(value, ()):
        return None
    leaves = parts.leaves(value)
    parts.make(c, leaves)
    (geometry,) = parts.chains[value].rows
    row = parts.rows[geometry]
    runs, nothing = Runs(c, row, row.results[0]), parts.of_nothing(c, value)
    each, least = runs.parts(), nothing[value]
    count = len(each[0].order)
    for _ in range(count.bit_length() - 1):
        least = combine(least, least)
    kept = list[SSAValue]()

    def of_run(k: int, part: Runs, is_whole: bool) -> list[Value]:
        """What a thread's run is combined to, and what is kept of it."""
        values = parts.of_run(c, value, k, part, is_whole)
        kept[:] = kept or [x for x in values if _is_wanted_later(parts, x, values, op)]
        total, *rest = (_of_all(c, values[x], count) for x in (value, *kept))
        while total.count > 1:
            half = total.count // 2
            total = combine(c.build.rename(total, range(half)), c.build.rename(total, range(half, total.count)))
        return [total, *rest]

    def combined(k: int, part: Runs, is_whole: bool) -> tuple[Block, list[tuple[str, int]]]:
        """A block that gives what a thread's run is combined to, and what is kept of it; the types of these."""
        with c.inside(Block()) as block:
            total, *rest = of_run(k, part, is_whole)
            c.build.add("yield", [total, *rest])
        return block, [(x.elem, x.count) for x in (total, *rest)]

    def in_turn(each: Sequence[Runs]) -> list[Sequence[Value]]:
        """What some runs are combined to, each by itself, and what is kept of them."""
        totals_by_run = list[Sequence[Value]]()
        for k, part in enumerate(each):
            for leaf in leaves:
                if leaf in parts.loads:
                    parts.loads[leaf].begin_to(k)
            taken, kinds = combined(k, part, not parts.chains[value].is_masked)
            if parts.chains[value].is_masked:
                whole, some = combined(k, part, True)[0], taken
                with c.inside(Block()) as taken:
                    inner = part.if_warp(parts.all_there(c, part, geometry, k), kinds, whole, some)
                    c.build.add("yield", inner.results)
            with c.inside(Block()) as otherwise:
                c.build.add("yield", [least, *(_of_all(c, nothing[x], count) for x in kept)])
            any_there = parts.any_there(c, part, geometry, k)
            totals_by_run.append(part.if_warp(any_there, kinds, taken, otherwise).results)
        return totals_by_run

    def in_loop() -> Value:
        """What all runs are combined to: the first ones, and in a loop those behind them."""

        def some(are_whole: bool) -> Block:
            """Those of one iteration, with what has been combined."""
            with c.inside(Block()) as block, parts.later(runs, leaves, number, are_whole) as later:
                numbered = enumerate(later.parts())
                each = [x for (x,) in in_turn(later.parts())] if not are_whole else []
                each = each or [of_run(k, part, True)[0] for k, part in numbered]
                c.build.add("yield", [functools.reduce(combine, each, before)])
            return block

        total = functools.reduce(combine, [x for (x,) in in_turn(each[:AT_A_TIME])])
        iterations = c.number(len(runs.places) // AT_A_TIME)
        with parts.in_loop(c, c.number(1), iterations, [total]) as (number, (before,)):
            now = runs.later(number, AT_A_TIME)
            kinds = [(total.elem, total.count)]
            c.build.add("yield", now.if_warp(now.all_of_warp(), kinds, some(True), some(False)).results)
        return c.build.block.ops[-1].result

    if parts.are_alike(leaves):
        return in_loop(), runs.order
    totals_by_run = in_turn(each)
    for i, x in enumerate(kept, 1):
        parts.kept[x] = [results[i] for results in totals_by_run]
    totals = [results[0] for results in totals_by_run]
    return c.build.add("join", totals, [(totals[0].elem, len(totals))]).result, runs.order


def _of_all(c: Context, value: Value, count: int) -> Value:
    """A value for so many registers, for all of which it may be the same."""
    return value if value.count == count else c.build.rename(value, [0] * count)


def _is_wanted_later(parts: Parts, value: SSAValue, values: dict[SSAValue, Value], op: Operation) -> bool:
    """Whether others want what has been computed for a reduction, and it is dear."""
    if value.owner not in parts.deferred or value in parts.kept or not parts.chains[value].is_dear or parts.waiting:
        return False
    others = [use.operation for use in value.uses if use.operation is not op]
    return any(not other.results or other.results[0] not in values for other in others)
