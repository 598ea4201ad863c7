"""The command line as a whole: what it lists, that facts come as JSON too, completions, `weft doctor`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from weft import cli_completions, cli_doctor
from weft.cli import COMMANDS, main, module_of
from weft.runtime.cache import Store

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
NO_FACTS = ("run", "completions")
"""Commands that print no facts: the user's own output, and a script for a shell."""


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"```{{command}} weft {name}\n" not in text] == []


def test_help_is_by_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "\nIs it right:\n  check  " in shown and "Begin with `weft demo`." in shown
    assert main(["dmeo"]) == 2
    assert capsys.readouterr().err == "weft: there is no command 'dmeo'; did you mean `weft demo`? `weft` lists them\n"


def test_every_command_that_prints_facts_takes_json() -> None:
    parsers = dict(cli_completions.parsers())
    assert set(COMMANDS) == {name.split()[0] for name in parsers}
    lacking = []
    for name, parser in parsers.items():
        above = any(isinstance(action, argparse._SubParsersAction) for action in parser._actions)
        if not above and name not in NO_FACTS and "--json" not in parser._option_string_actions:
            lacking.append(name)
    assert lacking == []


TYPED = {
    "weft la": ["layout"],
    "weft cache p": ["prune"],
    "weft layout show --color a": ["always", "auto"],
    "weft explain script.py --alt": ["--alternatives"],
}


@pytest.mark.parametrize("shell", cli_completions.SHELLS)
def test_completions(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    assert main(["completions", shell]) == 0
    script, empty = tmp_path / "weft", tmp_path / "empty"
    empty.mkdir()
    script.write_text(capsys.readouterr().out)
    for typed, expected in TYPED.items() if shell != "zsh" else ():
        *before, last = typed.split(" ")
        if shell == "bash":
            words = " ".join(f"'{word}'" for word in (*before, last))
            complete = f"COMP_WORDS=({words}); COMP_CWORD={len(before)}; _weft"
            ask = f". {script}; {complete}; IFS=$'\\n'; echo \"${{COMPREPLY[*]}}\""
        else:
            ask = f"source {script}; complete -C '{typed}'"
        done = subprocess.run([shell, "-c", ask], cwd=empty, capture_output=True, text=True, timeout=20)
        given = sorted(line.split("\t")[0] for line in done.stdout.split("\n") if line)
        assert given == expected, done.stderr
    if shell == "zsh":  # its completion needs a terminal: what it asks, and that it reads the rest
        ask = f". {script}; _weft_follows 'layout show --color'; _weft_follows nowhere || echo no"
        done = subprocess.run(["zsh", "-c", f"compdef() {{ }}; {ask}"], capture_output=True, text=True, timeout=20)
        assert (done.stdout.split(), done.stderr) == (["auto", "always", "never", "no"], "")


def test_doctor_tells_what_is_there_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    rows = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["python"]["found"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert rows["a kernel"]["status"] == rows["numpy"]["status"] == "ok" and "bits" in rows["vectors"]["found"]
    assert [
        what for what, row in rows.items() if row["status"] != "ok" and not row["do"] and row["area"] != "GPUs"
    ] == []


def test_doctor_finds_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_to_all = tmp_path / "cache"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setattr(cli_doctor, "default_store", lambda: Store(open_to_all))
    monkeypatch.setattr(cli_doctor, "required", lambda: {"numpy": "99.0", "no-such-package": "1.0"})
    monkeypatch.setattr(cli_doctor, "_works", lambda: cli_doctor.Row("Processor", "a kernel", "ok", ""))
    monkeypatch.setattr(cli_doctor, "_devices", lambda: iter(()))
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "99.0 is needed" in shown and "pip install 'no-such-package>=1.0'" in shown
    assert "!!  kernel cache" in shown and "3 to fix (!!)" in shown


@pytest.mark.parametrize("name", ["explain", "tune"])
def test_a_reader_that_has_seen_enough_is_no_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(name)

    def closed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(module, "parsed", lambda *_: SimpleNamespace(run=closed))
    monkeypatch.setattr(module, "_tune", closed, raising=False)
    with pytest.raises(BrokenPipeError):  # which `weft` takes for the end of the output
        module.main([])


@pytest.mark.parametrize("arguments", [[], ["--version"], ["cache", "dir"], ["layout", "--help"]])
def test_a_closed_pipe_ends_every_command_quietly(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", closefd=False) as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        assert main(arguments) == 0
        monkeypatch.undo()
    os.close(writing)
