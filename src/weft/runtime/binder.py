"""The warm path of a call, as Python source made for each kernel.

For a kernel `add(x, y, out, n, BLOCK)` this makes a function

    def add(_grid, /, x, y, out, n, BLOCK, **_options):
        ...                                   # v0: address of x; k0: its dtype; a0: aligned to 16?  n: range, 1, %16
        entry = cache.get((k0, a0, ..., BLOCK))
        ...                                   # a miss compiles
        entry.fire(gx, gy, gz, v0, v1, v2, v3)

so that one call of a Python function does it all: binds defaults and keywords, finds the key, the grid, and launches.
Classes other than ndarray and int go through a table of small functions (`handler_for`), found by class; those in
`quick` never raise, they answer REFUSED, which is in no cache, and the miss then says what is wrong.

Every name in the launcher that is not a parameter of the kernel begins with `_w_`.
"""

from __future__ import annotations

import difflib
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from weft import compiler
from weft.base import LaunchError, LaunchOverflowError, LaunchTypeError, WeftError, shorten
from weft.language.callable import MISSING, JITCallable, KernelParam
from weft.language.keys import is_constexpr_value, key_of

from .arrays import DATA_OFFSET, DIRECT, address_of, array_facts, is_plain_tensor, reader_of, word_at
from .descriptor import TensorDescriptor
from .errors import UnknownKeyword
from .specialize import COARSE, check_annotated, refuse_kind

MAX_GRID = ((1 << 31) - 1, 65535, 65535)

GUARD: Mapping[str, Any] = MappingProxyType({"__name__": __name__, "_w_error": Exception, "_w_shorten": shorten})
"""What a launcher's source names for tracebacks: see `guarded`."""
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})

Handler = Callable[[Any, bool, bool], tuple[Any, Any]]
"""(value, specialise, by alignment too) -> (what the key holds, what is handed to the kernel)."""


# --------------------------------------------------------------------------------------------------------------------
# Grids


def asked_grid(function: Callable[[dict[str, Any]], Any], arguments: dict[str, Any]) -> Any:
    """The grid that a function makes of the arguments of a launch."""
    try:
        try:
            return function(arguments)
        except TypeError as error:
            tb = error.__traceback__
            if tb is not None and tb.tb_next is None:  # it did not begin
                raise LaunchTypeError(
                    f"the grid is a function that cannot be called with the arguments of the launch: {error}",
                    hint="it takes one, a dictionary: lambda meta: (weft.cdiv(meta['n'], meta['BLOCK']),)",
                ) from None
            raise
        except KeyError as error:
            error.add_note(f"hint: the grid is a function that asks for {error}; it can ask for {', '.join(arguments)}")
            raise
    except Exception as error:  # native code calls this, too, and has no frame of its own that could shorten it
        shorten(error)
        raise


def grid_of(grid: Any) -> tuple[int, int, int]:
    """The three sizes of a grid; a size of 0 is a launch that does nothing."""
    if grid.__class__ is tuple and len(grid) == 1 and grid[0].__class__ is int and 0 <= grid[0] <= MAX_GRID[0]:
        return grid[0], 1, 1
    try:
        return _sizes_of(grid)
    except WeftError as error:  # see `asked_grid`
        shorten(error)
        raise


