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

import ast
import contextlib
import importlib
import inspect
import io
import os
import re
from itertools import pairwise
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
    """The table of all settings: the name, the environment variables that give its default, and what it does."""
    knobs = importlib.import_module("weft.knobs")
    unused = importlib.import_module("weft.runtime.unused").INSTEAD
    meanings = {f"{group}.{name}": f"No effect: {instead}." for group, name, instead in unused}
    meanings |= _meanings(inspect.getsource(knobs))
    lines = ["| setting | environment | meaning |", "|---|---|---|"]
    for name, keys, _ in knobs.table():
        meaning = meanings.get(name, "Accepted without effect, so that scripts run.").replace("|", "\\|")
        lines.append(f"| `knobs.{name}` | {', '.join(f'`{key}`' for key in keys.split())} | {meaning} |")
    return "\n".join(lines) + "\n"


def _meanings(source: str) -> dict[str, str]:
    """What the text below a setting says, by `group.setting`; groups are classes called `group_knobs`.

    >>> _meanings("class a_knobs:\\n    b = 1\\n    \'What b is.\'\\n    c = 2")
    {'a.b': 'What b is.'}
    """
    found = {}
    for group in ast.parse(source).body:
        if isinstance(group, ast.ClassDef) and group.name.endswith("_knobs"):
            for line, text in pairwise(group.body):
                if isinstance(line, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                    name = f"{group.name.removesuffix('_knobs')}.{ast.unparse(line.targets[0])}"
                    found[name] = " ".join(str(text.value.value).split())
    return found


def _entries(module: str, shown: str, names: list[str]) -> str:
    value = importlib.import_module(module)
    return "\n".join(entry(shown, name, getattr(value, name)) for name in names)


def entry(module: str, name: str, value: Any) -> str:
    """A heading, the signature and the docstring of one name."""
    lines = [f"### `{module}.{name}`", ""]
    signature = signature_of(value)
    if signature is not None:
        lines += ["```python", f"{name}{signature}", "```", ""]
    lines += [markdown(_docstring(value)), ""]
    return "\n".join(lines)


def _docstring(value: Any) -> str:
    """What is said of a name; of a constant, its value, and of an element type, which one it is.

    >>> _docstring(1 << 20)
    'The constant 1048576.'
    """
    if isinstance(value, (int, float, str)):
        return f"The constant {value!r}."
    text = inspect.getdoc(value) or ""
    if type(value).__name__ == "dtype":
        return f"The element type `{value}`.{text.partition(chr(10))[1]}{text.partition(chr(10))[2]}"
    return text


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
