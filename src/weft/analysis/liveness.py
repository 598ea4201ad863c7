"""From where to where each buffer of shared memory is in use.

Operations are numbered in the order of the text. A buffer made inside a loop is in use within one iteration; one made
before it and used in it, for the whole of it. Whatever works on a buffer on its own, an asynchronous copy or wgmma, may
do so until all of its kind were waited for.

>>> from weft.ir.lane import Allocation, Block, Builder, LaneProgram
>>> body = Block()
>>> build = Builder(body)
>>> for i in range(2):
...     place = build.add("shared", (), [("i32", 1)], {"allocation": i}).result
...     build.store("shared", place, build.constant("i32", i))
>>> from weft.machines import DEFAULT
>>> lifetimes(LaneProgram("kernel", DEFAULT, (), body, warps=1, shared=[Allocation(4), Allocation(4)]))
[Lifetime(first=2, last=2), Lifetime(first=5, last=5)]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.base import Span
from weft.ir.lane import Block, LaneOp, LaneProgram, Value
from weft.targets.table import effects_of

from .lane_numbers import origins
from .touches import is_cluster_barrier, touches_of, waits_of

__all__ = ["Lifetime", "Numbered", "lifetimes", "lines_of_buffers", "touched_buffers"]


@dataclass(frozen=True)
class Lifetime:
    """The numbers of the first and the last operation that a buffer is in use at, both included."""

    first: int
    last: int

    def overlaps(self, other: Lifetime) -> bool:
        """Whether there is a time when both are in use."""
        return self.first <= other.last and other.first <= self.last


WAITS = ("copy", "product", "bulk")
"""The kinds of accesses that happen later and are waited for by themselves."""


class Numbered:
    """Operations in the order of the text, with the extent of each."""

    def __init__(self, program: LaneProgram) -> None:
        self.program, self.origins = program, origins(program)
        self.extent: dict[LaneOp, tuple[int, int]] = {}
        self.waits: dict[str, list[int]] = {kind: [] for kind in WAITS}
        self.number = 0
        self._walk(program.body)

    def _walk(self, block: Block) -> None:
        for op in block.ops:
            start = self.number
            self.number += 1
            kind = _awaits_all(op)
            if kind in self.waits:
                self.waits[kind].append(start)
            for region in op.regions:
                self._walk(region)
            self.extent[op] = (start, self.number - 1)

    def of(self, value: Value) -> frozenset[int]:
        return self.origins.get(value, frozenset())


def _awaits_all(op: LaneOp) -> str:
    """The kind of accesses that an operation waits for all of; "" for none."""
    waits = waits_of(op)
    return waits[0] if waits is not None and not waits[1] else ""


def lifetimes(program: LaneProgram, numbered: Numbered | None = None) -> list[Lifetime | None]:
    """One for each buffer; None for a buffer that nothing uses."""
    numbered = numbered or Numbered(program)
    lives: list[Lifetime | None] = [None] * len(program.shared)

    def add(buffer: int, first: int, last: int) -> None:
        before = lives[buffer]
        lives[buffer] = Lifetime(min(first, before.first), max(last, before.last)) if before else Lifetime(first, last)

    def walk(block: Block) -> None:
        """Buffers are found in the block that makes them: an operation with regions is one use."""
        begun = {op.attrs["allocation"] for op in block.ops if op.name == "shared"}
        for op in block.ops:
            for buffer in _used(op, numbered) & begun:
                add(buffer, *numbered.extent[op])
            beside = op.name == "partitions"
            for region in op.regions[:1] if beside else op.regions:
                walk(region)
            for buffer, first, last in _beside(op, numbered) if beside else ():
                add(buffer, first, last)

    walk(program.body)
    _extend(program, numbered, lives)
    return lives


def _beside(op: LaneOp, numbered: Numbered) -> Iterator[tuple[int, int, int]]:
    """The buffers that partitions use, which run beside the first, and from when to when in the first they may.

    All warps meet before a partition begins its part, and after it: what it uses is in use between these two barriers
    of the first region. Where it cannot be told which these are, since a part comes as often as a loop says, it is so
    for as long as the kernel runs.
    """
    always = numbered.extent[op]
    meetings = [numbered.extent[x][0] for x in op.regions[0].ops if _is_meeting(x, op)]
    for region in op.regions[1:]:
        count, in_pairs = sum(_is_meeting(x, op) for x in region.ops), len(meetings) % 2 == 0
        seen = 0
        for inner in region.ops:
            seen += _is_meeting(inner, op)
            for buffer in _used(inner, numbered):
                known = in_pairs and count == len(meetings) and seen % 2 == 1
                yield (buffer, meetings[seen - 1], meetings[seen]) if known else (buffer, *always)


def _is_meeting(op: LaneOp, partitions: LaneOp) -> bool:
    """Whether all warps of all partitions meet at a barrier: of the block, or the hardware's one of the cluster."""
    if op.name == "instruction":
        return is_cluster_barrier(op, "wait")
    starts, warps = partitions.attrs["starts"], partitions.attrs["warps"]
    return op.name == "barrier" and op.attrs.get("warps", 0) == starts[-1] + warps[-1] and "id" in op.attrs


