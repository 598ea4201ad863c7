"""Tracebacks of errors lead to the user's line: the frames of Weft itself are left out.

    Traceback (most recent call last):
      File "script.py", line 26, in <module>
        resize[grid](image, out, BLOCK=32)
    weft.CompilationError: script.py:10:10: error: ...

What a user calls (a launch, `warmup`, `explain`, `weft.compile`) ends with

    except Exception as error:
        shorten(error)
        raise

or is decorated with `shortened`; packages that users call as a whole, like `weft.layouts`, do so with `shorten_face`.
A bare `raise` takes the traceback that the error has then, and does not add the function that it stands in.

Which errors: those of Weft; Python's own where Weft raises them on purpose (`raise told(KeyError(...))`); and those
that functions of the user raise which Weft calls (a grid, a heuristic, a hook, a model). The frames of these functions
stay. All frames of other errors stay, as those of a `CompilerCrash`, since they are Weft's own fault; and
`knobs.weft.full_traceback` shows every frame.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

from .errors import CompilerCrash, WeftError

__all__ = ["shorten", "shorten_face", "shortened", "told", "without_own_frames"]

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=Exception)

_OPERATORS = frozenset(("__init__", "__call__", "__mul__", "__matmul__", "__contains__", "__getitem__"))
"""Methods that users call without naming them."""

_OWN = frozenset(("weft", "xdsl", "contextlib", "functools", "concurrent", "threading"))
"""Packages whose frames are left out: Weft, and what stands between two of its frames."""

_INSTALLED = frozenset(("site-packages", "dist-packages"))
"""Folders of installed packages."""

wanted: list[Callable[[], bool]] = []
"""Functions that say whether every frame is to be shown; `weft.knobs` adds one."""


def _is_own(trace: TracebackType) -> bool:
    return str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0] in _OWN


def without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback with the user's frames alone; None if there are none. The given one is not changed."""
    kept = []
    while trace is not None:
        if not _is_own(trace):
            kept.append(trace)
        trace = trace.tb_next
    short: TracebackType | None = None
    for each in reversed(kept):
        short = TracebackType(short, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return short


def shows_all() -> bool:
    """Whether every frame is to be shown."""
    return any(show() for show in wanted)


def told(error: E) -> E:
    """The error, marked as one of Python's that Weft raises to tell the user something."""
    error.__weft_told__ = True  # type: ignore[attr-defined]
    return error


def _is_installed(trace: TracebackType) -> bool:
    """Whether a frame's function belongs to Python or to an installed package."""
    code, name = trace.tb_frame.f_code, str(trace.tb_frame.f_globals.get("__name__"))
    folders = code.co_filename.replace("\\", "/").split("/")
    return name.partition(".")[0] in sys.stdlib_module_names or not _INSTALLED.isdisjoint(folders)


def _raised_by_user(trace: TracebackType | None) -> bool:
    """Whether Weft called a function of the user, and the error comes from there: not from NumPy, say."""
    called: TracebackType | None = None
    while trace is not None:
        if _is_own(trace):
            called = trace.tb_next
        trace = trace.tb_next
    return called is not None and not _is_installed(called)


def shorten(error: Exception) -> None:
    """Leave Weft's frames out of an error's traceback, and out of that of its cause, where they tell users nothing."""
    if isinstance(error, CompilerCrash) or shows_all():
        return
    if not (isinstance(error, WeftError) or hasattr(error, "__weft_told__") or _raised_by_user(error.__traceback__)):
        return
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = without_own_frames(each.__traceback__)
        each = each.__cause__


def _called_by_weft(depth: int) -> bool:
    """Whether the function `depth` calls outside of this one was called by Weft itself."""
    return str(sys._getframe(depth + 1).f_globals.get("__name__")).partition(".")[0] == "weft"


def shortened(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose errors have tracebacks without Weft's frames, where users call it."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            trace = error.__traceback__
            if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
                error.__traceback__ = None  # the call itself is wrong, as an argument is missing
            elif not _called_by_weft(1):
                shorten(error)
            raise

    return called


def shorten_face(face: dict[str, Any]) -> None:
    """Leave Weft's frames out of errors of all that a package offers: its functions, and its classes' methods.

    `face` is the namespace of the package, with its `__all__`. Modules inside of the package have the functions as they
    are; classes are the same everywhere.
    """
    classes = set()
    for name in face["__all__"]:
        value = face[name]
        if isinstance(value, FunctionType):
            face[name] = shortened(value)
        elif isinstance(value, type) and not issubclass(value, BaseException):
            classes |= {each for each in value.__mro__ if each.__module__.startswith("weft.")}
    for each in classes:
        for method, function in list(vars(each).items()):
            if method.startswith("_") and method not in _OPERATORS:
                continue
            if isinstance(function, FunctionType):
                setattr(each, method, shortened(function))
            elif isinstance(function, (classmethod, staticmethod)):
                setattr(each, method, type(function)(shortened(function.__func__)))
