"""The native code that serves every kernel: workers, their jobs, how a grid is run, signals.

It is LLVM IR, so that it exists wherever LLVM does; locks and condition variables are the system's. Its files have
names where something stands in one place of Python:

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

from . import engine, pool_layout, signals, state
from .engine_code import engine_ir
from .places import place, system_function

FILES = "pool", "workers", "jobs", "signals"
"""Those for each system; one of `posix` and `windows` is there too."""
_PAUSES = dict.fromkeys(("x86_64", "amd64", "i686", "x86"), "@llvm.x86.sse2.pause()")
_PAUSES |= dict.fromkeys(("aarch64", "arm64"), "@llvm.aarch64.hint(i32 1)")


def text(machine: str = "") -> str:
    """The module, for a processor; for this one's if none is said."""
    system = SimpleNamespace(
        PAUSE=_PAUSES.get(machine or platform.machine().lower(), "@llvm.donothing()"),
        MONOTONIC=getattr(time, "CLOCK_MONOTONIC", 0),
    )
    sources = {"pool": pool_layout, "state": state, "signals": signals, "engine": engine, "system": system}
    files = *FILES, "windows" if sys.platform == "win32" else "posix"
    return "\n".join((*(filled(read(file), sources) for file in files), engine_ir(_core_function())))


def read(file: str) -> str:
    """A file of LLVM IR."""
    return "\n".join(data_lines(__name__, f"{file}.ll"))


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


def filled(text: str, sources: Mapping[str, Any]) -> str:
    """LLVM IR with the value of each name; an AttributeError or a KeyError says which there is not.

    >>> filled("%x = add i64 %y, $pool.LINE", {"pool": pool_layout})
    '%x = add i64 %y, 128'
    """
    return _Named(text).substitute(_Values(sources))


def _core_function() -> str:
    """The system's function that tells the core on which its caller runs, as LLVM IR; nothing where there is none."""
    name = "sched_getcpu"
    return place(f"system {name}") if sys.platform == "linux" and system_function(name) else ""
