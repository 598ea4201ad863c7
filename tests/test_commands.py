"""The commands of all pages: they exist with the options that are written, and those of blocks of `console` run.

Every command is looked at, in the text, in blocks and in tutorials: `make` targets and their variables, scripts and
their options, extras of `pip install`, and what `weft` takes. A block of `console` is run as well, in an empty folder
with the files of its page: a block behind `<!-- file: NAME -->` is one, and so is the text of a comment that begins
with `<!-- hidden file: NAME`. A block that cannot be run here stands behind `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from reference_pages import help_of  # noqa: E402

DOCS = ROOT / "docs"
PAGES = [
    page
    for page in (*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted(DOCS.rglob("*.ipynb")))
    if not {"notes", "decisions", "_build", ".ipynb_checkpoints"} & {*page.relative_to(ROOT).parts}
    and page.name != "CHANGELOG.md"
]
"""What a reader follows: notes and decisions are of their dates."""
BLOCK = re.compile(
    r"(?:<!-- (?P<kind>file|not run): (?P<what>[^>]*?) -->\n+)?^ *```(?P<language>\w*)\n(?P<text>.*?)^ *```",
    re.DOTALL | re.MULTILINE,
)
HIDDEN = re.compile(r"^<!-- hidden file: (\S+)\n(.*?)^-->", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:[A-Z_]+=\S+ +)*(?:weft|make|python3?|pytest|pip) [^ ].*")


def text_of(page: Path) -> str:
    """A page, or the words of a notebook."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return text
    return "\n\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")


def console(page: Path) -> list[str]:
    """What a page tells to type and the tests can run."""
    found = []
    for block in BLOCK.finditer(text_of(page)):
        if block["language"] == "console" and block["kind"] != "not run":
            found += [line[2:] for line in block["text"].splitlines() if line.startswith("$ ")]
    return found


def written(page: Path) -> Iterator[str]:
    """Every command of a page, without what explains it."""
    text = text_of(page)
    prose = BLOCK.sub("", text)
    lines = [line.strip() for block in BLOCK.finditer(text) for line in block["text"].splitlines()
             if block["language"] in ("", "console", "sh")]  # fmt: skip
    lines += re.findall(r"^ {4}(.*)$", prose, flags=re.MULTILINE) + re.findall(r"`([^`]+)`", prose)
    for line in lines:
        command = re.split(r"\s{3,}|\s+# |\s+>\s", " ".join(line.split("\n")).removeprefix("$ "))[0]
        if COMMAND.fullmatch(command):
            yield command


@cache
def makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


@cache
def known_to(command: str) -> str:
    """The help of a command; "" where there is none."""
    with contextlib.redirect_stderr(io.StringIO()):
        return help_of(command.split())


def options(words: list[str]) -> list[str]:
    return [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]


def wrong(command: str) -> str | None:
    """What does not exist of a command."""
    try:
        words = [w for w in shlex.split(command) if w != "\\"]
    except ValueError:
        words = command.split()
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    if words[:3] == ["python", "-m", "weft"] or words[:3] == ["python", "-m", "pytest"]:
        words = words[2:]
    check = {"make": _wrong_make, "weft": _wrong_weft, "pip": _wrong_pip, "pytest": _wrong_files}.get(
        words[0], _wrong_script
    )
    return check(words[1:]) if words[1:] else None


def _wrong_make(words: list[str]) -> str | None:
    for word in words:
        name, is_variable, _ = word.partition("=")
        pattern = rf"\$\({name}\)|\$\((?:if|or) \$?\(?{name}" if is_variable else rf"^{re.escape(name)}:"
        if re.match(r"[\w-]+$", name) and not re.search(pattern, makefile(), re.MULTILINE):
            return f"the Makefile has no {'variable' if is_variable else 'target'} {name}"
    return None


def _wrong_weft(words: list[str]) -> str | None:
    path = ["weft", *words[: 2 if words[0] == "layout" and words[1:2] and words[1][0] not in "-." else 1]]
    if words[0][0] != "-" and not known_to(" ".join(path)):
        return f"weft has no command {' '.join(path[1:])}"
    path = path if words[0][0] != "-" else ["weft"]
    text = known_to(" ".join(path))
    missing = [name for name in options(words) if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)]
    return f"{' '.join(path)} has no option {missing[0]}" if missing else None


def _wrong_pip(words: list[str]) -> str | None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in re.findall(r"\[([\w,]+)\]", " ".join(words)):
        for name in extra.split(","):
            if not re.search(rf"^{name} = \[", project, flags=re.MULTILINE):
                return f"there is no extra {name}"
    return None


def _wrong_files(words: list[str]) -> str | None:
    files = [word for word in words if re.match(r"(?:benchmarks|tools|tests|examples)/", word)]
    return next((f"there is no {name}" for name in files if not (ROOT / name).exists()), None)


def _wrong_script(words: list[str]) -> str | None:
    if words[0] == "-m" and len(words) > 1 and "." in words[1]:  # a module of tests/
        words = [f"tests/{words[1].replace('.', '/')}.py", *words[2:]]
    script = ROOT / words[0]
    if _wrong_files(words) or not script.is_file():
        return _wrong_files(words)
    source = script.read_text(encoding="utf-8")
    return next((f"{words[0]} has no option {name}" for name in options(words) if name not in source), None)


def test_commands_exist() -> None:
    commands = [(page.name, command) for page in PAGES for command in written(page)]
    assert len(commands) > 150
    assert [(page, command, wrong(command)) for page, command in commands if wrong(command)] == []


@pytest.mark.parametrize("command, text", [
    ("make nothing-such", "the Makefile has no target nothing-such"),
    ("make fuzz NOTHING=1", "the Makefile has no variable NOTHING"),
    ("weft nothing", "weft has no command nothing"),
    ("weft layout show X --nothing", "weft layout show has no option --nothing"),
    ("pip install 'weft[nothing]'", "there is no extra nothing"),
    ("python benchmarks/nothing.py", "there is no benchmarks/nothing.py"),
    ("python benchmarks/ncu.py --nothing", "benchmarks/ncu.py has no option --nothing"),
])  # fmt: skip
def test_what_does_not_exist_is_found(command: str, text: str) -> None:
    assert wrong(command) == text


def argv(command: str) -> list[str]:
    """A command as the interpreter at hand runs it: `weft` and `pytest` are modules of it."""
    words = shlex.split(command)
    assert words[0] in ("weft", "pytest", "python"), f"{command}: tests run only these"
    return [sys.executable, *(words[1:] if words[0] == "python" else ["-m", *words])]


def files_of(page: Path) -> dict[str, str]:
    """The files that the commands of a page find."""
    text = text_of(page)
    shown = {block["what"]: block["text"] for block in BLOCK.finditer(text) if block["kind"] == "file"}
    return {**dict(HIDDEN.findall(text)), **shown}


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=() if p.stem == "deploy" else pytest.mark.slow, id=p.stem) for p in PAGES if console(p)],
)
def test_commands_work(page: Path, tmp_path: Path) -> None:
    for name, text in files_of(page).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "WEFT_CACHE_DIR": str(tmp_path / "cache"), "COLUMNS": "120"}
    for command in console(page):
        command, _, target = command.partition(" > ")
        done = subprocess.run(argv(command), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        expected = 1 if command.startswith("weft diff") else 0  # which says by it that there are differences
        assert done.returncode == expected, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert done.stdout or "--html" in command or "--svg" in command or " -o " in command
        if target:
            (tmp_path / target).write_text(done.stdout, encoding="utf-8")
