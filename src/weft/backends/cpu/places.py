"""Names, in native code that serves every kernel, for what is at another address in each process.

    place("python Py_DecRef")     in LLVM IR, the address of a function of Python's C interface
    place("object tuple")         that of a builtin object
    place("system sched_yield")   that of a function of the system
    place("words engine")         that of something that a module has said (`give`)

The linker puts the addresses in, so that the object of such code can be kept on disk: to make it takes longer than all
else that the first launch of a process does.
"""

from __future__ import annotations

import builtins
import ctypes
import sys
from typing import Any

from .keeping import kept_at
from .loader import loader

_PREFIX = '@"at '
_given: dict[str, int] = {}


def place(name: str) -> str:
    """An address, as a constant of LLVM IR."""
    return f'{_PREFIX}{name}"'


def give(name: str, address: int) -> None:
    """Say where something is in this process; it stays there."""
    _given[name] = address


def system_function(name: str) -> int:
    """The address of a function of the system's; 0 where it has none of that name."""
    if sys.platform == "win32":
        function = getattr(ctypes.WinDLL("kernel32"), name, None)
    else:
        function = getattr(ctypes.CDLL(None), name, None)
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _address(name: str) -> int:
    kind, _, rest = name.partition(" ")
    if kind == "python":
        return ctypes.cast(getattr(ctypes.pythonapi, rest), ctypes.c_void_p).value or 0
    if kind == "object":
        return id(getattr(builtins, rest))
    return system_function(rest) if kind == "system" else _given[name]


def _names_in(text: str) -> list[str]:
    return sorted({piece.split('"', 1)[0] for piece in text.split(_PREFIX)[1:]})


def declared(text: str) -> str:
    """A module with what it has of places declared."""
    return text + "".join(f"{place(name)} = external global i8\n" for name in _names_in(text))


def kept(name: str) -> tuple[bytes, list[str]] | None:
    """The object of a module, and the places that it refers to, if it was kept."""
    store, key = kept_at(name)
    entry = store.get(key) if store is not None else None
    return None if entry is None else (entry[1]["object"], entry[0]["places"])


def made(name: str, text: str) -> tuple[bytes, list[str]]:
    """The object of a module, which is kept."""
    code, places = loader().compile(declared(text)), _names_in(text)
    store, key = kept_at(name)
    if store is not None:
        store.put(key, {"name": f"native.{name}", "places": places}, {"object": code})
    return code, places


def load_native(code: bytes, places: list[str], functions: list[str]) -> tuple[Any, list[int]]:
    """Load an object: a handle, and the addresses of functions."""
    return loader().load(code, functions, {f"at {name}": _address(name) for name in places})
