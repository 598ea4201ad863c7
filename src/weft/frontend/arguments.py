"""Binding the arguments of a call to the parameters of a jit function."""

from __future__ import annotations

from inspect import Parameter
from typing import Any

from weft.language import core
from weft.language.callable import JITCallable

from .names import did_you_mean
from .values import as_tuple


def _as_argument(value: Any) -> Any:
    """A value as a callee sees it: what is known when compiling is a constexpr there, annotated or not."""
    if isinstance(value, core.base_value):
        return value
    if isinstance(value, (tuple, list)):
        return as_tuple(value)
    return core.constexpr(value)


def bind(fn: JITCallable, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The variables that a function begins with; TypeError, in Python's words, where the arguments do not fit."""
    name = fn.__name__
    scope: dict[str, Any] = {}
    rest = dict(kwargs)
    position = 0
    missing = []
    for parameter in fn.signature.parameters.values():
        kind = parameter.kind
        if kind is Parameter.VAR_POSITIONAL:
            scope[parameter.name] = as_tuple(tuple(args[position:]))
            position = len(args)
            continue
        if kind is Parameter.VAR_KEYWORD:
            raise TypeError(f"{name}() takes **{parameter.name}, which jit functions cannot")
        if position < len(args) and kind is not Parameter.KEYWORD_ONLY:
            value = args[position]
            position += 1
            if parameter.name in rest:
                raise TypeError(f"{name}() got multiple values for argument '{parameter.name}'")
        elif parameter.name in rest:
            value = rest.pop(parameter.name)
        elif parameter.default is not Parameter.empty:
            value = parameter.default
        else:
            missing.append(parameter.name)
            continue
        scope[parameter.name] = _as_argument(value)
    if position < len(args):
        count = sum(p.kind is not Parameter.KEYWORD_ONLY for p in fn.signature.parameters.values())
        raise TypeError(f"{name}() takes {count} positional argument{'s' * (count != 1)} but {len(args)} were given")
    if rest:
        wrong = next(iter(rest))
        hint = did_you_mean(wrong, [p for p in fn.arg_names if p not in scope or p not in kwargs])
        raise TypeError(f"{name}() got an unexpected keyword argument '{wrong}'" + (f"; {hint}" if hint else ""))
    if missing:
        names = " and ".join(f"'{m}'" for m in missing)
        raise TypeError(f"{name}() missing {len(missing)} required argument{'s' * (len(missing) != 1)}: {names}")
    return scope
