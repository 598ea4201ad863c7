"""A rule: reads an explanation, and says what it finds. Every rule is registered under the code of its findings.

    @rule("spills")
    def spills(facts: Facts) -> Iterator[Finding]: ...

    @rule("few-programs", on=CPU)
    def few_programs(facts: Facts) -> Iterator[Finding]: ...

A rule is silent unless it is sure: what it says has to be so for the launch that is explained, and the fix has to be
in the author's hands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeAlias

from weft.base import Span
from weft.base.remarks import LayoutKept
from weft.ir.lane import LaneOp, LaneProgram, Value
from weft.targets.table import instruction

from ..costs import Costs
from ..cycles import Walk
from ..record import Explanation, Finding

__all__ = ["CPU", "EVERYWHERE", "RULES", "Facts", "findings_of", "rule"]

GPU, CPU = frozenset({"GPU"}), frozenset({"CPU"})
EVERYWHERE = GPU | CPU
"""The kinds of machines for which a rule can say something."""


class Assembled(Protocol):
    """What is known of machine code."""

    @property
    def instructions(self) -> Mapping[tuple[str, int], float]:
        """How many a warp executes, by file and line."""

    def __call__(self, walk: Walk, costs: Costs, latencies: Mapping[tuple[str, int], float], passes: float) -> Walk:
        """What it makes of a walk, with latencies of memory by file and line, and cycles of the L1 cache of a warp."""


@dataclass(frozen=True)
class Facts:
    """What a rule may read."""

    explanation: Explanation
    program: LaneProgram | None
    """For a CPU that of the same kernel for another machine, or None; only what goes to and from memory is the same."""
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    """Numbers among the arguments, by name."""
    places: Mapping[Span | None, Counter[str]] = field(default_factory=dict)
    """Counters over the whole grid, by place."""
    wrapped: tuple[tuple[Span | None, str], ...] = ()
    """Offsets that are known to wrap: where, and what is said of them."""
    supposed: Mapping[Span | None, Counter[str]] = field(default_factory=dict)
    """Counters as if integers that are read from memory were random; empty where nothing depends on them."""
    unknown: frozenset[tuple[Span | None, str]] = frozenset()
    """Accesses whose bytes in `places` were supposed: their place, and load or store."""
    is_gluon: bool = False
    """Whether the author wrote layouts, and can write others."""
    device: str = ""
    """The device whose time is predicted, of those that run the program; "" for the usual one."""
    threads: int = 0
    """Of a CPU, as many as run programs; 0 where that is not known."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of arrays, for a CPU."""
    touched: Mapping[tuple[Span | None, str, str], float] = field(default_factory=dict)
    """Bytes of a launch on a CPU by place, array, and "load" or "store"."""
    overlapping: tuple[tuple[str, str], ...] = ()
    """Arrays of the launch that overlap although the kernel for a CPU was compiled for arrays that do not."""
    assembled: Assembled | None = None
    """What machine code makes of a walk through the program; None where there is none."""

    @cached_property
    def ops(self) -> list[LaneOp]:
        """All operations of the program."""
        return list(self.program.body.walk()) if self.program is not None else []

    @cached_property
    def loops(self) -> list[LaneOp]:
        """Its loops."""
        return [op for op in self.ops if op.name in ("for", "while")]

    @cached_property
    def kept(self) -> frozenset[str]:
        """The tiles whose author's layout is kept, although the compiler knows a better one."""
        return frozenset(r.tile for r in self.explanation.remarks.of(LayoutKept))

    @cached_property
    def multiplies(self) -> bool:
        """Whether it has instructions of matrix units."""
        return any(op.name == "instruction" and "multiplies" in instruction(op.attrs["isa"]).params for op in self.ops)

    def made_from(self, value: Value, by_memory: bool = True) -> set[Value]:
        """All values that a value is made from, itself included. With `by_memory` a number that is loaded is made from
        its address."""
        seen: set[Value] = set()
        open_values = [value]
        while open_values:
            now = open_values.pop()
            if now in seen:
                continue
            seen.add(now)
            maker = self._makers.get(now)
            if maker is not None and (by_memory or maker.name != "load"):
                open_values += _carried(maker, now) if maker.name == "for" else _taken(maker)
        return seen

    @cached_property
    def _makers(self) -> dict[Value, LaneOp]:
        """The operation that gives each value; of what a region takes, the operation that it belongs to."""
        makers = {result: op for op in self.ops for result in op.results}
        makers.update({a: op for op in self.ops for region in op.regions for a in region.arguments})
        return makers


def _taken(op: LaneOp) -> list[Value]:
    """What an operation takes, and what its regions end with; of a load its address, and what is there without one."""
    if op.name == "load":
        return [op.operands[0], *op.operands[2:]]
    return [*op.operands, *(v for region in op.regions for last in region.ops[-1:] for v in last.operands)]


def _carried(loop: LaneOp, value: Value) -> list[Value]:
    """What a loop makes its counter, a value that it carries, or one of its results from. The upper bound of a counter
    says how far it counts, and not where it begins."""
    (body,), bounds = loop.regions, loop.operands[:BOUNDS]
    if value is body.arguments[0]:
        return [bounds[0], bounds[2]]
    is_result = value in loop.results
    at = loop.results.index(value) if is_result else body.arguments.index(value) - 1
    return [loop.operands[BOUNDS + at], body.ops[-1].operands[at], *(bounds if is_result else ())]


BOUNDS = 3
"""Operands of a loop that bound it; the others are what it begins to carry."""


Rule: TypeAlias = Callable[[Facts], Iterator[Finding]]
RULES: dict[str, Rule] = {}
"""By the code of what they find."""
_ON: dict[str, frozenset[str]] = {}
"""For which kinds of machines each of them is."""


def rule(code: str, on: frozenset[str] = GPU) -> Callable[[Rule], Rule]:
    """Register a rule, for the kinds of machines of which it knows something."""

    def register(function: Rule) -> Rule:
        assert code not in RULES, f"there is a rule {code!r} already"
        RULES[code], _ON[code] = function, on
        return function

    return register


def findings_of(facts: Facts) -> tuple[Finding, ...]:
    """What all rules find, in the order of the source; once for each place and code."""
    found: dict[tuple[str, Span | None], Finding] = {}
    machine = "CPU" if facts.explanation.target == "cpu" else "GPU"
    for code, each in RULES.items():
        for finding in each(facts) if machine in _ON[code] else ():
            page = f"docs/reference/findings/{finding.code}.md"
            found.setdefault((finding.code, finding.span), replace(finding, page=page))
    return tuple(sorted(found.values(), key=_place))


def _place(finding: Finding) -> tuple[str, int, int, str]:
    span = finding.span
    return (span.file, span.line, span.col, finding.code) if span is not None else ("", 0, 0, finding.code)
