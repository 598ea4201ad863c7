"""Constants of a specialisation as JSON, and back: what `preload` makes of what a hook was told.

    as_json((tl.float32, 4))         {"tuple": [{"dtype": "fp32"}, 4]}

Functions and classes travel as their names, functions with their cache keys: of those that share a name, `preload`
takes the one that was meant, and a function that has been edited since is refused.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any

from weft.base import SpecializationError
from weft.language.callable import JITCallable
from weft.language.dtypes import dtype
from weft.language.keys import is_constexpr_value


def as_json(value: Any) -> Any:
    """A constant as JSON; what cannot be told so is kept as a text that `from_json` refuses."""
    if is_constexpr_value(value):
        return as_json(value.value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) in (tuple, list):
        return {type(value).__name__: [as_json(v) for v in value]}
    if type(value) is dtype:
        return {"dtype": value.name}
    if isinstance(value, JITCallable):
        return {"function": [value.__module__, value.__qualname__, value.current_key()]}
    if isinstance(value, type):
        return {"class": _named(value)}
    if isinstance(value, Enum):
        return {"member": [_named(type(value)), value.name]}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"named": [_named(type(value)), [as_json(v) for v in value]]}
    if dataclasses.is_dataclass(value):
        fields = {f.name: as_json(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}
        return {"dataclass": [_named(type(value)), fields]}
    return {"other": f"{type(value).__module__}.{type(value).__qualname__}"}


def _named(cls: type) -> list[str]:
    return [cls.__module__, cls.__qualname__]


def from_json(value: Any) -> Any:
    """The constant. SpecializationError where this process has nothing like it."""
    if not isinstance(value, Mapping):
        return value
    ((kind, facts),) = value.items()
    if kind in ("tuple", "list"):
        items = [from_json(v) for v in facts]
        return tuple(items) if kind == "tuple" else items
    if kind == "dtype":
        return dtype(facts)
    if kind == "function":
        return _function(*facts)
    if kind == "class":
        return _class(facts)
    if kind == "member":
        return _class(facts[0], kind="an Enum", fits=lambda cls: issubclass(cls, Enum))[facts[1]]
    if kind == "named":
        named = _class(
            facts[0], kind="a named tuple", fits=lambda cls: issubclass(cls, tuple) and hasattr(cls, "_fields")
        )
        return named(*(from_json(v) for v in facts[1]))
    if kind == "dataclass":
        made_of = _class(facts[0], kind="a dataclass", fits=dataclasses.is_dataclass)
        return made_of(**{name: from_json(v) for name, v in facts[1].items()})
    raise SpecializationError(
        f"Specialization data has a constant of type {facts}, which cannot be preloaded",
        hint="kernels with such constants are compiled when they are launched, or by warmup",
    )


def _function(module: str, name: str, key: str) -> JITCallable:
    functions = list(JITCallable.by_name.get(f"{module}.{name}", ()))
    for function in functions:
        if function.current_key() == key:
            return function
    told = "has changed since" if functions else "is not here"
    raise SpecializationError(
        f"Specialization data has the function {name} of module {module} as a constant, and that {told}",
        hint="import its module before preload, or launch the kernel: it is then compiled anew",
    )


def _class(place: Sequence[str], kind: str = "a class", fits: Callable[[type], bool] = lambda cls: True) -> Any:
    """A class by its name. The text may come from a file: what it calls by name is nothing but a class of that kind."""
    module, name = place
    try:
        value = attrgetter(name)(sys.modules[module])
    except (KeyError, AttributeError):
        raise SpecializationError(
            f"Specialization data has the class {name} of module {module}, and that is not here",
            hint="import its module before preload",
        ) from None
    if not isinstance(value, type) or not fits(value):
        raise SpecializationError(f"Specialization data says that {name} of module {module} is {kind}, but it is not")
    return value
