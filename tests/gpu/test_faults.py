"""Kernels that go wrong on the GPU, each in a process of its own: what is said, and that the process has to end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from children import environment

SCRIPT = """
import sys

import numpy as np

import weft
import weft.language as tl
from weft.base import DeviceLost


@weft.jit
def stray(x, far, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + far + i, 1.0)


@weft.jit
def odd(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = (x.to(tl.int64) + 1 + 4 * i.to(tl.int64)).to(tl.pointer_type(tl.float32))
    tl.store(at, 1.0)


@weft.jit
def checked(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.device_assert(value > 0, "all are positive")
    tl.store(x + i, value)


@weft.jit
def trapped(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    stopped = tl.inline_asm_elementwise("trap; mov.b32 $0, $1;", "=r,r", [i], tl.int32, is_pure=False, pack=1)
    tl.store(x + i, stopped)


x = weft.cuda.zeros(64)
weft.cuda.synchronize()
try:
    WHAT
    weft.cuda.synchronize()
except DeviceLost as error:
    print(error)
    print("RECENT", error.recent)
    try:
        weft.cuda.zeros(4)
    except Exception as again:
        print("AGAIN", type(again).__name__)
    sys.exit(7)
print("nothing was found")
"""


def _run(tmp_path: Path, what: str) -> str:
    script = tmp_path / "faulty.py"
    script.write_text(SCRIPT.replace("WHAT", what))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, env=environment(), check=False
    )
    assert done.returncode == 7, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "what,kernel,grid,said",
    [
        ("stray[(3,)](x, 1 << 45, BLOCK=64)", "stray", "(3, 1, 1)", "ILLEGAL_ADDRESS"),
        ("odd[(2,)](x, BLOCK=32)", "odd", "(2, 1, 1)", "MISALIGNED_ADDRESS"),
        ("checked[(1,)](x, BLOCK=64, debug=True)", "checked", "(1, 1, 1)", "ASSERT"),
        ("trapped[(4, 2)](x, BLOCK=32)", "trapped", "(4, 2, 1)", "CUDA_ERROR_"),
        ("stray.bind(x, 1 << 45, BLOCK=64, grid=(5,))()", "stray", "(5, 1, 1)", "ILLEGAL_ADDRESS"),
    ],
)
def test_a_fault_names_the_kernel_and_ends_the_process(
    tmp_path: Path, what: str, kernel: str, grid: str, said: str
) -> None:
    output = _run(tmp_path, what)
    lines = output.splitlines()
    assert any(line.startswith("the GPU is lost: ") for line in lines)
    assert any(line.startswith("the driver says: ") and said in line for line in lines), output
    assert f"  {kernel} over {grid}" in lines
    assert "Arrays on the GPU are lost and every further call fails: restart the process." in lines
    assert f"RECENT (('{kernel}', {grid})," in output
    assert "AGAIN DeviceLost" in lines
