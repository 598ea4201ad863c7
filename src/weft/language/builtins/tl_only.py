"""The builtins of `tl` that `gl` has with a layout of its own, or not at all.

Tiles that the compiler gives a layout (`arange`, `full`, `histogram`, `dot`, ...), shapes that it chooses a layout for
(`cat`, `view`, `broadcast_to`, `trans`), block pointers and tensor descriptors, and the barrier of the whole program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import dtypes as dt
from ..constants import constexpr, known_flag, unwrap, unwrap_iterable, unwrap_shape
from ..descriptors import tensor_descriptor, tensor_descriptor_base
from ..dtypes import check_shape, dtype
from ..protocol import GIVEN, builtin
from ..results import must_use_result
from ..tensors import block_shape, member, tensor

if TYPE_CHECKING:
    from ..semantic import TritonSemantic

__all__ = [
    "advance",
    "arange",
    "broadcast_to",
    "cat",
    "debug_barrier",
    "dot",
    "dot_scaled",
    "full",
    "histogram",
    "load_tensor_descriptor",
    "make_block_ptr",
    "make_tensor_descriptor",
    "store_tensor_descriptor",
    "trans",
    "view",
]


@builtin
def arange(start: Any, end: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The integers of [start, end) as int32; both known when compiling, a power of two of them.

    >>> evaluate("tl.arange(0, 8)")
    array([0, 1, 2, 3, 4, 5, 6, 7], dtype=int32)
    """
    return _semantic.arange(unwrap(start), unwrap(end))