def _used(op: LaneOp, numbered: Numbered) -> set[int]:
    """The buffers that an operation, or one inside of it, uses: not those whose address it only computes with."""
    buffers: set[int] = set()
    for touch in touches_of(op):
        buffers |= numbered.of(touch.address) or set(range(len(numbered.program.shared)))
    if op.regions or op.name in ("yield", "condition"):  # an address that is carried on is in use
        for value in op.operands:
            buffers |= numbered.of(value)
    for region in op.regions:
        for inner in region.ops:
            buffers |= _used(inner, numbered)
    return buffers


def _extend(program: LaneProgram, numbered: Numbered, lives: list[Lifetime | None]) -> None:
    """To the wait for everything that happens later."""
    used = list(lives)
    for op, awaited, over in _with_waits(program.body, numbered):
        for touch in touches_of(op):
            if op.name == "instruction" and effects_of(op.attrs["isa"]).lasting:
                for buffer in numbered.of(touch.address) or range(len(program.shared)):
                    life = lives[buffer]
                    lives[buffer] = Lifetime(life.first, numbered.number) if life is not None else None
            if touch.later not in WAITS:
                continue
            for buffer in numbered.of(touch.address) or range(len(program.shared)):
                life = lives[buffer]
                if life is not None:
                    last = min(over, (used[buffer] or life).last)  # however long other kinds of accesses make it
                    later = (n for n in numbered.waits[touch.later] if n >= last)
                    end = awaited[touch.later] if touch.later in awaited else next(later, numbered.number)
                    lives[buffer] = Lifetime(life.first, max(life.last, end))


def _with_waits(
    block: Block, numbered: Numbered, over: int | None = None
) -> Iterator[tuple[LaneOp, dict[str, int], int]]:
    """Each operation, where the kinds of accesses that are waited for after it in its own block are, by kind, and when
    it has come for the last time: where the outermost operation ends that repeats it or leaves it out (partitions do
    neither)."""
    awaited: dict[str, int] = {}
    for op in reversed(block.ops):
        at, end = numbered.extent[op]
        kind = _awaits_all(op)
        if kind in WAITS:
            awaited = {**awaited, kind: at}
        yield op, awaited, end if over is None else over
        for region in op.regions:
            its = over if over is not None or op.name == "partitions" else end
            yield from _with_waits(region, numbered, its)


def touched_buffers(program: LaneProgram) -> list[tuple[LaneOp, str, frozenset[int]]]:
    """(operation, "read", "write" or "atomic", the buffers that it may touch) of every access of shared memory."""
    buffers_of = origins(program)
    everything = frozenset(range(len(program.shared)))
    return [
        (op, touch.how, buffers_of.get(touch.address) or everything)
        for op in program.body.walk()
        for touch in touches_of(op)
    ]


def lines_of_buffers(program: LaneProgram, numbered: Numbered) -> list[tuple[Span, Span] | None]:
    """For each buffer the places in the source of its first and last use, by line; None where they are not known."""
    lines: list[tuple[Span, Span] | None] = [None] * len(program.shared)
    for op in numbered.extent if lines else ():
        span = op.span
        if span is not None:
            for buffer in (b for touch in touches_of(op) for b in numbered.of(touch.address)):
                first, last = lines[buffer] or (span, span)
                lines[buffer] = min(first, span, key=_line), max(last, span, key=_line)
    return lines


def _line(span: Span) -> int:
    return span.line
