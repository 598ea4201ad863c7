"""The classes that a kernel's type is told by; what type checkers see of them is in `launches.pyi`.

`JITFunction[F]` is a kernel made of a function of the type `F`, and can be launched as `F` says, with options
(`Launchable`). Of a kernel whose parameters are chosen for it (`Choosing`) a launch may leave some out.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

F = TypeVar("F")
Fn = TypeVar("Fn")
Grid = Any
Kernel = Any


class Launchable(Generic[F]):
    """A kernel that is launched with all its arguments."""


class Choosing(Generic[F]):
    """A kernel some of whose parameters are chosen by `autotune` or `heuristics`."""
