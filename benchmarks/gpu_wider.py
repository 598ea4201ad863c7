"""Kernels of every day beside Triton on an NVIDIA GPU: same source, same configuration, in turns, in one process.

    python benchmarks/gpu_wider.py [--only WORD]

No kernel was chosen for being fast: it is where to look for what to do next. Prints one line a kernel, and the
geometric mean; what either side cannot compile is said, and what falls short of its goal (goals.py).
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
import triton.language

import weft
import weft.language
from goals import Line, short_of
from gpu_facts import machine
from gpu_model_cases import exact, layers, paged, persistent, serving, training, windowed
from gpu_sides import alternating, check
from gpu_wider_cases import (
    OURS,
    THEIRS,
    Case,
    attention,
    chains,
    elements,
    looked_up,
    odd,
    products,
    quantized,
    rows,
)

GROUPS = (
    attention, products, exact, quantized, layers, paged, chains, rows, elements, training, looked_up, persistent,
    windowed, serving, odd,
)  # fmt: skip

IN_PLACE = ("rotate_in_place",)
"""Kernels whose output is what they read too, so that it is not set to zero before the result is checked."""


def _launches(case: Case) -> list[Callable[[], Any]]:
    """What launches a kernel, of each side."""
    _name, kernel, grid, args, more, *_ = case
    calls = []
    for side, tl in ((OURS, weft.language), (THEIRS, triton.language)):
        given = {k: getattr(tl, v) if k == "ACC" else v for k, v in more.items()}
        launch = next(getattr(file, kernel) for file in side if hasattr(file, kernel))[grid]
        calls.append(lambda launch=launch, given=given: launch(*args, **given))
    return calls


def _line(case: Case) -> Line:
    """The line of a kernel, or what is wrong."""
    name, kernel, *_, out, expected, tolerance = case
    try:
        wanted, calls = expected(), _launches(case)
        start = out.clone() if kernel in IN_PLACE else torch.zeros_like(out)
        for call in calls:
            out.copy_(start)
            call()
            check(out, wanted, tolerance)
        ours, theirs = alternating(*calls)
    except Exception as error:
        torch.cuda.synchronize()  # raises if nothing more can be measured in this process
        return Line(name, error=f"{type(error).__name__}: {' '.join(str(error).split())[:150]}")
    return Line(name, {"Weft": 1 / ours, "Triton": 1 / theirs}, "launches/s")


def _cases(part: str) -> Iterator[Case]:
    """The kernels of a part, and memory for what they ask for as they run."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    yield from PARTS[part]()


PARTS = {group.__name__: group for group in GROUPS}


def parts() -> list[str]:
    """The parts of the table."""
    return list(PARTS)


def prepare(part: str) -> None:
    """Compile the kernels of a part."""
    for case in _cases(part):
        for call in _launches(case):
            with contextlib.suppress(Exception):  # which is told when it is measured
                call()


def measure(part: str) -> Iterator[Line]:
    """The lines of a part."""
    yield from map(_line, _cases(part))


def main() -> int:
    """Print the table; 1 where a line falls short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    options = parser.parse_args()
    facts = machine("torch", "triton")
    print(facts, flush=True)
    ratios, falls_short = [], False
    for case in (case for part in PARTS for case in _cases(part) if options.only in case[0]):
        line = _line(case)
        missed = short_of("wider", line, facts["gpu"])
        falls_short |= bool(missed)
        print(line.shown() + missed, flush=True)
        ratios += [] if line.error else [line.part_of("Triton")]
    if ratios:
        print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}")
    return int(falls_short)


if __name__ == "__main__":
    sys.exit(main())
