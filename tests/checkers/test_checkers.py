"""What mypy and pyright say of users' files: those in `users`, and the files that docs/howto/types.md shows.

A line of such a file that a checker refuses says so, `# refused: why`, or `# refused by pyright: why` where only one of
them does; all other lines are accepted. mypy is run with `--strict`, pyright with its standard rules.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weft.compiler import option_names

ROOT = Path(__file__).resolve().parents[2]
USERS = Path(__file__).parent / "users"
PAGE = ROOT / "docs" / "howto" / "types.md"
SHOWN = re.compile(r"<!-- file: (\S+) -->\n+```python\n(.*?)```", re.DOTALL)
REFUSED = re.compile(r"# refused(?: by (\w+))?:")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of users in one folder."""
    folder = tmp_path_factory.mktemp("users")
    texts = {path.name: path.read_text() for path in USERS.glob("*.py")}
    texts |= dict(SHOWN.findall(PAGE.read_text()))
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [folder / name for name in sorted(texts)]


def refused(files: list[Path], checker: str) -> list[tuple[str, int]]:
    """The lines that a checker is said to refuse."""
    return [
        (path.name, number)
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := REFUSED.search(line)) and match[1] in (None, checker)
    ]


def told(lines: Iterator[tuple[str, int]]) -> list[tuple[str, int]]:
    """Each line with an error once, in order."""
    return sorted({(Path(name).name, number) for name, number in lines})


@pytest.mark.slow
def test_mypy(files: list[Path]) -> None:
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    errors = re.findall(r"^(.+?):(\d+): error: ", done.stdout, re.MULTILINE)
    assert told((name, int(number)) for name, number in errors) == refused(files, "mypy"), done.stdout + done.stderr


@pytest.mark.slow
def test_pyright(files: list[Path]) -> None:
    names = [Path(sys.executable).parent / name for name in ("basedpyright", "pyright")]
    found = next((str(path) for path in names if path.exists()), shutil.which("pyright"))
    if found is None:
        pytest.skip("neither basedpyright nor pyright is installed: pip install basedpyright")
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT / "src")]}
    (files[0].parent / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [found, "--outputjson", "--pythonpath", sys.executable, *map(str, files)]
    done = subprocess.run(command, cwd=files[0].parent, capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)["generalDiagnostics"]
    errors = [(d["file"], d["range"]["start"]["line"] + 1) for d in report if d["severity"] == "error"]
    assert told(iter(errors)) == refused(files, "pyright"), json.dumps(report, indent=1)


def tool(name: str) -> Any:
    """A script of the folder tools."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_for_type_checkers_are_up_to_date() -> None:
    """Of what launches and tensors have, type checkers are told by files that tools write."""
    launches, tensors = tool("launch_types"), tool("tensor_stub")
    assert launches.FILE.read_text() == launches.text()
    assert tensors.FILE.read_text() == tensors.text()
    assert set(launches.OPTIONS) == option_names() | {"target"}