def _sizes_of(grid: Any) -> tuple[int, int, int]:
    """The same for all grids."""
    if grid.__class__ is not tuple and not isinstance(grid, (tuple, list)):
        try:
            grid = (operator.index(grid),)
        except TypeError:  # arrays have the method, and are no index
            try:
                grid = tuple(grid)
            except TypeError:
                raise LaunchTypeError(
                    f"a grid is a tuple of 1 to 3 integers or a function that returns one, got a {type(grid).__name__}",
                    hint="kernel[(weft.cdiv(n, BLOCK),)](...), or lambda meta: (weft.cdiv(n, meta['BLOCK']),)",
                ) from None
    while len(grid) > 3 and grid[-1] == 1:  # more sizes that are 1 mean the same
        grid = grid[:-1]
    count = len(grid)
    if not 1 <= count <= 3:
        raise LaunchError(
            f"a grid has 1 to 3 dimensions, got {count}: {tuple(grid)}",
            hint="flatten some: launch their product, and divide the program id in the kernel"
            if count
            else "one program is kernel[(1,)](...)",
        )
    sizes = [1, 1, 1]
    for axis, size in enumerate(grid):
        if size.__class__ is not int:
            size = getattr(size, "value", size) if is_constexpr_value(size) else size
            try:
                size = operator.index(size)
            except TypeError:
                raise LaunchTypeError(
                    f"grid sizes are integers, got {size!r} of type {type(size).__name__} on axis {axis}",
                    hint="use weft.cdiv(n, BLOCK), or // instead of /",
                ) from None
        if not 0 <= size <= MAX_GRID[axis]:
            fault = "is negative" if size < 0 else f"exceeds {MAX_GRID[axis]}, the most on that axis"
            raise LaunchError(
                f"grid size {size} on axis {axis} {fault}",
                hint="a size of 0 launches nothing: max(size, 0)"
                if size < 0
                else "put the long axis first, or flatten: launch the product, divide in the kernel",
            )
        sizes[axis] = size
    return sizes[0], sizes[1], sizes[2]


# --------------------------------------------------------------------------------------------------------------------
# Keys of values


