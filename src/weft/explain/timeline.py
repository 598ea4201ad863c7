"""One iteration of a loop on a time line: what the warp does in it, and what goes on beside it, in cycles.

    copy_async    the warp issues it in 4 cycles; the copy is on its way for 570
    wait_async    the warp waits until the copy of an iteration before is there
    wgmma         issued in one cycle; the matrix unit works for 130

The walk through a program (cycles.py) knows when each operation is issued and when its result is there; here this is
put down for the last iteration that it follows of a loop without further loops, as the ones after it are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from weft.ir.lane import LaneOp

from .record import Happening, Iteration

__all__ = ["Moment", "Timeline"]

NEAR = 2.0
"""Cycles between two happenings of the same kind and place that are shown as one."""
SHORT = 12.0
"""Cycles of waiting that are part of the work: the latency of arithmetic."""
LONG = 40.0
"""Cycles from which on a result that comes later is worth showing: more than arithmetic and shared memory take."""
WAITS = ("wait_async", "await", "barrier")
ASIDE = ("load", "copy")
"""Kinds of which those of several places go on at a time."""


@dataclass(frozen=True)
class Moment:
    """What a walk knows before an operation, and after it."""

    now: float
    tensor: float
    """When the matrix unit has done all that it was given."""
    open_copy: float
    bulk: tuple[float, ...]
    products: float
    """Cycles of matrix units that were asked for."""


@dataclass
class Timeline:
    """The happenings of an iteration, while it is walked through; `start` is its first cycle."""

    start: float
    happened: list[Happening] = field(default_factory=list)

    def add(self, op: LaneOp, before: Moment, there: float, after: Moment, ready: float) -> None:
        """An operation; `there` is when its operands are, `ready` when its result is."""
        issued = after.now if op.name in WAITS else min(max(before.now, there), after.now)
        if issued - before.now >= SHORT:
            self._put(op, "wait", before.now, issued)
            self._put(op, "work", issued, after.now)
        else:
            self._put(op, "work", before.now, after.now)
        if after.tensor > before.tensor:
            self._put(op, "product", max(issued, before.tensor), after.tensor)
        elif after.products > before.products:
            self._put(op, "product", issued, max(ready, after.now))
        elif op.name == "copy_async":
            self._put(op, "copy", issued, after.open_copy)
        elif len(after.bulk) > len(before.bulk):
            self._put(op, "copy", issued, after.bulk[-1])
        elif op.name in ("load", "atomic", "compare_and_swap") and ready - after.now > LONG:
            self._put(op, "load", issued, ready)

    def _put(self, op: LaneOp, kind: str, start: float, end: float) -> None:
        if end - start < 0.5:
            return
        what = str(op.attrs["isa"]) if op.name == "instruction" else op.name
        start, end = start - self.start, end - self.start
        warp = ("wait", "work")
        for i in range(len(self.happened) - 1, -1, -1):
            last = self.happened[i]
            if last.kind == kind and last.span == op.span and last.end + NEAR >= start:
                self.happened[i] = replace(last, end=max(last.end, end))
                return
            if (last.kind == kind and kind not in ASIDE) or (last.kind in warp and kind in warp):
                break  # something else came between
        self.happened.append(Happening(kind, what, op.span, start, end))

    def iteration(self, loop: LaneOp, cycles: float, count: float) -> Iteration:
        """All of it; `count` is how often the loop turns."""
        rounded = tuple(replace(h, start=round(h.start, 1), end=round(h.end, 1)) for h in self.happened)
        return Iteration(loop.span, round(cycles, 1), round(count, 1), rounded)
