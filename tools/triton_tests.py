"""A pytest plugin that runs the test files of Triton's repository on the CPU, unchanged.

    TRITON=path/to/triton PYTHONPATH=tools python -m pytest -p triton_tests --import-mode=importlib \
        path/to/triton/python/test/unit/language/test_core.py

`import triton` finds Weft; the helpers that those tests import come from the checkout that `TRITON` names; the
fixture `device` is "cpu".  It needs PyTorch, which the tests make their arrays with.  See docs/conformance.md.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

import weft.compat

HELPERS = "triton._internal_testing"


def _load_helpers() -> None:
    """Give the tests their own helpers: Weft has no module of that name, since it is about testing Triton."""
    if "TRITON" not in os.environ:
        raise pytest.UsageError("set TRITON to a checkout of Triton's repository (release/3.6.x)")
    path = Path(os.environ["TRITON"], "python", "triton", "_internal_testing.py")
    spec = importlib.util.spec_from_file_location(HELPERS, path)
    assert spec is not None and spec.loader is not None, path
    sys.modules[HELPERS] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "interpreter: a test that Triton's interpreter runs too")
    weft.compat.install()
    _load_helpers()


@pytest.fixture
def device() -> str:
    return "cpu"


@pytest.fixture
def fresh_triton_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A directory of its own for compiled kernels."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    return str(tmp_path)


@pytest.fixture
def with_allocator() -> None:
    """Scratch memory for descriptors: the CPU needs none."""
