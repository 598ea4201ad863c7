"""Expressions: what each kind of node evaluates to.

On compile-time values everything folds, with Python's meaning; on tensors operators are methods of the tensor, which
emit operations.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from weft.base import UnsupportedLanguageConstruct
from weft.language import core
from weft.language.callable import BoundConstexprFunction, BoundJITMethod, ConstexprFunction, JITCallable
from weft.language.constants import constexpr as _constexpr, power, shifted_left

from .calls import call
from .frame import Frame, evaluates
from .names import did_you_mean
from .values import as_tuple, describe, is_aggregate, iteration_count, unwrap, wrap_scalar

_tensor = core.tensor

# operator -> (its text, name of the method, of the reflected method, the operator on Python values)
_Operator = tuple[str, str, str, Callable[[Any, Any], Any]]
_BINARY: Final[dict[type[ast.operator], _Operator]] = {
    ast.Add: ("+", "__add__", "__radd__", operator.add),
    ast.Sub: ("-", "__sub__", "__rsub__", operator.sub),
    ast.Mult: ("*", "__mul__", "__rmul__", operator.mul),
    ast.Div: ("/", "__truediv__", "__rtruediv__", operator.truediv),
    ast.FloorDiv: ("//", "__floordiv__", "__rfloordiv__", operator.floordiv),
    ast.Mod: ("%", "__mod__", "__rmod__", operator.mod),
    ast.Pow: ("**", "__pow__", "__rpow__", power),
    ast.LShift: ("<<", "__lshift__", "__rlshift__", shifted_left),
    ast.RShift: (">>", "__rshift__", "__rrshift__", operator.rshift),
    ast.BitAnd: ("&", "__and__", "__rand__", operator.and_),
    ast.BitOr: ("|", "__or__", "__ror__", operator.or_),
    ast.BitXor: ("^", "__xor__", "__rxor__", operator.xor),
}
_COMPARISON: Final[dict[type[ast.cmpop], _Operator]] = {
    ast.Eq: ("==", "__eq__", "__req__", operator.eq),
    ast.NotEq: ("!=", "__ne__", "__rne__", operator.ne),
    ast.Lt: ("<", "__lt__", "__rlt__", operator.lt),
    ast.LtE: ("<=", "__le__", "__rle__", operator.le),
    ast.Gt: (">", "__gt__", "__rgt__", operator.gt),
    ast.GtE: (">=", "__ge__", "__rge__", operator.ge),
}
_MIRRORED: Final = {
    "__eq__": "__eq__", "__ne__": "__ne__", "__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__",
    "__ge__": "__le__",
}  # fmt: skip
"""The comparison that says the same with its sides exchanged: Python asks the right side for it."""
_UNARY: Final[dict[type[ast.unaryop], tuple[str, str, Callable[[Any], Any]]]] = {
    ast.USub: ("-", "__neg__", operator.neg),
    ast.UAdd: ("+", "__pos__", operator.pos),
    ast.Not: ("not", "__not__", operator.not_),
    ast.Invert: ("~", "__invert__", operator.invert),
}
_CONVERSIONS: Final[dict[int, Callable[[Any], str]]] = {ord("a"): ascii, ord("r"): repr, ord("s"): str}
_NO_TENSOR_OPERATOR: Final = {
    "**": "tensors have no power operator: use libdevice.pow, tl.exp2(y * tl.log2(x)), or multiply",
}


@evaluates(ast.Constant)
def _constant(frame: Frame, node: ast.Constant) -> Any:
    return _constexpr(node.value)


@evaluates(ast.Name)
def _name(frame: Frame, node: ast.Name) -> Any:
    return frame.lookup(node)


@evaluates(ast.Tuple, ast.List)
def _tuple(frame: Frame, node: ast.Tuple | ast.List) -> Any:
    return core.tuple(elements(frame, node.elts))


def elements(frame: Frame, nodes: list[ast.expr]) -> list[Any]:
    """The values of a tuple display or of positional arguments, starred ones unpacked."""
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            starred = frame.eval(node.value)
            values += sequence(frame, starred, node, "unpack")
        else:
            value = frame.eval(node)
            values.append(value if isinstance(value, (core.base_value, core.slice)) else _constexpr(value))
    return values


def sequence(frame: Frame, value: Any, node: ast.AST, purpose: str) -> list[Any]:
    """The values of a tuple, or of a constexpr that holds a sequence."""
    if isinstance(value, core.tuple):
        return list(value)
    inner = unwrap(value)
    if isinstance(inner, range):
        count = iteration_count(inner)
        frame.at(node)
        frame.semantic.unroll(f"this range has {count} values", count, "use a `for` over it, which makes a loop")
    if isinstance(inner, (tuple, list, range)):
        return list(as_tuple(tuple(inner)))
    hint = "use Python's range(...)" if isinstance(value, (core.range, core.static_range)) else None
    raise frame.error(f"cannot {purpose} {describe(value)}: only tuples can be", node, hint=hint)


@evaluates(ast.BinOp)
def _bin_op(frame: Frame, node: ast.BinOp) -> Any:
    left = frame.eval(node.left)
    right = frame.eval(node.right)
    frame.at(node)
    return apply_binary(frame, binary_entry(frame, node.op), left, right)


def binary_entry(frame: Frame, op: ast.operator) -> _Operator:
    """What an operator is called."""
    entry = _BINARY.get(type(op))
    if entry is None:  # `@` is the only one
        raise frame.error(
            "the operator `@` cannot be used in a kernel", kind=UnsupportedLanguageConstruct, hint="use tl.dot(a, b)"
        )
    return entry


def apply_binary(frame: Frame, entry: _Operator, left: Any, right: Any) -> Any:
    """`left op right`: an aggregate's methods decide, then a tensor on either side, else Python's operator folds."""
    symbol, method, reflected, python = entry
    ours = is_aggregate(left) or is_aggregate(right)
    if (isinstance(left, _tensor) or isinstance(right, _tensor)) and not ours:
        first, name, second = (left, method, right) if isinstance(left, _tensor) else (right, reflected, left)
        function = getattr(type(first), name, None)
        if function is None:
            raise frame.error(
                f"tensors have no operator `{symbol}` (operands are {describe(left)} and {describe(right)})",
                hint=_NO_TENSOR_OPERATOR.get(symbol),
            )
        return function(first, second, _semantic=frame.semantic)
    asked = [(left, method, right), (right, reflected, left)]
    if method in _MIRRORED:
        asked.append((right, _MIRRORED[method], left))
    for operand, name, other in asked:
        if isinstance(operand, core.base_value) and not isinstance(operand, _constexpr):
            function = getattr(operand, name, None) if is_aggregate(operand) or not ours else None
            if function is not None:
                if isinstance(function, JITCallable) and not isinstance(function, ConstexprFunction):
                    function = BoundJITMethod(operand, function)
                result = call(frame, function, [other], {})
                if unwrap(result) is not NotImplemented:
                    return result
    left, right = unwrap(left), unwrap(right)
    if isinstance(right, core.tuple) and isinstance(left, (list, tuple)) and python in (operator.eq, operator.ne):
        return python(right, left)
    if isinstance(left, core.base_value) or isinstance(right, core.base_value):
        raise frame.error(f"no operator `{symbol}` between {describe(left)} and {describe(right)}")
    return _constexpr(_folded(python, symbol, left, right))


def _folded(python: Callable[..., Any], symbol: str, *operands: Any) -> Any:
    """What an operator gives for values known at compile time; TypeError in the language's words where it is none."""
    try:
        return python(*operands)
    except TypeError as error:
        tb = error.__traceback__
        if tb is not None and tb.tb_next is not None and python not in (power, shifted_left):
            raise  # a class of the user's says what is wrong
        of = " and ".join(describe(wrap_scalar(operand)) for operand in operands)
        raise TypeError(f"no operator `{symbol}` {'between' if len(operands) > 1 else 'on'} {of}") from None


