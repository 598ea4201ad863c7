"""Layout expressions, as they are typed at the command line: read and computed, never evaluated by Python.

    >>> a = evaluate("BlockedLayout([1, 2], [2, 2], [2, 1], order=[1, 0])")
    >>> as_linear(evaluate("A.invert().compose(A)", names={"A": a}, shape=(4, 4)), (4, 4)).is_trivial_over(["dim0"])
    True

What can be written: the named layouts and their parameters as in Gluon (prefixes such as `gl.` and `gl.amd.` are
ignored), or as layout IR has them (`#ttg.blocked<{...}>`), `LinearLayout` with its constructors, methods, `*` and `@`,
`{"register": [[0, 1]], "lane": [[1, 0]]}` for bases alone, CuTe's `(4, 8):(8, 1)`, and the names that the caller gives.
Errors are LayoutErrors with carets under the part that they are about.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from weft import layouts
from weft.base import LayoutError, load
from weft.layouts import Layout, LinearLayout
from weft.layouts.arguments import with_names

from . import grammar
from .blame import blamed

T = TypeVar("T")
CUTE = (layouts.CuteLayout, layouts.CuteComposed)
Value = Any
"""A LinearLayout, a named layout, or an int, str, bool, None, tuple or dict of such."""

_LAYOUT, _NAMES, _NAME, _NUMBER, _FLAG = "layout", "names", "name", "number", "flag"
_SIZES, _RENAMES, _BASES, _OUTS = "sizes", "renames", "bases", "outs"

METHODS: Mapping[str, Mapping[str, str]] = {
    "compose": {"outer": _LAYOUT},
    "concat_ins": {"other": _LAYOUT},
    "concat_outs": {"other": _LAYOUT},
    "divide_left": {"divisor": _LAYOUT},
    "divide_right": {"divisor": _LAYOUT},
    "flatten_ins": {},
    "flatten_outs": {},
    "invert": {},
    "invert_and_compose": {"outer": _LAYOUT, "prefer": _NAMES},
    "pseudoinvert": {},
    "quotient": {"dims": _NAMES},
    "remove_zero_bases": {"dim": _NAME},
    "rename_ins": {"names": _RENAMES},
    "rename_outs": {"names": _RENAMES},
    "reshape_ins": {"dims": _SIZES},
    "reshape_outs": {"dims": _SIZES},
    "resize_in": {"dim": _NAME, "size": _NUMBER},
    "resize_out": {"dim": _NAME, "size": _NUMBER},
    "sublayout": {"ins": _NAMES, "outs": _NAMES},
    "transpose_ins": {"order": _NAMES},
    "transpose_outs": {"order": _NAMES},
    "unsqueeze_in": {"dim": _NAME},
    "unsqueeze_out": {"dim": _NAME},
}
"""The methods of LinearLayout that can be written, and of which kind their parameters are."""

MAKERS: Mapping[str, Mapping[str, str]] = {
    "empty": {},
    "from_bases": {"bases": _BASES, "out_dims": _OUTS, "require_surjective": _FLAG},
    "identity_1d": {"size": _NUMBER, "in_dim": _NAME, "out_dim": _NAME},
    "strided_1d": {"size": _NUMBER, "stride": _NUMBER, "in_dim": _NAME, "out_dim": _NAME},
    "zeros_1d": {"size": _NUMBER, "in_dim": _NAME, "out_dim": _NAME, "out_size": _NUMBER},
}
"""The same of what makes one."""
PREFIXES = ("gl", "ttgl", "weft", "layouts")
MODULES = ("gl", "ttgl", "tl")
DTYPES: Mapping[str, int] = {
    **{f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float8{kind}": 8 for kind in ("e5", "e4nv", "e4b8", "e4b15", "e5b16")},
    "bfloat16": 16,
    "float16": 16,
    "float32": 32,
    "float64": 64,
}
"""Types of elements, written as gl.float16, and the bits that they stand for."""


def _callables() -> dict[str, Callable[..., Value]]:
    """Everything that can be called by name."""
    by_name: dict[str, Callable[..., Value]] = {}
    for name, value in sorted(vars(layouts).items()):
        if isinstance(value, type) and issubclass(value, Layout) and name.endswith("Layout") and name != "Layout":
            by_name[name] = value
    for no_map in ("DistributedLayout", "SharedLayout", "AutoLayout", "CoalescedLayout", "PartitionedSharedLayout"):
        by_name.pop(no_map, None)
    for name in ("make_cga_layout", "mfma_scale_layout", "wmma_scale_layout", "natural_k_width", "get_tmem_reg_layout"):
        by_name[name] = getattr(layouts, name)
    by_name["LinearLayout"] = LinearLayout.from_bases
    for name in MAKERS:
        by_name[f"LinearLayout.{name}"] = getattr(LinearLayout, name)
    by_name["NVMMASharedLayout.get_default_for"] = layouts.NVMMASharedLayout.get_default_for
    by_name["PaddedSharedLayout.with_identity_for"] = layouts.PaddedSharedLayout.with_identity_for
    return by_name


CALLABLES = _callables()


def _is_int(value: Value) -> bool:
    return type(value) is int


def _is_str(value: Value) -> bool:
    return isinstance(value, str)


def _is_bases(value: Value) -> bool:
    return isinstance(value, tuple) and all(isinstance(b, tuple) and all(map(_is_int, b)) for b in value)


def _is_names(value: Value) -> bool:
    return isinstance(value, tuple) and all(map(_is_str, value))


def _is_map(value: Value, of: Callable[[Value], bool]) -> bool:
    return isinstance(value, dict) and all(map(of, value.values()))


def _is_pairs(value: Value, of: Callable[[Value], bool]) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(p, tuple) and len(p) == 2 and _is_str(p[0]) and of(p[1]) for p in value
    )


KINDS: Mapping[str, tuple[str, Callable[[Value], bool]]] = {
    _LAYOUT: ("a layout", lambda v: isinstance(v, (LinearLayout, Layout))),
    _NAMES: ("a list of dimensions, as ['dim1', 'dim0']", _is_names),
    _NAME: ("the name of a dimension in quotes", _is_str),
    _NUMBER: ("a number", _is_int),
    _FLAG: ("True or False", lambda v: isinstance(v, bool)),
    _SIZES: ("a mapping of dimensions to sizes, as {'dim0': 16}", lambda v: _is_map(v, _is_int)),
    _RENAMES: ("a mapping of names, as {'dim0': 'dim1'}", lambda v: _is_map(v, _is_str)),
    _BASES: (
        "a mapping of dimensions to bases, as {'lane': [[0, 1], [1, 0]]}",
        lambda v: _is_map(v, _is_bases) or _is_pairs(v, _is_bases),
    ),
    _OUTS: (
        "a mapping of dimensions to sizes, as {'dim0': 16}, or a list of dimensions",
        lambda v: _is_map(v, _is_int) or _is_names(v) or _is_pairs(v, _is_int),
    ),
}
"""Kinds of parameters: what is legal in words, and whether a value is."""


def evaluate(text: str, shape: Sequence[int] | None = None, names: Mapping[str, Value] | None = None) -> Value:
    """What an expression stands for.

    `shape` is the tile's, for named layouts that are operands of `*` or of a method; `names` are values to refer to.
    LayoutError with a place in the expression where something is wrong with it.

    >>> evaluate("LinearLayout.identity_1d(2, 'lane', 'dim0')").bases
    {'lane': ((1,),)}
    """
    return _Evaluator(text, shape, names or {}).value(grammar.parse(text))


def parse_layout(
    text: str, shape: Sequence[int] | None = None, names: Mapping[str, Value] | None = None
) -> LinearLayout | Layout:
    """The layout that an expression stands for; LayoutError where it is something else.

    CuTe's notation goes from coordinates to offsets; what it stands for here is the layout of memory, its inverse.
    """
    node = grammar.parse(text)
    value = _Evaluator(text, shape, names or {}).value(node)
    if isinstance(value, dict):
        return placed(text, lambda: _from_mapping(value, shape))
    if isinstance(value, CUTE):
        return placed(text, lambda: layouts.cute_memory(value))
    if not isinstance(value, (LinearLayout, Layout)):
        grammar.fail(text, 0, len(text), f"a layout is needed here, this is {_what(value)}")
    return value


def placed(text: str, compute: Callable[[], T]) -> T:
    """What a function computes of an expression; an error that has no place yet is one of the whole expression."""
    try:
        return compute()
    except LayoutError as error:
        if error.span is not None:
            raise
        grammar.fail(text, 0, len(text), error.message, error.hint)


def as_linear(
    layout: LinearLayout | Layout, shape: Sequence[int] | None, dims: Sequence[str] | None = None
) -> LinearLayout:
    """The linear layout of a tile; a LinearLayout is itself. `dims` are names for dim0, dim1, ...

    >>> as_linear(parse_layout("{'lane': [[1], [2]]}"), None, ["row"])
    LinearLayout({'lane': [(1,), (2,)]}, {'row': 4})
    """
    if isinstance(layout, LinearLayout):
        linear = layout
    elif shape is None:
        raise LayoutError(f"{layout!r} describes a layout only with the shape of a tile", hint="add --shape")
    else:
        linear = layout.to_linear(shape)
    return linear if dims is None else with_names(linear, dims)


def _from_mapping(bases: Mapping[str, Any], shape: Sequence[int] | None) -> LinearLayout:
    for name, columns in bases.items():
        are_tuples = isinstance(columns, tuple) and all(isinstance(b, tuple) for b in columns)
        if not are_tuples or any(type(c) is not int for b in columns for c in b):
            raise LayoutError(f"the bases of {name} must be a list of coordinates, as [[0, 1], [1, 0]]")
    ranks = {len(b) for bs in bases.values() for b in bs}
    if len(ranks) != 1:
        raise LayoutError("all bases must have the same number of coordinates, and at least one must be given")
    names = [f"dim{i}" for i in range(ranks.pop())]
    if shape is not None and len(shape) == len(names):
        return LinearLayout.from_bases(bases, dict(zip(names, shape, strict=True)), require_surjective=False)
    return LinearLayout.from_bases(bases, names)


def _what(value: Value) -> str:
    if isinstance(value, LinearLayout):
        return "a LinearLayout"
    if isinstance(value, Layout):
        return f"a {type(value).__name__}"
    if isinstance(value, CUTE):
        return "a CuTe layout"
    kinds = {bool: "True or False", int: "a number", str: "a string", tuple: "a list", dict: "a mapping"}
    return kinds.get(type(value), "None" if value is None else type(value).__name__)


class _Evaluator:
    def __init__(self, text: str, shape: Sequence[int] | None, names: Mapping[str, Value]) -> None:
        self.text, self.shape, self.names = text, shape, names

    def fail(self, node: grammar.Node, message: str, hint: str | None = None) -> Any:
        grammar.fail(self.text, node.start, node.end, message, hint)

    def value(self, node: grammar.Node) -> Value:
        if isinstance(node, grammar.Literal):
            return node.value
        if isinstance(node, grammar.Sequence):
            return tuple(self.value(item) for item in node.items)
        if isinstance(node, grammar.Dict):
            return {str(key.value): self.value(item) for key, item in node.items}
        if isinstance(node, grammar.Cute):
            return self.guarded(node, node.make)
        if isinstance(node, grammar.Ir):
            return self.of_ir(node)
        if isinstance(node, grammar.Operation):
            left, right = self.linear(node.left), self.linear(node.right)
            return self.guarded(node, lambda: left * right if node.sign == "*" else left @ right)
        if isinstance(node, grammar.Call):
            return self.call(node)
        if isinstance(node, grammar.Name):
            return self.name(node)
        module, _, name = ".".join(_path(node) or ()).rpartition(".")
        if module in MODULES and name in DTYPES:
            return DTYPES[name]
        return self.fail(node, "a method has to be called: add `()` with its arguments")

    def of_ir(self, node: grammar.Ir) -> Layout:
        """The layout of a text of layout IR; its errors have their place in that text."""
        name = node.text.partition("<")[0]
        known = load("weft.ir.gpu.names").FIELDS
        if name not in known:
            close = difflib.get_close_matches(name, known, 3, 0.75)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(known)}"
            grammar.fail(self.text, node.start, node.start + len(name), f"there is no layout {name}", hint)
        try:
            layout: Layout = load("weft.ir.gpu.reading").read_layout(" ".join(node.text.splitlines()), grammar.FILE)
        except LayoutError as error:
            col, stop = (error.span.col, error.span.end_col) if error.span else (0, None)
            end = node.end if stop is None else node.start + stop
            grammar.fail(self.text, node.start + col, end, error.message, error.hint)
        return layout

    def name(self, node: grammar.Name) -> Value:
        if node.name in self.names:
            return self.names[node.name]
        if node.name in CALLABLES:
            return self.fail(
                node, f"{node.name} has to be called: add `(...)` with its parameters", layouts.example(node.name)
            )
        return self.unknown(node, node.name, [*self.names, *CALLABLES])

    def unknown(self, node: grammar.Node, name: str, names: Sequence[str]) -> Any:
        close = difflib.get_close_matches(name, names, 3, 0.75)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(names)}"
        return self.fail(node, f"there is no layout or function {name}", hint)

    def linear(self, node: grammar.Node) -> LinearLayout:
        value = self.value(node)
        if isinstance(value, dict):
            return self.guarded(node, lambda: _from_mapping(value, None))  # type: ignore[no-any-return]
        if isinstance(value, CUTE):
            return self.guarded(node, value.to_linear)  # type: ignore[no-any-return]
        if not isinstance(value, (LinearLayout, Layout)):
            self.fail(node, f"a layout is needed here, this is {_what(value)}")
        return self.guarded(node, lambda: as_linear(value, self.shape))  # type: ignore[no-any-return]

    def guarded(self, node: grammar.Node, compute: Callable[[], Value]) -> Value:
        """The value, with errors placed at a node."""
        try:
            return compute()
        except LayoutError as error:
            if error.span is not None:
                raise
            return self.fail(node, error.message, error.hint)
        except (TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
            return self.fail(node, f"the parameters do not fit: {error}", grammar.WRITTEN)

    def call(self, node: grammar.Call) -> Value:
        function = node.function
        path = _path(function)
        if path and path[0] in PREFIXES and path[0] not in self.names:
            path = path[1:]
        name = ".".join(path or ())
        within, _, last = name.rpartition(".")
        if last in CALLABLES and name not in CALLABLES and within.islower() and path and path[0] not in self.names:
            name = last  # where a vendor's layouts stand in Gluon
        arguments = [self.value(a) for a in node.arguments]
        named = {k: self.value(v) for k, v in node.named}
        if name in CALLABLES:
            maker = "from_bases" if name == "LinearLayout" else name.removeprefix("LinearLayout.")
            return self.invoke(node, name, CALLABLES[name], MAKERS.get(maker), arguments, named)
        if isinstance(function, grammar.Attribute) and (path is None or path[0] in self.names):
            return self.method(node, function, arguments, named)
        return self.unknown(function, name, list(CALLABLES))

    def method(
        self, node: grammar.Call, function: grammar.Attribute, arguments: list[Value], named: dict[str, Value]
    ) -> Value:
        name = function.name
        if name == "to_linear":
            value = self.value(function.value)
            if not isinstance(value, Layout):
                return self.fail(function, f"to_linear is a method of named layouts, this is {_what(value)}")
            return self.invoke(node, name, value.to_linear, None, arguments, named)
        layout = self.linear(function.value)
        if name not in METHODS:
            return self.fail(function, f"layouts have no method {name}", f"known are to_linear, {', '.join(METHODS)}")
        result = self.invoke(node, name, getattr(layout, name), METHODS[name], arguments, named)
        if result is None:
            return self.fail(
                node, f"{name}: the layout cannot be divided so", "the divisor must be its first, or last, factor"
            )
        return result

    def invoke(
        self,
        node: grammar.Call,
        name: str,
        function: Callable[..., Value],
        kinds: Mapping[str, str] | None,
        arguments: list[Value],
        named: dict[str, Value],
    ) -> Value:
        """Call a function; errors that speak of an argument are placed at that argument."""
        signature = inspect.signature(function)
        parameters = list(signature.parameters)
        takes = f"the parameters are ({', '.join(parameters)})" if parameters else "it has no parameters"
        at: dict[str, grammar.Node] = {**dict(zip(parameters, node.arguments)), **dict(node.named)}
        try:
            bound = signature.bind(*arguments, **named).arguments
        except TypeError as error:
            odd = next((value for key, value in node.named if key not in parameters), node)
            return self.fail(odd, f"{name}: {error}", takes)
        for parameter, kind in (kinds or {}).items():
            if parameter in bound:
                bound[parameter] = self.checked(at[parameter], name, parameter, kind, bound[parameter])
        try:
            return function(**bound)
        except LayoutError as error:
            if error.span is not None:
                raise
            right = layouts.example(name)
            hint = error.hint or (takes if right is None else f"a right one, for comparison: {right}")
            return self.fail(blamed(error.message, at, bound) or node, error.message, hint)
        except (TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
            return self.fail(node, f"the parameters do not fit: {error}", takes)

    def checked(self, node: grammar.Node, name: str, parameter: str, kind: str, value: Value) -> Value:
        """An argument of the algebra, if it is of the kind that it must be; layouts as linear ones."""
        words, fits = KINDS[kind]
        if kind == _LAYOUT and isinstance(value, dict):
            value = self.guarded(node, lambda: _from_mapping(value, None))
        if kind == _LAYOUT and isinstance(value, CUTE):
            value = self.guarded(node, value.to_linear)
        if not fits(value):
            return self.fail(node, f"{name}: {parameter} must be {words}, got {value!r}")
        return self.guarded(node, lambda: as_linear(value, self.shape)) if kind == _LAYOUT else value


def _path(node: grammar.Node) -> list[str] | None:
    """The names of `a.b.c`; None for anything else."""
    if isinstance(node, grammar.Name):
        return [node.name]
    if isinstance(node, grammar.Attribute):
        inner = _path(node.value)
        return None if inner is None else [*inner, node.name]
    return None
