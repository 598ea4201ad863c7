"""One malformed input and the verdict on what Weft does with it.

PASS          an error of Weft's with a place in the source, a text of its own and a hint
UNSUPPORTED   the same, and it says that a target cannot do it, or has too little of something
UNHINTED      the same as one of these two, but without a hint
VALID         no error: the input is right after all
MISMATCH      an error of Weft's, but without a place, or with the text of an error of Python's
CRASH         any other exception, a fault that Weft reports of itself, the end of the process
TIMEOUT       no error within SECONDS of the process's own time, or no kernel within LONGEST
"""

from __future__ import annotations

import contextlib
import io
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import weft
from weft import cli_layout
from weft.base import CompilationError, CompilerCrash, OutOfResources, Unsupported, WeftError
from weft.compiler import IRSource
from weft.runtime import knobs

from . import expressions, kernels, texts

__all__ = ["FINE", "KINDS", "SECONDS", "shown", "verdict"]

FINE = ("PASS", "UNSUPPORTED", "VALID")
"""The verdicts that nobody has to look at one by one."""

SECONDS = 5.0
LONGEST = 60.0
LEAKS = re.compile(
    r"object is not (?:iterable|subscriptable|callable)|index out of range|object has no attribute"
    r"|values to unpack(?! \(expected \d+, got \d+\))"
    r"|not supported between instances|unhashable|recursion depth|invalid literal for int|'NoneType' object"
    r"|at 0x[0-9a-f]{6}|(?:Key|Assertion|Index|Attribute|Recursion|UnboundLocal|Name)Error|<weft\."
    r"|cannot be interpreted as an integer|is of a kind that the operation cannot have|VerifyException|\bxdsl\b"
)
"""Texts of Python's own errors, which are about Weft's code rather than the input."""


class _TimeOut(BaseException):
    """Raised by the alarm: nothing catches it by mistake."""


def _ring(*_: object) -> NoReturn:
    raise _TimeOut


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _compile_text(kind: str, seed: int) -> None:
    target = ("cuda:80", "cuda:90", "cpu")[seed % (3 if kind == "ttir" else 2)]
    weft.compile(IRSource(texts.text(kind, seed), path=f"{seed}.{kind}"), target)


def _compile_kernel(seed: int) -> None:
    made = kernels.kernel(seed)
    weft.compile(made.source(), made.target, made.options)


class _Said(Exception):
    """What `weft layout` has printed as an error; argparse's, which says how it is used, needs no place."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.span = "usage:" in message or "<layout>:1:" in message or None


def _show_expression(seed: int) -> None:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            code: object = cli_layout.main(expressions.command(seed))
        except SystemExit as error:
            code = error.code
    if code == 2 and said.getvalue().strip():
        raise _Said(said.getvalue())
    if code != 0:
        raise AssertionError(f"exit code {code}, said {said.getvalue()[:200]!r}")


KINDS: dict[str, Callable[[int], None]] = {
    "kernels": _compile_kernel,
    "ttir": lambda seed: _compile_text("ttir", seed),
    "ttgir": lambda seed: _compile_text("ttgir", seed),
    "layouts": _show_expression,
}
"""What is malformed, and how a seed of it is tried; anything that goes wrong is raised."""


def verdict(kind: str, seed: int) -> tuple[str, str]:
    """The verdict and what was said."""
    begin = time.process_time()
    try:
        with warnings.catch_warnings(), knobs.cache.scope():
            knobs.cache.disabled = True
            warnings.simplefilter("ignore")
            with _alarm(), contextlib.redirect_stdout(io.StringIO()):  # `static_print`
                KINDS[kind](seed)
        return "VALID", "right after all"
    except _TimeOut:
        return "TIMEOUT", f"no answer within {LONGEST:g} s"
    except Exception as error:
        said, what = _judged(error)
        took = time.process_time() - begin
        if said in (*FINE, "UNHINTED") and took > SECONDS:
            return "TIMEOUT", f"{took:.1f} s until {what}"
        return said, what


def _judged(error: Exception) -> tuple[str, str]:
    """The verdict on an error."""
    told = f"{type(error).__name__}: {_first(getattr(error, 'message', '') or str(error))}"
    if not isinstance(error, WeftError | _Said) or isinstance(error, CompilerCrash):
        return "CRASH", told
    text = error.message
    leak = LEAKS.search(text)
    if leak:
        return "MISMATCH", f"leaks {leak[0]!r}: {_first(text)}"
    if isinstance(error, CompilationError | _Said) and error.span is None:
        if not isinstance(error, Unsupported):
            return "MISMATCH", f"no place: {_first(text)}"
    if not (getattr(error, "hint", None) or "hint: " in text or "usage:" in text):  # argparse's says what is right
        return "UNHINTED", told
    return "UNSUPPORTED" if isinstance(error, Unsupported | OutOfResources) else "PASS", told


def _first(text: str) -> str:
    return next(iter(text.splitlines()), "")[:160]


def shown(kind: str, seed: int) -> str:
    """The input of a seed."""
    if kind == "layouts":
        return repr(expressions.command(seed))
    if kind == "kernels":
        made = kernels.kernel(seed)
        return f"{made.text}\n# {made.signature} {made.constants} {made.target}"
    return texts.text(kind, seed)


def raised(kind: str, seed: int) -> Any:
    """Try it with nothing caught."""
    with knobs.cache.scope():
        knobs.cache.disabled = True
        KINDS[kind](seed)
