"""Gluon kernels that the simulator runs, on the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gluon import test_kernels as simulated
from weft.runtime.gluon import TensorDescriptor

from .arrays import View

NOT_HERE: dict[str, str] = {}


def _launch(name: str, grid: Any, *args: Any, target: str | None = None, **more: Any) -> None:
    source = simulated.KERNELS[name]
    views: list[View] = []

    def moved(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            views.append(View(value))
            return views[-1]
        if isinstance(value, TensorDescriptor):
            base = moved(value.base)
            return TensorDescriptor(base, value.shape, value.strides, value.block_shape, value.layout, value.padding)
        return value

    source.kernel[grid](*map(moved, args), **{**source.constexprs, **source.options, **more})
    for view in views:
        view.back()


@pytest.mark.parametrize("name", simulated.RUNS)
def test_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in NOT_HERE:
        pytest.skip(NOT_HERE[name])
    monkeypatch.setattr(simulated, "launch", _launch)
    simulated.RUNS[name]()
