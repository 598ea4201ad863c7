"""Functions of a file that a user wrote: the reference's, the kernel's."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weft.base import CompilationError

__all__ = ["Unfit", "function_of", "loaded", "returned", "told"]


class Unfit(Exception):
    """A file that lacks what the protocol asks for; the text says what, and what to do."""


def loaded(path: str) -> Any:
    """A file as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise Unfit(f"{Path(path).name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def function_of(module: Any, name: str, what: str) -> Callable[..., Any]:
    """A function of a file. Unfit where there is none."""
    found = getattr(module, name, None)
    if not callable(found):
        file = Path(module.__file__).name
        raise Unfit(f"{file} has no function `{name}`; it is to hold `def {name}({what}):`")
    return found  # type: ignore[no-any-return]


def returned(value: Any, where: str) -> list[Any]:
    """What a function returned, as a list: an array, or a tuple or a list of arrays."""
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    if value is None or not values:
        raise Unfit(f"{where} returned {value!r}; it is to return an array, or a tuple of arrays")
    return values


def told(error: BaseException, paths: Sequence[str]) -> dict[str, Any]:
    """An error as plain data, with the lines of the user's files that led to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in paths]
    lines = [f"{Path(f.filename).name}:{f.lineno}: {f.line}" for f in frames]
    shown = error.rendered if isinstance(error, CompilationError) else str(error)
    text = shown if isinstance(error, Unfit) else f"{type(error).__name__}: {shown}"
    return {"text": text, "lines": lines}
