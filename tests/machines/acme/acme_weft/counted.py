"""How many copies may be pending where a program waits for groups of them: Acme counts single copies, as AMD does.

    copy x 2, commit, copy x 3, commit, wait {pending = 1}      all but the last 3 copies are done

What a loop or a branch has committed before is known as far as all ways agree; of two numbers the smaller one waits for
more, and is right.
"""

from __future__ import annotations

from weft.ir.lane import Block, LaneOp, LaneProgram

__all__ = ["counted"]

State = tuple[int, ...]
"""Copies of each group, the last one first; before them those that no group has yet."""


def _joined(a: State, b: State) -> State:
    """What holds either way; groups that are not known on one of them may have had no copies."""
    return tuple(map(min, a, b))


def counted(program: LaneProgram) -> dict[int, int]:
    """By the id of an operation that waits: how many copies may be pending after it."""
    found: dict[int, int] = {}

    def step(op: LaneOp, state: State) -> State:
        if op.name == "copy_async":
            return (state[0] + max(op.operands[0].count, op.operands[1].count), *state[1:])
        if op.name == "commit_async":
            return (0, *state)
        if op.name == "wait_async":
            number = sum(state[: op.attrs["pending"] + 1])
            found[id(op)] = min(number, found.get(id(op), number))
        if op.name == "if":
            sides = [block(region, state) for region in op.regions]
            return _joined(sides[0], sides[1] if len(sides) > 1 else state)
        if op.name in ("for", "while"):
            while (again := _joined(state, _through(op, state))) != state:
                state = again
        return state

    def _through(op: LaneOp, state: State) -> State:
        for region in op.regions:
            state = block(region, state)
        return state

    def block(region: Block, state: State) -> State:
        for op in region.ops:
            state = step(op, state)
        return state

    block(program.body, (0,))
    return found
