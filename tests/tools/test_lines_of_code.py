"""tools/lines_of_code.py: what is counted, and at which commit."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "lines_of_code.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The tool, in a repository with two commits."""
    spec = importlib.util.spec_from_file_location("lines_of_code", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    room = tmp_path / "src" / "weft" / "room"
    room.mkdir(parents=True)
    (room / "a.py").write_text('"""A file."""\n\nx = 1  # one\ny = """\na string\n"""\n')
    if shutil.which("git"):
        git(tmp_path, "init", "-q")
        commit(tmp_path)
    (room / "a.py").write_text("x = 1\n")
    (room / "b.ll").write_text("; A function.\n\ndefine void @f() {\n  ret void ; done\n}\n")
    (room / "c.txt").write_text("# Words.\n\none\ntwo\n")
    return module


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "a commit")


def test_kinds_are_counted_apart(tool: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tool.main([])
    assert capsys.readouterr().out.splitlines() == [
        "      1  lines of code",
        "      3  lines of LLVM IR",
        "      2  lines of data in text files",
    ]
    tool.main(["--rooms", "src/weft/room/b.ll"])
    assert capsys.readouterr().out.splitlines()[:3] == [
        "      1  room",
        "      0  lines of code",
        "      3  lines of LLVM IR",
    ]


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_at_another_commit(tool: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tool.main(["--at", "HEAD"])
    assert capsys.readouterr().out.splitlines() == [
        "      4  lines of code",
        "      0  lines of LLVM IR",
        "      0  lines of data in text files",
    ]
    with pytest.raises(SystemExit, match="^the source at nothing cannot be had from git: fatal: .*nothing"):
        tool.main(["--at", "nothing"])


def test_at_needs_git(tool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="^--at needs git, which is not installed here$"):
        tool.main(["--at", "HEAD"])
