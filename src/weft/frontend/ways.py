"""A way out for errors of kernels that say none of their own: by what went wrong, else by how a function is called.

    k.py:4:9: error: `umulhi` cannot take these arguments: a scalar fp32
        4 |     x = tl.umulhi(x)
          |         ^^^^^^^^^^^^
    hint: it is called as tl.umulhi(x, y)

Messages are often Triton's, which programs look for, so that what helps stands here and not in them.
"""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from weft.language.callable import JITCallable

from .traced import Traced
from .values import unwrap

_NUMBERS = "operands are numbers, bools, and tensors of them"
_LOAD = "tl.load(pointer) is the value that it points to; addresses are pointer + integers; an array of one is x.item()"
_INDEX = "x[:, None] adds an axis; tl.load(pointer + i) reads one element, and tl.gather(x, indices, axis) picks some"
_ARANGE = "tl.arange(0, BLOCK) with `BLOCK: tl.constexpr` has BLOCK elements: start and end are ints, start < end"
_VALUES = {
    "NoneType": "it is None here: give it, or use it only under `if ... is not None:`",
    "tuple": "take an element of it, t[0]",
    "list": "take an element of it, items[0]; tl.arange and tl.full make tensors",
    "str": "text is only for options, sem='relaxed' say; a number is written without quotes",
    "dict": "take a value out of it before the launch, and pass that as an argument",
    "module": "a module is no value: name something in it, tl.float32",
    "type": "a type is no value: x.to(tl.float32) converts, tl.full(shape, value, tl.float32) makes a tensor",
    "dtype": "a type is no value: x.to(tl.float32) converts, tl.full(shape, value, tl.float32) makes a tensor",
    **dict.fromkeys(
        ("ndarray", "Tensor"),
        "an array is no constant: take `tl.constexpr` from its parameter, and tl.load its elements",
    ),
    "complex": "complex numbers are two tensors, real and imaginary",
    "tensor_descriptor": "descriptor.load(offsets) is the block that it describes",
}
"""What to do with what no tensor can be made of, by its class."""

