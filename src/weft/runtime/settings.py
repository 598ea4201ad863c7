"""What settings are made of: groups of values, each read from the environment where a program has not set it.

    class Mine(base_knobs):
        colour = env_str("MY_COLOUR", "blue")
        level = env_int("MY_LEVEL", 3)

    mine = Mine()
    mine.colour                 # MY_COLOUR as it is now, or "blue"
    mine.colour = "red"         # from now on, here and (by MY_COLOUR) in processes that are started
    mine.colour = env           # as the environment says again
    with mine.scope(): ...      # whatever is set inside is set back at the end, in the environment too

The names are those of `triton.knobs`, where scripts take them from.  A setting may have several variables, of which the
first that is set counts, and the last is the one that is written.  The environment is read at each access, which takes
a microsecond; what every launch asks for is `kept`: read when it is first asked for, and not written.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from weft.base import LaunchError, shortened, told

T = TypeVar("T")
TRUE = ("1", "true", "yes", "on", "y")
_NOTHING: Any = object()

propagates: list[Callable[[], bool]] = [lambda: True]
"""Whether what is set goes into the environment: the last one says so (`knobs.propagate_env`)."""


class Env:
    """The value `knobs.env`: assign it to a setting to take the environment's value again."""

    def __repr__(self) -> str:
        return "knobs.env"


env = Env()


def setenv(key: str, value: str | None) -> None:
    """Set a variable of the environment, or take it away, where settings go there."""
    if not propagates[-1]():
        return
    if value is not None:
        os.environ[key] = value
    else:
        os.environ.pop(key, None)


def toenv(value: Any) -> tuple[str | None] | None:
    """(the text of a value,), (None,) for no value; None where it has no text."""
    if value is None:
        return (None,)
    if type(value) is bool:
        return ("1" if value else "0",)
    return (str(value),) if type(value) in (str, int, float) else None


class _Setting(Generic[T]):
    """A value with its variables, and how to read them."""

    name = ""

    def __init__(self, key: str) -> None:
        self.keys: tuple[str, ...] = tuple(key.split())
        self.key: str = self.keys[-1]

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def text(self) -> str | None:
        """What the environment says, if anything."""
        return next((text for key in self.keys if (text := os.environ.get(key))), None)

    def get(self) -> T:
        """The value that the environment gives, or the default."""
        text = self.text()
        if text is None:
            return self.default_value()
        try:
            return self.read(text)
        except ValueError as error:
            key = next(key for key in self.keys if os.environ.get(key))
            raise LaunchError(f"the environment variable {key} is {text!r}: {error}") from None

    def read(self, text: str) -> T:
        """The value that a text stands for; ValueError if it is none."""
        raise NotImplementedError

    def default_value(self) -> T:
        """The value where the environment has none."""
        raise NotImplementedError


class env_base(_Setting[T]):
    """A setting that follows the environment until a program sets it."""

    @overload
    def __get__(self, group: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self, group: object, owner: type | None = None) -> T: ...
    def __get__(self, group: Any, owner: type | None = None) -> Any:
        if group is None:
            return self
        value = group.__dict__.get(self.name, _NOTHING)
        return self.get() if value is _NOTHING else self.transform(value)

    def __set__(self, group: Any, value: Any) -> None:
        if isinstance(value, Env):
            group.__dict__.pop(self.name, None)
            return
        group.__dict__[self.name] = value
        text = toenv(value)
        if text is not None and not group.__dict__.get("_copied"):
            for key in self.keys:
                if key == self.key or key in os.environ:  # which would come before it
                    setenv(key, text[0])

    def __delete__(self, group: Any) -> None:
        group.__dict__.pop(self.name, None)

    def transform(self, value: Any) -> T:
        """What a program gets of what it has set."""
        return value  # type: ignore[no-any-return]


class _Read(_Setting[T]):
    """How the text of a setting is read, and its default, as arguments."""

    def __init__(self, key: str, read: Callable[[str], T], default: T) -> None:
        super().__init__(key)
        self._read, self.default = read, default

    def read(self, text: str) -> T:
        """What the function that was given makes of the text."""
        return self._read(text)

    def default_value(self) -> T:
        """The default that was given."""
        return self.default


class env_read(_Read[T], env_base[T]):
    """A setting of any kind: how its text is read, and the default."""


def flag(text: str) -> bool:
    """Whether a text says yes."""
    return text.strip().lower() in TRUE


class env_str(env_read[str]):
    """A text."""

    def __init__(self, key: str, default: str) -> None:
        super().__init__(key, str, default)


class env_bool(env_read[bool]):
    """Yes (1, true, yes, on, y) or no."""

    def __init__(self, key: str, default: bool = False) -> None:
        super().__init__(key, flag, default)


class env_int(env_read[int]):
    """A whole number."""

    def __init__(self, key: str, default: int = 0) -> None:
        super().__init__(key, int, default)


class env_opt_str(env_read[str | None]):
    """A text, or None."""

    def __init__(self, key: str) -> None:
        super().__init__(key, str, None)


class env_opt_path(env_opt_str):
    """A path, or None; an empty text is the answer that no file is meant."""

    def text(self) -> str | None:
        """What the environment says, empty or not."""
        return next((os.environ[key] for key in self.keys if key in os.environ), None)


