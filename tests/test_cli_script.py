"""Options of commands that run a script are taken before it and behind it; the rest is the script's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
import numpy as np, weft, weft.language as tl
@weft.jit
def add(x, o, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i) + 1)
x = np.zeros(1024, np.float32)
print("the script has", sys.argv[1:], file=sys.stderr)
add[(4,)](x, x, BLOCK=256)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "k.py").write_text(SCRIPT)
    return str(tmp_path / "k.py")


def run(*line: str) -> tuple[int, str]:
    """The exit code, and what is said; in a process of its own, as a script is run with Weft by the name of triton."""
    done = subprocess.run([sys.executable, "-m", "weft", *line], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.parametrize("behind", [True, False])
def test_options_on_either_side(script: str, tmp_path: Path, behind: bool) -> None:
    page = tmp_path / "e.html"
    options = ["--html", str(page), "-k", "add"]
    line = [script, "--epochs", "3", *options] if behind else [*options, script, "--epochs", "3"]
    code, said = run("explain", *line)
    assert code == 0 and page.exists() and "the script has ['--epochs', '3']" in said


def test_what_stands_behind_two_dashes_is_the_scripts(script: str) -> None:
    code, said = run("to-gluon", script, "--target", "cuda:80", "data", "--", "--target", "here")
    assert code == 0 and "the script has ['data', '--target', 'here']" in said


def test_misspelt_options(script: str) -> None:
    code, said = run("explain", "--jsn", script)
    assert code == 2 and "unrecognized arguments: --jsn" in said
    code, said = run("explain", script, "--jsn")
    assert code == 0 and f"--jsn goes to {script}; there is an option --json" in said
    assert run("diff", "a.json", "b.json", "--jsn")[0] == 2