_WAYS: tuple[tuple[str, str], ...] = (
    # names and attributes
    (r"^(tl|gl|ttgl) is not defined", r"import the language as `\1` at the top of the file"),
    (r"^(\w+) is not defined", r"assign `\1` first, make it a parameter, or a global, `\1 = tl.constexpr(...)`"),
    (r"^module `[\w.]*\blanguage` has no attribute", "the functions of the language are listed by dir(tl)"),
    (r"^(?:a tensor|a scalar) .* has no attribute", "a tensor has .dtype, .shape, .T, .to(dtype) and tl's functions"),
    (r"^None has no attribute", "it is None here: give it, or use it only under `if ... is not None:`"),
    (r"has no attribute `(?:append|extend|insert|pop|remove|sort|add|update)`",
     "lists of a kernel are tuples, which do not change: x = x + (y,) makes a longer one"),
    (r" has no attribute `", "dir() of it, outside of the kernel, lists what it has"),
    # values of a wrong kind
    (r"^unexpected type (?:fp8\w+ and|\w+ and fp8)", "convert first: x.to(tl.float32)"),
    (r"cannot be indexed$", "tuples and lists can be, and tensors with None and `:`"),
    (r"^unsupported tensor index", _INDEX),
    (r"indices must be integers", "a text or a tuple has an element for each number from 0 on"),
    (r"values to unpack", "as many names as there are values, a, b = 1, 2"),
    (r"^cannot unpack|can be unpacked", "a, b = f(x) takes a tuple apart, such as a function returns, or tl.split(x)"),
    (r" cannot be called", "functions with @jit, builtins and classes are called; x.to(tl.float32) converts"),
    (r"context manager of a `with`", "tl.scope(...) and the like are called there: `with f(...):`"),
    (r"^invalid operands of type .*pointer|wrong type argument to unary .*pointer", _LOAD),
    (r"^cannot add pointers together", "add integers, p + offset; q.to(tl.int64) - p.to(tl.int64) counts bytes"),
    (r"^invalid operands of type \S*float\S* and \S*float|^invalid operands of type .*(?:float|fp|bf)\d",
     "bits are those of integers: convert, x.to(tl.int32), or take them as they are, x.to(tl.int32, bitcast=True)"),
    (r"^no operator|^unsupported operand|^bad operand|^wrong type argument|^cannot add|^invalid operands", _NUMBERS),
    (r"^Mask must have boolean scalar type", "compare, mask=offsets < n, or make bools with x != 0"),
    (r"[Uu]nsupported ptr type|^Pointer argument of|to be a pointer type",
     "addresses are an array's parameter and offsets, x_ptr + tl.arange(0, BLOCK)"),
    (r"^Value argument cannot be block type", "one address takes one value: make many, ptr + tl.arange(0, N)"),
    (r"a condition must be", "compare: `if x > 0:`; of a tensor, tl.max of bools says any, tl.min all"),
    (r"must be an integer scalar, found a scalar pointer", "tl.load(pointer) is the number that it points to"),
    (r"must be an integer scalar, found a tensor", "reduce it first, tl.max(x, axis=0)"),
    (r"must be an integer scalar, found a", "convert it, x.to(tl.int32)"),
    (r"must be an integer scalar", "write an integer, or use // instead of /"),
    (r"^Both operands must be same dtype", "convert one of them, x.to(y.dtype)"),
    (r"^cast needs an element type|to be an element type", "such as tl.float32, tl.int8, or x.dtype of another tensor"),
    (r"^cannot cast pointer", "tl.load(pointer) is the value; pointer.to(tl.int64) its address"),
    (r"out of range for type u?int(?:8|16|32)$", "convert the tensor first, x.to(tl.int64)"),
    (r"is outside a tuple of", "its values are numbered from 0, and from the last one -1 on; len(t) says how many"),
    (r"^cannot iterate over a (?:tensor|scalar)", "a tile is computed as a whole: operations are on all its elements"),
    (r"unsigned tensor and a negative scalar", "x.to(tl.int64) makes it signed; or subtract"),
    (r"^a block pointer is moved", "p = tl.advance(p, (BLOCK, 0)), with an offset for each dimension"),
    (r"division (?:or modulo )?by zero", "both sides are known when the kernel is compiled: the divisor is 0 there"),
    (r"is not subscriptable", "an annotation is a name, x: tl.constexpr = 3"),
    (r"is out of range for type|^Nonrepresentable integer|can't represent|too large",
     "integers of 64 bits are the widest: tl.full([], value, tl.int64)"),
    # arguments known at compile time
    (r"^arange", _ARANGE),
    (r"must be of type tl.constexpr|not a constexpr|known at compile time|known when compiling|Shape element|"
     r"must be a constexpr|list of constant integers",
     "write a number there, or mark the parameter that it comes from, `N: tl.constexpr`"),
    (r"^program_id axis|^num_programs axis", "a grid has the axes 0, 1 and 2"),
    (r"must have equal ranks >= 2", "matrices are multiplied, [M, K] times [K, N]; of vectors, tl.sum(a * b)"),
    (r"invalid axis|outside the \d+ dimensions", "axes are numbered from 0, and from the last one -1 on"),
    (r"Supported rounding modes", "fp_downcast_rounding='rtne' or 'rtz'"),
    (r"^permute dims", "x.T exchanges two dimensions; tl.permute takes a number for each, tl.permute(x, (0, 2, 1))"),
    (r"only integers|Expected dtype \['int", "convert first, x.to(tl.int32)"),
    (r"does not support|takes integers|takes floats|Expected dtype", "convert first, x.to(tl.float32)"),
    (r"warp_specialize inside of a partition", "start all partitions in one warp_specialize, or call the function"),
    (r"the same rank|same shape|to have shape|shapes? (?:differ|do not)",
     "x[:, None] and x[None, :] add axes, tl.reshape and tl.broadcast_to change shapes"),
    (r"unknown element type", "such as 'fp32', 'bf16', 'i8'"),
    (r"^can't multiply sequence|^can only concatenate|not all arguments converted", _NUMBERS),
    (r"takes 0 positional arguments", "what stands before the dot is the first argument: x.log2()"),
    (r"must be (?:positive )?integers", "write numbers or constexprs, [16, BLOCK]"),
    (r"only supported for", "convert first, x.to(tl.int32) or x.to(tl.float32)"),
    (r"builds kernel code and works only inside a kernel", "call it in a function with @jit, which kernels call"),
    (r"different signedness", "convert one of them first, x.to(y.dtype)"),
    (r"^static assertion failed", "the kernel's author demands it: call it with values for which it holds"),
    (r"^expected a @jit function", "decorate the function with @jit, outside of the kernel, and name it here"),
    (r"needs? (?:a |two )?tensors?", "tl.full(shape, value, dtype) and x[None] make tensors of numbers"),
)  # fmt: skip
_CLASS = re.compile(r"of type <class '(?:[\w.<>]+\.)?(\w+)'> to tensor")


