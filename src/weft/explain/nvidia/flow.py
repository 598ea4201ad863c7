"""Basic blocks and loops of code, of PTX and of the machine's alike.

    0:  r1 = ...                 blocks        0..1, 2..4, 5
    2:  loop: load               loop          {2..4}, with its head at 2
    4:      branch loop if p
    5:  store

A loop is what reaches the end of an edge back to its head without going through the head (a natural loop); loops with
the same head are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .sass import ALWAYS, Instruction

__all__ = ["Flow", "Loop", "of_instructions", "of_ptx"]


@dataclass
class Loop:
    """A loop, by the numbers of its blocks."""

    head: int
    blocks: frozenset[int]
    latches: tuple[int, ...]
    """The blocks that go back to the head."""
    parent: Loop | None = None
    loops: list[Loop] = field(default_factory=list)
    """Those right inside of it, in order."""


@dataclass
class Flow:
    """Blocks as ranges of positions; where each goes; loops that are in no other."""

    blocks: list[range]
    goes: list[list[int]]
    loops: list[Loop]
    within: list[Loop | None]
    """The innermost loop of each block."""

    def around(self, blocks: Iterable[int]) -> frozenset[int]:
        """The blocks that are reached from some, and those that reach them."""
        before: list[list[int]] = [[] for _ in self.goes]
        for i, targets in enumerate(self.goes):
            for target in targets:
                before[target].append(i)
        return frozenset(_reached(self.goes, blocks, set()) | _reached(before, blocks, set()))

    def always(self, block: int, among: frozenset[int] | None = None) -> bool:
        """Whether a block is executed in each turn of its loop, or each time: it is on every way to where that ends, of
        those among some blocks."""
        loop = self.within[block]
        inside = loop.blocks if loop is not None else among or frozenset(range(len(self.blocks)))
        head = loop.head if loop is not None else 0
        if block == head:
            return True
        ends = loop.latches if loop is not None else [i for i in inside if not inside.intersection(self.goes[i])]
        seen, open_blocks = {block, head}, [head]  # what is reached without the block
        while open_blocks:
            now = open_blocks.pop()
            if now in ends:
                return False
            for after in self.goes[now]:
                if after in inside and after not in seen:
                    seen.add(after)
                    open_blocks.append(after)
        return True


def of_instructions(code: Sequence[Instruction]) -> Flow:
    """The flow of machine code. What is behind a call is what follows when it has returned."""
    at = {op.place: i for i, op in enumerate(code)}
    jumps: dict[int, tuple[list[int], bool]] = {}
    for i, op in enumerate(code):
        may_go_on = op.predicate != ALWAYS
        if op.name == "BRA":
            jumps[i] = ([at[op.target]] if op.target in at else [], may_go_on)
        elif op.name in ("EXIT", "RET"):
            jumps[i] = ([], may_go_on)
    return _flow(len(code), jumps)


LABEL = re.compile(r"^\s*([$\w]+):")
BRANCH = re.compile(r"^\s*(@!?%?\w+\s+)?(bra(?:\.uni)?\s+([$\w]+)|ret\b|exit\b)")


def of_ptx(lines: Sequence[str]) -> Flow:
    """The flow of PTX by the numbers of its lines, from 0."""
    labels = {match[1]: i for i, line in enumerate(lines) if (match := LABEL.match(line))}
    jumps: dict[int, tuple[list[int], bool]] = {}
    for i, line in enumerate(lines):
        match = BRANCH.match(line)
        if match:
            target = labels.get(match[3] or "")
            jumps[i] = ([target] if target is not None else [], match[1] is not None)
    return _flow(len(lines), jumps)


def _flow(length: int, jumps: dict[int, tuple[list[int], bool]]) -> Flow:
    starts = {0, *(i + 1 for i in jumps), *(target for targets, _ in jumps.values() for target in targets)}
    bounds = [*sorted(i for i in starts if i < length), length]
    blocks = [range(a, b) for a, b in pairwise(bounds)]
    number = {block.start: i for i, block in enumerate(blocks)}
    goes = []
    for i, block in enumerate(blocks):
        targets, goes_on = jumps.get(block.stop - 1, ([], True))
        after = [i + 1] if goes_on and i + 1 < len(blocks) else []
        goes.append([*(number[t] for t in targets), *after])
    loops = _loops(goes)
    within: list[Loop | None] = [None] * len(blocks)
    for loop in sorted(loops, key=lambda each: -len(each.blocks)):
        loop.parent = within[loop.head]
        for block_number in loop.blocks:
            within[block_number] = loop
    for loop in sorted(loops, key=lambda each: each.head):
        if loop.parent is not None:
            loop.parent.loops.append(loop)
    outer = sorted((loop for loop in loops if loop.parent is None), key=lambda each: each.head)
    return Flow(blocks, goes, outer, within)


def _loops(goes: list[list[int]]) -> list[Loop]:
    """The natural loops, each once."""
    before: list[list[int]] = [[] for _ in goes]
    for i, targets in enumerate(goes):
        for target in targets:
            before[target].append(i)
    latches: dict[int, list[int]] = {}
    for i in sorted(_reached(goes, [0], set())):
        for target in goes[i]:
            if _dominates(goes, target, i):
                latches.setdefault(target, []).append(i)
    return [Loop(head, _reaching(before, head, ends), tuple(ends)) for head, ends in latches.items()]


def _dominates(goes: list[list[int]], a: int, b: int) -> bool:
    """Whether every way to b goes through a."""
    return a == b or b not in _reached(goes, [0] if a else [], {a})


def _reached(goes: list[list[int]], first: Iterable[int], without: set[int]) -> set[int]:
    seen, open_blocks = set(first), list(first)
    while open_blocks:
        for target in goes[open_blocks.pop()]:
            if target not in seen and target not in without:
                seen.add(target)
                open_blocks.append(target)
    return seen


def _reaching(before: list[list[int]], head: int, ends: Iterable[int]) -> frozenset[int]:
    """The blocks that reach one of the ends, up to the head."""
    return frozenset({head, *_reached(before, [end for end in ends if end != head], {head})})
