"""The math library by its CUDA names: `tl.extra.libdevice.pow(x, y)`.

A function takes the types that its table lists and no others (float16 must be cast); arguments are broadcast, and
promoted where their own types are not listed. Each call is one `tt.extern_elementwise` with the symbol that a GPU would
link, `__nv_powf`; the CPU has code of its own for it.

Functions are made when they are first asked for.
"""

from __future__ import annotations

import inspect
from typing import Any

from weft.ops.libdevice import BOOLEAN, overloads

from .. import dtypes as dt
from ..builtins.external import extern_elementwise
from ..dtypes import dtype
from ..protocol import builtin_named

_LETTERS = {"f": dt.float32, "d": dt.float64, "i": dt.int32, "l": dt.int64, "u": dt.uint32, "U": dt.uint64}

Table = dict[tuple[dtype, ...], tuple[str, dtype]]


def _table(name: str) -> Table:
    """The overloads of a function as the table that `extern_elementwise` takes."""
    return {
        tuple(_LETTERS[a] for a in arguments): (symbol, _LETTERS[result])
        for arguments, result, symbol in overloads()[name]
    }


def names() -> list[str]:
    """All functions of the library."""
    return list(overloads())


def _make(name: str) -> Any:
    table = _table(name)
    count = len(next(iter(table)))
    boolean = name in BOOLEAN

    def function(*args: Any, _semantic: Any = None) -> Any:
        if len(args) != count:
            raise TypeError(f"libdevice.{name} takes {count} arguments, got {len(args)}")
        result = extern_elementwise("libdevice", "", list(args), table, True, _semantic=_semantic)
        return _semantic.cast(result, dt.int1) if boolean else result

    types_of_each = "; ".join(
        "(" + ", ".join(map(str, types)) + f") -> {result}" for types, (_, result) in table.items()
    )
    meaning = f"`{name}` of the CUDA math library, for {types_of_each}"
    wrapper: Any = builtin_named(name, meaning, function)
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f"arg{i}", positional) for i in range(count)]
    parameters.append(inspect.Parameter("_semantic", positional, default=None))
    wrapper.__signature__ = inspect.Signature(parameters)
    return wrapper


def __getattr__(name: str) -> Any:
    if name not in overloads():
        raise AttributeError(f"libdevice has no function `{name}`")
    function = globals()[name] = _make(name)
    return function


def __dir__() -> list[str]:
    return sorted({*globals(), *overloads()})