@evaluates(ast.UnaryOp)
def _unary_op(frame: Frame, node: ast.UnaryOp) -> Any:
    operand = frame.eval(node.operand)
    frame.at(node)
    symbol, method, python = _UNARY[type(node.op)]
    if isinstance(operand, _tensor):
        return getattr(operand, method)(_semantic=frame.semantic)
    if isinstance(operand, core.base_value) and not isinstance(operand, _constexpr):
        function = getattr(operand, method, None)
        if function is not None:
            if isinstance(function, JITCallable) and not isinstance(function, ConstexprFunction):
                function = BoundJITMethod(operand, function)
            return call(frame, function, [], {})
        if not isinstance(operand, core.tuple) or symbol != "not":
            raise frame.error(f"no operator `{symbol}` on {describe(operand)}", kind=UnsupportedLanguageConstruct)
    return _constexpr(_folded(python, symbol, unwrap(operand)))


@evaluates(ast.Compare)
def _compare(frame: Frame, node: ast.Compare) -> Any:
    if len(node.ops) != 1:
        parts = [ast.unparse(p) for p in (node.left, *node.comparators)]
        pairs = " and ".join(f"{a} {symbol_of(op)} {b}" for a, op, b in zip(parts, node.ops, parts[1:], strict=False))
        raise frame.error(
            "a chain of comparisons cannot be used in a kernel",
            node,
            kind=UnsupportedLanguageConstruct,
            hint=f"write `{pairs}` (with `&` and parentheses for tensors)",
        )
    left = frame.eval(node.left)
    right = frame.eval(node.comparators[0])
    frame.at(node)
    kind = type(node.ops[0])
    if kind is ast.Is:
        return _constexpr(unwrap(left) is unwrap(right))
    if kind is ast.IsNot:
        return _constexpr(unwrap(left) is not unwrap(right))
    entry = _COMPARISON.get(kind)
    if entry is None:
        raise frame.error(
            f"the operator `{symbol_of(node.ops[0])}` cannot be used in a kernel",
            kind=UnsupportedLanguageConstruct,
            hint="compare with each value and combine with `or`",
        )
    return apply_binary(frame, entry, left, right)


