"""The builtins of `gl` that the Triton language does not have, or has without layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.base import hinted
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, builtin
from weft.language.semantic import block_shape
from weft.language.tensors import tensor
from weft.layouts import BlockedLayout

from ..operands import check_operands
from ..semantic import GluonSemantic
from .nvidia.hopper.cluster import barrier as cluster_barrier

__all__ = [
    "allocate_shared_memory",
    "arange",
    "bank_conflicts",
    "barrier",
    "convert_layout",
    "dot_fma",
    "fp4_to_fp",
    "full",
    "full_like",
    "histogram",
    "num_ctas",
    "num_warps",
    "set_auto_layout",
    "thread_barrier",
    "to_linear_layout",
    "warp_specialize",
    "zeros",
    "zeros_like",
]


def _shape(value: Any) -> list[Any]:
    """A shape as a list of what is in it."""
    value = unwrap(value)
    if not hasattr(value, "__iter__"):
        shown = value if type(value) is int else "64, 64"
        raise hinted(TypeError(f"a shape is a list of sizes, got {value}"), f"[{shown}]")
    return [unwrap(size) for size in value]


# -- making tiles --------------------------------------------------------------------------------------------------


@builtin
def arange(start: Any, end: Any, layout: Any = None, _semantic: GluonSemantic = GIVEN) -> tensor:
    """The integers of [start, end) as int32, in a layout of rank 1; without one, in an AutoLayout.

    >>> evaluate("gl.sum(gl.arange(0, 64, gl.BlockedLayout([1], [32], [1], [0])), 0)")
    2016
    """
    return _semantic.arange(unwrap(start), unwrap(end), unwrap(layout))


@builtin
def full(shape: Any, value: Any, dtype: Any, layout: Any = None, _semantic: GluonSemantic = GIVEN) -> tensor:
    """A tile filled with one value, a number or a scalar; without a layout, in an AutoLayout.

    >>> evaluate("gl.full((4,), 7, gl.int32, gl.BlockedLayout([1], [32], [1], [0]))")
    array([7, 7, 7, 7], dtype=int32)
    """
    return _semantic.full(_shape(shape), unwrap(value), unwrap(dtype), unwrap(layout))


@builtin
def zeros(shape: Any, dtype: Any, layout: Any = None, _semantic: GluonSemantic = GIVEN) -> tensor:
    """A tile of zeros; without a layout, in an AutoLayout.

    >>> evaluate("gl.zeros((4,), gl.float32, gl.BlockedLayout([1], [32], [1], [0]))")
    array([0., 0., 0., 0.], dtype=float32)
    """
    return _semantic.full(_shape(shape), 0, unwrap(dtype), unwrap(layout))


@builtin
def full_like(
    input: tensor,
    value: Any,
    shape: Any = None,
    dtype: Any = None,
    layout: Any = None,
    _semantic: GluonSemantic = GIVEN,
) -> tensor:
    """A tile of one value, with the shape, element type and layout of `input` where none are given.

    >>> evaluate("gl.full_like(x, 7)", x=[1, 2])
    array([7, 7], dtype=int32)
    """
    result_shape = block_shape(input) if unwrap(shape) is None else _shape(shape)
    element = input.dtype if unwrap(dtype) is None else unwrap(dtype)
    where = _semantic.tile_layout(input, "full_like") if unwrap(layout) is None else unwrap(layout)
    return _semantic.full(result_shape, unwrap(value), element, where)


@builtin
def zeros_like(
    input: tensor, shape: Any = None, dtype: Any = None, layout: Any = None, _semantic: GluonSemantic = GIVEN
) -> tensor:
    """A tile of zeros, with the shape, element type and layout of `input` where none are given.

    >>> evaluate("gl.zeros_like(x)", x=[1, 2])
    array([0, 0], dtype=int32)
    """
    return full_like(input, 0, shape, dtype, layout, _semantic=_semantic)


# -- layouts -------------------------------------------------------------------------------------------------------


@builtin
def convert_layout(value: tensor, layout: Any, assert_trivial: Any = False, _semantic: GluonSemantic = GIVEN) -> tensor:
    """The same tile in another layout. With `assert_trivial`, TypeError if any element would move.

    >>> evaluate("gl.convert_layout(x, gl.BlockedLayout([4], [32], [1], [0]))", x=[1, 2, 3, 4])
    array([1, 2, 3, 4], dtype=int32)
    """
    return _semantic.convert_layout(value, unwrap(layout), bool(unwrap(assert_trivial)))


@builtin
def set_auto_layout(value: tensor, layout: Any, _semantic: GluonSemantic = GIVEN) -> tensor:
    """A tile in an AutoLayout gets this layout; what it was computed from, and what is computed of it, follows.

    >>> wanted = "gl.BlockedLayout([1], [32], [1], [0])"
    >>> evaluate("gl.sum(gl.set_auto_layout(gl.arange(0, 64, gl.AutoLayout()), " + wanted + "), 0)")
    2016
    """
    return _semantic.set_auto_layout(value, unwrap(layout))


@builtin
def to_linear_layout(layout: Any, shape: Any, _semantic: GluonSemantic = GIVEN) -> Any:
    """The DistributedLinearLayout of a layout for a shape (of a layout of memory, the SharedLinearLayout).

    >>> @gluon.jit
    ... def show():
    ...     layout: gl.constexpr = gl.to_linear_layout(gl.BlockedLayout([4], [32], [4], [0]), [512])
    ...     gl.static_print(layout)
    >>> _ = show[(1,)](target="sim:cuda:80")
    DistributedLinearLayout([[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], [], [512])
    """
    return _semantic.to_linear_layout(unwrap(layout), _shape(shape))


@builtin
def bank_conflicts(distr_ty: Any, shared_ty: Any, _semantic: GluonSemantic = GIVEN) -> int:
    """Bank conflicts of a load or store between a tile of one type and shared memory of the other, per wavefront.

    0 is none: as many wavefronts as the bytes need. The types are `distributed_type` and
    `shared_memory_descriptor_type`, of one shape and element type.

    >>> memory = "memory = gl.allocate_shared_memory(gl.int32, [4], gl.SwizzledSharedLayout(1, 1, 1, [0])); "
    >>> evaluate(memory + "gl.bank_conflicts(x.type, memory.type)", x=[1, 2, 3, 4])
    0
    """
    return _semantic.bank_conflicts(unwrap(distr_ty), unwrap(shared_ty))


# -- shared memory -------------------------------------------------------------------------------------------------


@builtin
def allocate_shared_memory(
    element_ty: Any, shape: Any, layout: Any, value: Any = None, _semantic: GluonSemantic = GIVEN
) -> Any:
    """Shared memory for a tile, or for several (one more dimension in front); `value` is what it holds first.

    >>> memory = "memory = gl.allocate_shared_memory(gl.int32, [4], gl.SwizzledSharedLayout(1, 1, 1, [0]), x); "
    >>> evaluate(memory + "memory.load(x.type.layout)", x=[1, 2, 3, 4])
    array([1, 2, 3, 4], dtype=int32)
    """
    return _semantic.allocate_shared(unwrap(element_ty), _shape(shape), unwrap(layout), unwrap(value))


@builtin
def thread_barrier(_semantic: GluonSemantic = GIVEN) -> None:
    """All threads of the program wait for each other, and see each other's shared memory.

    >>> evaluate("gl.thread_barrier(); gl.sum(x, 0)", x=[1, 2])
    3
    """
    _semantic.debug_barrier()


@builtin
def barrier(*, cluster: Any = False, _semantic: GluonSemantic = GIVEN) -> None:
    """All threads of the program wait for each other, with `cluster` those of all its blocks.

    >>> evaluate("gl.barrier(); gl.sum(x, 0)", x=[1, 2])
    3
    """
    if unwrap(cluster) and unwrap(_semantic.num_ctas()) > 1:
        cluster_barrier(_semantic=_semantic)
    else:
        _semantic.debug_barrier()


# -- many elements -------------------------------------------------------------------------------------------------


@builtin
def histogram(
    input: tensor, num_bins: Any, mask: Any = None, layout: Any = None, _semantic: GluonSemantic = GIVEN,
    _generator: Any = None,
) -> tensor:  # fmt: skip
    """How often each of 0 .. num_bins - 1 occurs among integers, as int32, in a layout that must be given.

    >>> evaluate("gl.histogram(x, 4, layout=gl.BlockedLayout([1], [32], [1], [0]))", x=[0, 1, 1, 3])
    array([1, 2, 0, 1], dtype=int32)
    """
    mask = unwrap(mask)
    return _semantic.histogram(
        input, unwrap(num_bins), None if mask is None else _semantic.to_tensor(mask), unwrap(layout)
    )


@builtin
def fp4_to_fp(src: tensor, elem_type: Any, axis: Any, _semantic: GluonSemantic = GIVEN) -> tensor:
    """Two e2m1 numbers of each byte, the lower half first, side by side along an axis, as float16 or bfloat16.

    >>> evaluate("gl.fp4_to_fp(x.to(gl.uint8), gl.float16, 0)", x=[0x21, 0x43])
    array([0.5, 1. , 1.5, 2. ], dtype=float16)
    """
    return _semantic.fp4_to_fp(src, unwrap(elem_type), unwrap(axis))


@builtin
def dot_fma(a: tensor, b: tensor, acc: tensor, _semantic: GluonSemantic = GIVEN) -> tensor:
    """`a @ b + acc` by single multiplications: `acc` in a BlockedLayout, operands in DotOperandLayouts of it.

    >>> blocked = "layout = gl.BlockedLayout([1, 1], [4, 8], [1, 1], [1, 0]); "
    >>> a = "a = gl.full((8, 8), 2.0, gl.float32, gl.DotOperandLayout(0, layout, 0)); "
    >>> b = "b = gl.full((8, 8), 3.0, gl.float32, gl.DotOperandLayout(1, layout, 0)); "
    >>> evaluate(blocked + a + b + "gl.dot_fma(a, b, gl.zeros((8, 8), gl.float32, layout))")[0, :2]
    array([48., 48.], dtype=float32)
    """
    check_operands("dot_fma", a, b, acc, BlockedLayout)
    m, n = block_shape(acc)[-2:]
    k = block_shape(a)[-1]
    if m * n * k > 2**19:
        _semantic.warn(f"Large dot FMA instruction size {m}x{n}x{k} may have slow compile times")
    return _semantic.dot(a, b, acc, None, None, acc.dtype)


# -- the program ---------------------------------------------------------------------------------------------------


@builtin
def num_warps(_semantic: GluonSemantic = GIVEN, _generator: Any = None) -> Any:
    """The number of warps that run this, those of the partition inside of `warp_specialize`.

    >>> evaluate("gl.num_warps()", num_warps=4)
    4
    """
    return _semantic.num_warps()


@builtin
def num_ctas(_semantic: GluonSemantic = GIVEN) -> Any:
    """The number of blocks in a cluster.

    >>> evaluate("gl.num_ctas()")
    1
    """
    return _semantic.num_ctas()


@builtin
def warp_specialize(
    functions_and_args: Any, worker_num_warps: Any, worker_num_regs: Any = None, _semantic: GluonSemantic = GIVEN,
    _generator: Any = None,
) -> Any:  # fmt: skip
    """Run functions concurrently, each on its own warps; returns the result of the first one.

    `functions_and_args` is a list of (function, arguments). The first goes on in the warps of the kernel. The others
    run on `worker_num_warps` more warps, with `worker_num_regs` registers a thread (as many as the kernel's, if not
    given); they return nothing, and what they are called with cannot hold tiles. It cannot be nested.

    >>> @gluon.jit
    ... def fill(out, value: gl.constexpr):
    ...     gl.store(out + gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0])), value)
    >>> @gluon.jit
    ... def both(out):
    ...     gl.warp_specialize([(fill, (out, 1)), (fill, (out + 128, 2))], [4])
    >>> out = np.zeros(256, np.int32)
    >>> _ = both[(1,)](out, target="sim:cuda:90")
    >>> out[[0, 127, 128, 255]]
    array([1, 1, 2, 2], dtype=int32)
    """
    calls = _listed(functions_and_args)
    warps = [unwrap(v) for v in _listed(worker_num_warps)]
    registers = None if unwrap(worker_num_regs) is None else [unwrap(v) for v in _listed(worker_num_regs)]
    return _semantic.warp_specialize(calls, warps, registers, _generator)


def _listed(values: Any) -> Sequence[Any]:
    values = unwrap(values)
    return list(getattr(values, "values", values))
