"""Launches watched and not done: what a script launches, for who explains, ranks or writes it.

    class Printed(Watched):
        def note(self, kernel, grid, args, kwargs):
            print(kernel.__name__)

    with Printed("cuda:90"):
        main()                              # arrays stay as they are
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Self

from weft.base import progress

from . import compiling

SIMULATED = "sim:"


class Watched:
    """A `with` in which launches are handed to `note` and not done; with a name only those of kernels that have it."""

    what = "running the script"
    """What a terminal says while it takes long."""

    def __init__(self, target: str, name: str | None = None) -> None:
        self.target, self.name = target.removeprefix(SIMULATED), name
        self.number = 0
        """Of launches, those of other kernels than the one asked for included."""
        self._left = ExitStack()

    def __enter__(self) -> Self:
        self._left.enter_context(compiling.target(self.target))
        self._told = self._left.enter_context(progress(self.what))
        self._before, compiling.watcher = compiling.watcher, self._launched
        return self

    def __exit__(self, *error: Any) -> None:
        compiling.watcher = self._before
        self._left.close()

    def is_wanted(self, kernel: Any) -> bool:
        """Whether a kernel has the name that is asked for."""
        return self.name is None or self.name in kernel.__name__

    def note(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Do something about a launch."""

    def _launched(self, kernel: Any, target: str, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.number += 1
        self._told(self.number, f"{self.what}, launches, {kernel.__name__}")
        if self.is_wanted(kernel):
            self.note(kernel, grid, args, kwargs)
