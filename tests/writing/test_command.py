"""`weft to-gluon`: a script is run without launches, and its kernels are written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from children import environment

SCRIPT = """
import numpy as np
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


x = np.ones(4096, np.float32)
out = np.zeros_like(x)
add[(4,)](x, x, out, x.size, BLOCK=1024)
add[(4,)](x, x, out, x.size, BLOCK=1024)
print("it ran")
assert (out == 2).all()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def _run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "weft", "to-gluon", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)


def test_a_script(script: Path) -> None:
    done = _run(script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("@gluon.jit") == 1
    assert "from triton.experimental.gluon import language as gl" in done.stdout
    assert "it ran" in done.stderr and "AssertionError" in done.stderr


def test_a_file(script: Path, tmp_path: Path) -> None:
    path = tmp_path / "add_80.py"
    done = _run("-k", "add", "--target", "cuda:80", "-o", path, script)
    assert done.returncode == 0, done.stderr
    assert "as Weft compiles it for cuda:80" in path.read_text()


def test_no_such_kernel(script: Path) -> None:
    done = _run("-k", "softmax", script)
    assert done.returncode == 1
    assert "no kernel of that name was launched" in done.stderr
