"""Which values a thread holds at a time, in words of 32 bits, line by line.

    %5 = load ...        line 10: 8 words
    %9 = add %5, %7      line 12: 8 + 8 + 8, if %7 is used again

A value is held from where it is made to where it is used last; what is used in a loop and made before it, to the end of
the loop. The last use of an operand makes room for the result. Names of registers (`rename`, `join`) are those
registers. Constants, places of lanes and what is computed from them and from arguments alone, which is addresses, are
made where they are used or folded into others, and predicates are no registers.

Only registers that something wants are counted (wanted.py): of the addresses of a vector that of the first element.

This is before LLVM and ptxas: they order instructions anew, keep addresses and counters beside, and spill. Their number
is `Occupancy.registers`; this says whose registers they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import ceil

from weft.base import Span
from weft.ir.lane import ELEMENT_BITS, Block, LaneProgram, Value

from .record import Held
from .wanted import wanted_registers

__all__ = ["held_by_line"]

NAMES = ("rename", "join", "keep", "await")
MADE_AGAIN = ("constant", "linear", "undefined", "zero", "program_id", "num_programs", "shared")
MOST = 6
"""Values that are named, the largest first."""


class _Lives:
    """Operations in the order of the text: where each value is made, and up to where it is held."""

    def __init__(self, program: LaneProgram) -> None:
        self.program = program
        self.number = 0
        self.spans: list[Span | None] = []
        self.made: dict[Value, int] = {}
        self.last: dict[Value, int] = {}
        self.folded: set[Value] = set()
        """What is made of arguments, counters and places alone."""
        self.alias: dict[Value, tuple[Value, ...]] = {}
        self._loops: list[tuple[int, dict[Value, None]]] = []
        self.wanted = wanted_registers(program.body)
        self._walk(program.body)

    def _walk(self, block: Block) -> None:
        for value in block.arguments:
            self.made[value] = self.number
            if not self._loops or value is block.arguments[0]:
                self.folded.add(value)
        for op in block.ops:
            number = self.number
            self.number += 1
            self.spans.append(op.span)
            for value in op.operands:
                self._use(value, number)
            if op.name in NAMES and len(op.results) == 1:
                self.alias[op.result] = op.operands
            loop = op.name in ("for", "while")
            if loop:
                self._loops.append((number, {}))
            for region in op.regions:
                self._walk(region)
            if loop:
                self._close()
            plain = op.name in MADE_AGAIN or (op.name.startswith("arith.") and self.folded.issuperset(op.operands))
            for value in op.results:
                self.made[value] = self.number - 1
                if plain or (op.name in NAMES and self.folded.issuperset(op.operands)):
                    self.folded.add(value)

    def _close(self) -> None:
        """A loop ends: what was made before it is held to here."""
        start, used = self._loops.pop()
        for value in used:
            if self.made.get(value, 0) < start:
                self._use(value, self.number - 1)

    def _use(self, value: Value, number: int) -> None:
        open_values = [value]
        while open_values:
            now = open_values.pop()
            self.last[now] = max(self.last.get(now, 0), number)
            for _, used in self._loops:
                used[now] = None
            open_values += self.alias.get(now, ())

    def words(self) -> Iterator[tuple[Value, int]]:
        """The values that have registers of their own, and how many."""
        for value in self.made:
            if value in self.alias or value in self.folded or value.elem == "i1" or value not in self.last:
                continue
            bits = ELEMENT_BITS.get(value.elem, 64 if value.elem in ("ptr", "tensormap") else 32)
            if count := len(self.wanted.get(value, ())):
                yield value, ceil(count * bits / 32)


def held_by_line(program: LaneProgram) -> tuple[Held, ...]:
    """For each line the most that a thread holds there, and what that is; the lines that hold the most first."""
    lives = _Lives(program)
    values = dict(lives.words())
    starts: defaultdict[int, list[Value]] = defaultdict(list)
    ends: defaultdict[int, list[Value]] = defaultdict(list)
    for value in values:
        starts[lives.made[value]].append(value)
        ends[lives.last[value]].append(value)
    names = _names(program, lives)
    held: dict[Value, int] = {}
    total = 0
    most: dict[tuple[str, int], Held] = {}
    for number, span in enumerate(lives.spans):
        for value in ends[number]:
            total -= held.pop(value, 0)
        for value in starts[number]:
            held[value] = values[value]
            total += values[value]
        if span is not None and ((span.file, span.line) not in most or most[span.file, span.line].words < total):
            values_there = _told(held, names)
            most[span.file, span.line] = Held(span, total, values_there, _ranges(lives, held, names, values_there))
    return tuple(sorted((held for held in most.values() if held.words), key=lambda each: -each.words))


def _ranges(
    lives: _Lives, held: Mapping[Value, int], names: Mapping[Value, str], told: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """The lines from which to which values are held, by what they are called."""
    ranges: dict[str, tuple[int, int]] = {}
    for value in held:
        name = _name(value, names)
        lines = [span.line for n in (lives.made[value], lives.last[value]) if (span := _near(lives, n)) is not None]
        if name in told and lines:
            first, last = ranges.get(name, (lines[0], lines[-1]))
            ranges[name] = min(first, *lines), max(last, *lines)
    return {name: ranges[name] for name in told if name in ranges}


def _near(lives: _Lives, number: int) -> Span | None:
    """The place of an operation."""
    return lives.spans[min(max(number, 0), len(lives.spans) - 1)] if lives.spans else None


def _name(value: Value, names: Mapping[Value, str]) -> str:
    """The variable, or what makes a value that has none."""
    return names.get(value, f"({value.op.name if value.op is not None else 'carried'})")


def _names(program: LaneProgram, lives: _Lives) -> dict[Value, str]:
    """The kernel's variables, by the values whose registers they are."""
    names: dict[Value, str] = {}
    for variable in program.variables:
        open_values = [variable.value]
        while open_values:
            value = open_values.pop()
            names.setdefault(value, variable.name)
            open_values += lives.alias.get(value, ())
    return names


def _told(held: Mapping[Value, int], names: Mapping[Value, str]) -> dict[str, int]:
    """What is held, by variable; what has no name, by what makes it."""
    words: defaultdict[str, int] = defaultdict(int)
    for value, count in held.items():
        words[_name(value, names)] += count
    return dict(sorted(words.items(), key=lambda item: (-item[1], item[0]))[:MOST])
