"""Insert barriers where accesses of global memory may meet, so that a program's loads see its earlier stores.

    store global %a, %x                       store global %a, %x
    %y = load global %b            becomes    barrier {scope=block}
                                              %y = load global %b

where `%a` and `%b` come from one argument of the kernel and may be the same address in two threads: one may load what
the other stores. So too where a store follows a load. In a cluster the barrier is the cluster's.

What comes before a loop and meets what is in it is ordered before the loop, not in each iteration. A barrier in a loop
does not do for what comes behind it: the loop may have no iterations. This comes after the barriers of shared memory,
which do as well. Left to the author (`tl.debug_barrier`) are arrays that share memory, and copies of the copy engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from weft.analysis import GlobalTouch, GlobalTouches, is_block_barrier, is_cluster_barrier, of_one_row, of_one_store
from weft.ir.lane import Block, Builder, LaneOp, LaneProgram, Value

from .telling import tell_barriers

State = frozenset[GlobalTouch]
MANY = 64
"""Accesses that may be pending: beyond them those of one argument are taken to meet."""


def order_globals(program: LaneProgram) -> None:
    """Order the accesses of global memory of each program, or partition, that may meet."""
    first = program.body.ops[0] if program.body.ops else None
    if first is None or first.name != "partitions":
        _Walk(program, program, None).run()
        return
    for number, (region, warps) in enumerate(zip(first.regions, first.attrs["warps"], strict=True)):
        _Walk(program, replace(program, body=region, warps=warps), number + 1 if number else 0).run()


@dataclass(frozen=True)
class _Nest:
    """What is inside a loop or branch: the accesses, and the values that each iteration computes anew."""

    touches: tuple[GlobalTouch, ...]
    values: frozenset[Value]


@dataclass(frozen=True)
class _Summary:
    """What a block leaves pending: its own accesses, and what was pending before if it can be gone through without
    a barrier."""

    is_open: bool
    own: State

    def after(self, state: State) -> State:
        """What is pending behind the block."""
        return self.own | state if self.is_open else self.own

    def then(self, later: _Summary) -> _Summary:
        """Of this block and another behind it."""
        return _Summary(self.is_open and later.is_open, later.after(self.own))


_NOTHING, _BARRIER = _Summary(True, frozenset()), _Summary(False, frozenset())


class _Walk:
    def __init__(self, whole: LaneProgram, part: LaneProgram, number: int | None) -> None:
        self.program, self.number = part, number
        self.whole = whole
        self.written: set[Value] = set()
        self.nests: dict[LaneOp, _Nest] = {}
        self.seen: dict[LaneOp, State] = {}
        """What was pending when an iteration of a loop was walked through: barriers within are there for all of it."""
        self.summaries: dict[LaneOp, _Summary] = {}
        """What an iteration of a loop leaves, until a barrier is put into it."""
        self.around: list[LaneOp] = []
        """The loops that are being walked through."""
        self.sides: dict[LaneOp, tuple[LaneOp, LaneOp | None]] = {}
        """The barriers that were put in, with the two accesses that each is between."""

    def run(self) -> None:
        """Put the barriers in."""
        if not any(_writes(op) for op in self.program.body.walk()):
            return
        self.touches = GlobalTouches(replace(self.whole, warps=self.program.warps))
        touches = [t for op in self.program.body.walk() for t in self.touches.of(op)]
        self.written = {root for t in touches if t.how != "read" for root in t.roots}
        # some of them is accessed more than once
        if len([t for t in touches if t.roots & self.written]) > len(self.written):
            self.block(self.program.body, frozenset())
            tell_barriers(self.program, self.sides, None)

    def found(self, op: LaneOp) -> list[GlobalTouch]:
        """The accesses of an operation to what is written somewhere."""
        return [t for t in self.touches.of(op) if t.roots & self.written]

    def nest(self, op: LaneOp) -> _Nest:
        """What is inside an operation's regions."""
        if op not in self.nests:
            inside = [o for r in op.regions for o in r.walk()]
            values = {v for o in inside for v in o.results}
            values |= {v for o in (op, *inside) for r in o.regions for v in r.arguments}
            self.nests[op] = _Nest(tuple(t for o in inside for t in self.found(o)), frozenset(values))
        return self.nests[op]

    def block(self, block: Block, state: State) -> State:
        """Walk through a block; what is pending at its end."""
        index = 0
        while index < len(block.ops):
            op = block.ops[index]
            if op.attrs.get("of_warp"):  # others do not come there: what is to be waited for is waited for before
                inside = self.nest(op).touches
                if pair := self.meet(state, inside):
                    state, index = self.ordered(block, index, pair), index + 1
                state |= frozenset(inside)
            elif op.regions:
                looped = op.name in ("for", "while")
                if looped and (pair := self.meet(state, self.nest(op).touches)):
                    state, index = self.ordered(block, index, pair), index + 1
                state = state | self.loop(op, state) | self.at_exit(op) if looped else self.branch(op, state)
            elif self.orders(op):
                state = frozenset()
            else:
                touches = self.found(op)
                if pair := self.meet(state, touches):
                    state, index = self.ordered(block, index, pair), index + 1
                state |= frozenset(touches)
            index += 1
        return state

    def branch(self, op: LaneOp, state: State) -> State:
        """Either of the regions, or none."""
        ends = [self.block(region, state) for region in op.regions]
        return frozenset().union(*ends, *([state] if len(op.regions) < 2 else []))

    def loop(self, op: LaneOp, state: State) -> State:
        """Once, and once more behind itself, when its addresses are those of another iteration.

        In a nest that would be 2^depth walks: an iteration that begins with nothing new leaves what it is known to
        leave.
        """
        for _ in range(2):
            if op in self.seen and state <= self.seen[op]:
                state = self.iteration(op).after(state)
            else:
                self.seen[op] = self.seen.get(op, frozenset()) | state
                self.around.append(op)
                for region in op.regions:
                    state = self.block(region, state)
                self.around.pop()
            state = self.moved_on(op, state)
        return state

    def at_exit(self, op: LaneOp) -> State:
        """What a loop leaves whose body is not come to: the accesses of the condition of a `while`.

        A barrier in the body does not count behind the loop, which may have no iterations.
        """
        return self.summary(op.regions[0]).own if op.name == "while" else frozenset()

    def moved_on(self, op: LaneOp, state: State) -> State:
        """What is pending in the next iteration of a loop, and behind it."""
        anew = self.nest(op).values
        return frozenset(replace(t, loops=t.loops | {op}) if t.address in anew else t for t in state)

    def iteration(self, op: LaneOp) -> _Summary:
        """What an iteration of a loop leaves."""
        if op not in self.summaries:
            self.summaries[op] = reduce(_Summary.then, map(self.summary, op.regions), _NOTHING)
        return self.summaries[op]

    def summary(self, block: Block) -> _Summary:
        """What a block leaves, with the barriers that are there."""
        summary = _NOTHING
        for op in block.ops:
            if op.attrs.get("of_warp"):
                summary = summary.then(_Summary(True, frozenset(self.nest(op).touches)))
            elif op.name in ("for", "while"):
                summary = summary.then(_Summary(True, self.iteration(op).own | self.at_exit(op)))
                summary = _Summary(summary.is_open, self.moved_on(op, summary.own))
            elif op.regions:
                ends = [self.summary(region) for region in op.regions] + [_NOTHING] * (len(op.regions) < 2)
                either = _Summary(any(e.is_open for e in ends), frozenset().union(*(e.own for e in ends)))
                summary = summary.then(either)
            elif self.orders(op):
                summary = _BARRIER
            else:
                summary = summary.then(_Summary(True, frozenset(self.found(op))))
        return summary

    def meet(self, state: State, touches: Sequence[GlobalTouch]) -> tuple[LaneOp, LaneOp] | None:
        """What is pending and one of these that meets it, or may, where to find out would take too long."""
        meet = self.touches.meet if len(state) <= MANY else _may_meet
        pairs = ((e, t) for t in touches for e in state if meet(e, t))
        if next(pairs, None) is None:
            return None
        places = {op: i for i, op in enumerate(self.program.body.walk())}
        pairs = ((e, t) for t in touches for e in sorted(state, key=lambda e: -places[e.op]) if meet(e, t))
        return next((e.op, t.op) for e, t in pairs)  # the last one: a set has no order of its own

    def orders(self, op: LaneOp) -> bool:
        """Whether all who may meet wait for each other here."""
        if self.program.blocks > 1 and self.number is None:
            return is_cluster_barrier(op, "wait")
        alone = self.program.warps == 1 and op.name == "barrier"
        return alone or is_block_barrier(self.program, op) or is_cluster_barrier(op, "wait")

    def ordered(self, block: Block, index: int, pair: tuple[LaneOp, LaneOp]) -> State:
        """Put a barrier before an operation, for two accesses; nothing is pending then."""
        build = Builder(Block())
        build.span = block.ops[index].span
        build.partition = (self.number, self.program.warps) if self.number is not None else None
        scope = "warp" if self.program.warps == 1 else "block"
        build.barrier("cluster" if self.program.blocks > 1 and self.number is None else scope)
        (op,) = build.block.ops
        op.attrs["of"] = "global"
        self.sides[op] = pair
        block.ops.insert(index, op)
        for loop in self.around:
            self.summaries.pop(loop, None)
        return frozenset()


def _may_meet(e: GlobalTouch, t: GlobalTouch) -> bool:
    """What is quickly said of two accesses."""
    alone = of_one_row(e, t) or of_one_store(e, t)
    return bool(e.roots & t.roots) and not alone and (e.how != t.how or t.how == "write")


def _writes(op: LaneOp) -> bool:
    return op.name in ("store", "atomic", "compare_and_swap") and op.attrs["space"] == "global"
