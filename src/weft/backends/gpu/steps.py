"""Addresses that a loop carries, and moves by one distance in each iteration, are a start for each and a way for all.

    p = phi [a, p']                          w = phi [0, w']
    q = phi [b, q']                          p = a + w
    copy from p, q                           q = b + w
    p' = p + step                 becomes    copy from p, q
    q' = q + step                            w' = w + step

A copy that is under way keeps the registers of its address until it has read them: an address that moves in its place
waits for the copies, or is copied elsewhere first. Loops without such copies carry each address as it is: `ptxas`
writes out short ones several times, and then only the last of these iterations needs an addition.

The last addition is one that LLVM does not see into: its strength reduction would take the sums apart another way, by
rows and columns, with more registers and more additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.ir.lane import LaneOp, Value

from .emitter import Emitter


class Phi(NamedTuple):
    """A register that a loop carries: what it is in an iteration, before the loop, and at the end of an iteration."""

    name: str
    type: str
    first: str
    last: str


def one_way(e: Emitter, carried: Sequence[Phi], used: Sequence[tuple[bool, bool]]) -> tuple[list[Phi], list[str]]:
    """What the same loop, which is still open, carries then, and the lines that its iterations begin with.

    Of each register, `used` says whether it is used for more than the address of the next iteration, and whether that
    is used for more than to be carried on.
    """
    by_step: dict[str, list[int]] = {}
    for i, register in enumerate(carried):
        base, step = e.steps.get(register.last, ("", ""))
        if base == register.name and any(used[i]):
            by_step.setdefault(step, []).append(i)
    ways, top, gone = list[Phi](), list[str](), set[int]()
    for step, members in by_step.items():
        if len(members) < 2:
            continue
        way, further = e.reserve(2, 1)
        for i in members:
            name, _, start, end = carried[i]
            if step[0] == "%" and not used[i][0]:  # a number is added where the address is used
                e.lines.remove(e.written[end])
                name, start = end, e.before_loop(f"add i64 {start}, {step}")
            top.append(f"  {name} = add i64 {start}, {way}")
        top.append(f"  {further} = {e.dialect.hidden('add', way, step)}")
        gone.update(members)
        ways.append(Phi(way, "i64", "0", further))
    return [*ways, *(x for i, x in enumerate(carried) if i not in gone)], top


def other_uses(
    e: Emitter, carried: Value, end: LaneOp, following: Value, groups: Sequence[int]
) -> list[tuple[bool, bool]]:
    """`used` of `one_way`, for the registers of a value: `following` is what the iteration's `end` carries on, and
    `groups` says of each register of the value in which of those that the loop carries it is.
    """
    step = following.op if following.op is not None and carried in following.op.operands else None
    used_now = {groups[r] for r in _used(e, carried, step)}
    used_next = {groups[r] for r in _used(e, following, end if e.uses[following].count(end) == 1 else None)}
    return [(g in used_now, g in used_next) for g in range(max(groups) + 1)]


def _used(e: Emitter, value: Value, other: LaneOp | None) -> set[int]:
    """The registers of a value that operations use, but for one of them."""
    used: set[int] = set()
    for op in e.uses.get(value, ()):
        if op.name == "rename":
            used.update(op.attrs["table"])
        elif op is not other:
            return set(range(value.count))
    return used
