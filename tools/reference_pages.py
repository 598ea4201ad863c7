"""The pages of the reference list names; their signatures and docstrings are filled in when the site is built.

A block of a page such as

    ```{names} weft.language
    load store
    ```

becomes a heading, a signature and the docstring of each name. Docstrings are Markdown; their examples, which the tests
run as doctests, become blocks of code. `{command} weft layout show` becomes the help of a command, `{settings}` a table
of all settings.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import re
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```\{names\} +([\w.]+)(?: +as +(\w+))?\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)

COMMAND = re.compile(r"^```\{command\} +([\w -]+)\n```\n", re.MULTILINE)


def names_on(page: Path) -> dict[str, list[str]]:
    """The names that a page lists, by module."""
    found: dict[str, list[str]] = {}
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        found.setdefault(match[1], []).extend(match[3].split())
    return found


def expand(text: str) -> str:
    """A page with its blocks of names, of commands and of settings filled in."""
    text = COMMAND.sub(lambda m: f"```text\n{help_of(m[1].split())}```\n", text)
    text = text.replace("```{settings}\n```\n", settings() if "```{settings}" in text else "")
    return BLOCK.sub(lambda m: _entries(m[1], m[2] or m[1], m[3].split()), text)


def help_of(words: list[str]) -> str:
    """What a command prints for `--help`, 100 columns wide."""
    main = importlib.import_module("weft.cli").main
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main([*words[1:], "--help"])
    return out.getvalue()


def settings() -> str:
    """The table of all settings: the name, and the environment variables that give its default."""
    rows = importlib.import_module("weft.knobs").table()
    lines = ["| setting | environment |", "|---|---|"]
    lines += [f"| `knobs.{name}` | {', '.join(f'`{key}`' for key in keys.split())} |" for name, keys, _ in rows]
    return "\n".join(lines) + "\n"


def _entries(module: str, shown: str, names: list[str]) -> str:
    value = importlib.import_module(module)
    return "\n".join(entry(shown, name, getattr(value, name)) for name in names)


def entry(module: str, name: str, value: Any) -> str:
    """A heading, the signature and the docstring of one name."""
    lines = [f"### `{module}.{name}`", ""]
    signature = signature_of(value)
    if signature is not None:
        lines += ["```python", f"{name}{signature}", "```", ""]
    lines += [markdown(inspect.getdoc(value) or ""), ""]
    return "\n".join(lines)


def signature_of(value: Any) -> str | None:
    """What a function or a class is called with, without the parameters that users do not give."""
    if not callable(value):
        return None
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    hidden = ("self", "_semantic", "_generator", "_builder")
    parameters = [p for p in signature.parameters.values() if p.name not in hidden]
    try:
        return str(signature.replace(parameters=parameters))
    except ValueError:
        return None


def markdown(doc: str) -> str:
    """A docstring as Markdown: examples, and what is indented, in blocks of code."""
    out: list[str] = []
    code: list[str] = []

    def close() -> None:
        while code and not code[-1].strip():
            code.pop()
        if code:
            least = min(len(line) - len(line.lstrip()) for line in code if line.strip())
            lines = [line[least:] for line in code]
            out.extend(["```python" if lines[0].startswith(">>>") else "```text", *lines, "```", ""])
            code.clear()

    example = False
    for line in doc.splitlines():
        if line.startswith(">>>") and not example:
            close()
            example = True
        if example and not line.strip():
            example = False
            close()
        if (
            example
            or (line.startswith("    ") and (code or not out or not out[-1].strip()))
            or (code and not line.strip())
        ):
            code.append(line)
            continue
        close()
        out.append(line)
    close()
    return "\n".join(out)
