"""Public names of Triton 3.6 to 3.8, and a few of Triton 2 that its tests still import, that Weft has nothing for: they
can be imported, and say so when they are used.

    from triton.runtime.build import compile_module_from_src
    compile_module_from_src(...)
    Unsupported: triton.runtime.build.compile_module_from_src, which belongs to building C and ..., is not supported

So a file that imports one for a part of its work runs all the rest.  Modules that Weft does not have are made of this
table; one that it has gets these names besides its own when it is imported under Triton's name.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from weft.base import Unsupported, data_lines


def _modules() -> dict[str, dict[str, str]]:
    """Of absent.txt: a line is what names belong to, indented a module and its names, further indented more of them."""
    modules: dict[str, dict[str, str]] = {}
    owner, names = "", dict[str, str]()
    for line in data_lines(__name__, "absent.txt"):
        words = line.split()
        if not line.startswith(" "):
            owner = line
        else:
            if not line.startswith("   "):
                names = modules.setdefault(words.pop(0), {})
            names.update(dict.fromkeys(words, owner))
    return modules


MODULES = _modules()
"""module -> name -> what it belongs to."""


class _NoAttribute(Unsupported, AttributeError):
    """An attribute of an unsupported name: `hasattr` says that there is none."""


class _Unsupported(type):
    """The class of such names: classes themselves, so that `isinstance` and subclasses work; nothing else does."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise _refusal(cls)

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):  # what Python and tools look for in any object
            raise AttributeError(name)
        raise _refusal(cls, _NoAttribute)

    def __iter__(cls) -> NoReturn:
        raise _refusal(cls)

    def __getitem__(cls, key: Any) -> NoReturn:
        raise _refusal(cls)


def _refusal(name: _Unsupported, kind: type[Unsupported] = Unsupported) -> Unsupported:
    origin = next(base for base in reversed(name.__mro__) if type(base) is _Unsupported)  # it may be a subclass
    return kind(
        f"{origin.__module__}.{origin.__name__}, which belongs to {origin.__doc__},",
        hint="Weft, which runs as triton here, has nothing for it",
    )


def add_names(module: ModuleType, name: str) -> None:
    """Give a module the names that Triton's module `name` has besides."""
    for name_there, owner in MODULES.get(name, {}).items():
        if name_there not in vars(module):
            setattr(module, name_there, _Unsupported(name_there, (), {"__module__": name, "__doc__": owner}))


def make_module(name: str) -> ModuleType:
    """A module that consists of such names."""
    module = ModuleType(name, f"Names of {name} that Weft has nothing for.")
    module.__path__ = []
    add_names(module, name)
    return module
