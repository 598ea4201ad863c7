"""The reference lists every public name, each with an example that runs and shows a value.

That it runs is for the doctests of the modules, which know the names that `conftest.py` of the root gives.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import weft.language as tl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from reference_pages import names_on, settings  # noqa: E402

MODULES = ("weft", "weft.language", "weft.gluon.language", "weft.layouts", "weft.sim", "weft.testing")


def public(module: str) -> list[str]:
    """The public names of a module."""
    value = importlib.import_module(module)
    return list(getattr(value, "__all__", None) or (name for name in dir(value) if not name.startswith("_")))


def documented(value: Any) -> Any:
    """Whose docstring stands for a name: a number or a type of the language is told by its class."""
    own = inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)
    return value if own or type(value).__module__ == "builtins" else type(value)


def examples(module: str, name: str) -> list[doctest.Example]:
    """The examples of a public name that show a value."""
    value = documented(getattr(importlib.import_module(module), name))
    return doctest.DocTestParser().get_examples(inspect.getdoc(value) or "", f"{module}.{name}")


def shows(module: str, name: str) -> bool:
    """Has a name an example that runs and shows something? A plain number is shown by the page itself."""
    value = getattr(importlib.import_module(module), name)
    if isinstance(value, (int, tl.constexpr)) and not callable(value):
        return True
    found = examples(module, name)
    return any(e.want or e.exc_msg for e in found) and not any(doctest.SKIP in e.options for e in found)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_on_a_page(module: str) -> None:
    listed = [n for page in (ROOT / "docs" / "reference").glob("*.md") for n in names_on(page).get(module, [])]
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) == set(public(module))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_has_an_example(module: str) -> None:
    without = [f"{module}.{name}" for name in public(module) if not shows(module, name)]
    assert without == [], "these names have no example that shows a value"


def test_the_page_of_settings_says_what_each_does() -> None:
    rows = {line.split(" | ")[0]: line.split(" | ")[2] for line in settings().splitlines()[2:]}
    assert rows["| `knobs.weft.target`"].startswith("The target of launches")
    assert rows["| `knobs.compilation.enable_asan`"].startswith("No effect: ")
    assert all(meaning.strip(" |") for meaning in rows.values())
