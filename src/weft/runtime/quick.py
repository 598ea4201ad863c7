"""The quickest way into a launch: a function for arguments of the classes that a kernel was last called with.

The launcher of `binder` asks of every argument what it is. Kernels are called with the same kinds of arguments again
and again, so that after the first call one test of all their classes is enough; and mostly with arguments for the same
code, so that before a key is made and looked up, what the key would say is compared with what it said last:

    def add(_grid, /, x, y, out, n, BLOCK, **_options):
        if x.__class__ is Tensor and ... and n.__class__ is int:
            if x.is_neg() or x.is_nested or not (v0 := x.data_ptr()) and ...: return general(...)
            if x.dtype is float32 and x.get_device() == 0 and ... and not (v0 | v1 | v2 | n) & 15 and BLOCK == 128:
                entry = last
            else:
                entry = cache.get((x.dtype, x.get_device(), v0 & 15 == 0, ..., n, BLOCK, ...))
            if entry is not None: ...; return
        return general(_grid, x, y, out, n, BLOCK, **_options)

Whatever is not in its cache goes the general way, which finds or makes the entry; the cache then keeps it, and the
function is written anew, with that entry as the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.language.callable import KernelParam

from .arrays import gpu_of_view, refusal_text
from .binder import (
    GUARD,
    MAX_GRID,
    ONE,
    asked_grid,
    bind_constant,
    constant_key_of_plain,
    grid_of,
    guarded,
    int_key,
    is_keyword_only,
    parameter_list,
)
from .descriptor import TensorDescriptor, handed_on
from .extents import is_within
from .specialize import FINE

INLINE = {
    **{("builtins", name): name for name in ("int", "float", "bool", "NoneType")},
    ("torch", "Tensor"): "Tensor",
    ("torch.nn.parameter", "Parameter"): "Tensor",
}
"""Classes by module and name, and how they are treated; of PyTorch's, subclasses may do anything in `data_ptr`."""
SMALL = 1 << 31
"""Integers from 0 to this are 32 bits wide; one test tells it of all of them, or-ed together."""


@dataclass(frozen=True)
class Last:
    """A launch that was found the general way: its arguments and options, `debug` at that time, and its entry."""

    args: tuple[Any, ...]
    options: Mapping[str, Any]
    debug: bool
    entry: Any


class _Same:
    """Writes the test whether a launch is for the same code as the last one."""

    def __init__(self, last: Last, env: dict[str, Any], limit: int) -> None:
        self.env, self.limit = env, limit
        self.args, self.tests = last.args, list[str]()
        self.aligned, self.small, self.both = list[str](), list[str](), list[str]()
        env |= {"_w_last": last.entry, "_w_last_debug": last.debug, "_w_last_options": dict(last.options)}
        self._options = "_w_options == _w_last_options" if last.options else "not _w_options"

    def add(self, param: KernelParam, value: Any, kind: str) -> None:
        """What a key would hold of an argument."""
        specialise, align = not param.do_not_specialize, not param.do_not_specialize_on_alignment
        x, v, fact = param.name, f"_w_v{param.num}", f"_w_f{param.num}"
        if param.is_constexpr:
            self._add_constant(param, value)
        elif kind == "Descriptor":
            for k, part in enumerate(_described(x, value)[1]):
                self.env[f"{fact}_{k}"] = eval(part, {x: value, "_w_tuple": tuple})
                self.tests.append(f"{part} == {fact}_{k}")
        elif kind in ("Tensor", "View"):
            self.env[fact] = value.dtype
            self.tests.append(f"{x}.dtype is {fact}")
            if kind == "Tensor":
                self.tests.append(f"{x}.get_device() == {value.get_device()}")
            else:
                self.env[f"{fact}_0"] = value.device
                self.tests.append(f"{x}.device == {fact}_0")
            if specialise and align:
                self._add_alignment(v, value.data_ptr())
            if specialise and self.limit:
                self.tests.append(f"not {_small(x, kind, self.limit)}"[4 * is_within(value, self.limit) :])
        elif kind == "int" and specialise and value == 1:
            self.tests.append(f"{x} == 1")
        elif kind == "int" and specialise and align and not value & 15:
            self.both.append(x)
        elif kind == "int":
            self.small.append(x)
            if specialise:
                self.tests.append(f"{x} != 1" + (f" and {_same_divisor(x, value)}" if align else ""))

    def _add_alignment(self, name: str, value: int) -> None:
        if value & 15:
            self.tests.append(f"{name} & 15")
        else:
            self.aligned.append(name)

    def _add_constant(self, param: KernelParam, value: Any) -> None:
        x, fact = param.name, f"_w_f{param.num}"
        if value is None or value is True or value is False:
            self.tests.append(f"{x} is {value}")
        elif type(value) in (int, str) or (type(value) is float and value * 0 == 0 != value):
            self.env[fact] = value
            self.tests.append(f"{x}.__class__ is _w_{type(value).__name__} and {x} == {fact}")
        else:
            self.env[fact] = bind_constant(param, value)
            self.tests.append(f"_w_constant(_w_p{param.num}, {x}) == {fact}")

    def text(self) -> str:
        """The test."""
        more = [f"not ({' | '.join(self.aligned)}) & 15"] if self.aligned else []
        more += [f"not ({' | '.join(self.small)}) >> {SMALL.bit_length() - 1}"] if self.small else []
        more += [f"not ({' | '.join(self.both)}) & {~(SMALL - 16)}"] if self.both else []
        return " and ".join([*self.tests, *more, "_w_rt.debug is _w_last_debug", self._options])


