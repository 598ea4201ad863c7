"""Conversions through the real lowering, on the GPU."""

from __future__ import annotations

import pytest

from lower import test_convert as simulated
from lower.test_convert import test_conversion
from weft.sim import Report

from .run import run_on_gpu

__all__ = ["test_conversion"]


def _run(program: object, *args: object) -> Report:
    """On the GPU, if it can run what a program is for."""
    if int(program.target.rpartition(":")[2]) < 80:  # type: ignore[attr-defined]
        pytest.skip("there is no code for GPUs before compute capability 8.0")
    return run_on_gpu(program, *args)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs go to the GPU."""
    monkeypatch.setattr(simulated, "run", _run)
