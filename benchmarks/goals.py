"""The goals for NVIDIA GPUs: what each row of the table is to reach, and whether what was measured does.

    ROWS["attention"].verdicts(lines, "NVIDIA H100 80GB HBM3")

A row is measured by a script of this folder, line by line. A line has a figure for each side, in one unit: speeds, for
which more is better, or times. A goal compares Weft's figure with another side's or with a number. It holds if it
holds for every line that it is about, or for their geometric mean, or for the time that building all of them takes:

    Goal("attention of 64", r"d64 16384", "cuDNN", 0.97, 1.05)            each line: Weft / cuDNN >= 0.97; aim 1.05
    Goal("building", r".", "Triton", 1.1, 0.8, "building", is_time=True)  in all: Weft's seconds / Triton's <= 1.1

Nothing here needs a GPU, PyTorch or Triton. `gpu_goals.py` measures the rows and prints the table.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["Goal", "Line", "NOT_MEASURED", "ROWS", "Row", "Verdict", "markdown", "short_of", "table"]

NOT_MEASURED = "not measured"
"""The error of a line that nobody has measured yet."""


@dataclass(frozen=True)
class Line:
    """What one line of a row reached.

    >>> Line("bf16 d64", {"Weft": 450.0, "cuDNN": 460.0}, "TFLOP/s", {"Weft": "128x64"}).part_of("cuDNN")
    0.9782608695652174
    """

    name: str
    figures: Mapping[str, float] = field(default_factory=dict)
    unit: str = ""
    won: Mapping[str, str] = field(default_factory=dict)
    """The configuration that was the fastest, by side."""
    built: Mapping[str, float] = field(default_factory=dict)
    """The seconds of building, by side."""
    error: str = ""
    """Why there are no figures; a goal that is about such a line is not met."""

    def part_of(self, other: str) -> float:
        """Weft's figure over another side's."""
        return self.figures["Weft"] / self.figures[other]

    def shown(self) -> str:
        """As text: the figures, Weft's over each other side's, and what won."""
        if self.error:
            return f"{self.name}: FAILED: {self.error}"
        figures = "  ".join(f"{side} {number(figure)}" for side, figure in self.figures.items())
        parts = ", ".join(f"{self.part_of(side):.2f} of {side}" for side in self.figures if side != "Weft")
        built = ", ".join(f"{side} {seconds:.2f} s" for side, seconds in self.built.items())
        more = [f"built by {built}"] if built else []
        more += [" / ".join(dict.fromkeys(self.won.values()))] if self.won else []
        return "  ".join((f"{self.name}: {figures} {self.unit}", f"({parts})", *more))

    def as_json(self) -> dict[str, Any]:
        """As plain data, without what is empty."""
        return {key: value for key, value in asdict(self).items() if value}


@dataclass(frozen=True)
class Goal:
    """A bound for the lines whose names contain a pattern."""

    work: str
    lines: str
    of: str
    """The side that Weft is compared with; "" if its figure itself is the bound."""
    wanted: float | None
    """The bound; None if there is only an aim."""
    aim: float | None
    over: Literal["each", "mean", "building"] = "each"
    is_time: bool = False
    """Whether figures are times, so that the bound is the most that is allowed."""
    noise: float = 0.0
    """Of two equal speeds, one is measured as the greater by so much: what a line may fall short by."""
    unit: str = ""

    def about(self, lines: Iterable[Line]) -> list[Line]:
        """The lines that it is about."""
        return [line for line in lines if re.search(self.lines, line.name)]

    def reached(self, line: Line) -> float:
        """What a line reached: a ratio, or a figure."""
        return line.part_of(self.of) if self.of else line.figures["Weft"]

    def holds(self, reached: float, bound: float) -> bool:
        """Whether so much is enough."""
        return reached <= bound + self.noise if self.is_time else reached >= bound - self.noise

    def is_for(self, card: str) -> bool:
        """Whether the goal holds on a card: figures without another side beside them are for the clock of an H100."""
        return bool(self.of) or "H100" in card

    def told(self, bound: float | None) -> str:
        """A bound as text."""
        if bound is None:
            return ""
        text = f"{bound:g} of {self.of}" if self.of else f"{bound:,.0f} {self.unit}"
        return ("at most " if self.is_time else "") + text

    def _building(self, lines: Iterable[Line]) -> float:
        """The time that building takes, over that of the other side."""
        times = [(line.built["Weft"], line.built[self.of]) for line in lines]
        return sum(ours for ours, _ in times) / sum(theirs for _, theirs in times)

    def verdict(self, lines: Sequence[Line], card: str) -> Verdict:
        """Whether the goal is met by what was measured on a card."""
        mine = self.about(lines)
        missing = sum(line.error == NOT_MEASURED for line in mine)
        if failed := [line for line in mine if line.error not in ("", NOT_MEASURED)]:
            return Verdict(self, None, failed[0], len(mine), len(failed), "failed")
        mine = [line for line in mine if not line.error]
        if not mine:
            return Verdict(self, None, None, missing, missing, "not measured")
        reached = [self.reached(line) for line in mine]
        worst = max(reached) if self.is_time else min(reached)
        line: Line | None = mine[reached.index(worst)]
        if self.over != "each":
            reached, line = [statistics.geometric_mean(reached) if self.over == "mean" else self._building(mine)], None
            worst = reached[0]
        if self.wanted is None:
            return Verdict(self, worst, line, len(mine), 0, "no bound")
        if not self.is_for(card):
            return Verdict(self, worst, line, len(mine), 0, "not asked of this card")
        short = [r for r in reached if not self.holds(r, self.wanted)]
        if missing and not short:
            return Verdict(self, worst, line, len(mine) + missing, missing, "not measured")
        return Verdict(self, worst, line, len(mine) + missing, len(short), "SHORT" if short else "yes")


@dataclass(frozen=True)
class Verdict:
    """What came of a goal: the least that was reached (of times the most), where, and how many lines are in the way."""

    goal: Goal
    reached: float | None
    line: Line | None
    lines: int
    short: int
    answer: Literal["yes", "SHORT", "failed", "not measured", "not asked of this card", "no bound"]

    @property
    def is_met(self) -> bool:
        """Whether nothing is left to be desired. (A goal that was not measured is not met.)"""
        return self.answer in ("yes", "not asked of this card", "no bound")

    def cells(self) -> tuple[str, str, str, str, str, str]:
        """The cells of its line in the table: work, wanted, aim, reached, configuration, whether it holds."""
        goal, line = self.goal, self.line
        reached = ""
        if self.reached is not None:
            reached = f"{self.reached:.3f}" if goal.of else f"{self.reached:,.0f} {goal.unit}"
            where = {"mean": f"mean of {self.lines}", "building": f"all {self.lines}"}.get(goal.over)
            reached += f" ({where or line.name})" if where or self.lines > 1 else ""  # type: ignore[union-attr]
        is_aim = goal.aim is not None and self.reached is not None and goal.holds(self.reached, goal.aim)
        holds = self.answer
        if self.short and self.lines > 1 and (self.answer == "not measured" or goal.over == "each"):
            holds += f": {self.short} of {self.lines}"
            holds += f", {line.error[:80]}" if self.answer == "failed" else ""  # type: ignore[union-attr]
        elif self.answer == "failed":
            holds += f": {line.error[:80]}"  # type: ignore[union-attr]
        elif self.answer == "yes" and is_aim:
            holds = "yes, and the aim"
        wanted = {"mean": "mean ", "building": "in all "}.get(goal.over, "") if goal.wanted is not None else ""
        won = line.won.get("Weft", "") if line else ""
        return goal.work, wanted + goal.told(goal.wanted), goal.told(goal.aim), reached, won, holds


@dataclass(frozen=True)
class Row:
    """A row of the table: the script that measures it, and the goals for its lines."""

    script: str
    goals: tuple[Goal, ...]
    parts: str = ""
    """A pattern of the parts of that script that it consists of."""
    is_asked: bool = False
    """Whether it is only measured where it is asked for."""
    times_host: bool = False
    """Whether it measures what processors do, so that nothing may be compiled beside it."""

    def verdicts(self, lines: Sequence[Line], card: str) -> list[Verdict]:
        """What came of each goal on a card."""
        return [goal.verdict(lines, card) for goal in self.goals]

    def short_of(self, line: Line, card: str) -> list[str]:
        """The goals for single lines that a line falls short of, as text."""
        found = []
        for goal in () if line.error else self.goals:
            if goal.over == "each" and goal.about([line]) and not goal.verdict([line], card).is_met:
                found.append(goal.told(goal.wanted))
        return found


def number(figure: float) -> str:
    """Three digits and more."""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def short_of(row: str, line: Line, card: str) -> str:
    """What to print behind a line: the goals that it falls short of, or nothing."""
    missed = ROWS[row].short_of(line, card)
    return f"  short of {' and '.join(missed)}" if missed else ""


def table(verdicts: Iterable[tuple[str, Verdict]]) -> str:
    """The table, of (row, verdict)."""
    head = ("row", "work", "wanted", "aim", "reached", "configuration", "holds?")
    cells = [head, *((name, *verdict.cells()) for name, verdict in verdicts)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells)


def markdown(by_card: Mapping[str, Sequence[tuple[str, Verdict]]]) -> str:
    """The table of several cards as Markdown, of (row, verdict) by the card: a column for each card."""
    lines = ["| " + " | ".join(("row", "work", "wanted", "aim", *by_card)) + " |", "|---" * (4 + len(by_card)) + "|"]
    for of_a_goal in zip(*by_card.values(), strict=True):
        row, verdict = of_a_goal[0]
        cells = [row, *verdict.cells()[:3]]
        for *_, reached, _won, holds in (verdict.cells() for _, verdict in of_a_goal):
            is_plain = holds in ("yes", "yes, and the aim", "no bound")
            cells.append(reached if is_plain else f"{reached} **{holds}**".strip())
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _rate(work: str, lines: str, wanted: float | None, aim: float | None) -> Goal:
    return Goal(work, lines, "", wanted, aim, unit="TFLOP/s")


ROWS = {
    "attention": Row(
        "gpu_attention",
        (
            Goal("attention bf16 d128, 16 Ki", r"d128 16384$", "cuDNN", 0.92, 1.0),
            _rate("the same, TFLOP/s", r"d128 16384$", None, 648),
            Goal("attention bf16 d128, 16 Ki causal", r"d128 16384 causal", "cuDNN", 0.90, 1.0),
            Goal("attention bf16 d128, 1 Ki to 8 Ki", r"d128 (1024|2048|4096|8192)\b", "cuDNN", 0.90, 1.0),
            Goal("attention bf16 d64, 16 Ki", r"d64 16384", "cuDNN", 0.97, 1.05),
        ),
    ),
    "backward": Row(
        "gpu_attention_backward",
        (
            Goal("attention backward bf16, 16 Ki", r"^bf16", "Triton", 1.15, None),
            _rate("the same, d128, TFLOP/s", r"d128", 420, 560),
            _rate("the same, d64, TFLOP/s", r"d64", 420, 480),
        ),
    ),
    "fp8": Row(
        "gpu_fp8",
        (
            Goal("fp8 products, scales of 1x128", r"^products", "Triton", 1.25, None),
            _rate("the same, TFLOP/s", r"^products", None, 1300),
            _rate("attention fp8 d128, 16 Ki", r"^attention", 750, 1000),
            Goal("fp8 products of several sizes at once", r"^grouped", "Triton", 1.0, None),
        ),
    ),
    "products": Row(
        "gpu_tiles",
        (
            Goal("matmul bf16 8192x8192x512", r"^8192x8192x512$", "cuBLAS", 0.95, 1.0),
            Goal("the same, K 1 Ki to 16 Ki", r"^8192(x8192x(1024|2048|4096|16384))?$", "cuBLAS", 1.0, 1.03),
            Goal("matmul bf16 1024, 2048, 4096, odd shapes", r"^(?!8192)", "cuBLAS", 0.95, None),
            Goal("the same", r"^(?!8192)", "cuBLAS", 0.98, 1.02, "mean"),
        ),
    ),
    "rows": Row(
        "gpu_rows",
        (
            Goal("softmax, norms, cross entropy", r".", "copy", 0.88, 0.95),
            Goal("the same", r".", "Triton", 1.0, None, noise=0.02),
        ),
    ),
    "gpu": Row("gpu", (Goal("every row of gpu.py", r".", "Triton", 0.98, 1.0),), r"^(?!(launch|compile)$)"),
    "wider": Row(
        "gpu_wider",
        (
            Goal("every row of gpu_wider.py", r".", "Triton", 0.98, 1.0),
            Goal("the same", r".", "Triton", 1.13, 1.2, "mean"),
        ),
    ),
    "cold": Row(
        "gpu",
        (
            Goal("every cold compilation", r".", "Triton", 0.98, 1.0),
            Goal("the same", r".", "Triton", 1.0, 1.67, "mean"),
        ),
        r"^compile$",
        times_host=True,
    ),
    "launch": Row(
        "gpu",
        (
            Goal("launch of 6 arguments", r"^launch, 6 arguments$", "cuLaunchKernel", 1.6, 1.3, is_time=True),
            Goal("launch of 19 arguments", r"^launch, 19 arguments$", "cuLaunchKernel", 2.5, None, is_time=True),
            Goal("frozen launch", r"^launch, frozen$", "cuLaunchKernel", 1.2, None, is_time=True),
            Goal("every launch", r".", "Triton", 1.02, 1.0, is_time=True),
        ),
        r"^launch$",
        times_host=True,
    ),
    "inductor": Row(
        "gpu_inductor",
        (
            Goal("torch.compile, 40 graphs", r".", "Triton", 0.95, None),
            Goal("the same", r".", "Triton", 1.05, 1.15, "mean"),
            Goal("the same, building", r".", "Triton", 1.1, 0.8, "building", is_time=True),
        ),
        times_host=True,
    ),
    "odd": Row(
        "gpu_odd",
        (
            Goal("rows of any length, transpositions", r".", "Triton", 0.98, None),
            Goal("the same, to 32 Ki columns", r"^(?!trans).* (?!50257|65535|100003)\d+$", "copy", 0.85, None),
            Goal("the same, beyond, to 64 Ki columns", r"^(?!trans).* (50257|65535)$", "copy", 0.6, None),
        ),
        is_asked=True,
    ),
}  # fmt: skip
"""By the name that `gpu_goals.py --rows` takes, in the order in which they are measured."""
