"""Options of commands that run a script are taken before it and behind it; the rest is the script's."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft import cli

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


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


@pytest.mark.parametrize("behind", [True, False])
def test_options_on_either_side(script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], behind: bool) -> None:
    page = tmp_path / "e.html"
    options = ["--html", str(page), "-k", "add"]
    line = [script, "--epochs", "3", *options] if behind else [*options, script, "--epochs", "3"]
    assert cli.main(["explain", *line]) == 0
    assert page.exists() and "the script has ['--epochs', '3']" in told(capsys)


def test_what_stands_behind_two_dashes_is_the_scripts(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["to-gluon", script, "--target", "cuda:80", "data", "--", "--target", "here"]) == 0
    assert "the script has ['data', '--target', 'here']" in told(capsys)


def test_misspelt_options(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["explain", "--jsn", script])
    assert "unrecognized arguments: --jsn" in told(capsys)
    assert cli.main(["explain", script, "--jsn"]) == 0
    assert f"--jsn goes to {script}; there is an option --json" in told(capsys)
    with pytest.raises(SystemExit):
        cli.main(["diff", "a.json", "b.json", "--jsn"])