class _Kind:
    """A part of a key that is equal to nothing but itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


FLOAT, BOOL, NONE, INT64, UINT64, ONE, REFUSED = map(_Kind, ("fp32", "u1", "None", "i64", "u64", "1", "refused"))


def int_key(value: int, specialise: bool, align: bool, divisors: Sequence[int] = COARSE) -> Any:
    """The key of an integer: its range, whether it is 1, and what divides it, by its remainder by 16."""
    if specialise and value == 1:
        return ONE
    if -2147483648 <= value <= 2147483647:
        kind: Any = 32
    elif -(1 << 63) <= value < 1 << 63:
        kind = INT64
    elif value < 1 << 64 and value > 0:
        kind = UINT64
    else:
        raise LaunchOverflowError(f"the integer {value} does not fit 64 bits", hint="pass it in parts, or as a float")
    return (kind, divisors[value & 15] if align else 1) if specialise else kind


# --------------------------------------------------------------------------------------------------------------------
# Handlers by class


def _none(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    return NONE, None


def _float(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    return FLOAT, float(value)


def _bool(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    return BOOL, int(value)


def _int(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    value = int(value)
    return int_key(value, specialise, align), value


def _ndarray(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    address = address_of(value)
    return (value.dtype, align and address % 16 == 0) if specialise else value.dtype, address


def _torch(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    try:
        address = value.data_ptr() if value.is_cpu else 0
        if (address == 0 and (value.numel() or not value.is_cpu)) or value.is_neg() or value.is_nested:
            return REFUSED, None
    except RuntimeError:  # no memory at all
        return REFUSED, None
    return (value.dtype, address & 15 == 0 and align) if specialise else value.dtype, address


def _array(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    facts = array_facts(value)
    if facts is None:
        raise refuse_kind(value)
    if facts.device is not None:
        return REFUSED, None
    return (facts.element, align and facts.address % 16 == 0) if specialise else facts.element, facts.address


def _descriptor(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    if value.device is not None:
        return REFUSED, None
    return (value.signature, value.known), value.slots()


def _like_descriptor(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    padding = getattr(value, "padding", "zero")
    copy = TensorDescriptor(value.base, value.shape, value.strides, value.block_shape, padding)
    return _descriptor(copy, specialise, align)


def _tuple(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    parts = [handler_for(item)(item, True, True) for item in value]  # always in full, as `specialize` does
    return (type(value), *(key for key, _ in parts)), tuple(v for _, v in parts)


def _constant(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    return key_of(value), None


def _function(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    return ("jit", value.current_key()), None


handlers: dict[type, Handler] = {
    type(None): _none,
    float: _float,
    bool: _bool,
    int: _int,
    np.ndarray: _ndarray,
    tuple: _tuple,
    TensorDescriptor: _descriptor,
}

quick: dict[type, Handler] = {type(None): _none, float: _float, bool: _bool}


def handler_for(value: Any) -> Handler:
    """The function for values of this class; found once for each class."""
    cls = value.__class__
    handler = handlers.get(cls)
    if handler is None:
        handler = handlers[cls] = _find_handler(value)
    return handler


def _find_handler(value: Any) -> Handler:
    if isinstance(value, JITCallable):
        return _function
    if is_constexpr_value(value):
        return _constant
    for cls, handler in (
        ((bool, np.bool_), _bool),
        ((int, np.integer), _int),
        ((float, np.floating), _float),
        (np.ndarray, _ndarray),
        (tuple, _tuple),
        (TensorDescriptor, _descriptor),
    ):
        if isinstance(value, cls):
            return handler
    if is_plain_tensor(value):
        quick[type(value)] = _torch
    if reader_of(value) is not None:
        return _array
    if all(hasattr(value, name) for name in ("base", "shape", "strides", "block_shape")):
        return _like_descriptor
    raise refuse_kind(value)


def unknown_keyword(name: str, params: Sequence[KernelParam]) -> UnknownKeyword:
    """The error for a keyword of a launch that is neither a parameter nor an option."""
    names = [p.name for p in params]
    near = difflib.get_close_matches(name, [*names, *compiler.option_names()], 1)
    hint = f"did you mean `{near[0]}`?" if near else f"its parameters are {', '.join(names)}"
    return UnknownKeyword(f"Keyword argument {name} was specified but unrecognised", name, hint=hint)


def missing(param: KernelParam, params: Sequence[KernelParam], options: Mapping[str, Any]) -> LaunchError:
    """The error for an argument that was not given; where a keyword is unknown, that is what is wrong."""
    options_known = ("target", *compiler.option_names())
    wrong = next((name for name in options if name not in options_known), None)
    if wrong is not None:
        return unknown_keyword(wrong, params)
    kind = " (a constexpr)" if param.is_constexpr else ""
    names = ", ".join(p.name for p in params)
    return LaunchTypeError(
        f"argument `{param.name}`{kind} is missing",
        param.name,
        hint=f"the kernel has ({names}): give it in its place, or as {param.name}=...",
    )


def bind_slowly(
    param: KernelParam, value: Any, params: Sequence[KernelParam] = (), options: Mapping[str, Any] = NO_OPTIONS
) -> tuple[Any, Any]:
    """(key, value) of an argument of a class that the generated code does not know, with errors that name it."""
    if value is MISSING:
        raise missing(param, params, options)
    try:
        if param.annotation_type:
            check_annotated(param, value)
        key, result = handler_for(value)(value, not param.do_not_specialize, not param.do_not_specialize_on_alignment)
    except LaunchError as error:
        error.of_argument(param.name)
        raise error.with_traceback(None) from None  # what is wrong is said, and where in Weft does not matter
    return key, result


# --------------------------------------------------------------------------------------------------------------------
# The generated function


def is_keyword_only(param: KernelParam) -> bool:
    """Whether a parameter follows a `*`: it is given by its name."""
    return param._param.kind is inspect.Parameter.KEYWORD_ONLY


def parameter_list(params: Sequence[KernelParam], spaces: dict[str, Any]) -> str:
    """The parameters as in the kernel's own definition; those without a default get MISSING, which no key holds."""
    parts = []
    keyword_only = False
    for p in params:
        if is_keyword_only(p) and not keyword_only:
            parts.append("*_w_extra")
            keyword_only = True
        spaces[f"_w_d{p.num}"] = p.default if p.has_default else MISSING
        parts.append(f"{p.name}=_w_d{p.num}")
    if not keyword_only:
        parts.append("*_w_extra")
    return ", ".join(parts)


def _refuse_extra(params: Sequence[KernelParam], extra: tuple[Any, ...]) -> None:
    """Say that there are too many positional arguments."""
    taken = [p.name for p in params if not is_keyword_only(p)]
    how = "" if len(taken) == len(params) else " by position"
    raise LaunchTypeError(
        f"{len(taken) + len(extra)} arguments were given{how}, the kernel has {len(taken)}: {', '.join(taken)}",
        hint="several values for one parameter are a tuple, options (num_warps=8) are given by name",
    )


