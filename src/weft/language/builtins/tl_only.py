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
    """The integers of [start, end) as int32; both known when compiling, a power of two of them."""
    return _semantic.arange(unwrap(start), unwrap(end))


@builtin
def full(shape: Any, value: Any, dtype: dtype, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A tile filled with one value (a number, or a tensor of one element) of a type."""
    return _semantic.full(unwrap_shape(shape), unwrap(value), unwrap(dtype))


@member
@builtin
def broadcast_to(input: tensor, *shape: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A tile repeated to a shape of the same rank; dimensions of size 1 are repeated."""
    dims = unwrap_shape(unwrap_iterable(shape))
    check_shape(dims)
    return _semantic.broadcast_impl_shape(_semantic.to_tensor(input), dims)


@member
@builtin
def trans(input: tensor, *dims: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Axes permuted; without `dims` the last two are swapped."""
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
    """Two tiles of one shape end to end along a dimension; in order, whatever `can_reorder` says."""
    return _semantic.cat(input, other, known_flag(can_reorder, "can_reorder"), unwrap(dim))


@member
@builtin
def view(input: tensor, *shape: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Deprecated: `reshape` with `can_reorder=True`."""
    _semantic.warn("view is deprecated, please use reshape with can_reorder being true.")
    return _semantic.reshape(input, unwrap_shape(unwrap_iterable(shape)), can_reorder=True)


@member
@builtin
def histogram(
    input: tensor, num_bins: Any, mask: Any = None, _semantic: TritonSemantic = GIVEN, _generator: Any = None
) -> tensor:
    """How often each of 0 .. num_bins - 1 occurs among integers, as int32; others and masked-off ones do not count."""
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

    int8 makes int32; float32 and bfloat16 make float32; float16 and fp8 make `out_dtype`, which is float32 unless it
    is said or `acc` is float16. `input_precision` says how float32 operands may be taken; on the CPU "ieee", "tf32" and
    "tf32x3" are all exact float32.
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
    on the left and [N, K / 32] on the right, or None. `fast_math` leaves NaN scales out of account.
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
    """Let all threads of the program wait for each other."""
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
    """A pointer to a block of the tensor of `shape` and `strides` at `base`, beginning at `offsets`."""
    return _semantic.make_block_ptr(base, shape, strides, offsets, block_shape, order)


@must_use_result(
    "Note that tl.advance does not have any side effects. "
    "To move the block pointer, you need to assign the result of tl.advance to a variable."
)
@member
@builtin
def advance(base: tensor, offsets: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """A block pointer moved by offsets; the argument itself does not move."""
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
    """
    return _semantic.make_tensor_descriptor(
        base, list(unwrap(shape)), list(unwrap(strides)), list(unwrap(block_shape)), unwrap(padding_option)
    )


@builtin
def load_tensor_descriptor(
    desc: tensor_descriptor_base, offsets: Sequence[constexpr | tensor], _semantic: TritonSemantic = GIVEN
) -> tensor:
    """`desc.load(offsets)`."""
    return desc.load(offsets, _semantic=_semantic)  # type: ignore[no-any-return]


@builtin
def store_tensor_descriptor(
    desc: tensor_descriptor_base,
    offsets: Sequence[constexpr | tensor],
    value: tensor,
    _semantic: TritonSemantic = GIVEN,
) -> Any:
    """`desc.store(offsets, value)`."""
    return desc.store(offsets, value, _semantic=_semantic)
