"""What is done where a mask holds: in a branch. What one operation does under one mask is in one branch:

    br i1 %m, label %held, label %after
    held:   %a = load ...    %b = load ...    br label %after
    after:  phi [ %a, %held ], [ what is there otherwise, %before ] ...

A branch can be added to as long as nothing else has been written but what it does not wait for: that is moved before
it. Four loads in branches of their own would wait for each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.ir.lane import LaneOp

from .emitter import Emitter, Register

NAME = re.compile(r"%[\w.]+")


@dataclass
class _Branch:
    """The branch that was written last."""

    op: LaneOp
    mask: str
    before: str
    """The block that it is in."""
    inside: str
    after: str
    start: int
    """Where in the lines it begins."""
    inner: int
    """Where its inside ends."""
    end: int
    """Where the phi nodes behind it end."""
    made: set[str]
    """What those define."""


class Branches:
    """Those of one program."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self.last: _Branch | None = None

    def where(
        self,
        op: LaneOp,
        mask: Register | None,
        inside: Callable[[], list[str]],
        type: str = "",
        instead: Sequence[str] = (),
    ) -> list[str]:
        """Write something where a mask holds; registers of a type that it gives, or what is there `instead`."""
        e = self.e
        if mask is None:
            return inside()
        name = e.name(mask)
        branch = self._continued(op, name) or self._begun(op, name)
        mark, at = e.mark(), len(e.lines)
        made = inside()
        e.forget(mark)
        written = e.lines[at:]
        del e.lines[at:]
        e.lines[branch.inner : branch.inner] = written
        branch.inner += len(written)
        branch.end += len(written)
        phis = e.reserve(len(made))
        e.lines[branch.end : branch.end] = [
            f"  {phi} = phi {type} [ {x}, %{branch.inside} ], [ {other}, %{branch.before} ]{e.place}"
            for phi, x, other in zip(phis, made, instead[: len(made)], strict=True)
        ]
        branch.end += len(phis)
        branch.made.update(phis)
        return phis

    def _begun(self, op: LaneOp, mask: str) -> _Branch:
        e, f = self.e, self.e.f
        before, inside, after = f.block, f.new_label("held"), f.new_label("after")
        start = len(e.lines)
        e.do(f"br i1 {mask}, label %{inside}, label %{after}")
        f.start(inside)
        e.do(f"br label %{after}")
        f.start(after)
        self.last = _Branch(op, mask, before, inside, after, start, start + 2, start + 4, set())
        return self.last

    def _continued(self, op: LaneOp, mask: str) -> _Branch | None:
        """The last branch, if more can be put into it."""
        e, branch = self.e, self.last
        if branch is None or (branch.op, branch.mask) != (op, mask) or e.f.block != branch.after:
            return None
        waiting, free = [], []
        behind = set(branch.made)
        for line in e.lines[branch.end :]:
            names = NAME.findall(line)  # what is defined is not used before
            if not behind.isdisjoint(names):
                behind.update(names[:1] if " = " in line else ())
                waiting.append(line)
            else:
                free.append(line)
        e.lines[branch.end :] = waiting
        e.lines[branch.start : branch.start] = free
        branch.start += len(free)
        branch.inner += len(free)
        branch.end += len(free)
        return branch
