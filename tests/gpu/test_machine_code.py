"""The three that make machine code, each by itself, and what they say of it; processes that are forked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from children import environment
from weft.backends.nvidia import ptxas
from weft.runtime import knobs


def kernel() -> Any:
    """A new one, which nothing was compiled for."""

    @weft.jit
    def sums(x, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        i = tl.arange(0, BLOCK)
        row = tl.program_id(0)
        value = tl.load(x + row * n + i, mask=i < n, other=float("-inf"))
        tl.store(out + row, tl.sum(tl.exp(value), axis=0))

    return sums


@pytest.fixture
def uncached() -> Any:
    knobs.compilation.always_compile = True
    yield
    knobs.compilation.always_compile = knobs.env


@pytest.mark.parametrize("by", ["ptxas", "nvjitlink", "driver"])
def test_each_makes_code_that_runs(by: str, uncached: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "ptxas" and ptxas.find_tool() is None:
        pytest.skip("there is no ptxas")
    if by != "ptxas":
        monkeypatch.setattr(ptxas, "find_tool", lambda name="ptxas": None)
    if by == "driver":
        monkeypatch.setattr(ptxas, "_with_nvjitlink", lambda *arguments: None)
    host = np.random.default_rng(0).standard_normal((64, 1000)).astype(np.float32)
    x, out = weft.cuda.to_device(host), weft.cuda.zeros(64)
    made = kernel()[(64,)](x, out, 1000, BLOCK=1024)
    np.testing.assert_allclose(out.numpy(), np.exp(host).sum(axis=1), rtol=1e-5)
    if by == "nvjitlink" and made.assemble().by == "driver":
        pytest.skip("there is no nvJitLink")
    assert made.assemble().by == by
    assert 8 <= made.n_regs <= 255 and made.n_spills == 0
    assert made.load().registers == made.n_regs


def test_a_frozen_launch_of_nothing() -> None:
    x = weft.cuda.zeros((4, 4))
    kernel().bind(x, x, 4, BLOCK=16, grid=(0,))()
    weft.cuda.synchronize()


FORKED = """
import os, sys

import numpy as np

import weft
import weft.language as tl


@weft.jit
def fill(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


x = weft.cuda.zeros(64)
fill[(1,)](x, BLOCK=64)
child = os.fork()
if child == 0:
    said = 0
    for use in (lambda: fill[(1,)](x, BLOCK=64), lambda: weft.cuda.zeros(4), lambda: weft.cuda.synchronize()):
        try:
            use()
        except weft.LaunchError as error:
            said += str(error).startswith("CUDA does not work in this process, which was forked")
    os._exit(said)
_, status = os.waitpid(child, 0)
fill[(1,)](x, BLOCK=64)
assert (x.numpy() == 1).all()
print("SAID", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_is_told(tmp_path: Path) -> None:
    """Every use in the child says so, and the parent goes on."""
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    env = environment()
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=env, check=False
    )
    assert "SAID 3" in done.stdout, done.stdout + done.stderr
