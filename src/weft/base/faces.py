"""Faces of packages: names loaded when they are first used, and names gathered from the files that define them.

    __getattr__ = lazy_face(__name__, {"hazards": "Hazards Pending", "liveness": "Lifetime"})

A process that runs a kernel out of the cache then imports neither the frontend nor xDSL. The face says the same under
`TYPE_CHECKING` with plain imports, for type checkers and readers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from .frames import shortened, told


def publish(face: dict[str, Any], modules: str = "", internal: bool = False) -> None:
    """Write the `__all__` of a face that gathers names by `from .memory import *`: all that it has so far.

    `modules` names those of its modules that belong to them; `internal` takes names that begin with one `_` as well.
    A face imports below the call what it has and `import *` leaves out.  Type checkers take what comes by a star for
    public, as long as the face has no `__all__` that they see and cannot follow.

    >>> from __future__ import annotations
    >>> face = {"load": print, "_unwrap": print, "sys": sys, "math": sys, "annotations": annotations, "__doc__": ""}
    >>> publish(face, "math")
    >>> face["__all__"]
    ['load', 'math']
    """
    prefix = "__" if internal else "_"
    face["__all__"] = sorted(
        name
        for name, value in face.items()
        if name in modules.split()
        or not (
            name.startswith(prefix)
            or name == "TYPE_CHECKING"
            or isinstance(value, ModuleType)
            or any(value is tool for tool in (annotations, lazy_face, load, publish))
        )
    )


def load(name: str) -> Any:
    """A module of Weft's, or of Python's, that is loaded late, because most processes do without it.

    Given is its whole name, as `"weft.compiler.work"`, so that the test of rooms sees who loads what.
    """
    return importlib.import_module(name)


def lazy_face(package: str, names: Mapping[str, str], modules: Mapping[str, str] = {}) -> Callable[[str], Any]:
    """The `__getattr__` of a package: it loads a name's module when the name is first asked for, and keeps the name.

    `names` has the names, separated by blanks, that each module of the package gives; `modules` has modules by the
    name that they have here. They are the `__all__` of the package, with the names that it has already, unless it has
    one of its own.

    >>> face = lazy_face("json", {"decoder": "JSONDecoder JSONDecodeError"}, {"scan": "json.scanner"})
    >>> face("JSONDecodeError").__name__, face("scan").__name__
    ('JSONDecodeError', 'json.scanner')
    >>> face("nothing")
    Traceback (most recent call last):
    AttributeError: module 'json' has no attribute 'nothing'
    """
    places = {name: module for module, listed in names.items() for name in listed.split()}
    face = vars(sys.modules[package])
    if "__all__" not in face:
        publish(face)
        face["__all__"] += [*places, *modules]

    @shortened
    def __getattr__(name: str) -> Any:
        if name in modules:
            value: Any = load(modules[name])
        elif name in places:
            value = getattr(load(f"{package}.{places[name]}"), name)
        else:
            raise told(AttributeError(f"module {package!r} has no attribute {name!r}"))
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
