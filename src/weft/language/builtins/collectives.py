"""Reductions, scans and maps with a function of the user's; gather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from weft import ir

from ..callable import JITCallable
from ..constants import known_flag, unwrap, wrap_axis
from ..dtypes import block_type
from ..protocol import GIVEN, builtin, is_builtin
from ..tensors import block_shape, member, tensor
from ..tuples import tuple as _tuple
from .commuting import check_commutes

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from ..annotations import Value
    from ..semantic import TritonSemantic

__all__ = [
    "associative_scan",
    "gather",
    "map_elementwise",
    "reduce",
]


def call_function(fn: Any, args: Sequence[Any], semantic: Any, generator: Any) -> Any:
    """Call a function of a kernel, @jit or builtin, at the builder's place."""
    fn = unwrap(fn)
    if is_builtin(fn):
        extra = {"_generator": generator} if getattr(fn, "_wants_generator", False) else {}
        return fn(*args, _semantic=semantic, **extra)
    if isinstance(fn, JITCallable):
        if generator is None:
            raise ValueError(f"`{fn.__name__}` can be called only while a kernel is compiled")
        return generator.call_JitFunction(fn, args, kwargs={})
    raise TypeError(f"expected a @jit function, got {fn!r}")


def _results(value: Any) -> list[tensor]:
    """What a combine function returned, as a list."""
    return [value] if isinstance(value, tensor) else list(unwrap(value))


def _combine_region(
    name: str, combine_fn: Any, inputs: Sequence[tensor], terminator: type[Operation], semantic: Any, generator: Any
) -> Callable[[Operation], None]:
    """A region builder that calls the user's function on the region's arguments."""
    types = [t.type.scalar for t in inputs]

    def fill(op: Operation) -> None:
        block = semantic.builder.block
        arguments = [tensor(a, t) for a, t in zip(block.args, [*types, *types], strict=True)]
        results = [semantic.to_tensor(r) for r in _results(call_function(combine_fn, arguments, semantic, generator))]
        types_returned = [r.type for r in results]
        if types_returned != types:
            raise TypeError(
                f"the function of a {name} must return what it combines, ({', '.join(map(str, types))}), "
                f"but returns ({', '.join(map(str, types_returned))})"
            )
        semantic.builder.create(terminator, [r.handle for r in results])

    return fill


@member
@builtin
def reduce(
    input: Any,
    axis: Any,
    combine_fn: Any,
    keep_dims: Any = False,
    _semantic: TritonSemantic = GIVEN,
    _generator: Any = None,
) -> Value:
    """Combine the elements along an axis, or all elements, with a function of two values.

    `input` may be a tuple of tensors of one shape; the function then takes and returns that many values. The order is
    unspecified: the function must be associative and commutative. `keep_dims` keeps the axis with size 1.

    >>> @weft.jit
    ... def larger(a, b):
    ...     return tl.maximum(a, b)
    >>> evaluate("tl.reduce(x, 0, larger)", x=[3, 9, 1, 2], larger=larger)
    9
    """
    if isinstance(input, tensor):
        one: Value = reduce((input,), axis, combine_fn, keep_dims, _semantic=_semantic, _generator=_generator)[0]
        return one
    inputs = [_semantic.to_tensor(t) for t in unwrap(input)]
    dim = unwrap(axis)
    region = _combine_region("reduction", combine_fn, inputs, ir.tt.ReduceReturnOp, _semantic, _generator)
    results = _semantic.reduction(inputs, dim, region)

    def apply(tiles: list[tensor]) -> list[tensor]:
        return _results(map_elementwise(combine_fn, *tiles, _semantic=_semantic, _generator=_generator))

    at = None if dim is None else wrap_axis(dim, len(block_shape(inputs[0])))
    check_commutes(combine_fn, inputs, at, apply, _semantic)
    if known_flag(keep_dims, "keep_dims"):
        rank = len(block_shape(inputs[0]))
        results = tuple(restore_axis(r, dim, rank, _semantic) for r in results)
    return _tuple(results)


def restore_axis(value: tensor, axis: int | None, rank: int, semantic: Any) -> tensor:
    """Put back an axis (or, for None, all of them) that a reduction took away, with size 1."""
    if axis is not None:
        return semantic.expand_dims(value, axis if axis >= 0 else axis + rank)  # type: ignore[no-any-return]
    for _ in range(rank):
        value = semantic.expand_dims(value, 0)
    return value


