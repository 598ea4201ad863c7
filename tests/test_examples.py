"""Every example gives what NumPy gives in float64 (how fast it is, is not asked here)."""

from __future__ import annotations

import importlib
import sys
from itertools import islice
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in ("common", "run"))


@pytest.fixture(autouse=True)
def examples_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [1, pytest.param(None, marks=pytest.mark.slow)], ids=["the first size", "all sizes"])
def test_example_agrees_with_float64(name: str, sizes: int | None) -> None:
    checked = 0
    for work in islice(importlib.import_module(name).works(), sizes):
        work.run()
        assert work.error() <= work.tolerance, work.size
        checked += 1
    assert checked


def test_the_runner_knows_every_example() -> None:
    assert sorted(importlib.import_module("run").EXAMPLES) == NAMES
    assert "run" in sys.modules
