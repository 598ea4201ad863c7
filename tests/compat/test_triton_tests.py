"""`tools/triton_tests.py`, the plugin that runs Triton's own test files: which cases it runs."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from children import SOURCE, environment

TOOLS = Path(__file__).parents[2] / "tools"
FILE = """
import pytest
import triton
import triton.language as tl

@pytest.mark.parametrize("n", range(200))
@pytest.mark.interpreter
def test_many(n):
    assert "weft" in triton.jit.__module__

def test_one():
    pass
"""


def _run(folder: Path, *options: str) -> tuple[set[str], str]:
    path = folder / "test_core.py"
    path.write_text(FILE)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "triton_tests", "-p", "no:cacheprovider", "-c", os.devnull]
    found = subprocess.run(
        [*command, "--rootdir", str(folder), "--import-mode=importlib", *options, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(TOOLS, SOURCE, WEFT_TARGET="cpu"),
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return set(re.findall(r"::(\S+) PASSED", found.stdout)), found.stdout


@pytest.mark.slow  # it collects all of Triton's tests three times
def test_cases_are_drawn_by_a_seed_and_functions_left_out_by_a_list(tmp_path: Path) -> None:
    left_out = tmp_path / "left_out.txt"
    left_out.write_text("# why\ntest_core.py::test_one   needs a GPU\n")
    first, again, other = (
        _run(tmp_path, "--per-function", "20", "--seed", seed, "--left-out", str(left_out))[0] for seed in "112"
    )
    assert first == again != other and len(first) == len(other) == 20 and "test_one" not in first


@pytest.mark.slow
def test_a_line_a_file(tmp_path: Path) -> None:
    tests = tmp_path / "unit" / "language"
    tests.mkdir(parents=True)
    (tests / "test_one.py").write_text(
        "import pytest\nimport triton\n"
        "def test_good(device): assert device == 'cpu'\n"
        "def test_bad(): assert not triton\n"
        "def test_skipped(): pytest.skip('no')\n"
    )
    (tests / "test_two.py").write_text("import triton\ntriton.no_such_name\ndef test_good(): pass\n")
    command = [sys.executable, str(TOOLS / "run_triton_tests.py"), str(tmp_path), "--jobs", "0"]
    files = [f"unit/language/test_{name}.py" for name in ("one", "two", "three")]
    found = subprocess.run([*command, *files], capture_output=True, text=True, timeout=120, env=environment())
    lines = [" ".join(line.split()) for line in found.stdout.splitlines()]
    assert lines[:4] == [
        "unit/language/test_one.py 1 passed 1 failed 1 skipped 0 left out",
        "unit/language/test_two.py 0 passed 0 failed 0 skipped 0 left out CANNOT BE IMPORTED",
        "unit/language/test_three.py not in this version",
        "together 1 passed 1 failed 1 skipped 0 left out",
    ], found.stdout + found.stderr
    assert found.returncode == 1


def test_what_is_left_out_is_little_and_explained() -> None:
    sys.path.insert(0, str(TOOLS))
    try:
        left_out = importlib.import_module("run_triton_tests").read_left_out()
    finally:
        sys.path.remove(str(TOOLS))
    assert len(left_out) <= 60 and all(reason for reason in left_out.values())
    assert all(re.fullmatch(r"[a-z_/]+\.py::test_\w+", name) for name in left_out)