def reduce_with_indices(
    input: tensor,
    axis: Any,
    combine_fn: Any,
    keep_dims: Any = False,
    _semantic: TritonSemantic = GIVEN,
    _generator: Any = None,
) -> Any:
    """Reduce values together with their positions along the axis."""
    axis = unwrap(axis)
    shape = block_shape(input)
    rank = len(shape)
    if axis is None:
        input, axis = _semantic.reshape(input, (input.numel.value,), can_reorder=False), 0
        shape = block_shape(input)
        all_axes = True
    else:
        all_axes = False
    axis = wrap_axis(axis, len(shape))
    index = _semantic.positions(input, axis)
    region = _combine_region("reduction", combine_fn, [input, index], ir.tt.ReduceReturnOp, _semantic, _generator)
    results = _semantic.reduction([input, index], axis, region)
    if known_flag(keep_dims, "keep_dims"):
        results = tuple(restore_axis(r, None if all_axes else axis, rank, _semantic) for r in results)
    return _tuple(results)


@member
@builtin
def associative_scan(
    input: Any,
    axis: Any,
    combine_fn: Any,
    reverse: Any = False,
    _semantic: TritonSemantic = GIVEN,
    _generator: Any = None,
) -> Value:
    """All partial combinations along an axis, from the front or with `reverse` from the end; see `reduce`.

    >>> @weft.jit
    ... def larger(a, b):
    ...     return tl.maximum(a, b)
    >>> evaluate("tl.associative_scan(x, 0, larger)", x=[3, 1, 9, 2], larger=larger)
    array([3, 3, 9, 9], dtype=int32)
    """
    if isinstance(input, tensor):
        steps = associative_scan((input,), axis, combine_fn, reverse, _semantic=_semantic, _generator=_generator)
        one: Value = steps[0]
        return one
    inputs = [_semantic.to_tensor(t) for t in unwrap(input)]
    region = _combine_region("scan", combine_fn, inputs, ir.tt.ScanReturnOp, _semantic, _generator)
    return _tuple(_semantic.associative_scan(inputs, unwrap(axis), region, known_flag(reverse, "reverse")))


@builtin
def map_elementwise(
    scalar_fn: Callable[..., tuple[tensor, ...]],
    *args: tensor,
    pack: Any = 1,
    _semantic: TritonSemantic = GIVEN,
    _generator: Any = None,
) -> Value:
    """Apply a function on scalars, which may branch, to every element.

    With `pack` greater than 1, the function takes and returns that many elements of each tensor at a time: first all
    elements of the first tensor, then those of the second.

    >>> @weft.jit
    ... def step(value):
    ...     return value if value > 2 else 0
    >>> evaluate("tl.map_elementwise(step, x)", x=[1, 2, 3, 4], step=step)
    array([0, 0, 3, 4], dtype=int32)
    """
    pack = unwrap(pack)
    if not isinstance(pack, int) or pack < 1:
        raise ValueError(f"pack must be a positive integer, got {pack}")
    _semantic.unroll(f"map_elementwise packs {pack} elements", pack, "make pack smaller")
    inputs = _semantic.broadcast_tensors(*[_semantic.to_tensor(a) for a in args])
    types = [t.type.scalar for t in inputs for _ in range(pack)]
    block = _semantic.builder.new_block([t.to_ir() for t in types])
    with _semantic.builder.inside(block):
        scalars = [tensor(a, t) for a, t in zip(block.args, types, strict=True)]
        value = call_function(scalar_fn, scalars, _semantic, _generator)
        results = [_semantic.to_tensor(r) for r in _results(value)]
        _semantic.builder.create(ir.tt.MapElementwiseReturnOp, [r.handle for r in results])
    types_returned = [r.type for r in results]
    for type in types_returned:
        if isinstance(type, block_type):
            raise TypeError(f"the function of map_elementwise must return scalars, got {type}")
    kinds = types_returned[::pack]
    if any(types_returned[offset::pack] != kinds for offset in range(1, pack)):
        raise TypeError(f"the function of map_elementwise must return {pack} values of each type, got {types_returned}")
    mapped = _semantic.map_elementwise(inputs, kinds, pack, block)
    return mapped[0] if isinstance(value, tensor) else _tuple(mapped)


@member
@builtin
def gather(src: tensor, index: tensor, axis: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Elements of `src` picked by `index` along an axis; the other axes agree. Indices wrap around the axis.

    >>> evaluate("tl.gather(x, index, axis=0)", x=[10, 20, 30, 40], index=[3, 0, 0, 1])
    array([40, 10, 10, 20], dtype=int32)
    """
    return _semantic.gather(src, index, unwrap(axis))
