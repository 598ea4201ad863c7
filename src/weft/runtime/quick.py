"""The quickest way into a launch: a function for arguments of the classes that a kernel was first called with.

The launcher of `binder` asks of every argument what it is. Kernels are called with the same kinds of arguments again
and again, so that after the first call one test of all their classes is enough:

    def add(_grid, /, x, y, out, n, BLOCK, **_options):
        if x.__class__ is Tensor and ... and n.__class__ is int:
            v0 = x.data_ptr(); ...
            entry = cache.get((x.dtype, v0 & 15 == 0, x.get_device(), ..., n, BLOCK, ...))
            if entry is not None: ...; return
        return general(_grid, x, y, out, n, BLOCK, **_options)

Whatever is not in its cache goes the general way, which finds or makes the entry; the cache then keeps it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.language.callable import KernelParam

from .binder import ONE, bind_constant, constant_key_of_plain, grid_of, int_key, parameter_list

__all__ = ["make_quick"]

INLINE = "int", "float", "Tensor", "NoneType"


def _key(param: KernelParam, kind: str) -> tuple[list[str], list[str]]:
    """(statements, parts of the key) for an argument of a class."""
    x, v = param.name, f"_w_v{param.num}"
    specialise, align = not param.do_not_specialize, not param.do_not_specialize_on_alignment
    if kind == "Tensor":
        parts = [f"{x}.dtype", f"{x}.get_device()"]
        return [f"{v} = {x}.data_ptr()"], [*parts, f"{v} & 15 == 0"] if specialise and align else parts
    if kind == "int":
        number = f"_w_int_key({x}, {specialise}, {align})"
        if specialise and align:
            number = (
                f"(0 if not {x} & 15 else _w_one if {x} == 1 else 2) if -2147483648 <= {x} <= 2147483647 else {number}"
            )
        return [f"{v} = {x}"], [number]
    return [f"{v} = {x}"], []  # of a float or None the class says it all


def make_quick(
    name: str,
    params: Sequence[KernelParam],
    args: Sequence[Any],
    spaces: Mapping[str, Any],
) -> Callable[..., Any] | None:
    """The function, or None where an argument is of a class, or a parameter of a kind, that it cannot help with.

    `spaces` holds `_w_general`, the launcher for everything; `_w_keep(key, kernel, classes)`, which is told what the
    general one has found; `_w_cache`, `_w_self`, `_w_rt` and `_w_pre_hooks` as the launcher of `binder` has them.
    """
    kinds = {}
    for param, value in zip(params, args, strict=True):
        if param.is_constexpr:
            continue
        kinds[param.name] = type(value).__name__
        known = kinds[param.name] in INLINE and type(value).__module__ in ("builtins", "torch")
        if param.annotation_type or not known or param._param.kind is inspect.Parameter.KEYWORD_ONLY:
            return None
    if not kinds:
        return None
    own: dict[str, Any] = {
        **spaces,
        "_w_plain": frozenset((int, str, type(None))),
        "_w_constant": bind_constant,
        "_w_int_key": int_key,
        "_w_one": ONE,
        "_w_grid_of": grid_of,
        "_w_tuple": tuple,
        "_w_callable": callable,
    }
    name = name if name.isidentifier() else "kernel"
    exec(compile(_source(name, params, args, kinds, own), f"<launcher of {name}>", "exec"), own)
    return own[name]  # type: ignore[no-any-return]


def _source(
    name: str, params: Sequence[KernelParam], args: Sequence[Any], kinds: Mapping[str, str], own: dict[str, Any]
) -> str:
    tests, statements, parts, values = [], [], list[str](), []
    for param, value in zip(params, args, strict=True):
        x = param.name
        if param.is_constexpr:
            parts.append(constant_key_of_plain(param))
            own[f"_w_p{param.num}"] = param
            continue
        own[f"_w_c{param.num}"] = type(value)
        tests.append(f"{x}.__class__ is _w_c{param.num}")
        more, keys = _key(param, kinds[x])
        statements += more
        parts += keys
        values.append(f"_w_v{param.num}")
    names = "".join(f", {p.name}" for p in params)
    by_name = ", ".join(f"{p.name!r}: {p.name}" for p in params)
    lines = [
        f"def {name}(_w_grid, /, {parameter_list(params, own)}, **_w_options):",
        f"    if {' and '.join(tests)} and not _w_pre_hooks and not _w_extra:",
        *(f"        {s}" for s in statements),
        f"        _w_key = ({''.join(part + ', ' for part in parts)}_w_rt.debug,",
        "                  _w_tuple(_w_options.items()) if _w_options else None)",
        "        try:",
        "            _w_entry = _w_cache.get(_w_key)",
        "        except TypeError:  # an option that cannot be hashed",
        f"            return _w_general(_w_grid{names}, **_w_options)",
        "        if _w_entry is None:",
        f"            return _w_keep(_w_key, _w_general(_w_grid{names}, **_w_options), ({names[2:]},))",
        "        if not (_w_self.watched or _w_rt.launch_enter_hook or _w_rt.launch_exit_hook):",
        "            if _w_grid.__class__ is not _w_tuple and _w_callable(_w_grid):",
        f"                _w_grid = _w_grid({{{by_name}}})",
        "            _w_x, _w_y, _w_z = _w_grid_of(_w_grid)",
        f"            _w_entry[2](_w_x, _w_y, _w_z{''.join(', ' + v for v in values)})",
        "            return _w_entry[0]",
        f"    return _w_general(_w_grid{names}, *_w_extra, **_w_options)",
    ]
    return "\n".join(lines) + "\n"
