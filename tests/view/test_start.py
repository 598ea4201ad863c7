"""The command line loads the rooms of layouts and pictures for the commands that need them, and for no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOMS = ("weft.layouts", "weft.view", "weft.cli_layout")
SCRIPT = "import sys; print(*sorted(m for m in sys.modules if m.startswith('weft')))"


def loaded(*arguments: str, code: str | None = None) -> set[str]:
    """The modules of Weft that are there when a command has ended; what it prints itself comes before them."""
    program = code or f"import sys; from weft.cli import main; sys.argv[1:] = {list(arguments)!r}; main(); {SCRIPT}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_run_loads_no_layouts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "weft", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = set(done.stdout.split())
    assert "weft.compat" in found  # the right list is looked at
    assert [m for m in found if m.startswith(ROOMS)] == []


@pytest.mark.parametrize("arguments", [("cache", "dir"), ("info",)])
def test_other_commands_load_no_layouts(arguments: tuple[str, ...]) -> None:
    found = loaded(*arguments)
    assert "weft.cli" in found and [m for m in found if m.startswith(ROOMS)] == []


def test_layout_loads_them_and_nothing_else() -> None:
    found = loaded("layout", "show", "BlockedLayout([1], [2], [1], [0])", "--json")
    assert set(ROOMS) <= found
    assert {m.split(".")[1] for m in found if "." in m} == {"base", "machines", "layouts", "view", "cli", "cli_layout"}
