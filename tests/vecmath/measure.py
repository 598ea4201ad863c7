"""Measures the error and the speed of every function and writes the table of docs/reference/math.md.

PYTHONPATH=src:tests python tests/vecmath/measure.py            # all; some minutes
PYTHONPATH=src:tests python tests/vecmath/measure.py exp erf    # print these only
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from vecmath.cases import CASES, Case, samples
from vecmath.jit import HOST_CPU, compiled
from vecmath.test_accuracy import needs_mpmath, worst

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "math.md"
BEGIN, END = "<!-- measured -->", "<!-- end -->"


def row(case: Case) -> str:
    cells = [f"`{case.name}`"]
    for elem in ("float", "double"):
        function = compiled(case.name, elem)
        count = 400 if needs_mpmath(case, elem) else 300000
        error, _ = worst(case, elem, samples(case, elem, count, seed=99), function)
        taken = function.nanoseconds(*timing_points(case, elem))
        cells += [f"{case.stated[elem == 'double']:g}", f"{error:.2f}", f"{taken:.2f}"]
    return "| " + " | ".join([*cells, case.absolute]) + " |"


def timing_points(case: Case, elem: str) -> list[np.ndarray]:
    """The first of the case's ranges: the usual arguments; 2048 floats, 1024 doubles."""
    narrow = Case(case.name, case.stated, tuple((ranges[0],) for ranges in case.ranges), ints=case.ints)
    return samples(narrow, elem, 2048 if elem == "float" else 1024)


def main(wanted: list[str]) -> None:
    lines = [
        "| function | float: stated | measured | ns | double: stated | measured | ns | remarks |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in CASES:
        if not wanted or case.name in wanted:
            lines.append(row(case))
            print(lines[-1], flush=True)
    if wanted:
        return
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    note = f"Measured on {HOST_CPU}, LLVM's name for the processor, one core, arrays in the first-level cache."
    PAGE.write_text(before + BEGIN + "\n" + note + "\n\n" + "\n".join(lines) + "\n" + END + after)


if __name__ == "__main__":
    main(sys.argv[1:])
