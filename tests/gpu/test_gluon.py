"""Gluon kernels that the simulator runs, on the GPU."""

from __future__ import annotations

from typing import Any

import pytest

from gluon import test_kernels as simulated

from .arrays import launch

NOT_HERE: dict[str, str] = {}


def _launch(name: str, grid: Any, *args: Any, target: str | None = None, **more: Any) -> None:
    source = simulated.KERNELS[name]
    launch(source.kernel, grid, *args, **{**source.constexprs, **source.options, **more})


@pytest.mark.parametrize("name", simulated.RUNS)
def test_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in NOT_HERE:
        pytest.skip(NOT_HERE[name])
    monkeypatch.setattr(simulated, "launch", _launch)
    simulated.RUNS[name]()