def _same_divisor(x: str, value: int) -> str:
    """The test whether a number is divided by what divides this one, which is no multiple of 16, as `FINE` tells.

    >>> _same_divisor("n", 1000), _same_divisor("n", 100), _same_divisor("n", 1001)
    ('n & 15 == 8', 'n & 7 == 4', 'n & 3')
    """
    divisor = FINE[value & 15]
    return f"{x} & {2 * divisor - 1} == {divisor}" if divisor > 1 else f"{x} & 3"


def _can_be_last(params: Sequence[KernelParam], last: Last) -> bool:
    """Whether the integers that it hands on are within what the test takes; others are found by their key."""
    pairs = zip(params, last.args, strict=True)
    return all(0 <= value < SMALL for param, value in pairs if type(value) is int and not param.is_constexpr)


def _small(x: str, kind: str, limit: int) -> str:
    """The test whether the memory of an array has at most so many bytes."""
    return f"({x}.untyped_storage().nbytes() <= {limit})" if kind == "Tensor" else f"_w_is_within({x}, {limit})"


def _key(param: KernelParam, kind: str, value: Any, limit: int) -> tuple[list[str], list[str]]:
    """(statements, parts of the key) for an argument of a class."""
    x, v = param.name, f"_w_v{param.num}"
    specialise, align = not param.do_not_specialize, not param.do_not_specialize_on_alignment
    if kind == "Descriptor":
        handed, parts = _described(x, value)
        return [f"{v} = {handed}"], parts
    if kind in ("Tensor", "View"):
        parts = [f"{x}.dtype", f"{x}.get_device()" if kind == "Tensor" else f"{x}.device"]
        address = [f"{v} = {x}.data_ptr()"] if kind == "View" else []  # of a tensor it is taken as it is looked at
        parts += [f"{v} & 15 == 0"] if specialise and align else []
        return address, [*parts, _small(x, kind, limit)] if specialise and limit else parts
    if kind == "int":
        number = f"_w_int_key({x}, {specialise}, {align}, _w_divisors)"
        if specialise and align:
            number = (
                f"(_w_one if {x} == 1 else _w_divisors[{x} & 15]) if -2147483648 <= {x} <= 2147483647 else {number}"
            )
        return [f"{v} = {x}"], [number]
    return [f"{v} = {x}"], []  # of a float, a bool or None the class says it all


def _class_kind(value: Any) -> str | None:
    """What the class of an argument says; besides of those of `INLINE`, views of tensors and descriptors of them."""
    kind = INLINE.get((type(value).__module__, type(value).__name__))
    if kind is not None:
        return kind
    if isinstance(value, TensorDescriptor):
        return "Descriptor" if _class_kind(value.base) == "Tensor" else None
    return None if gpu_of_view(value) is None else "View"


def _described(x: str, value: Any) -> tuple[str, list[str]]:
    """(what a kernel is handed, what it is compiled for) of a descriptor, as source."""
    parts = [f"{x}.base.dtype", f"{x}.base.get_device()", f"_w_tuple({x}.block_shape)", f"{x}.known"]
    return handed_on(x, value), [*parts, f"{x}.layout"] if hasattr(value, "layout") else parts


def _kind(param: KernelParam, value: Any) -> str | None:
    """How an argument is treated; None where the function cannot help with it."""
    kind, fixed = _class_kind(value), param.annotation_type
    if not fixed or (fixed in ("i32", "i64") and kind == "int"):  # what does not fit is of another key, and refused
        return kind
    return "float" if fixed in ("fp16", "bf16", "fp32", "fp64") and kind in ("float", "int") else None


