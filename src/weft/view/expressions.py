"""Layout expressions, as they are typed at the command line: read and computed, never evaluated by Python.

    >>> a = evaluate("BlockedLayout([1, 2], [2, 2], [2, 1], order=[1, 0])")
    >>> as_linear(evaluate("A.invert().compose(A)", names={"A": a}, shape=(4, 4)), (4, 4)).is_trivial_over(["dim0"])
    True

What can be written: the named layouts and their parameters as in Gluon (a prefix `gl.` or `ttgl.` is ignored),
`LinearLayout` with its constructors, methods and `*`, `{"register": [[0, 1]], "lane": [[1, 0]]}` for bases alone,
CuTe's `(4, 8):(8, 1)`, and the names that the caller gives. Errors are LayoutErrors with carets under the part that
they are about.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft import layouts
from weft.base import LayoutError
from weft.layouts import Layout, LinearLayout

from . import grammar

__all__ = ["METHODS", "Value", "as_linear", "evaluate", "parse_layout"]

Value = Any
"""A LinearLayout, a named layout, or an int, str, bool, None, tuple or dict of such."""

METHODS = (
    "compose",
    "concat_ins",
    "concat_outs",
    "divide_left",
    "divide_right",
    "flatten_ins",
    "flatten_outs",
    "invert",
    "invert_and_compose",
    "pseudoinvert",
    "quotient",
    "remove_zero_bases",
    "rename_ins",
    "rename_outs",
    "reshape_ins",
    "reshape_outs",
    "resize_in",
    "resize_out",
    "sublayout",
    "transpose_ins",
    "transpose_outs",
    "unsqueeze_in",
    "unsqueeze_out",
)
"""The methods of LinearLayout that can be written."""

MAKERS = ("empty", "from_bases", "identity_1d", "strided_1d", "zeros_1d")
PREFIXES = ("gl", "ttgl", "weft", "layouts")


def _callables() -> dict[str, Callable[..., Value]]:
    """Everything that can be called by name."""
    found: dict[str, Callable[..., Value]] = {}
    for name in layouts.__all__:
        thing = getattr(layouts, name)
        if isinstance(thing, type) and issubclass(thing, Layout) and name.endswith("Layout") and name != "Layout":
            found[name] = thing
    for abstract in ("DistributedLayout", "SharedLayout", "AutoLayout", "CoalescedLayout"):
        found.pop(abstract, None)
    for name in ("make_cga_layout", "mfma_scale_layout", "wmma_scale_layout", "natural_k_width", "get_tmem_reg_layout"):
        found[name] = getattr(layouts, name)
    found["LinearLayout"] = LinearLayout.from_bases
    for name in MAKERS:
        found[f"LinearLayout.{name}"] = getattr(LinearLayout, name)
    found["NVMMASharedLayout.get_default_for"] = layouts.NVMMASharedLayout.get_default_for
    found["PaddedSharedLayout.with_identity_for"] = layouts.PaddedSharedLayout.with_identity_for
    return found


CALLABLES = _callables()


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
    try:
        if isinstance(value, dict):
            return _from_mapping(value, shape)
        if isinstance(node, grammar.Cute):
            return value.invert()  # type: ignore[no-any-return]
    except LayoutError as error:
        grammar.fail(text, 0, len(text), error.message, error.hint)
    if not isinstance(value, (LinearLayout, Layout)):
        grammar.fail(text, 0, len(text), f"a layout is needed here, this is {_what(value)}")
    return value


def as_linear(layout: LinearLayout | Layout, shape: Sequence[int] | None) -> LinearLayout:
    """The linear layout of a tile; a LinearLayout is itself."""
    if isinstance(layout, LinearLayout):
        return layout
    if shape is None:
        raise LayoutError(f"{layout!r} stands for a layout only with the shape of a tile", hint="give it by --shape")
    return layout.to_linear(shape)


def _from_mapping(bases: Mapping[str, Any], shape: Sequence[int] | None) -> LinearLayout:
    for name, own in bases.items():
        if not isinstance(own, tuple) or not all(isinstance(b, tuple) and all(type(c) is int for c in b) for b in own):
            raise LayoutError(f"the bases of {name} must be a list of coordinates, as [[0, 1], [1, 0]]")
    ranks = {len(b) for bs in bases.values() for b in bs}
    if len(ranks) != 1:
        raise LayoutError("bases have to have the same number of coordinates each, and one of them has to be given")
    names = [f"dim{i}" for i in range(ranks.pop())]
    if shape is not None and len(shape) == len(names):
        return LinearLayout.from_bases(bases, dict(zip(names, shape, strict=True)), require_surjective=False)
    return LinearLayout.from_bases(bases, names)


def _what(value: Value) -> str:
    if isinstance(value, LinearLayout):
        return "a LinearLayout"
    if isinstance(value, Layout):
        return f"a {type(value).__name__}"
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
            return self.guarded(node, lambda: layouts.from_cute(node.text))
        if isinstance(node, grammar.Product):
            left, right = self.linear(node.left), self.linear(node.right)
            return self.guarded(node, lambda: left * right)
        if isinstance(node, grammar.Call):
            return self.call(node)
        if isinstance(node, grammar.Name):
            return self.name(node)
        return self.fail(node, "a method has to be called: add `()` with its arguments")

    def name(self, node: grammar.Name) -> Value:
        if node.name in self.names:
            return self.names[node.name]
        if node.name in CALLABLES:
            return self.fail(node, f"{node.name} has to be called: add `(...)` with its parameters")
        return self.unknown(node, node.name, [*self.names, *CALLABLES])

    def unknown(self, node: grammar.Node, name: str, known: Sequence[str]) -> Any:
        close = difflib.get_close_matches(name, known, 3, 0.75)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(known)}"
        return self.fail(node, f"there is no layout or function {name}", hint)

    def linear(self, node: grammar.Node) -> LinearLayout:
        value = self.value(node)
        if isinstance(value, dict):
            return self.guarded(node, lambda: _from_mapping(value, None))  # type: ignore[no-any-return]
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
            return self.fail(node, f"the parameters do not fit: {error}")

    def call(self, node: grammar.Call) -> Value:
        function = node.function
        path = _path(function)
        if path and path[0] in PREFIXES and path[0] not in self.names:
            path = path[1:]
        name = ".".join(path or ())
        arguments = [self.value(a) for a in node.arguments]
        named = {k: self.value(v) for k, v in node.named}
        if name in CALLABLES:
            return self.invoke(node, name, CALLABLES[name], arguments, named)
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
            return self.invoke(node, name, value.to_linear, arguments, named)
        own = self.linear(function.value)
        if name not in METHODS:
            return self.fail(function, f"layouts have no method {name}", f"known are to_linear, {', '.join(METHODS)}")
        arguments = [self.operand(a) for a in arguments]
        named = {k: self.operand(v) for k, v in named.items()}
        result = self.invoke(node, name, getattr(own, name), arguments, named)
        if result is None:
            return self.fail(node, f"{name}: the layout cannot be divided so")
        return result

    def operand(self, value: Value) -> Value:
        return as_linear(value, self.shape) if isinstance(value, Layout) else value

    def invoke(
        self,
        node: grammar.Call,
        name: str,
        function: Callable[..., Value],
        arguments: list[Value],
        named: dict[str, Value],
    ) -> Value:
        try:
            inspect.signature(function).bind(*arguments, **named)
        except TypeError as error:
            parameters = ", ".join(inspect.signature(function).parameters)
            return self.fail(node, f"{name}: {error}", f"the parameters are ({parameters})")
        result = self.guarded(node, lambda: function(*arguments, **named))
        if isinstance(result, LinearLayout):
            odd = [d for d in (*result.in_dims, *result.out_dims) if not isinstance(d, str)]
            if odd:
                self.fail(node, f"{name}: the name of a dimension is a string, got {odd[0]!r}")
        return result


def _path(node: grammar.Node) -> list[str] | None:
    """The names of `a.b.c`; None for anything else."""
    if isinstance(node, grammar.Name):
        return [node.name]
    if isinstance(node, grammar.Attribute):
        inner = _path(node.value)
        return None if inner is None else [*inner, node.name]
    return None
