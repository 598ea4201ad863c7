"""Mathematical functions, element by element.

They take float32 and float64 and nothing else (cast first), except where they say otherwise.

>>> evaluate("tl.math.log2(x)", x=[2.0, 8.0])
array([1., 3.], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from weft import ir

from . import core, dtypes as dt
from .constants import known_flag
from .protocol import GIVEN, builtin, builtin_named
from .tensors import member, tensor

if TYPE_CHECKING:
    from .semantic import TritonSemantic

__all__ = [
    "abs",
    "ceil",
    "cos",
    "div_rn",
    "erf",
    "exp",
    "exp2",
    "fdiv",
    "floor",
    "fma",
    "log",
    "log2",
    "rsqrt",
    "sin",
    "sqrt",
    "sqrt_rn",
    "umulhi",
]

_FLOATS = ("fp32", "fp64")
_WIDE_INTS = ("int32", "int64", "uint32", "uint64")


def _checked(value: tensor, types: tuple[str, ...]) -> tensor:
    """Refuse an element type that a function does not take."""
    name = value.type.scalar.name
    if name not in types:
        hint = ": cast it with .to(tl.float32)" if "fp32" in types else ""
        raise ValueError(f"Expected dtype {list(types)} but got {name}{hint}")
    return value


class Unary(Protocol):
    """A function of one number, for type checkers."""

    def __call__(self, x: Any, _semantic: TritonSemantic = GIVEN) -> tensor: ...


def _unary(
    name: str, operation: str, meaning: str, given: str, result: str, types: tuple[str, ...] = _FLOATS
) -> Unary:
    """A function of one number, which is also a method of it: one operation of the IR.

    `given` and `result` are the example of its docstring.
    """
    example = f'>>> evaluate("tl.{name}(x)", x={given}).round(5)\narray({result}, dtype=float32)'

    def function(x: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
        return _semantic._same(ir.operation(operation), _checked(_semantic.to_tensor(x), types))

    return member(builtin_named(name, f"{meaning}\n\n{example}", function))


exp = _unary("exp", "math.exp", "e to the power of x.", "[0.0, 1.0]", "[1.     , 2.71828]")
exp2 = _unary("exp2", "math.exp2", "2 to the power of x.", "[0.0, 3.0]", "[1., 8.]")
log = _unary("log", "math.log", "The natural logarithm.", "[1.0, 2.0]", "[0.     , 0.69315]")
log2 = _unary("log2", "math.log2", "The logarithm to base 2.", "[1.0, 8.0]", "[0., 3.]")
cos = _unary("cos", "math.cos", "The cosine of an angle in radians.", "[0.0, 1.0]", "[1.    , 0.5403]")
sin = _unary("sin", "math.sin", "The sine of an angle in radians.", "[0.0, 1.0]", "[0.     , 0.84147]")
sqrt = _unary("sqrt", "math.sqrt", "The square root, fast.", "[4.0, 9.0]", "[2., 3.]")
sqrt_rn = _unary(
    "sqrt_rn", "tt.precise_sqrt", "The root of a float32, correctly rounded.", "[4.0, 9.0]", "[2., 3.]", ("fp32",)
)
rsqrt = _unary("rsqrt", "math.rsqrt", "One over the square root.", "[4.0, 16.0]", "[0.5 , 0.25]")
erf = _unary("erf", "math.erf", "The error function.", "[0.0, 1.0]", "[0.    , 0.8427]")
floor = _unary("floor", "math.floor", "The largest whole number that is not larger.", "[1.5, -1.5]", "[ 1., -2.]")
ceil = _unary("ceil", "math.ceil", "The smallest whole number that is not smaller.", "[1.5, -1.5]", "[ 2., -1.]")


@builtin
def umulhi(x: Any, y: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The upper half of the product of two 32-bit or 64-bit integers, taken as unsigned.

    >>> evaluate("tl.umulhi(x.to(tl.uint32), x.to(tl.uint32))", x=[1 << 16, 1 << 20])
    array([  1, 256], dtype=uint32)
    """
    x, y = (_checked(_semantic.to_tensor(v), _WIDE_INTS) for v in (x, y))
    x, y = _semantic.binary_op_type_checking_impl(x, y)
    return _semantic._same(ir.operation("tt.mulhiui"), x, y)


@member
@builtin
def abs(x: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The magnitude: of floats without their sign, of signed integers (the smallest one wraps to itself).

    >>> evaluate("tl.abs(x)", x=[-3, 2])
    array([3, 2], dtype=int32)
    """
    x = _semantic.to_tensor(x)
    scalar = x.dtype
    if scalar.is_fp8e4b15():
        return _semantic._same(ir.arith.AndIOp, x, _semantic._constant(0x7F, x.type.with_element_ty(core.int8)))
    if scalar.is_floating():
        return _semantic._same(ir.math.AbsFOp, x)
    if scalar.is_int_signed():
        return _semantic._same(ir.math.AbsIOp, x)
    if scalar.is_int_unsigned():
        return x  # type: ignore[no-any-return]
    raise TypeError(f"abs takes integers and floats, got {scalar}")


@builtin
def fdiv(x: Any, y: Any, ieee_rounding: Any = False, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The quotient of two floats of one type.

    >>> evaluate("tl.fdiv(x, 4.0)", x=[1.0, 2.0])
    array([0.25, 0.5 ], dtype=float32)
    """
    return _semantic.fdiv(_semantic.to_tensor(x), _semantic.to_tensor(y), known_flag(ieee_rounding, "ieee_rounding"))


@builtin
def div_rn(x: Any, y: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The quotient of two float32 values, correctly rounded.

    >>> evaluate("tl.div_rn(x, y)", x=[1.0, 2.0], y=[4.0, 8.0])
    array([0.25, 0.25], dtype=float32)
    """
    x, y = (v if isinstance(v, tensor) else _semantic.cast(_semantic.to_tensor(v), dt.float32) for v in (x, y))
    x, y = (_checked(v, ("fp32",)) for v in (x, y))
    x, y = _semantic.binary_op_type_checking_impl(x, y)
    return _semantic._same(ir.operation("tt.precise_divf"), x, y)


@builtin
def fma(x: Any, y: Any, z: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """`x * y + z` in a common type; on floats with one rounding.

    >>> evaluate("tl.fma(x, y, 1.0)", x=[1.0, 2.0], y=[3.0, 4.0])
    array([4., 9.], dtype=float32)
    """
    x, y, z = (_semantic.to_tensor(v) for v in (x, y, z))
    x, y = _semantic.binary_op_type_checking_impl(x, y)
    z, x = _semantic.binary_op_type_checking_impl(z, x)
    z, y = _semantic.binary_op_type_checking_impl(z, y)
    if x.type.scalar.is_int():
        return _semantic._same(ir.arith.AddiOp, _semantic._same(ir.arith.MuliOp, x, y), z)
    return _semantic._same(ir.math.FmaOp, x, y, z)