class env_opt_bool(env_read[bool | None]):
    """Yes, no, or None where nothing is said."""

    def __init__(self, key: str) -> None:
        super().__init__(key, flag, None)


class env_str_callable_default(env_base[str]):
    """A text, whose default is worked out when it is asked for."""

    def __init__(self, key: str, default_factory: Callable[[], str]) -> None:
        super().__init__(key)
        self.default_factory = default_factory

    def read(self, text: str) -> str:
        """As it is."""
        return text

    def transform(self, value: Any) -> str:
        """What was set; None is as if nothing was."""
        return self.get() if value is None else value

    def default_value(self) -> str:
        """Worked out now."""
        return self.default_factory()


class env_class(env_base[Any]):
    """A class, written MODULE:CLASS, that has a class of some name among its bases; or None."""

    def __init__(self, key: str, type: str) -> None:
        super().__init__(key)
        self.type = type

    def read(self, text: str) -> Any:
        """Import it."""
        module, colon, name = text.partition(":")
        if not colon:
            raise ValueError("expected MODULE:CLASS")
        try:
            value = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(str(error)) from error
        if not isinstance(value, type) or all(c.__name__ != self.type for c in value.__mro__):
            raise ValueError(f"it is no {self.type}")
        return value

    def default_value(self) -> None:
        """None."""


@dataclass(frozen=True)
class NvidiaTool:
    """A program of NVIDIA's, with its version ("13.0")."""

    path: str
    version: str

    @staticmethod
    @functools.lru_cache
    def from_path(path: str) -> NvidiaTool | None:
        """The program at a path, if it runs and tells its version."""
        subprocess = importlib.import_module("subprocess")
        try:
            told = subprocess.run([path, "--version"], capture_output=True, check=True, timeout=60).stdout
        except (subprocess.SubprocessError, OSError):
            return None
        version = re.search(r"release (\d+\.\d+)", told.decode(errors="replace"))
        return NvidiaTool(path, version[1]) if version else None

    def __fspath__(self) -> str:
        return self.path


class env_nvidia_tool(env_base[NvidiaTool]):
    """A program of NVIDIA's: set by its path; where that is none, the one on PATH or in a CUDA installation."""

    find: ClassVar[Callable[[str], str | None]] = staticmethod(lambda name: None)
    """Where a tool of a CUDA installation is (see `knobs`)."""

    def __init__(self, binary: str) -> None:
        super().__init__(f"TRITON_{binary.upper().replace('-', '_')}_PATH")
        self.binary = binary

    def read(self, text: str) -> NvidiaTool:
        """The program at a path, or else the one that is found."""
        tool = NvidiaTool.from_path(text)
        return tool if tool is not None else self.default_value()

    def transform(self, value: Any) -> NvidiaTool:
        """The same of what a program has set."""
        return self.default_value() if value is None else self.read(os.fspath(value))

    def default_value(self) -> NvidiaTool:
        """The one that is found."""
        path = type(self).find(self.binary)
        tool = NvidiaTool.from_path(path) if path else None
        if tool is None:
            raise LaunchError(f"Cannot find {self.binary}", hint=f"{self.key} names it, or PATH has its folder")
        return tool


class kept(_Read[T]):
    """A setting that every launch asks for: read once, kept among the group's own values, and not written."""

    def __get__(self, group: Any, owner: type | None = None) -> T:
        # A non-data descriptor: what is found is put into the instance, where the next look-up finds it directly.
        value = self.get()
        if group is not None:
            group.__dict__[self.name] = value
        return value


class base_knobs:
    """Settings that belong together."""

    _knobs: ClassVar[dict[str, _Setting[Any]]] = {}

    def __init_subclass__(cls) -> None:
        cls._knobs = {name: value for name, value in vars(cls).items() if isinstance(value, _Setting)}

    @shortened
    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Env):
            self.__dict__.pop(name, None)
        elif name in self._knobs or name in self.__dict__ or hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:
            names = ", ".join(sorted(self._names()))
            raise told(AttributeError(f"there is no setting {name!r}; there are {names}"))

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)

    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self._knobs, *(name for name in self.__dict__ if name != "_copied")]))

    @property
    def knobs(self) -> dict[str, Any]:
        """The settings and their values."""
        return {name: getattr(self, name) for name in self._names()}

    @property
    def knob_descriptors(self) -> Mapping[str, _Setting[Any]]:
        """The settings: `keys` are their variables."""
        return dict(self._knobs)

    def is_set(self, name: str) -> bool:
        """Whether a program or the environment gives a value."""
        return self.__dict__.get(name) is not None or self._knobs[name].text() is not None

    def copy(self) -> Self:
        """A group of its own with the same values; what is set in it stays out of the environment."""
        other = type(self)()
        other.__dict__.update(self.__dict__, _copied=True)
        return other

    def reset(self) -> Self:
        """Take every value from the environment again."""
        for name in self._knobs:
            self.__dict__.pop(name, None)
        return self

    refresh = reset

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Whatever is set inside is set back at the end, and so are its variables."""
        before = dict(self.__dict__)
        variables = {key: os.environ.get(key) for setting in self._knobs.values() for key in setting.keys}
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)
            for key, text in variables.items():
                if text is None:
                    os.environ.pop(key, None)
                elif os.environ.get(key) != text:
                    os.environ[key] = text
