"""Barriers where accesses of global memory may meet: a later load of the same program sees what it has stored.

    store global %a, %x                       store global %a, %x
    %y = load global %b            becomes    barrier {scope=block}
                                              %y = load global %b

where `%a` and `%b` come from one argument of the kernel and may be the same address in two threads: one may load what
the other stores. So too where a store follows a load. In a cluster the barrier is the cluster's.

What comes before a loop and meets what is in it is ordered before the loop, not in each turn. This comes after the
barriers of shared memory, which do as well. Left to the author (`tl.debug_barrier`) are arrays that share memory, and
copies of the copy engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.analysis import GlobalTouch, GlobalTouches, is_block_barrier, is_cluster_barrier, of_one_row, of_one_store
from weft.ir.lane import Block, Builder, LaneOp, LaneProgram

__all__ = ["order_globals"]

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


class _Walk:
    def __init__(self, whole: LaneProgram, part: LaneProgram, number: int | None) -> None:
        self.program, self.number = part, number
        self.whole = whole

    def run(self) -> None:
        """Put the barriers in."""
        if not any(_writes(op) for op in self.program.body.walk()):
            return
        self.touches = GlobalTouches(replace(self.whole, warps=self.program.warps))
        found = [t for op in self.program.body.walk() for t in self.touches.of(op)]
        written = {root for t in found if t.how != "read" for root in t.roots}
        if len([t for t in found if t.roots & written]) > len(written):  # some of them is accessed more than once
            self.block(self.program.body, frozenset())

    def block(self, block: Block, state: State) -> State:
        """Walk through a block; what is pending at its end."""
        index = 0
        while index < len(block.ops):
            op = block.ops[index]
            if op.attrs.get("of_warp"):  # others do not come there: what is to be waited for is waited for before
                inside = [t for r in op.regions for o in r.walk() for t in self.touches.of(o)]
                if self.meet(state, inside):
                    state, index = self.ordered(block, index), index + 1
                state |= frozenset(inside)
            elif op.regions:
                looped = op.name in ("for", "while")
                if looped and self.meet(state, [t for r in op.regions for o in r.walk() for t in self.touches.of(o)]):
                    state, index = self.ordered(block, index), index + 1
                state = self.loop(op, state) if looped else self.branch(op, state)
            elif self.orders(op):
                state = frozenset()
            else:
                found = self.touches.of(op)
                if self.meet(state, found):
                    state, index = self.ordered(block, index), index + 1
                state |= frozenset(found)
            index += 1
        return state

    def branch(self, op: LaneOp, state: State) -> State:
        """Either of the regions, or none."""
        ends = [self.block(region, state) for region in op.regions]
        return frozenset().union(*ends, *([state] if len(op.regions) < 2 else []))

    def loop(self, op: LaneOp, state: State) -> State:
        """Once, and once more behind itself, when its addresses are those of another turn."""
        anew = {v for r in op.regions for v in r.arguments}
        anew |= {v for r in op.regions for o in r.walk() for v in o.results}
        for _ in range(2):
            for region in op.regions:
                state = self.block(region, state)
            state = frozenset(replace(t, turned=t.turned | {op}) if t.address in anew else t for t in state)
        return state

    def meet(self, state: State, found: Sequence[GlobalTouch]) -> bool:
        """Whether one of these meets what is pending, or that would take too long to find out."""
        if len(state) > MANY:
            pairs = ((e, t) for t in found for e in state if e.roots & t.roots)
            pairs = ((e, t) for e, t in pairs if not of_one_row(e, t) and not of_one_store(e, t))
            return any(earlier.how != t.how or t.how == "write" for earlier, t in pairs)
        return any(self.touches.meet(earlier, t) for t in found for earlier in state)

    def orders(self, op: LaneOp) -> bool:
        """Whether all who may meet wait for each other here."""
        if self.program.blocks > 1 and self.number is None:
            return is_cluster_barrier(op, "wait")
        alone = self.program.warps == 1 and op.name == "barrier"
        return alone or is_block_barrier(self.program, op) or is_cluster_barrier(op, "wait")

    def ordered(self, block: Block, index: int) -> State:
        """Put a barrier before an operation; nothing is pending then."""
        build = Builder(Block())
        build.span = block.ops[index].span
        build.partition = (self.number, self.program.warps) if self.number is not None else None
        scope = "warp" if self.program.warps == 1 else "block"
        build.barrier("cluster" if self.program.blocks > 1 and self.number is None else scope)
        (op,) = build.block.ops
        op.attrs["of"] = "global"
        block.ops.insert(index, op)
        return frozenset()


def _writes(op: LaneOp) -> bool:
    return op.name in ("store", "atomic", "compare_and_swap") and op.attrs["space"] == "global"
