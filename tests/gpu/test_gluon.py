"""Gluon kernels that the simulator runs, on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft.gluon.language as gl
from gluon import test_kernels as simulated
from gluon.test_layouts_kept import copy

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


@pytest.mark.parametrize("each", [1, 2, 4, 8])
@pytest.mark.parametrize("relayout", [False, True])
def test_copies_in_a_layout(each: int, relayout: bool) -> None:
    """Its author's, or one that the compiler chooses."""
    n = 9 * 4096 - 16
    x, out = np.random.default_rng(each).standard_normal(n).astype(np.float32), np.zeros(n, np.float32)
    layout = gl.BlockedLayout([each], [32], [4], [0])
    launch(copy, (9,), x, out, n, B=4096, L=layout, relayout=relayout)
    np.testing.assert_array_equal(out, x)
