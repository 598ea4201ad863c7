"""Addresses that a loop carries, and moves by one distance in each turn, are a start for each and a way for all.

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

from collections import Counter
from dataclasses import dataclass

from .emitter import NAMES, Emitter

__all__ = ["Turn", "one_way"]


@dataclass
class Turn:
    """What a loop carries: the registers in a turn, their types, those before the loop, those at the end of a turn."""

    names: list[str]
    types: list[str]
    first: list[str]
    last: list[str]


def one_way(e: Emitter, at: int, carried: Turn) -> tuple[Turn, list[str]]:
    """The same loop, and the lines that its turns begin with. Its body begins at line `at`; it is still open."""
    uses = Counter(n for line in e.lines[at:] for n in NAMES.findall(line))
    uses.update(carried.last)
    by_step: dict[str, list[int]] = {}
    for i, (name, end) in enumerate(zip(carried.names, carried.last, strict=True)):
        own, step = e.steps.get(end, ("", ""))
        # once in the sum; once where the sum is made and once where it is carried on
        if own == name and uses[name] + uses[end] > 3:
            by_step.setdefault(step, []).append(i)
    gone: set[int] = set()
    found, top = Turn([], [], [], []), []
    for step, members in by_step.items():
        if len(members) < 2:
            continue
        way, further = e.reserve(2, 1)
        for i in members:
            name, start, end = carried.names[i], carried.first[i], carried.last[i]
            if uses[name] == 1:
                e.lines[at:] = [line for line in e.lines[at:] if not line.startswith(f"  {end} = ")]
                name, start = end, e.before_loop(f"add i64 {start}, {step}")
            top.append(f"  {name} = add i64 {start}, {way}")
        top.append(f"  {further} = {e.dialect.hidden('add', way, step)}")
        gone.update(members)
        found.names.append(way)
        found.types.append("i64")
        found.first.append("0")
        found.last.append(further)
    for i in range(len(carried.names)):
        if i not in gone:
            found.names.append(carried.names[i])
            found.types.append(carried.types[i])
            found.first.append(carried.first[i])
            found.last.append(carried.last[i])
    return found, top
