"""Changing the shape of tiles, and their element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..constants import known_flag, unwrap, unwrap_iterable, unwrap_shape, wrap_axis
from ..dtypes import dtype
from ..protocol import GIVEN, builtin
from ..tensors import block_shape, cast_value, member, tensor
from ..tuples import tuple as _tuple

if TYPE_CHECKING:
    from ..annotations import Value
    from ..semantic import TritonSemantic

__all__ = [
    "broadcast",
    "cast",
    "expand_dims",
    "join",
    "permute",
    "reshape",
    "split",
]


@builtin
def to_tensor(x: Any, _semantic: TritonSemantic = GIVEN) -> Any:
    """A Python number as a scalar tensor; a tensor as it is.

    >>> evaluate("gl.to_tensor(3)")
    3
    """
    return _semantic.to_tensor(x)


@builtin
def broadcast(input: Any, other: Any, _semantic: TritonSemantic = GIVEN) -> Value:
    """Broadcast two tiles to their common shape, as NumPy does.

    >>> [tile.shape for tile in evaluate("tl.broadcast(x, y)", x=[[1, 2]], y=[[3], [4]])]
    [(2, 2), (2, 2)]
    """
    return _tuple(_semantic.broadcast_impl_value(_semantic.to_tensor(input), _semantic.to_tensor(other)))


@member
@builtin
def permute(input: tensor, *dims: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Axes permuted: axis i of the result is axis `dims[i]` of the input.

    >>> evaluate("tl.permute(x, (1, 0))", x=[[1, 2, 3, 4]]).shape
    (4, 1)
    """
    return _semantic.permute(input, [unwrap(d) for d in unwrap_iterable(dims)])


@builtin
def join(a: Any, b: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Two tiles side by side in a new last axis of size 2.

    >>> evaluate("tl.join(x, y)", x=[1, 2], y=[3, 4])
    array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return _semantic.join(_semantic.to_tensor(a), _semantic.to_tensor(b))


@builtin
def unsplat(x: tensor, _semantic: TritonSemantic = GIVEN, _generator: Any = None) -> tensor:
    """The element of a tile that has one, as a scalar."""
    return _semantic.unsplat(_semantic.to_tensor(x))


@member
@builtin
def split(a: tensor, _semantic: TritonSemantic = GIVEN, _generator: Any = None) -> Value:
    """The two tiles that `join` put together: the halves along a last axis of size 2.

    >>> evaluate("tl.split(x)", x=[[1, 3], [2, 4]])
    (array([1, 2], dtype=int32), array([3, 4], dtype=int32))
    """
    return _tuple(_semantic.split(a))


@member
@builtin
def item(input: tensor, _semantic: TritonSemantic = GIVEN, _generator: Any = None) -> tensor:
    """The element of a tile that has one, as a scalar."""
    return _semantic.unsplat(input)


@member
@builtin
def reshape(
    input: tensor,
    *shape: Any,
    can_reorder: Any = False,
    _semantic: TritonSemantic = GIVEN,
    _generator: Any = None,
) -> tensor:
    """The same elements in another shape, row-major; with `can_reorder` in any order.

    >>> evaluate("tl.reshape(x, (2, 4))", x=[0, 1, 2, 3, 4, 5, 6, 7])
    array([[0, 1, 2, 3],
           [4, 5, 6, 7]], dtype=int32)
    """
    dims = unwrap_shape(unwrap_iterable(shape))
    return _semantic.reshape(_semantic.to_tensor(input), dims, known_flag(can_reorder, "can_reorder"))


@member
@builtin
def expand_dims(input: Any, axis: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Insert axes of size 1; `axis` (one or several) is a position in the result, counted from the end if negative.

    >>> evaluate("tl.expand_dims(x, 1)", x=[1, 2]).shape
    (2, 1)
    """
    input = _semantic.to_tensor(input)
    axes = unwrap(axis)
    axes = [unwrap(a) for a in axes] if isinstance(axes, Sequence) or hasattr(axes, "values") else [axes]
    rank = len(block_shape(input)) + len(axes)
    axes = [wrap_axis(a, rank) for a in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"expand_dims received duplicate axes, normalized axes = {axes}")
    result: tensor = input
    for position in sorted(axes):
        result = _semantic.expand_dims(result, position)
    return result


@member
@builtin
def cast(
    input: Any,
    dtype: dtype,
    fp_downcast_rounding: str | None = None,
    bitcast: Any = False,
    _semantic: TritonSemantic = GIVEN,
) -> tensor:
    """Another element type; with `bitcast` the same bits, otherwise the same value as far as the type holds it.

    `fp_downcast_rounding` ("rtne" or "rtz") only where a float gets narrower.

    >>> evaluate("tl.cast(x, tl.int8)", x=[1.9, -1.9])
    array([ 1, -1], dtype=int8)
    >>> evaluate("tl.cast(x, tl.int32, bitcast=True)", x=[1.0, -0.0])
    array([ 1065353216, -2147483648], dtype=int32)
    """
    return cast_value(input, dtype, fp_downcast_rounding, bitcast, _semantic)  # type: ignore[no-any-return]
