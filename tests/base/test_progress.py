"""Progress: a line on a terminal that is gone at the end, one at a time, and nothing anywhere else."""

from __future__ import annotations

import io
import itertools
import sys

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import progress
from weft.layouts import tables

module = sys.modules["weft.base.progress"]
PLANNED = tables._planned


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def drawn(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, delay: float = 0.0) -> str:
    """What three steps of work show, with work inside of them."""
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(module, "DELAY", delay)
    monkeypatch.setattr(module, "EVERY", 0.0)
    with progress("tuning matmul", 3) as step:
        for at in range(3):
            step(at)
            with progress("simulating", 10) as inner:
                inner(5)
    return stderr.getvalue()


def test_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_bar", lambda number: None)
    shown = drawn(monkeypatch, Terminal())
    assert shown.split("\r\033[K") == [
        *("", "tuning matmul: 0 of 3, 0 s", "tuning matmul: 1 of 3, 0 s left", "tuning matmul: 2 of 3, 0 s left", "")
    ]


def test_nothing_for_what_is_short_or_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, io.StringIO()) == ""
    assert drawn(monkeypatch, Terminal(), delay=5) == ""
    monkeypatch.setattr(sys, "stderr", None)
    with progress("a program without stderr") as step:
        step(1)


def test_a_bar_of_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    shown = drawn(monkeypatch, Terminal())
    assert "tuning matmul: 2 of 3" in shown and "simulating" not in shown


def test_an_error_takes_the_line_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_bar", lambda number: None)
    monkeypatch.setattr(module, "DELAY", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyError), progress("fuzzing") as step:
        step(3)
        raise KeyError
    assert sys.stderr.getvalue().endswith("fuzzing: 3, 0 s\r\033[K")
    assert not module._shown


def test_a_simulation_is_seen_within_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    @weft.jit
    def doubled(x):
        i = tl.program_id(0) * 32 + tl.arange(0, 32)
        tl.store(x + i, tl.load(x + i) * 2)

    monkeypatch.setattr(module, "_bar", lambda number: None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "DELAY", 0.0)
    monkeypatch.setattr(module, "EVERY", 0.0)
    doubled[(4,)](np.ones(128, np.float32), target="sim:cuda:80")
    assert sys.stderr.getvalue().count("simulating doubled, programs: 0 of 4") > 3


def test_planning_times_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_bar", lambda number: None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "DELAY", 0.0)
    monkeypatch.setattr(tables, "_planned", lambda: dict(itertools.islice(PLANNED().items(), 2)))
    tables.planning_times(runs=1)
    assert "planning conversions, rounds: 0 of 4" in sys.stderr.getvalue()