def bind_constant(
    param: KernelParam, value: Any, params: Sequence[KernelParam] = (), options: Mapping[str, Any] = NO_OPTIONS
) -> Any:
    """The key of a constexpr argument."""
    if value is MISSING:
        raise missing(param, params, options)
    return key_of(value)


def constant_key_of_plain(param: KernelParam) -> str:
    """Source for the key of a constexpr argument: a plain value as it is."""
    x = param.name
    return f"{x} if {x}.__class__ in _w_plain else _w_constant(_w_p{param.num}, {x}, _w_params, _w_options)"


def launcher_source(name: str, params: Sequence[KernelParam], spaces: dict[str, Any]) -> str:
    """The source of a kernel's launcher; what it needs besides the names of `make_binder` is put into `spaces`."""
    lines = [
        f"def {name}(_w_grid, /, {parameter_list(params, spaces)}, **_w_options):",
        "    if _w_extra:",
        "        _w_refuse_extra(_w_params, _w_extra)",
    ]
    by_name = ", ".join(f"{p.name!r}: {p.name}" for p in params)
    if all(p.name != "target" for p in params):  # kernel[grid](..., target="sim:cuda:80")
        lines += [
            "    if _w_options and 'target' in _w_options:",
            f"        return _w_elsewhere('', _w_grid, **{{{by_name}}}, **_w_options)",
        ]
    keys: list[str] = []
    values: list[str] = []
    for p in params:
        x, k, v = p.name, f"_w_k{p.num}", f"_w_v{p.num}"
        keys.append(k)
        spaces[f"_w_p{p.num}"] = p
        if p.is_constexpr:
            lines.append(f"    {k} = {constant_key_of_plain(p)}")
            continue
        values.append(v)
        bind = f"_w_bind(_w_p{p.num}, {x}, _w_params, _w_options)"
        if p.annotation_type:
            # The annotation fixes the type; what the value adds to the key is found the general way.
            lines.append(f"    {k}, {v} = {bind}")
            continue
        specialise, align = not p.do_not_specialize, not p.do_not_specialize_on_alignment
        address = f"_w_word_at(_w_id({x}) + {DATA_OFFSET}).value" if DIRECT else f"_w_address({x})"
        kind = f"({x}.dtype, {f'{v} & 15 == 0' if align else 'False'})" if specialise else f"{x}.dtype"
        number = f"_w_int_key({x}, {specialise}, {align}, _w_divisors)"
        if specialise and align:
            number = f"(_w_one if {x} == 1 else _w_i32[{x} & 15])"
            number += f" if -2147483648 <= {x} <= 2147483647 else {bind}[0]"
        lines += [
            f"    if {x}.__class__ is _w_ndarray:",
            f"        {v} = {address}; {k} = {kind}",
            f"    elif {x}.__class__ is _w_int:",
            f"        {v} = {x}; {k} = {number}",
            f"    elif {x}.__class__ in _w_quick:",
            f"        {k}, {v} = _w_quick[{x}.__class__]({x}, {specialise}, {align})",
            "    else:",
            f"        {k}, {v} = {bind}",
        ]
    arguments = "".join(f"{p.name}, " for p in params)
    passed = "".join(f"{p.name}={p.name}, " if is_keyword_only(p) else f"{p.name}, " for p in params)
    lines += [
        f"    _w_key = ({''.join(k + ', ' for k in keys)}_w_rt.debug,",
        "              _w_tuple(_w_options.items()) if _w_options else None)",
        "    if _w_pre_hooks:",
        f"        _w_run_pre_hooks({passed}**_w_options)",
        "    try:",
        "        _w_entry = _w_cache[_w_key]",
        "    except (KeyError, TypeError):  # not there, or an option that cannot be hashed",
        "        _w_entry = None",
        "    if _w_entry is None:",
        f"        _w_entry = _w_miss(_w_key, ({arguments}), _w_options)",
        "        if _w_entry is None:",
        "            return None",
        "    if _w_self.watched:",
        f"        _w_entry = _w_recheck(_w_entry, _w_key, ({arguments}), _w_options)",
        "        if _w_entry is None:",
        "            return None",
        "    if _w_grid.__class__ is not _w_tuple and _w_callable(_w_grid):",
        f"        _w_grid = _w_asked_grid(_w_grid, {{{by_name}}})",
        "    _w_x, _w_y, _w_z = _w_grid_of(_w_grid)",
        "    _w_kernel, _w_guard, _w_fire = _w_entry",
        f"    if _w_guard is not None and not _w_guard({arguments}{', '.join(values)}):",
        f"        _w_kernel, _w_guard, _w_fire = _w_fallback(_w_key, ({arguments}), _w_options)",
        "    if _w_rt.launch_enter_hook or _w_rt.launch_exit_hook:",
        "        _w_hooked(_w_kernel, _w_fire, (_w_x, _w_y, _w_z), "
        f"({arguments}), ({''.join(v + ', ' for v in values)}))",
        "    else:",
        f"        _w_fire(_w_x, _w_y, _w_z{''.join(', ' + v for v in values)})",
        "    return _w_kernel",
    ]
    return guarded(lines)


