"""The commands of the how-to pages, run.

A block of `console` is run in an empty folder with the files of the page: a block behind `<!-- file: NAME -->` is one.
A block that cannot be run here stands behind `<!-- not run: REASON -->`. Blocks of Python are doctests, or such files.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))
BLOCK = re.compile(
    r"(?:<!-- (?P<kind>file|not run): (?P<what>[^>]*?) -->\n+)?```(?P<language>\w*)\n(?P<text>.*?)```", re.DOTALL
)


def commands(page: Path) -> list[str]:
    """What a page tells to type and the tests can run."""
    found = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["language"] == "console" and block["kind"] != "not run":
            found += [line[2:] for line in block["text"].splitlines() if line.startswith("$ ")]
    return found


def argv(command: str) -> list[str]:
    """A command as the interpreter at hand runs it: `weft` and `pytest` are modules of it."""
    words = shlex.split(command)
    assert words[0] in ("weft", "pytest", "python"), f"{command}: tests run only these"
    return [sys.executable, *(words[1:] if words[0] == "python" else ["-m", *words])]


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=() if p.stem == "deploy" else pytest.mark.slow, id=p.stem) for p in PAGES if commands(p)],
)
def test_commands_work(page: Path, tmp_path: Path) -> None:
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["kind"] == "file":
            (tmp_path / block["what"]).write_text(block["text"], encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WEFT_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "120"}
    for command in commands(page):
        done = subprocess.run(argv(command), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert not done.returncode, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert done.stdout or "--html" in command
