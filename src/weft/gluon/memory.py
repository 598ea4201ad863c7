"""`shared_memory_descriptor`: a tile in shared memory, as kernels hold it.

    memory = gl.allocate_shared_memory(gl.float16, [2, 64, 64], gl.SwizzledSharedLayout(8, 1, 8, [1, 0]))
    memory.index(0).store(tile)
    other = memory.index(0).permute([1, 0]).load(layout)

The methods that give a part of it, or another look at it, move nothing.
"""

from __future__ import annotations

from math import prod
from typing import Any

from weft.language.constants import unwrap, unwrap_iterable, unwrap_shape
from weft.language.dtypes import dtype
from weft.language.protocol import base_value, builtin, builtin_named
from weft.layouts import SharedLayout

from .types import _descriptor_class, shared_memory_descriptor_type


def _atomic_scatter(name: str, meaning: str) -> Any:
    def function(self: Any, values: Any, indices: Any, axis: Any, mask: Any = None, _semantic: Any = None) -> Any:
        return _semantic.shared_atomic_scatter(self, name, values, indices, unwrap(axis), unwrap(mask))

    text = f"""memory[indices[i, j], j] becomes {meaning} for axis 0, where the mask is true; returns the old value.

    Each step is indivisible, and orders nothing else. Values, indices and mask are broadcast to one shape.
    """
    return builtin_named(f"atomic_scatter_{name}", text, function)


class shared_memory_descriptor(base_value):
    """A tile in shared memory, or several buffers of one: an address, and a type that says what lies there.

    >>> memory = "memory = gl.allocate_shared_memory(gl.int32, [4], gl.SwizzledSharedLayout(1, 1, 1, [0]), x); "
    >>> evaluate(memory + "memory.slice(2, 2).load(x.type.layout)", x=[1, 2, 3, 4])
    array([3, 4], dtype=int32)
    """

    __slots__ = ("handle", "type")

    def __init__(self, handle: Any, element_ty: Any, shape: Any, layout: Any, alloc_shape: Any) -> None:
        self.handle = handle
        self.type: shared_memory_descriptor_type = shared_memory_descriptor_type(element_ty, shape, layout, alloc_shape)

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.type.element_ty

    @property
    def shape(self) -> list[int]:
        """The shape."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.type.shape)

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.type.shape)

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of the elements that one block of the cluster has, gaps of a padded layout not counted."""
        return self.type.nbytes_per_cta

    @property
    def layout(self) -> SharedLayout:
        """Where elements lie in memory."""
        return self.type.layout

    def __str__(self) -> str:
        return str(self.type)

    @builtin
    def load(self, layout: Any, _semantic: Any = None) -> Any:
        """What the memory holds, as a tile in a layout of registers."""
        return _semantic.shared_load(self, unwrap(layout))

    @builtin
    def store(self, value: Any, _semantic: Any = None) -> None:
        """Put a tile of this shape and element type into the memory."""
        _semantic.shared_store(self, value)

    @builtin
    def gather(self, indices: Any, axis: Any, _semantic: Any = None) -> Any:
        """The elements that indices pick along an axis: result[i, j] is memory[indices[i, j], j] for axis 0."""
        return _semantic.shared_gather(self, indices, unwrap(axis))

    @builtin
    def scatter(self, values: Any, indices: Any, axis: Any, _semantic: Any = None) -> None:
        """Put values to where indices say along an axis: memory[indices[i, j], j] = values[i, j] for axis 0.

        Values and indices are broadcast to one shape.
        """
        _semantic.shared_scatter(self, values, indices, unwrap(axis))

    atomic_scatter_add = _atomic_scatter("add", "the sum with values[i, j]")
    atomic_scatter_max = _atomic_scatter("max", "the greater of two integers")
    atomic_scatter_min = _atomic_scatter("min", "the smaller of two integers")
    atomic_scatter_and = _atomic_scatter("and", "the bits that both integers have")
    atomic_scatter_or = _atomic_scatter("or", "the bits that either integer has")
    atomic_scatter_xor = _atomic_scatter("xor", "the bits that one of the integers has")
    atomic_scatter_xchg = _atomic_scatter("xchg", "values[i, j] itself, of any type")

    @builtin
    def slice(self, start: Any, length: Any, dim: Any = 0, _semantic: Any = None) -> Any:
        """`length` elements from `start` on along a dimension; all three known when compiling."""
        return _semantic.memdesc_slice(self, unwrap(start), unwrap(length), unwrap(dim))

    @builtin
    def index(self, index: Any, _semantic: Any = None) -> Any:
        """One of the buffers that the first dimension counts; `index` is an int32."""
        return _semantic.memdesc_index(self, unwrap(index))

    @builtin
    def permute(self, order: Any, *more: Any, _semantic: Any = None) -> Any:
        """The dimensions in another order: dimension i of the result is dimension `order[i]`."""
        return _semantic.memdesc_trans(self, [unwrap(d) for d in unwrap_iterable((order, *more))])

    @builtin
    def reshape(self, shape: Any, *more: Any, _semantic: Any = None) -> Any:
        """The same elements, read row by row, in another shape."""
        return _semantic.memdesc_reshape(self, unwrap_shape(unwrap_iterable((shape, *more))))

    @builtin
    def _reinterpret(self, dtype: Any = None, shape: Any = None, layout: Any = None, _semantic: Any = None) -> Any:
        """The same bytes as elements of another type, in another shape and layout; what is not given stays."""
        dtype, layout = unwrap(dtype), unwrap(layout)
        sizes = self.shape if unwrap(shape) is None else unwrap_shape(shape)
        return _semantic.memdesc_reinterpret(
            self, self.dtype if dtype is None else dtype, sizes, self.layout if layout is None else layout
        )

    reinterpret = _reinterpret

    @builtin
    def _keep_alive(self, _semantic: Any = None) -> None:
        """Up to here the memory is not used for anything else."""
        _semantic.shared_dealloc(self)


_descriptor_class.append(shared_memory_descriptor)
