"""Tests of the simulator, run on the GPU: what they call to simulate a program is another function meanwhile."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from .run import run_on_gpu

__all__ = ["on_the_gpu_instead"]


def on_the_gpu_instead(module: str, name: str = "run", replacement: Any = run_on_gpu) -> Any:
    """A fixture for a whole file: `module`'s function of this name runs programs on the GPU."""

    @pytest.fixture(autouse=True)
    def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.import_module(module), name, replacement)

    return on_gpu
