"""Races between programs: what one writes and another reads or writes, whichever runs first; and what is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def total(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out, tl.load(out) + tl.sum(tl.load(x + i, i < n, 0.0)))


@weft.jit
def neighbours(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(x + i - 1, (i > 0) & (i < n), 0.0)
    tl.store(x + i, tl.load(x + i, i < n) + before, i < n)


@weft.jit
def overlapping(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(out + i, tl.program_id(0), i < n)


@weft.jit
def last_writes(x, out, n, BLOCK: tl.constexpr):
    first = tl.load(out)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, first, i < n)
    if tl.program_id(0) == tl.num_programs(0) - 1:
        tl.store(out, 7.0)


@weft.jit
def atomic_total(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + i, i < n, 0.0)))


@weft.jit
def in_place(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)
    tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)


@weft.jit
def the_same(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(x + i, 3.0, i < n)
    tl.store(out, n)


SCHEDULES: dict[str, dict[str, Any]] = {
    "together": {},
    "backward": {"order": "backward"},
    "one by one": {"together": 1},
}


def _run(kernel: Any, schedule: str) -> None:
    x, out = np.ones(500, np.float32), np.zeros(500, np.float32)
    with weft.sim.options(between_programs=True, **SCHEDULES[schedule]):
        kernel[(4,)](x, out, 500, BLOCK=128, target="sim:cuda:80")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kernel", [total, neighbours, overlapping, last_writes], ids=lambda k: k.__name__)
def test_races_are_found(kernel: Any, schedule: str) -> None:
    with pytest.raises(weft.sim.RaceError, match="race between programs: (reads|writes) 4 bytes") as caught:
        _run(kernel, schedule)
    assert caught.value.notes and "program" in caught.value.notes[0].message


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kernel", [atomic_total, in_place, the_same], ids=lambda k: k.__name__)
def test_what_is_ordered_or_the_same_is_no_race(kernel: Any, schedule: str) -> None:
    _run(kernel, schedule)


def test_it_is_off_unless_asked_for() -> None:
    x, out = np.ones(500, np.float32), np.zeros(500, np.float32)
    total[(4,)](x, out, 500, BLOCK=128, target="sim:cuda:80")
