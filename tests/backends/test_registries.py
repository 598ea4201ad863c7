"""Tables that modules add to: nothing is registered twice, under `python -O` either."""

from __future__ import annotations

import subprocess
import sys

import pytest

from weft.backends.cpu.schedule import anchor
from weft.backends.llvm.vecmath import registry


def test_an_anchor_is_registered_once() -> None:
    with pytest.raises(ValueError, match=r"^tt.store is registered twice$"):
        anchor("tt.store")(lambda scheduler, op: None)


def test_a_function_is_described_once() -> None:
    with pytest.raises(ValueError, match=r"^exp is described twice for float$"):
        registry.define("exp", "float")(lambda x: x)
    with pytest.raises(ValueError, match=r"^exp is described twice for float$"):
        registry.alias("exp", "log", "float")


def test_optimised_python_notices_too() -> None:
    script = "import weft.backends.cpu\n" + (
        "from weft.backends.llvm.vecmath import registry\nregistry.define('exp', 'float')(None)"
    )
    done = subprocess.run([sys.executable, "-O", "-c", script], capture_output=True, text=True, timeout=120)
    assert "ValueError: exp is described twice for float" in done.stderr
