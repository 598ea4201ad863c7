"""Progress of long work: one line on a terminal, written over; nothing where stderr is no terminal, and no threads.

    with progress("tuning matmul", 12) as step:
        for at, config in enumerate(configs):
            step(at)                          # tuning matmul: 3 of 12, 40 s left
            measure(config)

The line appears half a second after the work began, and is gone when it ends. Where work is part of other work, only
the outer one is shown. With `rich` (the extra `cli`) it has a bar.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress"]

DELAY = 0.5
"""Seconds of work that show nothing."""
EVERY = 0.1
"""Seconds between two lines."""
WIDTH = 79
"""Of the line without `rich`: a longer one would not be written over."""
_shown: list[_Line] = []

Step = Callable[..., None]
"""step(done, what): how much is done, and, where it changes, what is being done."""


@contextmanager
def progress(what: str, number: int | None = None) -> Iterator[Step]:
    """Show how far some work is, of `number` parts if that is known; what it gives is called after each part.

    >>> with progress("adding", 3) as step:
    ...     for i in range(3):
    ...         step(i)
    """
    if _shown or not _is_terminal():
        yield _nothing
        return
    line = _Line(what, number)
    _shown.append(line)
    try:
        yield line
    finally:
        _shown.remove(line)
        line.end()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _nothing(done: int | None = None, what: str | None = None) -> None:
    """Where nothing is shown."""


class _Line:
    """The line."""

    def __init__(self, what: str, number: int | None) -> None:
        self.what, self.number, self.done = what, number, 0
        self.begin = self.last = time.monotonic()
        self.bar: Any = None
        self.drawn = False

    def __call__(self, done: int | None = None, what: str | None = None) -> None:
        self.what, self.done = what or self.what, self.done if done is None else done
        now = time.monotonic()
        if now - self.begin < DELAY or (self.drawn and now - self.last < EVERY):
            return
        if not self.drawn:
            self.bar = _bar(self.number)
        self.drawn, self.last = True, now
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done, description=self.text(now), refresh=True)
            return
        print(f"\r\033[K{self.text(now)[:WIDTH]}", end="", file=sys.stderr, flush=True)

    def text(self, now: float) -> str:
        """What is done, how much of it, and how long it takes."""
        took = now - self.begin
        if self.number is None:
            return f"{self.what}: {self.done}, {took:.0f} s" if self.done else f"{self.what}, {took:.0f} s"
        left = f", {took / self.done * (self.number - self.done):.0f} s left" if self.done else f", {took:.0f} s"
        return f"{self.what}: {self.done} of {self.number}{left}"

    def end(self) -> None:
        """Take the line away."""
        if self.bar is not None:
            self.bar.stop()
        elif self.drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _bar(number: int | None) -> Any:
    """The bar of `rich`, begun; None where it is not installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    except ImportError:
        return None
    first = BarColumn(bar_width=24) if number is not None else SpinnerColumn()
    text = TextColumn("{task.description}", markup=False)
    bar = Progress(first, text, console=Console(stderr=True), transient=True, auto_refresh=False)
    bar.add_task("", total=number)
    bar.start()
    return bar
