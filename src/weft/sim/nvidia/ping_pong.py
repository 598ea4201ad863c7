"""Two warp groups that take turns: each step comes after the one that belongs before it.

The warps of a partition go in step here, so that every turn is there when it is taken; on the device a group waits for
the other's. What could make it wait for ever is found by the order of its own steps, which both groups go through.
"""

from __future__ import annotations

from weft.ir.lane import LaneOp

from ..errors import DeadlockError
from ..machine import Batch, Context

_BEFORE = {"begin": ("end",), "take": ("begin", "pass"), "pass": ("take",), "end": ("begin", "pass")}
_HINT = "turns are begun, taken and passed on by both groups, as often as each other, and ended"


def step(context: Context, op: LaneOp) -> None:
    """A step of all warps of a context."""
    name = str(op.attrs["isa"]).removeprefix("turn.")
    turns = context.batch.turns
    for row, warp in enumerate(context.warps.tolist()):
        before, _ = turns.get(warp, ("end", op))
        if before not in _BEFORE[name]:
            text = f"deadlock: a warp group comes to `{name}` of its turns after `{before}`, which the other waits for"
            error = DeadlockError(text, op.span, thread=context.thread(row))
            error.hint = _HINT
            context.batch.launch.error(error)
        turns[warp] = name, op


def finish(batch: Batch) -> None:
    """Turns that were begun have ended."""
    for name, op in batch.turns.values():
        if name != "end":
            error = DeadlockError(f"deadlock: turns of two warp groups stop at `{name}`: they do not end", op.span)
            error.hint = _HINT
            batch.launch.error(error)
            return
