"""What code of Python asks for from outside, by its instructions: names, attributes of what they mean, imports.

>>> import math
>>> def area(r): return math.pi * r ** 2
>>> reads_of(area.__code__).paths
(('math', 'pi'),)
"""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType
from typing import Any, Final, NamedTuple

_NAMES: Final = frozenset(
    (
        "LOAD_GLOBAL",
        "LOAD_NAME",
        "LOAD_DEREF",
        "LOAD_CLASSDEREF",
        "LOAD_FROM_DICT_OR_GLOBALS",
        "LOAD_FROM_DICT_OR_DEREF",
    )
)
_ATTRIBUTES: Final = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_BETWEEN: Final = frozenset(("CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PUSH_NULL"))


class Reads(NamedTuple):
    """Names with the attributes that are taken of them (`a`, `a.b.c`), modules imported within, globals set; and every
    name of an attribute, of whatever it is taken, and texts that may be names of some.
    """

    paths: tuple[tuple[str, ...], ...]
    imports: tuple[str, ...]
    sets: tuple[str, ...]
    attributes: frozenset[str]


@lru_cache(maxsize=2048)
def reads_of(code: CodeType) -> Reads:
    """What a function and those within it read."""
    paths: dict[tuple[str, ...], None] = {}
    imports: dict[str, None] = {}
    sets: dict[str, None] = {}
    attributes: set[str] = set()
    path: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in _ATTRIBUTES:
            attributes.add(instruction.argval)
        if name in _ATTRIBUTES and path:
            paths.pop(path, None)
            path = (*path, instruction.argval)
            paths[path] = None
        elif name in _NAMES:
            path = (instruction.argval,)
            if name == "LOAD_GLOBAL" or instruction.argval not in code.co_cellvars:
                paths[path] = None
            else:
                path = ()
        elif name not in _BETWEEN:
            path = ()
            if name == "IMPORT_NAME":
                imports[instruction.argval] = None
            elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                sets[instruction.argval] = None
    for inner in code.co_consts:
        if isinstance(inner, str) and inner.isidentifier():  # of getattr, say
            attributes.add(inner)
        if isinstance(inner, CodeType):
            more = reads_of(inner)
            paths.update((p, None) for p in more.paths if p[0] not in code.co_cellvars)
            imports.update(dict.fromkeys(more.imports))
            sets.update(dict.fromkeys(more.sets))
            attributes |= more.attributes
    return Reads(tuple(paths), tuple(imports), tuple(sets), frozenset(attributes))


@lru_cache(maxsize=2048)
def code_key(code: CodeType) -> tuple[Any, ...]:
    """What code does: its instructions, and the constants and names in them; places in files do not count."""
    constants = tuple(code_key(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts)
    facts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return code.co_code, constants, code.co_names, code.co_freevars, code.co_varnames[: sum(facts[:3])], facts


def _constant(value: Any) -> tuple[Any, ...]:
    """A constant of code; -0.0 is not 0.0, and a set has no order."""
    if isinstance(value, tuple):
        return "tuple", *map(_constant, value)
    if isinstance(value, frozenset):
        return "frozenset", *sorted(map(_constant, value), key=repr)
    return type(value).__name__, repr(value) if isinstance(value, (float, complex)) or value is ... else value
