"""When a loop looks whether to leave: after so much work.

The launch may have been interrupted (see `signals`), and a loop may be long or never end. To look in every iteration
would be dear for a loop over scalars, and to look in every thousandth would be too late for a loop over big tiles. So a
program counts its work, in a register: what an iteration does is known here, nearly, as the elements of the tiles that
it works on. Each iteration takes that from the counter; where nothing is left, the counter begins anew and the loop
looks:

    left = left - 131072              ; a product of tiles of 64x32 and 32x64 elements
    if left < 0: left = BUDGET; if weft_poll(state): return

This stands at the end of an iteration, so that LLVM still knows that what stands before it is done in the first
iteration, and moves out of the loop what does not change. A loop that is known to be short counts as a part of what is
around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.backends.cpu.program import Block, Op, Value
from weft.backends.cpu.waiting import reads_its_condition
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I64, Value as Reg, const

BUDGET = 1 << 20
"""Elements between two looks: 20 us of a product, 0.1 s where each element is a miss of all caches."""
PATIENCE = 1 << 10
"""Iterations of a loop that may wait for another program until it looks, and lets another thread have the processor."""
SHORT = 1 << 16
"""The most that a loop does in all that does not look."""
SIDE = 1 << 10
"""The most that a side of a branch does that does not count by itself."""


class Polling:
    """What the blocks of a program do, which of its loops look, and the code for it; `poll` emits a look."""

    def __init__(self, blocks: Sequence[Block], poll: Callable[[Function], None], at_once: int = 1) -> None:
        """`at_once`: how many elements are multiplied in the time of one, where products are in tile registers."""
        self._poll, self._at_once = poll, at_once
        self._work: dict[Block, int] = {}
        self._looking: set[Op] = set()
        self._counter: Reg | None = None
        for block in blocks:
            self._measure(block)

    def end_iteration(self, f: Function, op: Op) -> None:
        """At the end of an iteration of a loop: count what it did, look where it is time."""
        if op not in self._looking:
            return
        work = sum(self._work[block] for region in op.regions for block in region)
        if op.name == "scf.while" and reads_its_condition(op):
            work = max(work, BUDGET // PATIENCE)
        self._look(f, self._spend(f, const(I64, work)))

    def after(self, f: Function, op: Op, work: Callable[[], Reg]) -> None:
        """After a fused loop, which is a part of a nest: count what it did, look where it is time."""
        if op in self._looking:
            self._look(f, self._spend(f, work()))

    def end_side(self, f: Function, block: Block) -> None:
        """At the end of a side of a branch: count what it did, where that is much and some loop around looks."""
        if self._work[block] > SIDE and self._is_in_loop(block):
            self._spend(f, const(I64, self._work[block]))

    def _look(self, f: Function, left: Reg) -> None:
        def look() -> None:
            f.store(const(I64, BUDGET), self._variable(f), 8)
            self._poll(f)

        f.when(f.icmp("slt", left, const(I64, 0)), look)

    def _spend(self, f: Function, work: Reg) -> Reg:
        counter = self._variable(f)
        left = f.sub(f.load(I64, counter, 8), work)
        f.store(left, counter, 8)
        return left

    def _variable(self, f: Function) -> Reg:
        if self._counter is None:
            self._counter = f.variable(const(I64, BUDGET))
        return self._counter

    def _is_in_loop(self, block: Block) -> bool:
        op = block.parent
        while op is not None and op not in self._looking:
            op = op.block.parent
        return op is not None

    def _measure(self, block: Block) -> bool:
        """Find what a block does, and the blocks within it; whether it has loops that look."""
        work, looks = 0, False
        for op in block.ops:
            inside = [self._measure(inner) for region in op.regions for inner in region]
            if op.name == "scf.while" or (op.name == "scf.for" and (any(inside) or self._all_iterations(op) > SHORT)):
                self._looking.add(op)
                inside.append(True)
            looks |= any(inside)
            work += self._cost(op)
        self._work[block] = work
        return looks

    def _all_iterations(self, op: Op) -> int:
        """What a loop does in all; more than SHORT where nobody knows how many iterations it has."""
        lower, upper, step = (_constant(a) for a in op.args[:3])
        if lower is None or upper is None or step is None:
            return SHORT + 1
        return len(range(lower, upper, max(1, step))) * self._work[op.regions[0][0]]

    def _cost(self, op: Op) -> int:
        """What an operation does, without what counts by itself: loops that look, and much in a branch."""
        inside = [sum(self._work[block] for block in region) for region in op.regions]
        if op.name in ("scf.for", "scf.while"):
            return 1 if op in self._looking else self._all_iterations(op)
        if op.name == "scf.if":
            return 1 + max((work for work in inside if work <= SIDE), default=0)
        most = max((v.numel for v in (*op.args, *op.results)), default=1)
        if op.name == "tt.dot":
            most = op.result.numel * op.args[0].shape[-1] // self._at_once
        return most * max(1, *inside) if inside else most


def _constant(value: Value) -> int | None:
    if value.op is None or value.op.name != "arith.constant":
        return None
    return int(value.op.attrs["value"])
