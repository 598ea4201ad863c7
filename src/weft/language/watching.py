"""What was read for a key, and whether it is still what it was: asked at each launch.

    watched["width", id(vars(conf))] = (kept(4), vars(conf))     # conf.width, read while a kernel was compiled
    changed(watched)                                             # ("width", 4, 8) after conf.width = 8

Everything that a key came by is noted with the place where it stands: names in modules and closures, members of
classes, the parts of functions. Asking costs a look at each place. What cannot change in place (numbers, texts,
functions, whose parts are watched themselves) is told by its identity; of all else the key is made again.
"""

from __future__ import annotations

import abc
import copy
import types
from enum import Enum
from functools import partial
from typing import Any, Final

from . import keys
from .keys import is_constexpr_value, is_jit, kind_of_module
from .references import MISSING

Watched = dict[tuple[str, int], tuple[Any, Any]]
"""(name, id of where it stands) -> (value, where it stands)"""

BOOKKEEPING: Final = frozenset(
    (
        *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate__", "__annotate_func__"),
        *("__annotations_cache__", "__firstlineno__", "__static_attributes__", "_abc_impl", "__abstractmethods__"),
        *("hash_attrs", "__aggregate_defaults__", "__slotnames__", "__wrong__"),
    )
)
"""What Python and `aggregate` keep in a class; all that counts of it is found elsewhere."""
_NUMBERS: Final = frozenset((int, str, bool, bytes, float, complex, range, type(None), type(...)))
_FIXED: Final = _NUMBERS.union(
    (types.CodeType, types.FunctionType, types.ModuleType, staticmethod, classmethod, property),
    (
        types.MemberDescriptorType,
        types.GetSetDescriptorType,
        types.MethodDescriptorType,
        types.WrapperDescriptorType,
        types.ClassMethodDescriptorType,
    ),
)
"""Classes of values that do not change in place, but for the code that they are made of."""


class Attributes:
    """The attributes of a thing that a name stands for, asked like a dict: `Attributes(globals, "A")` for `A.x.y`."""

    __slots__ = ("_path", "_where")

    def __init__(self, where: Any, path: tuple[str, ...]) -> None:
        self._where, self._path = where, path

    def get(self, name: str, default: Any) -> Any:
        """What is at the end of the path now."""
        value = self._where.get(self._path[0], MISSING)
        try:
            for attribute in self._path[1:]:
                value = getattr(value, attribute)
        except AttributeError:
            return default
        return value


class Members:
    """Which members a class has, and which classes were told to be its own; asked like a dict, under no name."""

    __slots__ = ("_cls", "_names", "_seen")
    _names: tuple[str, ...]
    _seen: tuple[frozenset[str], frozenset[int]]

    def __init__(self, cls: type) -> None:
        self._cls, self._names, self._seen = cls, (), (frozenset(), frozenset())
        self.get("", None)

    def get(self, name: str, default: Any) -> Any:
        """The same object as long as the answer is the same."""
        names = tuple(vars(self._cls))
        if names != self._names or "_abc_impl" in vars(self._cls):
            self._names = names
            now = frozenset(names) - BOOKKEEPING, frozenset(map(id, registered(self._cls)))
            if now != self._seen:
                self._seen = now
        return self._seen


class Parts:
    """The attributes of a function or a class that a program can replace, asked like a dict: its code, say."""

    __slots__ = ("get",)

    def __init__(self, owner: Any) -> None:
        self.get = partial(getattr, owner)


def registered(cls: type) -> list[type]:
    """The classes that an abstract base class was told are its own (`register`)."""
    if "_abc_impl" not in vars(cls):
        return []
    told = getattr(abc, "_get_dump", None)  # of CPython, as there is no function that is everybody's
    return [] if told is None else [sub for sub in (reference() for reference in told(cls)[0]) if sub is not None]


class _Values(keys.Keys):
    """Keys in which code counts by its identity: what it is made of is watched where it was found."""

    def jit(self, fn: Any) -> keys.Key:
        if hasattr(fn, "__func__"):
            return "bound", self.of(fn.__self__), self.of(fn.__func__)
        return self.opaque(fn)

    def function(self, fn: Any) -> keys.Key:
        return self.opaque(fn)

    def class_(self, cls: type) -> keys.Key:
        return self.opaque(cls)


class Snapshot:
    """A value that may change in place, or be replaced by an equal one: its key at the time."""

    __slots__ = ("_text", "key")

    def __init__(self, value: Any) -> None:
        self.key = _Values().of(value)
        try:
            self._text = repr(value)
        except Exception:  # a user's
            self._text = f"a value of type {type(value).__name__}"

    def __repr__(self) -> str:
        return self._text


def is_fixed(value: Any) -> bool:
    """Whether nothing of a value can change but its parts that are watched by themselves."""
    kind = value.__class__
    if kind in _FIXED or isinstance(value, type) or is_jit(value):
        return True
    if kind is tuple or kind is frozenset:
        return all(map(is_fixed, value))
    if kind is types.BuiltinFunctionType:
        return value.__self__ is None or isinstance(value.__self__, (types.ModuleType, type))
    if kind is types.MethodType:
        return is_fixed(value.__self__)
    if isinstance(value, Enum):  # its class is watched
        return is_fixed(value.value) and not keys.attributes_of_member(value)
    if keys.is_aggregate(value):
        return False
    module = kind_of_module(kind.__module__)
    if module == "large" or (module == "versioned" and not keys.is_array(value)):
        return not is_constexpr_value(value)
    return False


def kept(value: Any) -> Any:
    """What to remember of a value, to tell later whether another one is still it."""
    if type(value).__name__ == "constexpr" and is_fixed(value.value):
        return copy.copy(value)
    return value if is_fixed(value) else Snapshot(value)


def is_still(now: Any, then: Any) -> bool:
    """Whether a value is what it was, given what was kept of it."""
    if now is then:
        return True
    kind = type(then)
    if kind is Snapshot:
        return bool(_Values().of(now) == then.key)
    if type(now) is not kind:
        return False
    if kind.__name__ == "constexpr":
        return is_still(now.value, then.value)
    if kind is types.MethodType:
        return now.__func__ is then.__func__ and is_still(now.__self__, then.__self__)
    if kind is tuple:
        return len(now) == len(then) and all(map(is_still, now, then))
    if isinstance(now, type) or is_jit(now):
        return False
    module = "versioned" if kind in _NUMBERS or kind is frozenset else kind_of_module(kind.__module__)
    if module == "versioned":  # element types, say, which are made anew
        return bool(keys.key_of(now) == keys.key_of(then))
    try:
        return module == "large" and bool(now == then)
    except Exception:
        return False


def changed(watched: Watched) -> tuple[str, Any, Any] | None:
    """The first of what is watched that is no longer what it was: (name, then, now)."""
    for (name, _), (value, where) in watched.items():
        now = where.get(name, MISSING)
        if now is not value and not is_still(now, value):
            return name, value, now
    return None
