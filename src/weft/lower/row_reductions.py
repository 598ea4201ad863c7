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
    """A reduction's result in each of a thread's runs, and the registers run by run. None if it is not done so."""
    value = op.operands[0]
    parts = c.parts.get(op.parent) if op.parent is not None else None
    if parts is None or op not in parts.sinks.get(value, ()):
        return None
    reduction = _Reduction(c, op, combine, parts)
    if parts.are_alike(reduction.leaves):
        return reduction.in_loop(), reduction.runs.order
    totals_by_run = reduction.in_turn(reduction.each)
    for i, x in enumerate(reduction.kept, 1):
        parts.kept[x] = [results[i] for results in totals_by_run]
    totals = [results[0] for results in totals_by_run]
    return c.build.add("join", totals, [(totals[0].elem, len(totals))]).result, reduction.runs.order


class _Reduction:
    """A reduction that combines the elements of each run.

    Beyond a row all elements are the same: those of a run are combined once, before (`least`).
    """

    def __init__(self, c: Context, op: Operation, combine: Combine, parts: Parts) -> None:
        self.c, self.op, self.combine, self.parts = c, op, combine, parts
        self.value = op.operands[0]
        self.leaves = parts.leaves(self.value)
        parts.make(c, self.leaves)
        (self.geometry,) = parts.chains[self.value].rows
        row = parts.rows[self.geometry]
        self.runs, self.nothing = Runs(c, row, row.results[0]), parts.of_nothing(c, self.value)
        self.each, self.least = self.runs.parts(), self.nothing[self.value]
        self.count = len(self.each[0].order)
        for _ in range(self.count.bit_length() - 1):
            self.least = combine(self.least, self.least)
        self.kept: list[SSAValue] = []
        """What later operations use of what has been computed for the reduction."""

    def of_run(self, k: int, part: Runs, is_whole: bool) -> list[Value]:
        """The total of a thread's run, and what is kept of it."""
        c, value = self.c, self.value
        values = self.parts.of_run(c, value, k, part, is_whole)
        self.kept = self.kept or [x for x in values if _is_wanted_later(self.parts, x, values, self.op)]
        total, *rest = (_of_all(c, values[x], self.count) for x in (value, *self.kept))
        while total.count > 1:
            half = total.count // 2
            total = self.combine(c.build.rename(total, range(half)), c.build.rename(total, range(half, total.count)))
        return [total, *rest]

    def combined(self, k: int, part: Runs, is_whole: bool) -> tuple[Block, list[tuple[str, int]]]:
        """A block that yields the total of a thread's run, and what is kept of it; the types of these."""
        with self.c.inside(Block()) as block:
            total, *rest = self.of_run(k, part, is_whole)
            self.c.build.add("yield", [total, *rest])
        return block, [(x.elem, x.count) for x in (total, *rest)]

    def in_turn(self, each: Sequence[Runs]) -> list[Sequence[Value]]:
        """The totals of some runs, one after the other, and what is kept of them."""
        c, parts, is_masked = self.c, self.parts, self.parts.chains[self.value].is_masked
        totals_by_run = list[Sequence[Value]]()
        for k, part in enumerate(each):
            for leaf in self.leaves:
                if leaf in parts.loads:
                    parts.loads[leaf].begin_to(k)
            taken, kinds = self.combined(k, part, not is_masked)
            if is_masked:
                whole, some = self.combined(k, part, True)[0], taken
                with c.inside(Block()) as taken:
                    inner = part.if_warp(parts.all_there(c, part, self.geometry, k), kinds, whole, some)
                    c.build.add("yield", inner.results)
            with c.inside(Block()) as otherwise:
                c.build.add("yield", [self.least, *(_of_all(c, self.nothing[x], self.count) for x in self.kept)])
            any_there = parts.any_there(c, part, self.geometry, k)
            totals_by_run.append(part.if_warp(any_there, kinds, taken, otherwise).results)
        return totals_by_run

    def in_loop(self) -> Value:
        """The total of all runs: of the first ones, and in a loop of those after them."""
        c, parts = self.c, self.parts

        def some(are_whole: bool) -> Block:
            """The runs of one iteration, combined with the total before."""
            with c.inside(Block()) as block, parts.later(self.runs, self.leaves, number, are_whole) as later:
                numbered = enumerate(later.parts())
                each = [x for (x,) in self.in_turn(later.parts())] if not are_whole else []
                each = each or [self.of_run(k, part, True)[0] for k, part in numbered]
                c.build.add("yield", [functools.reduce(self.combine, each, before)])
            return block

        total = functools.reduce(self.combine, [x for (x,) in self.in_turn(self.each[:AT_A_TIME])])
        iterations = c.number(len(self.runs.places) // AT_A_TIME)
        with parts.in_loop(c, c.number(1), iterations, [total]) as (number, (before,)):
            now = self.runs.later(number, AT_A_TIME)
            kinds = [(total.elem, total.count)]
            c.build.add("yield", now.if_warp(now.all_of_warp(), kinds, some(True), some(False)).results)
        return c.build.block.ops[-1].result


def _of_all(c: Context, value: Value, count: int) -> Value:
    """A value with so many registers, repeated if it has one for all of them."""
    return value if value.count == count else c.build.rename(value, [0] * count)


def _is_wanted_later(parts: Parts, value: SSAValue, values: dict[SSAValue, Value], op: Operation) -> bool:
    """Whether other operations use a value that has been computed for a reduction, and it is expensive."""
    if value.owner not in parts.deferred or value in parts.kept or not parts.chains[value].is_dear or parts.waiting:
        return False
    others = [use.operation for use in value.uses if use.operation is not op]
    return any(not other.results or other.results[0] not in values for other in others)