def guarded(lines: Sequence[str]) -> str:
    """The source of a function from its lines, with tracebacks that leave Weft's frames out (see `weft.base.frames`).

    >>> print(guarded(["def launch(x):", "    return f(x)"]))
    def launch(x):
        try:
            return f(x)
        except _w_error as _w_raised:
            _w_shorten(_w_raised)
            raise
    <BLANKLINE>
    """
    head, *body = lines
    inner = [f"    {line}" for line in body]
    rest = ["    except _w_error as _w_raised:", "        _w_shorten(_w_raised)", "        raise"]
    return "\n".join([head, "    try:", *inner, *rest]) + "\n"


def make_binder(name: str, params: Sequence[KernelParam], spaces: dict[str, Any]) -> Callable[..., Any]:
    """Compile a kernel's launcher; `spaces` holds what it calls back: _w_miss, _w_cache and so on."""
    spaces = {
        **GUARD,
        "_w_plain": frozenset((int, str, type(None))),
        "_w_constant": bind_constant,
        "_w_params": params,
        "_w_refuse_extra": _refuse_extra,
        "_w_bind": bind_slowly,
        "_w_quick": quick,
        "_w_int": int,
        "_w_tuple": tuple,
        "_w_callable": callable,
        "_w_ndarray": np.ndarray,
        "_w_id": id,
        "_w_word_at": word_at,
        "_w_int_key": int_key,
        "_w_divisors": COARSE,
        "_w_i32": tuple((32, divisor) for divisor in spaces.get("_w_divisors", COARSE)),
        "_w_one": ONE,
        "_w_asked_grid": asked_grid,
        "_w_grid_of": grid_of,
        "_w_address": address_of,
        **spaces,
    }
    name = name if name.isidentifier() else "kernel"
    exec(compile(launcher_source(name, params, spaces), f"<launcher of {name}>", "exec"), spaces)
    return spaces[name]  # type: ignore[no-any-return]


def make_collector(name: str, params: Sequence[KernelParam]) -> Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]:
    """A function that binds the arguments of a call of kernel `name`: (values of all parameters, options)."""
    name = name if name.isidentifier() else "kernel"
    spaces: dict[str, Any] = {"_w_refuse_extra": _refuse_extra, "_w_params": params}
    source = (
        f"def {name}({parameter_list(params, spaces)}, **_w_options):\n"
        f"    if _w_extra:\n        _w_refuse_extra(_w_params, _w_extra)\n"
        f"    return ({''.join(p.name + ', ' for p in params)}), _w_options\n"
    )
    exec(compile(source, "<binder>", "exec"), spaces)
    collect = spaces[name]

    def checked(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        values, options = collect(*args, **kwargs)
        for param, value in zip(params, values, strict=True):
            if value is MISSING:
                raise missing(param, params, options)
        return values, options

    return checked
