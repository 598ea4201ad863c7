"""Slopes of values in loops: what is left out by them counts what following it does, whatever the loop computes.

Each loop is counted with all of its iterations and with those that the counter chooses, and both say the same. How few
it follows says whether anything was proven.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.ir.lane import LaneProgram
from weft.sim import control, count

INTS = weft.MockTensor("i32")
FOR_ESTIMATES = ("_distinct", "_lines", "_boxes")
FEW = 2 * (2 + 1 + 2 + 2)
"""Iterations of two programs, counted together: to suppose, to prove, before the mask falls and behind that."""


@weft.jit
def loop(x, out, n, m, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Loads whose place and mask depend on the iteration in some way."""
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    place, ring = 0, 0
    pid = tl.program_id(0)
    for k in range(n):
        at, holds = k * 64 + i, i >= 0
        if KIND == "mask that falls":
            holds = k * 64 + i < m
        elif KIND == "mask that rises":
            holds = m - k * 64 <= i
        elif KIND == "mask of one iteration":
            holds = k + i * 0 == m // 64
        elif KIND == "mask of all but one":
            holds = k + i * 0 != m // 64
        elif KIND == "unsigned":
            holds = (k * 64 + i).to(tl.uint32) < m
        elif KIND == "into 64 bits":
            at = (k * 64).to(tl.int64) * 64 + i
            holds = at < m
        elif KIND == "minimum":
            at = tl.minimum(k * 64, m) + i
        elif KIND == "maximum":
            at = tl.maximum(k * 64, m) + i
        elif KIND == "quotient":
            at = (k * 64 + pid * 640) // 32 * m + i
        elif KIND == "shifted":
            at = (k * 128 >> 4) * 8 + i
        elif KIND == "lowest bits":
            at = ((k * 64 + m) & 31) + i
        elif KIND == "backwards":
            at = (m - k) * 64 + i
        elif KIND == "carried":
            at = place + i
            place += m
        elif KIND == "of a ring":
            at = ring * 256 + k * 32 + i
            ring = tl.where(ring == 2, 0, ring + 1)
        elif KIND == "a branch":
            if k * 64 < m:
                at += 1
        elif KIND == "odd rows":
            at = k * 1001 + i
        elif KIND == "remainder":
            at = k * 64 % 1000 + i
        elif KIND == "square":
            at = k * k + i
        elif KIND == "exclusive or":
            at = ((k * 8) ^ m) + i
        elif KIND == "a loop inside":
            for j in range(k % 3):
                total += tl.load(x + j * 64 + i)
        elif KIND == "of memory":
            at = tl.load(x + k) + i
        total += tl.load(x + at, mask=holds, other=0)
    tl.store(out + i, total)


PROVEN = (
    "mask that falls", "mask that rises", "mask of one iteration", "mask of all but one", "unsigned", "into 64 bits",
    "minimum", "maximum", "quotient", "shifted", "lowest bits", "backwards", "carried", "of a ring", "a branch",
)  # fmt: skip
OTHERS = ("odd rows", "remainder", "square", "exclusive or", "a loop inside", "of memory")


@weft.jit
def nested(x, out, n, m, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Loops in a loop, whose accesses depend on both."""
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    place = 0
    ring = 0
    for k in range(tl.program_id(0), n, 2):
        row, column = k // 8, k % 8
        first = (k % 3) if KIND == "it begins elsewhere" else k if KIND == "it moves along" else 0
        length = (k % 3) if KIND == "as often as the place" else 20
        for j in range(first, first + length):
            at, holds = row * 4096 + column * 512 + j * 32 + i, i >= 0
            if KIND == "a mask of both":
                holds = k * 32 + j * 8 + i < m
            elif KIND == "a mask by the row":
                holds = row * 8 + j < m
            elif KIND == "a mask by the column":
                holds = column * 64 + j + i < 8 * 64 - m % 64
            elif KIND == "where both are equal":
                holds = j + i * 0 == k
            elif KIND == "what both carry":
                at = place + i
                place += 8
            elif KIND == "a quotient of both":
                at = (k * 24 + j * 8) // 40 * 8 + i
            elif KIND == "a ring":
                at = ring * 2048 + k * 32 + j * 8 + i
                ring = tl.where(ring == 2, 0, ring + 1)
            elif KIND == "a branch of both":
                if k + j < m % 32:
                    at += 1
            total += tl.load(x + at, mask=holds, other=0)
        tl.store(out + k * 128 + i, total)


INSIDE = (
    "tiles", "it begins elsewhere", "it moves along", "as often as the place", "a mask of both", "a mask by the row",
    "a mask by the column", "where both are equal", "what both carry", "a quotient of both", "a ring",
    "a branch of both",
)  # fmt: skip


def _program(kind: str, kernel: Any = loop) -> LaneProgram:
    program: LaneProgram = kernel.warmup(
        INTS, INTS, 100, 100, KIND=kind, BLOCK=128, grid=(2,), target="sim:cuda:80", num_warps=1
    ).program
    return program


def _counts(program: LaneProgram, n: int, m: int, **given: Any) -> tuple[dict[Any, Counter[str]], bool]:
    data = {"x": np.arange(4 * 200, dtype=np.int32).view(np.uint8)}
    report = count(program, 2, {"n": n, "m": m}, data=data, **given)
    lines = {
        place: Counter({name: c for name, c in line.items() if c and not name.endswith(FOR_ESTIMATES)})
        for place, line in report.lines.items()
    }
    return lines, report.exact


@pytest.mark.parametrize("kind", PROVEN + OTHERS)
def test_nothing_is_counted_otherwise(kind: str) -> None:
    program = _program(kind)
    for n, m in ((23, 1001), (14, 64 * 12)):
        assert _counts(program, n, m, steady=True) == _counts(program, n, m), f"n={n}, m={m}"


@pytest.mark.parametrize("kind", ("a mask of both", "a ring"))
def test_nothing_is_counted_otherwise_in_loops_in_loops(kind: str) -> None:
    program = _program(kind, nested)
    assert _counts(program, 34, 300, steady=True) == _counts(program, 34, 300)


@pytest.mark.slow
@pytest.mark.parametrize("kind", INSIDE)
def test_nothing_is_counted_otherwise_in_any_loops_in_loops(kind: str) -> None:
    program = _program(kind, nested)
    for n, m in ((41, 1001), (34, 300), (50, 77)):
        assert _counts(program, n, m, steady=True) == _counts(program, n, m), f"n={n}, m={m}"


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many iterations are followed, by the operation."""
    counted, step = Counter[str](), control._step

    def stepped(context: Any, op: Any) -> None:
        counted[op.name] += 1
        step(context, op)

    monkeypatch.setattr(control, "_step", stepped)
    return counted


@pytest.mark.parametrize("kind", PROVEN)
def test_few_iterations_are_followed(kind: str, turns: Counter[str]) -> None:
    _counts(_program(kind), 100_000, 3200, steady=True)
    assert turns["for"] <= FEW


def test_few_tiles_are_followed(turns: Counter[str]) -> None:
    """Eight columns are gone through four at a time: one tile of each row is followed, and a few of the first."""
    _counts(_program("tiles", nested), 64, 0, steady=True)
    assert turns["for"] <= 150  # of 672