@builtin
def full(shape: Any, value: Any, dtype: dtype, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A tile filled with one value (a number, or a tensor of one element) of a type.

    >>> evaluate("tl.full((2, 2), 7, tl.float16)")
    array([[7., 7.],
           [7., 7.]], dtype=float16)
    """
    return _semantic.full(unwrap_shape(shape), unwrap(value), unwrap(dtype))


@member
@builtin
def broadcast_to(input: tensor, *shape: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Broadcast a tile to a shape of the same rank; dimensions of size 1 are repeated.

    >>> evaluate("tl.broadcast_to(x, (2, 4))", x=[[1, 2, 3, 4]]).shape
    (2, 4)
    """
    dims = unwrap_shape(unwrap_iterable(shape))
    check_shape(dims)
    return _semantic.broadcast_impl_shape(_semantic.to_tensor(input), dims)


@member
@builtin
def trans(input: tensor, *dims: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Axes permuted; without `dims` the last two are swapped.

    >>> evaluate("tl.trans(x)", x=[[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]], dtype=int32)
    """
    order = unwrap_iterable(dims)
    if not order:
        rank = len(block_shape(input))
        if rank < 2:
            raise ValueError("tl.trans invoked with a 0- or 1-dimensional tensor")
        order = [*range(rank - 2), rank - 1, rank - 2]
    return _semantic.permute(input, [unwrap(d) for d in order])


@builtin
def cat(
    input: tensor, other: tensor, can_reorder: Any = False, dim: Any = 0, _semantic: TritonSemantic = GIVEN
) -> tensor:
    """Two tiles of one shape end to end along a dimension; in order, whatever `can_reorder` says.

    >>> sorted(evaluate("tl.cat(x, y, can_reorder=True)", x=[1, 2], y=[3, 4]).tolist())
    [1, 2, 3, 4]
    """
    return _semantic.cat(input, other, known_flag(can_reorder, "can_reorder"), unwrap(dim))


@member
@builtin
def view(input: tensor, *shape: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Deprecated: `reshape` with `can_reorder=True`.

    >>> evaluate("tl.view(x, (2, 2))", x=[0, 1, 2, 3]).shape  # warns that `reshape` has taken its place
    (2, 2)
    """
    _semantic.warn("view is deprecated, please use reshape with can_reorder being true.")
    return _semantic.reshape(input, unwrap_shape(unwrap_iterable(shape)), can_reorder=True)


@member
@builtin
def histogram(
    input: tensor, num_bins: Any, mask: Any = None, _semantic: TritonSemantic = GIVEN, _generator: Any = None
) -> tensor:
    """Count how often each of 0 .. num_bins - 1 occurs, as int32; other values and masked-off elements do not count.

    >>> evaluate("tl.histogram(x, 4)", x=[0, 3, 3, 1])
    array([1, 1, 0, 2], dtype=int32)
    """
    mask = unwrap(mask)
    return _semantic.histogram(input, unwrap(num_bins), None if mask is None else _semantic.to_tensor(mask))


@builtin
def dot(
    input: tensor,
    other: tensor,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:
    """The product of two matrices (or of stacks of them: leading dimensions are batches), plus `acc`.

    The result is int32 for int8, float32 for float32 and bfloat16, and `out_dtype` for float16 and fp8 (float32 by
    default, or float16 if `acc` is float16). `input_precision` says how float32 operands may be rounded; on the CPU
    "ieee", "tf32" and "tf32x3" are all exact float32.

    >>> ones = [[1.0] * 16] * 16
    >>> evaluate("tl.dot(x, y)", x=ones, y=ones)[0, :3]
    array([16., 16., 16.], dtype=float32)
    """
    input_precision, allow_tf32 = unwrap(input_precision), unwrap(allow_tf32)
    if allow_tf32 is not None:
        if input_precision is not None:
            raise ValueError("Only one of input_precision and allow_tf32 can be specified")
        input_precision = "tf32" if allow_tf32 and "tf32" in _semantic.options.allowed_dot_input_precisions else "ieee"
    acc = unwrap(acc)
    acc = _semantic.to_tensor(acc) if acc is not None else None
    out_dtype = unwrap(out_dtype)
    if out_dtype is None:
        out_dtype = dt.float16 if acc is not None and acc.dtype.is_fp16() else dt.float32
    return _semantic.dot(input, other, acc, input_precision, unwrap(max_num_imprecise_acc), out_dtype)


@builtin
def dot_scaled(
    lhs: tensor,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: tensor,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: Any = False,
    lhs_k_pack: Any = True,
    rhs_k_pack: Any = True,
    out_dtype: dtype = dt.float32,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:
    """The product of two microscaled matrices: every 32 elements along K share a power of two.

    Formats are e2m1 (two in a byte, low nibble first), e4m3, e5m2, bf16 and fp16. Scales are bytes (e8m0), [M, K / 32]
    on the left and [N, K / 32] on the right, or None. `fast_math` assumes that no scale is NaN.

    >>> tiles = "x = tl.full((16, 32), 1.0, tl.float8e5); two = tl.full((16, 1), 128, tl.uint8); "
    >>> evaluate(tiles + "tl.dot_scaled(x, two, 'e5m2', tl.trans(x), two, 'e5m2')")[0, :2]
    array([128., 128.], dtype=float32)
    """
    return _semantic.dot_scaled(
        lhs,
        unwrap(lhs_scale),
        unwrap(lhs_format),
        rhs,
        unwrap(rhs_scale),
        unwrap(rhs_format),
        unwrap(acc),
        known_flag(fast_math, "fast_math"),
        known_flag(lhs_k_pack, "lhs_k_pack"),
        known_flag(rhs_k_pack, "rhs_k_pack"),
        unwrap(out_dtype),
    )


@builtin
def debug_barrier(_semantic: TritonSemantic = GIVEN) -> None:
    """Let all threads of the program wait for each other.

    >>> evaluate("tl.debug_barrier(); tl.sum(x)", x=[1, 2])
    3
    """
    _semantic.debug_barrier()


@builtin
def make_block_ptr(
    base: tensor,
    shape: Any,
    strides: Any,
    offsets: Any,
    block_shape: Any,
    order: Any,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:
    """A pointer to a block of the tensor of `shape` and `strides` at `base`, beginning at `offsets`.

    >>> @weft.jit
    ... def lower_half(x):
    ...     block = tl.make_block_ptr(x, shape=(3, 4), strides=(4, 1), offsets=(2, 0), block_shape=(2, 2), order=(1, 0))
    ...     return tl.load(block, boundary_check=(0,), padding_option="zero")
    >>> x = np.arange(12, dtype=np.int32).reshape(3, 4)
    >>> evaluate("lower_half(x)", x=x, lower_half=lower_half)
    array([[8, 9],
           [0, 0]], dtype=int32)
    """
    return _semantic.make_block_ptr(base, shape, strides, offsets, block_shape, order)


@must_use_result(
    "Note that tl.advance does not have any side effects. "
    "To move the block pointer, you need to assign the result of tl.advance to a variable."
)
@member
@builtin
def advance(base: tensor, offsets: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Return a block pointer moved by offsets; the argument itself stays as it is.

    >>> x = np.arange(12, dtype=np.int32).reshape(3, 4)
    >>> block = "block = tl.make_block_ptr(x, (3, 4), (4, 1), (0, 0), (2, 2), (1, 0))"
    >>> evaluate(block + "; tl.load(tl.advance(block, (1, 2)))", x=x)
    array([[ 6,  7],
           [10, 11]], dtype=int32)
    """
    return _semantic.advance(base, offsets)


@builtin
def make_tensor_descriptor(
    base: tensor,
    shape: Any,
    strides: Any,
    block_shape: Any,
    padding_option: Any = "zero",
    _semantic: TritonSemantic = GIVEN,
) -> tensor_descriptor:
    """A descriptor of the tensor at `base`, read and written in blocks of `block_shape` and kept inside `shape`.

    The last stride is 1; the last dimension of the block has at least 16 bytes.

    >>> x = np.arange(16, dtype=np.int32).reshape(4, 4)
    >>> rows = "rows = tl.make_tensor_descriptor(x, (4, 4), (4, 1), (2, 4))"
    >>> evaluate(rows + "; rows.load([1, 0])", x=x)
    array([[ 4,  5,  6,  7],
           [ 8,  9, 10, 11]], dtype=int32)
    """
    return _semantic.make_tensor_descriptor(
        base, list(unwrap(shape)), list(unwrap(strides)), list(unwrap(block_shape)), unwrap(padding_option)
    )


@builtin
def load_tensor_descriptor(
    desc: tensor_descriptor_base, offsets: Sequence[constexpr | tensor], _semantic: TritonSemantic = GIVEN
) -> tensor:
    """`desc.load(offsets)`.

    >>> x = np.arange(16, dtype=np.int32).reshape(4, 4)
    >>> rows = "rows = tl.make_tensor_descriptor(x, (4, 4), (4, 1), (2, 4))"
    >>> evaluate(rows + "; tl.load_tensor_descriptor(rows, [2, 0])", x=x)
    array([[ 8,  9, 10, 11],
           [12, 13, 14, 15]], dtype=int32)
    """
    return desc.load(offsets, _semantic=_semantic)  # type: ignore[no-any-return]


@builtin
def store_tensor_descriptor(
    desc: tensor_descriptor_base,
    offsets: Sequence[constexpr | tensor],
    value: tensor,
    _semantic: TritonSemantic = GIVEN,
) -> Any:
    """`desc.store(offsets, value)`.

    >>> x = np.zeros((2, 4), np.int32)
    >>> rows = "rows = tl.make_tensor_descriptor(x, (2, 4), (4, 1), (1, 4))"
    >>> evaluate(rows + "; tl.store_tensor_descriptor(rows, [1, 0], tl.full((1, 4), 5, tl.int32))", x=x)
    >>> x
    array([[0, 0, 0, 0],
           [5, 5, 5, 5]], dtype=int32)
    """
    return desc.store(offsets, value, _semantic=_semantic)