_CALLED = r"these arguments: |\(\) (?:takes|got|missing)|__init__\(\)|^`\w+` takes .* as `(?!axis|dim|k|n_rounds)"
"""Messages for which the way out is how the function is called."""


def way_out(frame: Traced, message: str, node: ast.AST | None) -> str | None:
    """What can be done about an error at a node; None where nobody knows."""
    hint = _hint(frame, message, frame.node if node is None else node)
    return hint if hint is None or frame.fn.semantic is None else re.sub(r"\btl\.", "gl.", hint)


def _hint(frame: Traced, message: str, node: ast.AST | None) -> str | None:
    called = _how_called(frame, node) if isinstance(node, ast.Call) else None
    class_named = _CLASS.search(message)
    if class_named is not None:
        prints = class_named[1] == "str" and called is not None and "(prefix, *args" in called
        return (
            'text comes first and alone: tl.device_print("n, m:", n, m)'
            if prints
            else _VALUES.get(class_named[1], _NUMBERS)
        )
    if called is not None and re.search(_CALLED, message):
        number = re.search(r"(?:these arguments: |`shape`, found )(?:constexpr |a scalar )\w+", message)
        is_shape = number is not None and "(shape, " in called
        return f"{called}; a shape is a list or a tuple, [16]" if is_shape else called
    for pattern, way in _WAYS:
        match = re.search(pattern, message)
        if match is not None:
            return match.expand(way)
    return called


def _how_called(frame: Traced, node: ast.Call) -> str | None:
    """The parameters of what is called."""
    if not all(isinstance(n, ast.Name | ast.Attribute | ast.expr_context) for n in ast.walk(node.func)):
        return None
    before = frame.node
    try:
        return called_as(unwrap(frame.eval(node.func)), ast.unparse(node.func))
    except Exception:  # a name that means nothing
        return None
    finally:
        frame.node = before


def called_as(fn: Any, name: str) -> str | None:
    """A hint with the parameters of a function; None for one of C, which does not say."""
    try:
        signature = inspect.signature(fn.fn if isinstance(fn, JITCallable) else fn)
    except (TypeError, ValueError):
        return None
    shown = ", ".join(_parameter(p) for p in signature.parameters.values() if not p.name.startswith("_"))
    return f"it is called as {name}({shown})"


def _parameter(parameter: inspect.Parameter) -> str:
    """`mask=None`, `*shape`."""
    if parameter.default is parameter.empty:
        return str(parameter.replace(annotation=parameter.empty))
    default: Any = unwrap(parameter.default)
    if type(default) is object:  # stands for none that a user can give
        return f"{parameter.name}=..."
    return f"{parameter.name}={getattr(default, '__name__', None) or repr(default)}"
