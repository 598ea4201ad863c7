"""Addresses that a loop carries, and moves by one distance in each iteration, are a start for each and a way for all.

    p = phi [a, p']                          w = phi [0, w']
    q = phi [b, q']                          p = a + w
    copy from p, q                           q = b + w
    p' = p + step                 becomes    copy from p, q
    q' = q + step                            w' = w + step

A copy that is under way keeps the registers of its address until it has read them: an address that moves in its place
waits for the copies, or is copied elsewhere first. The last addition is one that LLVM does not see into: its strength
reduction would take the sums apart another way, by rows and columns, with more registers and more additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.ir.lane import LaneOp, Value

from .emitter import Emitter

__all__ = ["CarriedRegisters", "one_way", "other_uses"]


@dataclass
class CarriedRegisters:
    """What a loop carries: the registers in an iteration, their types, those before the loop, those at the end of an
    iteration.
    """

    names: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)

    def add(self, name: str, type: str, first: str, last: str) -> None:
        """One register more."""
        self.names.append(name)
        self.types.append(type)
        self.first.append(first)
        self.last.append(last)


def one_way(
    e: Emitter, carried: CarriedRegisters, used: Sequence[tuple[bool, bool]]
) -> tuple[CarriedRegisters, list[str]]:
    """The same loop, which is still open, and the lines that its iterations begin with.

    Of each register, `used` says whether it is used for more than the address of the next iteration, and whether that
    is used for more than to be carried on.
    """
    by_step: dict[str, list[int]] = {}
    for i, (name, end) in enumerate(zip(carried.names, carried.last, strict=True)):
        own, step = e.steps.get(end, ("", ""))
        if own == name and any(used[i]):
            by_step.setdefault(step, []).append(i)
    found, top, gone = CarriedRegisters(), list[str](), set[int]()
    for step, members in by_step.items():
        if len(members) < 2:
            continue
        way, further = e.reserve(2, 1)
        for i in members:
            name, start, end = carried.names[i], carried.first[i], carried.last[i]
            if step[0] == "%" and not used[i][0]:  # a number is added where the address is used
                e.lines.remove(e.written[end])
                name, start = end, e.before_loop(f"add i64 {start}, {step}")
            top.append(f"  {name} = add i64 {start}, {way}")
        top.append(f"  {further} = {e.dialect.hidden('add', way, step)}")
        gone.update(members)
        found.add(way, "i64", "0", further)
    for i, register in enumerate(zip(carried.names, carried.types, carried.first, carried.last, strict=True)):
        if i not in gone:
            found.add(*register)
    return found, top


def other_uses(
    e: Emitter, carried: Value, end: LaneOp, following: Value, groups: Sequence[int]
) -> list[tuple[bool, bool]]:
    """`used` of `one_way`, for the registers of a value: `following` is what the iteration's `end` carries on, and
    `groups` says of each register of the value in which of those that the loop carries it is.
    """
    step = following.op if following.op is not None and carried in following.op.operands else None
    here = {groups[r] for r in _used(e, carried, step)}
    there = {groups[r] for r in _used(e, following, end if e.uses[following].count(end) == 1 else None)}
    return [(g in here, g in there) for g in range(max(groups) + 1)]


def _used(e: Emitter, value: Value, other: LaneOp | None) -> set[int]:
    """The registers of a value that operations use, but for one of them."""
    found: set[int] = set()
    for op in e.uses.get(value, ()):
        if op.name == "rename":
            found.update(op.attrs["table"])
        elif op is not other:
            return set(range(value.count))
    return found