def symbol_of(op: ast.cmpop) -> str:
    """The text of a comparison operator."""
    names = {ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}
    entry = _COMPARISON.get(type(op))
    return entry[0] if entry else names[type(op)]


@evaluates(ast.Attribute)
def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    return get_attribute(frame, frame.eval(node.value), node.attr, node)


def get_attribute(frame: Frame, owner: Any, name: str, node: ast.AST) -> Any:
    """`owner.name`."""
    if isinstance(owner, _tensor) and name == "T":
        frame.at(node)
        return frame.semantic.permute(owner, (1, 0))
    if isinstance(owner, _constexpr) and name not in ("value", "type"):
        owner = owner.value
    try:
        value = getattr(owner, name)
    except AttributeError:
        raise _no_attribute(frame, owner, name, node) from None
    if isinstance(owner, core.base_value) and isinstance(value, JITCallable):
        if isinstance(value, ConstexprFunction):
            return value if isinstance(value, BoundConstexprFunction) else BoundConstexprFunction(owner, value)
        return BoundJITMethod(owner, value)
    return wrap_scalar(value)


_MEANT = {
    "astype": "x.to(tl.float16) converts",
    "mean": "tl.sum(x, axis) / n",
    "dot": "tl.dot(x, y) multiplies matrices",
    "item": "tl.load(pointer) is one element, and a reduction such as tl.sum(x) makes a number of a tile",
    "size": "x.numel is the number of its elements; of an array, pass x.size as an argument",
    "load": "tl.load(pointer) reads memory",
    "store": "tl.store(pointer, value) writes memory",
}
"""What to write for a name that tensors of NumPy and PyTorch have, or functions of the language."""


def _no_attribute(frame: Frame, owner: Any, name: str, node: ast.AST) -> Exception:
    owner_name = describe(owner)
    module = getattr(owner, "__name__", None)
    if module is not None and not isinstance(owner, (JITCallable, type)):
        owner_name = f"module `{module.replace('weft.language', core.dtype.package)}`"
    attributes = [n for n in dir(owner) if not n.startswith("_")]
    if isinstance(owner, core.tuple) and owner._type is not None:
        attributes += [f for f in owner._type.fields if f]
    return frame.error(
        f"{owner_name} has no attribute `{name}`",
        node,
        like=AttributeError,
        hint=_MEANT.get(name) or did_you_mean(name, attributes),
    )


@evaluates(ast.Subscript)
def _subscript(frame: Frame, node: ast.Subscript) -> Any:
    owner = frame.eval(node.value)
    index = frame.eval(node.slice)
    frame.at(node)
    if isinstance(owner, _tensor):
        return _tensor.__getitem__(owner, index, _semantic=frame.semantic)  # type: ignore[call-arg]
    if isinstance(owner, core.base_value) and not isinstance(owner, _constexpr):
        method = getattr(owner, "__getitem__", None)
        if method is None:
            raise frame.error(f"{describe(owner)} cannot be indexed")
        if isinstance(method, JITCallable) and not isinstance(method, ConstexprFunction):
            method = BoundJITMethod(owner, method)
        return wrap_scalar(call(frame, method, [index], {}))
    owner, index = unwrap(owner), _python_index(index)
    if not hasattr(owner, "__getitem__"):
        raise frame.error(f"{describe(owner)} cannot be indexed")
    try:
        return wrap_scalar(owner[index])
    except (KeyError, IndexError) as error:
        raise frame.error(f"index {index!r} is not in {describe(owner)} ({type(error).__name__})") from None


def _python_index(index: Any) -> Any:
    """An index in terms of Python, for an object of the host."""
    index = unwrap(index)
    if isinstance(index, core.slice):
        return slice(unwrap(index.start), unwrap(index.stop), unwrap(index.step))
    if isinstance(index, core.tuple):
        return tuple(_python_index(i) for i in index.values)
    return index


@evaluates(ast.Slice)
def _slice(frame: Frame, node: ast.Slice) -> Any:
    lower, upper, step = (None if n is None else frame.eval(n) for n in (node.lower, node.upper, node.step))
    return core.slice(lower, upper, step)


@evaluates(ast.JoinedStr)
def _joined_str(frame: Frame, node: ast.JoinedStr) -> Any:
    parts = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        value = frame.eval(part.value)
        if isinstance(value, core.base_value) and not isinstance(value, _constexpr):
            raise frame.error(
                f"an f-string can contain only compile-time values, found {describe(value)}",
                part.value if hasattr(part.value, "lineno") else node,
                kind=UnsupportedLanguageConstruct,
                hint='to print a value while the kernel runs, give it after the text: tl.device_print("n is", n)',
            )
        spec = unwrap(frame.eval(part.format_spec)) if part.format_spec is not None else ""
        shown = unwrap(value)
        if part.conversion in _CONVERSIONS:
            shown = _CONVERSIONS[part.conversion](shown)
        parts.append(format(shown, spec))
    return _constexpr("".join(parts))
