"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from children import environment

TESTS = """
import numpy as np
import pytest
import weft
import weft.language as tl


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@weft.jit
def too_far(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


def test_add(weft_target):
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    add[(2,)](x, x, out, 100, BLOCK=64)
    assert (out == 2 * x).all()
    if weft_target != "cpu":
        assert weft.sim.last_run()["global_store_bytes"] == 400
        print("OPTIONS", weft.sim.last_run().options)


@pytest.mark.weft_targets("sim:cuda:90")
def test_for_one_target(weft_target):
    assert weft_target == "sim:cuda:90"


def test_too_far(weft_target):
    if weft_target == "cpu":
        pytest.skip("it would write where it must not")
    too_far[(1,)](np.zeros(30, np.float32), BLOCK=32)
"""


@pytest.fixture
def run(tmp_path: Path) -> object:
    (tmp_path / "test_kernels.py").write_text(TESTS, encoding="utf-8")

    def run(*arguments: str) -> str:
        installed = "weft.pytest_plugin" in str(_plugins())
        command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *arguments]
        if not installed:
            command += ["-p", "weft.pytest_plugin"]
        env = environment(WEFT_CACHE_DIR=tmp_path / "cache")
        found = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        return found.stdout + found.stderr

    return run


def _plugins() -> list[str]:
    from importlib.metadata import entry_points

    return [e.value for e in entry_points(group="pytest11")]


def test_targets_of_the_command_line(run) -> None:  # type: ignore[no-untyped-def]
    text = run("--weft-target=cpu, sim:cuda:80, sim:cuda:90", "--weft-sim=order=random, seed=7")
    for name in ("test_add[cpu]", "test_add[sim:cuda:80]", "test_for_one_target[sim:cuda:90]"):
        assert f"PASSED test_kernels.py::{name}" in text
    assert "test_for_one_target[cpu]" not in text
    assert "FAILED test_kernels.py::test_too_far[sim:cuda:80]" in text
    assert "right after the end of `x`, which has 120 bytes" in text
    assert "OPTIONS copies land at the latest, warps in random order with seed 7" in text
    assert "the last simulated launch" in text and "tl.store(x + tl.arange(0, BLOCK), 1.0)" in text


def test_targets_of_the_configuration(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "pytest.ini").write_text("[pytest]\nweft_target = sim:cuda:90\nweft_sim = copies=both\n")
    text = run("-k", "add")
    assert "PASSED test_kernels.py::test_add[sim:cuda:90]" in text and "[cpu]" not in text


def test_the_cpu_if_nothing_is_said(run) -> None:  # type: ignore[no-untyped-def]
    text = run("-k", "add or one_target")
    assert "PASSED test_kernels.py::test_add[cpu]" in text
    assert "1 passed, 1 skipped" in text, "a test that is for none of the targets is skipped"
    assert ": for sim:cuda:90, and this run is for cpu" in text


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--weft-target=cpu,foo", "ERROR: weft: compiling is not supported on target foo\nhint: targets that"),
        ("--weft-sim=bogus=1", "ERROR: weft: there is no option 'bogus'"),
    ],
)
def test_options_that_mean_nothing(run, option: str, text: str) -> None:  # type: ignore[no-untyped-def]
    found = run(option)
    assert text in found and "passed" not in found and "Traceback" not in found
