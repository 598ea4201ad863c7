"""Warnings of the runtime, which name the user's line: past Weft, and where threads of Weft work, past those.

    warn("the kernel cache cannot be used", CacheWarning)       # train.py:40: CacheWarning: the kernel cache ...
    executor.submit(on_behalf(compile), source)                 # what it warns of there names this line

A thread begins in Python's own library, so that no call above it is the user's; `on_behalf` carries the place over.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .files import PACKAGE

P = ParamSpec("P")
T = TypeVar("T")


class _Place(NamedTuple):
    """A line, and what Python keeps of warnings in its module."""

    file: str
    line: int
    module: str
    shown: dict[Any, Any]


_place: ContextVar[_Place | None] = ContextVar("weft_on_behalf_of", default=None)
_NOT_THE_USERS = (PACKAGE + os.sep, "<launcher of ")
_BEGINNINGS = frozenset(("threading", "concurrent.futures.thread"))
"""Modules in which threads begin."""


def _users_place() -> _Place:
    """The nearest call that is neither Weft's nor of a launcher that it wrote."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    module, shown = frame.f_globals.get("__name__", "<unknown>"), frame.f_globals.setdefault("__warningregistry__", {})
    carried = _place.get()
    if carried is not None and module in _BEGINNINGS:
        return carried
    return _Place(frame.f_code.co_filename, frame.f_lineno, module, shown)


def users_line() -> tuple[str, int]:
    """The file and line of the user's call."""
    place = _users_place()
    return place.file, place.line


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the user's line."""
    place = _users_place()
    warnings.warn_explicit(text, category, place.file, place.line, place.module, place.shown)


def on_behalf(function: Callable[P, T]) -> Callable[P, T]:
    """A function to be called in another thread for whoever calls now."""
    place = _users_place()

    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        before = _place.set(place)
        try:
            return function(*args, **kwargs)
        finally:
            _place.reset(before)

    return called
