"""`tools/triton_tests.py`, the plugin that runs Triton's own test files: which cases it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

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
        env={**os.environ, "PYTHONPATH": str(TOOLS), "WEFT_TARGET": "cpu"},
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return set(re.findall(r"::(\S+) PASSED", found.stdout)), found.stdout


def test_a_part_of_the_cases_and_the_others(tmp_path: Path) -> None:
    parts = [_run(tmp_path, "--one-in", "2", "--cases-of", str(k))[0] for k in range(2)]
    for part in parts:
        assert "test_one" in part and 70 <= len(part) <= 130
    assert len(set().union(*parts)) == 201
    assert sum(len(part - {"test_one"}) for part in parts) == 200
