"""The standard library: reductions, scans and small helpers.

Triton writes these as kernels; here they build IR directly, which compiles faster and means the same. The functions
that combine pairs (`_sum_combine`, `_argmax_combine_tie_break_left`, ...) can be given to `reduce` and
`associative_scan` as in Triton.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft import ir
from weft.base import CompileTimeAssertionFailure

from . import core, math
from .builtins.collectives import reduce_with_indices, restore_axis
from .callable import constexpr_function
from .constants import constexpr, known_axis, known_flag, shown, unwrap, unwrap_shape, wrap_axis
from .protocol import GIVEN, standard_function
from .sorting import bitonic_merge, flip, sort, sort_impl as sort_impl, topk
from .tensors import block_shape, member, tensor
from .tuples import tuple as _tuple

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from .annotations import Value
    from .semantic import TritonSemantic

__all__ = [
    "argmax",
    "argmin",
    "bitonic_merge",
    "cdiv",
    "cumprod",
    "cumsum",
    "flip",
    "interleave",
    "max",
    "min",
    "ravel",
    "reduce_or",
    "sigmoid",
    "softmax",
    "sort",
    "sum",
    "swizzle2d",
    "topk",
    "xor_sum",
    "zeros",
    "zeros_like",
]


# -- compile-time helpers --------------------------------------------------------------------------------------


@constexpr_function
def _log2(i: Any) -> int:
    """The logarithm of a power of two known when compiling."""
    return int(unwrap(i).bit_length() - 1)


@constexpr_function
def _is_power_of_two(i: Any) -> bool:
    """Whether an integer known when compiling is a power of two."""
    value = unwrap(i)
    return bool(value > 0 and value & (value - 1) == 0)


def _integers_only(input: tensor, name: str) -> None:
    if not input.type.scalar.is_int():
        raise CompileTimeAssertionFailure(f"{name} only supported for integers, got {input.type.scalar}")


# -- small functions -------------------------------------------------------------------------------------------


@member
@standard_function
def cdiv(x: Any, div: Any, _semantic: TritonSemantic = GIVEN) -> Value:
    """`x / div` rounded up, for non-negative integers: `(x + div - 1) // div`.

    >>> evaluate("tl.cdiv(n, 4)", n=10)
    3
    """
    x, div = unwrap(x), unwrap(div)
    if not isinstance(x, tensor) and not isinstance(div, tensor):
        return constexpr((x + (div - 1)) // div)
    less_one = _semantic.sub(div, 1, True) if isinstance(div, tensor) else div - 1
    return _semantic.floordiv(_semantic.add(x, less_one, True), div)


@member
@standard_function
def sigmoid(x: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """`1 / (1 + exp(-x))`, of float32 and float64.

    >>> evaluate("tl.sigmoid(x)", x=[0.0, 2.0]).round(5)
    array([0.5   , 0.8808], dtype=float32)
    """
    x = _semantic.to_tensor(x)
    grown = math.exp(_semantic.minus(x), _semantic=_semantic)
    return _semantic.truediv(1, _semantic.add(1, grown, True))


@member
@standard_function
def softmax(
    x: tensor, dim: Any = None, keep_dims: Any = False, ieee_rounding: Any = False,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:  # fmt: skip
    """`exp(x - max(x)) / sum(...)` along an axis, by default the first.

    >>> evaluate("tl.softmax(x, 0)", x=[0.0, 0.0, 0.0, 0.0])
    array([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    axis = unwrap(dim)
    axis = 0 if axis is None else known_axis(axis)
    # What is reduced fits the tile without its axis only where that is the first: of a square one, rows would be
    # divided by the sums of columns.
    keep = known_flag(keep_dims, "keep_dims") or axis not in (0, -len(x.shape))
    top = max(x, axis, keep_dims=keep, _semantic=_semantic)
    numerator = math.exp(_semantic.sub(x, top, True), _semantic=_semantic)
    total = sum(numerator, axis, keep_dims=keep, _semantic=_semantic)
    return math.fdiv(numerator, total, ieee_rounding, _semantic=_semantic)


@member
@standard_function
def ravel(x: tensor, can_reorder: Any = False, _semantic: TritonSemantic = GIVEN) -> tensor:
    """All elements in one dimension.

    >>> evaluate("tl.ravel(x)", x=[[1, 2], [3, 4]])
    array([1, 2, 3, 4], dtype=int32)
    """
    return core.reshape(x, [x.numel], can_reorder=can_reorder, _semantic=_semantic)


@standard_function
def squeeze(x: tensor, dim: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A tile without its dimension `dim`, which must have length 1; a negative one counts from the end."""
    shape = unwrap_shape(x.shape)
    at = wrap_axis(unwrap(dim), len(shape))
    if shape[at] != 1:
        raise ValueError(f"squeeze needs a dimension of length 1: dimension {at} of shape {shape} has {shape[at]}")
    return core.reshape(x, shape[:at] + shape[at + 1 :], _semantic=_semantic)


@standard_function
def unsqueeze(x: tensor, dim: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A tile with one dimension more, of length 1, which becomes `dim`; a negative one counts from the end."""
    shape = unwrap_shape(x.shape)
    at = wrap_axis(unwrap(dim), len(shape) + 1)
    return core.reshape(x, [*shape[:at], 1, *shape[at:]], _semantic=_semantic)


@standard_function
def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any, _semantic: TritonSemantic = GIVEN) -> _tuple:
    """Map indices in row-major order to an order that goes down the columns of groups of `size_g` rows.

    The last group may be smaller. Programs that run at the same time then share more of the data that they load.

    >>> evaluate("tl.swizzle2d(tl.arange(0, 8) // 4, tl.arange(0, 8) % 4, 2, 4, 2)")
    (array([0, 1, 0, 1, 0, 1, 0, 1], dtype=int32), array([0, 0, 1, 1, 2, 2, 3, 3], dtype=int32))
    """
    i, j, size_i, size_j, size_g = (unwrap(v) for v in (i, j, size_i, size_j, size_g))
    for value in (i, j, size_i, size_j, size_g):
        if not isinstance(value, (int, tensor)):
            raise TypeError(f"swizzle2d takes integers, got {value!r}")
    do = _Arithmetic(_semantic)
    place = do.add(do.mul(i, size_j), j)
    per_group = do.mul(size_g, size_j)
    group = do.div(place, per_group)
    first = do.mul(group, size_g)
    rows = do.min(do.sub(size_i, first), size_g)
    within = do.mod(place, per_group)
    return _tuple([do.add(first, do.mod(within, rows)), do.div(within, rows)])


class _Arithmetic:
    """Arithmetic on tensors and Python numbers alike; numbers fold."""

    def __init__(self, semantic: Any) -> None:
        self.s = semantic

    def _do(self, x: Any, y: Any, fold: Callable[[Any, Any], Any], build: Callable[[Any, Any], Any]) -> Any:
        if isinstance(x, tensor) or isinstance(y, tensor):
            return build(x, y)
        return fold(x, y)

    def add(self, x: Any, y: Any) -> Any:
        return self._do(x, y, lambda a, b: a + b, lambda a, b: self.s.add(a, b, True))

    def sub(self, x: Any, y: Any) -> Any:
        return self._do(x, y, lambda a, b: a - b, lambda a, b: self.s.sub(a, b, True))

    def mul(self, x: Any, y: Any) -> Any:
        return self._do(x, y, lambda a, b: a * b, lambda a, b: self.s.mul(a, b, True))

    def div(self, x: Any, y: Any) -> Any:
        return self._do(x, y, lambda a, b: a // b, self.s.floordiv)

    def mod(self, x: Any, y: Any) -> Any:
        return self._do(x, y, lambda a, b: a % b, self.s.mod)

    def min(self, x: Any, y: Any) -> Any:
        return self._do(x, y, builtins.min, lambda a, b: core.minimum(a, b, _semantic=self.s))


@standard_function
def zeros(shape: Any, dtype: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A tile of zeros.

    >>> evaluate("tl.zeros((4,), tl.float32)")
    array([0., 0., 0., 0.], dtype=float32)
    """
    return _semantic.full(unwrap_shape(shape), 0, unwrap(dtype))


@standard_function
def zeros_like(input: tensor, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A tile of zeros of the shape and element type of another.

    >>> evaluate("tl.zeros_like(x)", x=[1.5, 2.5])
    array([0., 0.], dtype=float32)
    """
    if not isinstance(input, tensor) or input.dtype.is_ptr():
        raise TypeError(f"zeros_like takes a tensor of numbers, got {shown(input)}")
    return _semantic.full(block_shape(input), 0, input.dtype)


@standard_function
def interleave(a: Any, b: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Two tiles interleaved along their last axis: a0, b0, a1, b1, ...

    >>> evaluate("tl.interleave(x, y)", x=[1, 2], y=[3, 4])
    array([1, 3, 2, 4], dtype=int32)
    """
    joined = core.join(a, b, _semantic=_semantic)
    shape = block_shape(joined)
    if len(shape) == 1:
        return joined
    return _semantic.reshape(joined, (*shape[:-2], 2 * shape[-2]), can_reorder=False)


# -- combining pairs -------------------------------------------------------------------------------------------


@standard_function
def _sum_combine(a: Any, b: Any, _semantic: TritonSemantic = GIVEN) -> Any:
    return _semantic.add(a, b, True)


@standard_function
def _prod_combine(a: Any, b: Any, _semantic: TritonSemantic = GIVEN) -> Any:
    return _semantic.mul(a, b, True)


@standard_function
def _xor_combine(a: Any, b: Any, _semantic: TritonSemantic = GIVEN) -> Any:
    return _semantic.xor_(a, b)


@standard_function
def _or_combine(x: Any, y: Any, _semantic: TritonSemantic = GIVEN) -> Any:
    return _semantic.or_(x, y)


@standard_function
def _elementwise_max(a: Any, b: Any, _semantic: TritonSemantic = GIVEN) -> Any:
    return core.maximum(a, b, _semantic=_semantic)


@standard_function
def _elementwise_min(a: Any, b: Any, _semantic: TritonSemantic = GIVEN) -> Any:
    return core.minimum(a, b, _semantic=_semantic)


def _arg_combine(
    value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: Any, larger: bool, semantic: Any
) -> _tuple:
    """The better of two values with its index; of equal ones, with `tie_break_left`, the smaller index."""
    better = semantic.greater_than(value1, value2) if larger else semantic.less_than(value1, value2)
    if known_flag(tie_break_left, "tie_break_left"):
        tie = semantic.and_(semantic.equal(value1, value2), semantic.less_than(index1, index2))
        better = semantic.or_(better, tie)
    return _tuple([semantic.where(better, value1, value2), semantic.where(better, index1, index2)])


@standard_function
def _argmax_combine(
    value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: Any, _semantic: TritonSemantic = GIVEN
) -> Any:
    return _arg_combine(value1, index1, value2, index2, tie_break_left, True, _semantic)


@standard_function
def _argmin_combine(
    value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: Any, _semantic: TritonSemantic = GIVEN
) -> Any:
    return _arg_combine(value1, index1, value2, index2, tie_break_left, False, _semantic)


def _tie_broken(name: str, left: bool, larger: bool) -> Any:
    def combine(value1: Any, index1: Any, value2: Any, index2: Any, _semantic: TritonSemantic = GIVEN) -> Any:
        return _arg_combine(value1, index1, value2, index2, left, larger, _semantic)

    combine.__name__ = combine.__qualname__ = name
    return standard_function(combine)


_argmax_combine_tie_break_left = _tie_broken("_argmax_combine_tie_break_left", left=True, larger=True)
_argmax_combine_tie_break_fast = _tie_broken("_argmax_combine_tie_break_fast", left=False, larger=True)
_argmin_combine_tie_break_left = _tie_broken("_argmin_combine_tie_break_left", left=True, larger=False)
_argmin_combine_tie_break_fast = _tie_broken("_argmin_combine_tie_break_fast", left=False, larger=False)


# -- reductions ------------------------------------------------------------------------------------------------


def _reduce(op: type[Operation], input: tensor, axis: Any, keep_dims: Any, semantic: Any) -> tensor:
    """A reduction by one operation."""
    dim = unwrap(axis)
    rank = len(block_shape(input))
    if input.dtype.is_ptr():
        raise TypeError(f"a reduction takes numbers, got {input.dtype}")
    keep = known_flag(keep_dims, "keep_dims")
    result = semantic.reduce_with(op, input, dim)
    return restore_axis(result, dim, rank, semantic) if keep else result


def _extremum(
    input: tensor, axis: Any, return_indices: Any, tie_break_left: Any, keep_dims: Any, larger: bool, semantic: Any
) -> Value:
    input = core._promote_bfloat16_to_float32(input, _semantic=semantic)
    leftmost = known_flag(tie_break_left, "return_indices_tie_break_left")
    if known_flag(return_indices, "return_indices"):
        fast = _argmax_combine_tie_break_fast if larger else _argmin_combine_tie_break_fast
        left = _argmax_combine_tie_break_left if larger else _argmin_combine_tie_break_left
        combine = left if leftmost else fast
        return reduce_with_indices(input, axis, combine, keep_dims, _semantic=semantic)  # type: ignore[no-any-return]
    scalar = input.dtype
    if scalar.primitive_bitwidth < 32 and not scalar.is_ptr():
        input = semantic.cast(input, core.float32 if scalar.is_floating() else core.int32)
    scalar = input.dtype
    if scalar.is_floating():
        op: Any = ir.arith.MaxnumfOp if larger else ir.arith.MinnumfOp
    elif scalar.is_int_signed():
        op = ir.arith.MaxSIOp if larger else ir.arith.MinSIOp
    elif scalar.is_int():
        op = ir.arith.MaxUIOp if larger else ir.arith.MinUIOp
    else:
        raise TypeError(f"{'max' if larger else 'min'} takes integers and floats, got {scalar}")
    return _reduce(op, input, axis, keep_dims, semantic)


@member
@standard_function
def max(
    input: tensor, axis: Any = None, return_indices: Any = False, return_indices_tie_break_left: Any = True,
    keep_dims: Any = False, _semantic: TritonSemantic = GIVEN,
) -> Value:  # fmt: skip
    """The largest element along an axis, or of all; with `return_indices` also where it is.

    bfloat16 and, without indices, all types under 32 bits are widened (integers to int32). NaN is ignored.

    >>> evaluate("tl.max(x, axis=0, return_indices=True)", x=[3.0, 9.0, 1.0, 2.0])
    (9.0, 1)
    """
    return _extremum(input, axis, return_indices, return_indices_tie_break_left, keep_dims, True, _semantic)


@member
@standard_function
def argmax(
    input: tensor, axis: Any, tie_break_left: Any = True, keep_dims: Any = False,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:  # fmt: skip
    """Where the largest element along an axis is, as int32; of equal ones, with `tie_break_left`, the first.

    >>> evaluate("tl.argmax(x, axis=0)", x=[3, 9, 1, 9])
    1
    """
    return _extremum(input, axis, True, tie_break_left, keep_dims, True, _semantic)[1]  # type: ignore[no-any-return]


@member
@standard_function
def min(
    input: tensor, axis: Any = None, return_indices: Any = False, return_indices_tie_break_left: Any = True,
    keep_dims: Any = False, _semantic: TritonSemantic = GIVEN,
) -> Value:  # fmt: skip
    """The smallest element along an axis, or of all; with `return_indices` also where it is. See `max`.

    >>> evaluate("tl.min(x, axis=0)", x=[[3, 9], [1, 20]])
    array([1, 9], dtype=int32)
    """
    return _extremum(input, axis, return_indices, return_indices_tie_break_left, keep_dims, False, _semantic)


@member
@standard_function
def argmin(
    input: tensor, axis: Any, tie_break_left: Any = True, keep_dims: Any = False,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:  # fmt: skip
    """Where the smallest element along an axis is, as int32; of equal ones, with `tie_break_left`, the first.

    >>> evaluate("tl.argmin(x, axis=0)", x=[3, 9, 1, 2])
    2
    """
    return _extremum(input, axis, True, tie_break_left, keep_dims, False, _semantic)[1]  # type: ignore[no-any-return]


def _sum_type(input: tensor, dtype: Any) -> Any:
    """The type that a sum is done in: as asked for, or integers widened to 32 bits."""
    asked = unwrap(dtype)
    if asked is not None:
        return asked
    scalar = input.dtype
    if scalar.is_int() and scalar.int_bitwidth < 32:
        return core.int32 if scalar.is_int_signed() else core.uint32
    return scalar


@member
@standard_function
def sum(
    input: tensor, axis: Any = None, keep_dims: Any = False, dtype: Any = None,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:  # fmt: skip
    """The sum along an axis, or of all. Unless `dtype` is given, small integers are widened and floats keep their type.

    >>> evaluate("tl.sum(x, axis=1)", x=[[1, 2], [3, 4]])
    array([3, 7], dtype=int32)
    """
    input = _semantic.cast(input, _sum_type(input, dtype))
    op = ir.arith.AddfOp if input.dtype.is_floating() else ir.arith.AddiOp
    return _reduce(op, input, axis, keep_dims, _semantic)


@member
@standard_function
def xor_sum(input: tensor, axis: Any = None, keep_dims: Any = False, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The exclusive or of integers along an axis, or of all.

    >>> evaluate("tl.xor_sum(x, axis=0)", x=[1, 2, 4, 1])
    6
    """
    _integers_only(input, "xor_sum")
    return _reduce(ir.arith.XOrIOp, input, axis, keep_dims, _semantic)


@member
@standard_function
def reduce_or(input: tensor, axis: Any, keep_dims: Any = False, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The bitwise or of integers along an axis.

    >>> evaluate("tl.reduce_or(x, axis=0)", x=[1, 2, 4, 1])
    7
    """
    _integers_only(input, "reduce_or")
    return _reduce(ir.arith.OrIOp, input, axis, keep_dims, _semantic)


# -- scans -----------------------------------------------------------------------------------------------------


@member
@standard_function
def cumsum(
    input: tensor, axis: Any = 0, reverse: Any = False, dtype: Any = None, _semantic: TritonSemantic = GIVEN
) -> tensor:
    """Partial sums along an axis. bfloat16 is computed in float32, small integers are widened; `dtype` overrides that.

    >>> evaluate("tl.cumsum(x)", x=[1, 2, 3, 4])
    array([ 1,  3,  6, 10], dtype=int32)
    >>> evaluate("tl.cumsum(x, reverse=True)", x=[1, 2, 3, 4])
    array([10,  9,  7,  4], dtype=int32)
    """
    input = core._promote_bfloat16_to_float32(input, _semantic=_semantic)
    input = _semantic.cast(input, _sum_type(input, dtype))
    op = ir.arith.AddfOp if input.dtype.is_floating() else ir.arith.AddiOp
    return _semantic.scan_with(op, input, unwrap(axis), known_flag(reverse, "reverse"))


@member
@standard_function
def cumprod(input: tensor, axis: Any = 0, reverse: Any = False, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Partial products along an axis. bfloat16 is computed in float32; integers keep their type.

    >>> evaluate("tl.cumprod(x)", x=[1, 2, 3, 4])
    array([ 1,  2,  6, 24], dtype=int32)
    """
    input = core._promote_bfloat16_to_float32(input, _semantic=_semantic)
    op = ir.arith.MulfOp if input.dtype.is_floating() else ir.arith.MuliOp
    return _semantic.scan_with(op, input, unwrap(axis), known_flag(reverse, "reverse"))
