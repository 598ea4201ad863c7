"""How many copies may be pending where a program waits for groups of them: single copies are counted, not groups.

    copy x 2, commit, copy x 3, commit, wait {pending = 1}      all but the last 3 copies are done

The hardware counts other loads too, and is done with them in their order: those that were issued after a copy make a
wait longer, and never too short. What a loop or a branch has committed before is known as far as all ways agree; of
two numbers the smaller one waits for more, and is right.
"""

from __future__ import annotations

from weft.ir.lane import Block, LaneOp, LaneProgram

State = tuple[int, ...]
"""Copies of each group, the last one first; before them those that no group has yet."""


def _joined(a: State, b: State) -> State:
    """What holds either way; groups that are not known on one of them may have had no copies."""
    return tuple(map(min, a, b))


class _Counts:
    """The walk over one program."""

    def __init__(self) -> None:
        self.found: dict[int, int] = {}

    def block(self, region: Block, state: State) -> State:
        for op in region.ops:
            state = self._step(op, state)
        return state

    def _step(self, op: LaneOp, state: State) -> State:
        if op.name == "copy_async":
            return (state[0] + max(op.operands[0].count, op.operands[1].count), *state[1:])
        if op.name == "commit_async":
            return (0, *state)
        if op.name == "wait_async":
            number = sum(state[: op.attrs["pending"] + 1])
            self.found[id(op)] = min(number, self.found.get(id(op), number))
        if op.name in ("if", "partitions"):
            sides = [self.block(region, state) for region in op.regions]
            for side in sides[1:] if len(sides) > 1 else [state]:
                sides[0] = _joined(sides[0], side)
            return sides[0]
        if op.name in ("for", "while"):
            while (again := _joined(state, self._through(op, state))) != state:
                state = again
        return state

    def _through(self, op: LaneOp, state: State) -> State:
        for region in op.regions:
            state = self.block(region, state)
        return state


def counted(program: LaneProgram) -> dict[int, int]:
    """By the id of an operation that waits: how many copies may be pending after it."""
    counts = _Counts()
    counts.block(program.body, (0,))
    return counts.found
