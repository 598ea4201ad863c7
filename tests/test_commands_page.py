"""The page of commands has every command that `weft --help` lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weft.cli import main

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"


def test_every_command_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.search(r"\{([\w,-]+)\}", capsys.readouterr().out)
    assert listed is not None
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in listed[1].split(",") if f"```{{command}} weft {name}\n" not in text] == []
