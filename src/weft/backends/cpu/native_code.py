"""The native code that serves every kernel: workers, their jobs, how a grid is run, signals.

It is LLVM IR, so that it exists wherever LLVM does; locks and condition variables are the system's. Its files (`.ll`)
have names where something stands in one place of Python:

    %open = icmp eq i64 %post, $pool.OPENED      ; pool_layout.OPENED
"""

from __future__ import annotations

import platform
import re
import string
import sys
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from weft.base import data_lines

from . import calls, limits, pool_layout, signals, state
from .engine import Engine, Record, Turns
from .places import system_function
from .pool import scratch

_PAUSES = dict.fromkeys(("x86_64", "amd64", "i686", "x86"), "@llvm.x86.sse2.pause()")
_PAUSES |= dict.fromkeys(("aarch64", "arm64"), "@llvm.aarch64.hint(i32 1)")


def text(machine: str = "") -> str:
    """The module, for a processor; for this one's if none is said."""
    tells_core = sys.platform == "linux" and system_function("sched_getcpu")
    system = SimpleNamespace(
        PAUSE=_PAUSES.get(machine or platform.machine().lower(), "@llvm.donothing()"),
        MONOTONIC=getattr(time, "CLOCK_MONOTONIC", 0),
        CORE='call i32 @"at system sched_getcpu"()' if tells_core else "add i32 -1, 0",
    )
    files = "words", "pool", "workers", "jobs", "engine", "grids", "turns", "signals"
    return filled(*files, "windows" if sys.platform == "win32" else "posix", system=system)


def filled(*files: str, **more: Any) -> str:
    """A module of files of LLVM IR."""
    return "\n".join(named("\n".join(data_lines(__name__, f"{file}.ll")), {**SOURCES, **more}) for file in files)


SOURCES = {
    "pool": pool_layout,
    "state": state,
    "signals": signals,
    "limits": limits,
    "engine": Engine,
    "record": Record,
    "turns": Turns,
    "scratch": scratch,
    "calls": calls,
    "book": calls.Book,
    "plan": calls.Plan,
    "check": calls.Check,
    "kind": calls.Kind,
    "frame": calls.Frame,
    "tensors": calls.Tensors,
    "ndarray": calls.NDArray,
}
"""What names in files are of."""


class _Named(string.Template):
    flags = re.NOFLAG
    idpattern = r"[a-z]+\.[A-Z][A-Z_]*"


class _Values(dict[str, Any]):
    """What `$source.NAME` stands for."""

    def __init__(self, sources: Mapping[str, Any]) -> None:
        self._sources = sources

    def __missing__(self, name: str) -> Any:
        source, _, constant = name.partition(".")
        return getattr(self._sources[source], constant)


def named(text: str, sources: Mapping[str, Any]) -> str:
    """LLVM IR with the value of each name; an AttributeError or a KeyError says which there is not.

    >>> named("%x = add i64 %y, $pool.LINE", SOURCES)
    '%x = add i64 %y, 128'
    """
    return _Named(text).substitute(_Values(sources))
