"""Instructions that warps execute, by line, as the machine code has them: what a profiler counts.

The counters of the lane program have its own operations, which LLVM and the assembler make more or fewer of.
"""

from __future__ import annotations

from dataclasses import replace

from .findings import Facts
from .record import Explanation, Line

__all__ = ["MACHINE_INSTRUCTIONS", "with_machine_code"]

MACHINE_INSTRUCTIONS = "machine_instructions"
"""The name of their counter in a line; `Counts` has the sum apart from what is counted, as it is predicted."""


def with_machine_code(e: Explanation, facts: Facts) -> Explanation:
    """The explanation with these counters, where there is machine code whose loops are known."""
    if facts.assembled is None or facts.program is None:
        return e
    warps = e.counts.programs * facts.program.blocks * facts.program.warps
    executed = {place: times * warps for place, times in facts.assembled.instructions.items()}
    total = round(sum(executed.values()))
    lines = []
    for line in e.lines:
        there = round(executed.pop((line.span.file, line.span.line), 0.0)) if line.span is not None else 0
        lines.append(_with(line, there) if there else line)
    rest = total - sum(line.counts.get(MACHINE_INSTRUCTIONS, 0) for line in lines)
    if rest > 0:  # of places on which nothing else is counted, as the beginning of the kernel
        of_no_line = next((line for line in lines if line.span is None), None)
        lines = [line for line in lines if line is not of_no_line]
        lines.append(_with(of_no_line or Line(None, "", {}), rest))
    return replace(e, counts=replace(e.counts, machine_instructions=total), lines=tuple(lines))


def _with(line: Line, number: int) -> Line:
    return replace(line, counts={MACHINE_INSTRUCTIONS: number, **line.counts})
