"""The table of functions, and how a call of one is written.

A function is described once, for scalars and vectors of any width, as a Python function on `X`:

    @define("rcp", "float double")
    def rcp(x: X) -> X:
        return 1.0 / x

`call` defines `weft.rcp.v16f32` in the module when it is first needed and calls it. Functions are found by name and
by the element type of their first floating-point argument (of their first argument where all are integers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from weft.base import Unsupported

from ..emit import Function, Module
from ..values import Value, mangle, vec
from .expr import X

Body = Callable[..., X]

_ATTRIBUTES = "memory(none) nounwind willreturn"


@dataclass(frozen=True, slots=True)
class Definition:
    """One function for one element type."""

    name: str
    elem: str
    args: tuple[str, ...]
    result: str
    body: Body
    long: bool
    """Kept out of line, and done in pieces of at most 512 bits, so that code stays small."""


_table: dict[tuple[str, str], Definition] = {}
_wide_scale: WeakKeyDictionary[Module, bool] = WeakKeyDictionary()


def define(name: str, elems: str, args: str = "T", result: str = "T", long: bool = False) -> Callable[[Body], Body]:
    """Register a description under `name` for each element type; in `args` and `result`, T stands for that type."""

    def register(body: Body) -> Body:
        for elem in elems.split():
            key = (name, elem)
            if key in _table:
                raise ValueError(f"{name} is described twice for {elem}")
            types = tuple(elem if a == "T" else a for a in args.split())
            _table[key] = Definition(name, elem, types, elem if result == "T" else result, body, long)
        return body

    return register


def alias(name: str, existing: str, elems: str = "float double") -> None:
    """Let `name` mean the same as `existing`."""
    for elem in elems.split():
        if (name, elem) in _table:
            raise ValueError(f"{name} is described twice for {elem}")
        _table[name, elem] = _table[existing, elem]


def has(name: str, elem: str) -> bool:
    """Is there a function `name` for elements `elem` (`float`, `double`, `i32`, `i64`)?"""
    return (name, elem) in _table


def definition(name: str, elem: str) -> Definition:
    """The description of `name` for `elem`."""
    entry = _table.get((name, elem))
    if entry is None:
        raise Unsupported(f"the function {name} on {elem}", "cpu")
    return entry


def names() -> list[tuple[str, str]]:
    """Every (name, element type) there is."""
    return sorted(_table)


def configure(module: Module, avx512: bool) -> None:
    """Tell what the target has: with AVX-512, scaling by a power of two is one instruction (`vscalef`)."""
    _wide_scale[module] = avx512


def has_wide_scale(module: Module) -> bool:
    """Was `module` declared to be for a machine with AVX-512?"""
    return _wide_scale.get(module, False)


def call(fn: Function, name: str, args: list[Value]) -> Value:
    """Append a call of `name` to `fn`, defining the function in the module if this is its first use."""
    elem = next((a.type.elem for a in args if a.type.is_float), args[0].type.elem)
    function = definition(name, elem)
    elements = tuple(a.type.elem for a in args)
    if elements != function.args:
        raise Unsupported(f"{name} of ({', '.join(elements)}), which takes ({', '.join(function.args)}),", "cpu")
    lanes = args[0].type.lanes
    return fn.call(_ensure(fn.module, function, lanes), vec(function.result, lanes), args)


def invoke(name: str, *args: X) -> X:
    """`call` on expressions, for descriptions that build on other functions."""
    return X(args[0].f, call(args[0].f, name, [a.v for a in args]))


def inline(name: str, *args: X) -> Any:
    """Write the body of another function in place."""
    elem = next((a.elem for a in args if a.is_float), args[0].elem)
    return definition(name, elem).body(*args)


def _ensure(module: Module, function: Definition, lanes: int) -> str:
    """Define the function for this many lanes if the module has it not; gives its name."""
    symbol = f"weft.{function.name}.{mangle(vec(function.elem, lanes))}"
    if symbol in module.defined:
        return symbol
    params = [(f"x{i}", vec(elem, lanes)) for i, elem in enumerate(function.args)]
    attributes = _ATTRIBUTES if function.long else f"alwaysinline {_ATTRIBUTES}"
    result = vec(function.result, lanes)
    f = module.function(symbol, result, params, attributes, "internal")
    widest = max(vec(e, 0).bits for e in (*function.args, function.result))
    pieces = widest * lanes // 512
    if function.long and pieces > 1 and lanes % pieces == 0 and pieces & (pieces - 1) == 0:
        f.ret(_in_pieces(f, function, lanes // pieces))
    else:
        f.ret(function.body(*(X(f, a) for a in f.args)).v)
    return symbol


def _in_pieces(f: Function, function: Definition, lanes: int) -> Value:
    """Call the function on runs of `lanes` lanes and put the results together."""
    symbol = _ensure(f.module, function, lanes)
    total = f.args[0].type.lanes
    parts: list[Value] = []
    for first in range(0, total, lanes):
        mask = range(first, first + lanes)
        parts.append(f.call(symbol, vec(function.result, lanes), [f.shuffle(a, None, mask) for a in f.args]))
    return _concatenate(f, parts)


def _concatenate(f: Function, parts: Sequence[Value]) -> Value:
    """One vector out of a power of two of equally long ones."""
    while len(parts) > 1:
        parts = [f.shuffle(a, b, range(2 * a.type.lanes)) for a, b in zip(parts[::2], parts[1::2])]
    return parts[0]