def make_quick(
    name: str,
    params: Sequence[KernelParam],
    args: Sequence[Any],
    spaces: Mapping[str, Any],
    last: Last | None = None,
    limit: int = 0,
) -> Callable[..., Any] | None:
    """The function, or None where an argument is of a class, or a parameter of a kind, that it cannot help with.

    Arrays of up to `limit` bytes have code of their own; where it is 0, their size makes no difference.

    `spaces` holds `_w_general`, the launcher for everything; `_w_keep(key, kernel, arguments, options)`, which is told
    what the general one has found; `_w_changed`, which says whether something that the kernel captures has changed;
    `_w_cache`, `_w_self`, `_w_rt` and `_w_pre_hooks` as the launcher of `binder` has them. `_w_general` may be the
    function for other classes, which knows a more general one: see `chain`.
    """
    kinds = dict[str, str]()
    for param, value in zip(params, args, strict=True):
        if param.is_constexpr:
            continue
        kind = _kind(param, value)
        if kind is None:
            return None
        kinds[param.name] = kind
    if not kinds:
        return None
    env: dict[str, Any] = {
        **spaces,
        **GUARD,
        "_w_plain": frozenset((int, str, type(None))),
        "_w_constant": bind_constant,
        "_w_params": params,
        "_w_int_key": int_key,
        "_w_one": ONE,
        "_w_divisors": FINE,
        "_w_grid_of": grid_of,
        "_w_asked_grid": asked_grid,
        "_w_tuple": tuple,
        "_w_int": int,
        "_w_str": str,
        "_w_float": float,
        "_w_len": len,
        "_w_callable": callable,
        "_w_is_within": is_within,
    }
    name = name if name.isidentifier() else "kernel"
    same = _Same(last, env, limit) if last is not None and _can_be_last(params, last) else None
    source = _source(name, params, args, kinds, env, same, limit)
    exec(compile(source, f"<launcher of {name}>", "exec"), env)
    return env[name]  # type: ignore[no-any-return]


def chain(ways: Sequence[Callable[..., Any]], general: Callable[..., Any]) -> None:
    """Let each function go on to the next for classes that are not its own, and the last to the general one."""
    for way, following in zip(ways, [*ways[1:], general], strict=True):
        way.__globals__["_w_general"] = following


def _source(
    name: str,
    params: Sequence[KernelParam],
    args: Sequence[Any],
    kinds: Mapping[str, str],
    env: dict[str, Any],
    same: _Same | None,
    limit: int,
) -> str:
    tests, statements, parts, values, refused = (list[str]() for _ in range(5))
    for number, (param, value) in enumerate(zip(params, args, strict=True)):
        x = param.name
        if same is not None:
            same.add(param, same.args[number], kinds.get(x, ""))
        if param.is_constexpr:
            parts.append(constant_key_of_plain(param))
            env[f"_w_p{param.num}"] = param
            continue
        env[f"_w_c{param.num}"] = type(value)
        tests.append(f"{x}.__class__ is _w_c{param.num}")
        if kinds[x] == "Descriptor":
            env[f"_w_b{param.num}"] = type(value.base)
            tests.append(f"{x}.base.__class__ is _w_b{param.num}")
            refused.append(refusal_text(f"{x}.base"))
        elif kinds[x] == "Tensor":
            refused.append(refusal_text(x, f"_w_v{param.num}"))
        more, keys = _key(param, kinds[x], value, limit)
        statements += more
        parts += keys
        values.append(f"_w_v{param.num}")
    names = "".join(f", {p.name}={p.name}" if is_keyword_only(p) else f", {p.name}" for p in params)
    parameters = "".join(f"{p.name}, " for p in params)
    by_name = ", ".join(f"{p.name!r}: {p.name}" for p in params)
    general = f"return _w_general(_w_grid{names}, **_w_options)"
    lookup = [
        f"_w_key = ({''.join(part + ', ' for part in parts)}_w_rt.debug,",
        "          _w_tuple(_w_options.items()) if _w_options else None)",
        "try:",
        "    _w_entry = _w_cache.get(_w_key)",
        "except TypeError:  # an option that cannot be hashed",
        f"    {general}",
        "if _w_entry is None:",
        f"    _w_found = _w_general(_w_grid{names}, **_w_options)",
        f"    return _w_keep(_w_key, _w_found, ({parameters}), _w_options)",
    ]
    shortcut = [f"if {same.text()}:", "    _w_entry = _w_last", "else:"] if same is not None else []
    lines = [
        f"def {name}(_w_grid, /, {parameter_list(params, env)}, **_w_options):",
        f"    if {' and '.join(tests)} and not _w_pre_hooks and not _w_extra:",
        "        try:",
        *(f"            {line}" for line in statements),
        f"            _w_refused = {' or '.join(refused) or False}",
        "        except Exception:  # one without memory, which is told what is wrong with it",
        "            _w_refused = True",
        "        if _w_refused:",
        f"            {general}",
        *(f"        {line}" for line in shortcut),
        *(f"        {'    ' if shortcut else ''}{line}" for line in lookup),
        "        if not (_w_rt.launch_enter_hook or _w_rt.launch_exit_hook or _w_self.watched and _w_changed()):",
        "            if (_w_grid.__class__ is _w_tuple and _w_len(_w_grid) == 1",
        f"                    and (_w_x := _w_grid[0]).__class__ is _w_int and 0 <= _w_x <= {MAX_GRID[0]}):",
        "                _w_y = _w_z = 1",
        "            else:",
        "                if _w_grid.__class__ is not _w_tuple and _w_callable(_w_grid):",
        f"                    _w_grid = _w_asked_grid(_w_grid, {{{by_name}}})",
        "                _w_x, _w_y, _w_z = _w_grid_of(_w_grid)",
        f"            _w_entry[2](_w_x, _w_y, _w_z{''.join(', ' + v for v in values)})",
        "            return _w_entry[0]",
        f"    return _w_general(_w_grid{names}, *_w_extra, **_w_options)",
    ]
    return guarded(lines)
