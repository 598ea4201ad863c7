"""What the README shows, works."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other, as a reader would."""
    script = tmp_path / "readme.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL)))
    names = runpy.run_path(str(script))
    np.testing.assert_array_equal(names["out"], names["x"] + names["y"])
    sectors, time = capsys.readouterr().out.splitlines()[:2]
    assert f"print(weft.sim.last_run()[\"global_load_sectors\"])      # {sectors}\n" in README
    assert "us (" in time and "bound by DRAM" in time
    assert weft.sim.last_run()["global_load_sectors"] == 1024


def test_the_picture_is_what_its_command_makes(tmp_path: Path) -> None:
    expression = re.search(r"weft layout show '([^']+)' --svg layout.svg", README)
    assert expression is not None
    assert main(["layout", "show", expression[1], "--svg", str(tmp_path / "layout.svg")]) == 0
    stored = (ROOT / "docs" / "pictures" / "layout.svg").read_text(encoding="utf-8")
    assert (tmp_path / "layout.svg").read_text(encoding="utf-8") == stored
