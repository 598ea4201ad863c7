"""Tensor descriptors: a tensor in memory, read and written a block at a time with bounds kept.

    desc = tl.make_tensor_descriptor(ptr, shape=[M, N], strides=[N, 1], block_shape=[32, 64])
    block = desc.load([i, j])          # outside the tensor: the padding value
    desc.store([i, j], block)          # outside the tensor: nothing

A descriptor's IR values are the handle, then its shape (int32) and its strides (int64).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from weft import ir

from .constants import constexpr
from .dtypes import block_type, dtype
from .protocol import base_type, base_value, builtin, builtin_named
from .tuples import tuple as _tuple, tuple_type


@lru_cache(maxsize=256)
def descriptor_ir_type(block: block_type) -> Any:
    """The IR type of a descriptor. Its integers have a sign, which a minimum in memory must know."""
    element = block.element_ty
    ir_element = element.to_ir()
    if element.is_int():
        ir_element = ir.signed_int_type(element.int_bitwidth, element.is_int_signed())
    return ir.tensordesc_of(block.shape, ir_element)


class tensor_descriptor_base_type(base_type):
    """The type of a descriptor: the type of the block it moves."""

    def __init__(self, block_type: block_type) -> None:
        self.block_type = block_type

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        return tensor_descriptor_base(handles[cursor], self.block_type), cursor + 1

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        out.append(descriptor_ir_type(self.block_type))

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.block_type == other.block_type

    def __hash__(self) -> int:
        return hash(self.block_type)

    def mangle(self) -> str:
        return f"TD{self.block_type.mangle()}"


def _atomic(name: str, meaning: str) -> Any:
    def function(self: Any, offsets: Sequence[Any], value: Any, _semantic: Any = None) -> Any:
        return getattr(_semantic, f"descriptor_atomic_{name}")(self, value, offsets)

    return builtin_named(f"atomic_{name}", f"{meaning}, each element atomically.", function)


class tensor_descriptor_base(base_value):
    """A descriptor of a tensor in memory."""

    def __init__(self, handle: Any, block_type: block_type) -> None:
        self.handle = handle
        self.type: Any = tensor_descriptor_base_type(block_type)

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)

    @property
    def block_type(self) -> block_type:
        """The type of the block that is moved."""
        return self.type.block_type  # type: ignore[no-any-return]

    @property
    def block_shape(self) -> Any:
        """The shape of the block that is moved."""
        return [constexpr(s) for s in self.type.block_type.shape]

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.type.block_type.element_ty  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return str(self.type)

    @builtin
    def load(self, offsets: Sequence[Any], _semantic: Any = None) -> Any:
        """The block whose first element is at `offsets`; outside the tensor the padding value."""
        return _semantic.descriptor_load(self, offsets, "", "")

    @builtin
    def store(self, offsets: Sequence[Any], value: Any, _semantic: Any = None) -> Any:
        """Write a block to `offsets`, cast to the element type; what lies outside the tensor is dropped."""
        return _semantic.descriptor_store(self, value, offsets)

    atomic_add = _atomic("add", "Add a block to memory")
    atomic_min = _atomic("min", "Lower memory to the minimum with a block")
    atomic_max = _atomic("max", "Raise memory to the maximum with a block")
    atomic_and = _atomic("and", "Bitwise and of memory with a block")
    atomic_or = _atomic("or", "Bitwise or of memory with a block")
    atomic_xor = _atomic("xor", "Bitwise exclusive or of memory with a block")

    @builtin
    def gather(self, *args: Any, _semantic: Any = None) -> Any:
        """`gather(x_offsets, y_offset)`: one row for each of `x_offsets`, from column `y_offset`."""
        if len(args) != 2:
            raise ValueError(f"descriptor gather only supports 2D indexing, got {len(args)} indices")
        return _semantic.descriptor_gather(self, args[0], args[1], "", "")

    @builtin
    def scatter(self, value: Any, *args: Any, _semantic: Any = None) -> Any:
        """`scatter(value, x_offsets, y_offset)`: write a row to each of `x_offsets`, from column `y_offset`."""
        if len(args) != 2:
            raise ValueError(f"descriptor scatter only supports 2D indexing, got {len(args)} indices")
        return _semantic.descriptor_scatter(self, value, args[0], args[1])


class tensor_descriptor_type(tensor_descriptor_base_type):
    """The type of a descriptor with its shape and strides."""

    def __init__(self, block_type: block_type, shape_type: tuple_type, strides_type: tuple_type) -> None:
        super().__init__(block_type)
        self.shape_type = shape_type
        self.strides_type = strides_type

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        handle = handles[cursor]
        shape, cursor = self.shape_type._unflatten_ir(handles, cursor + 1)
        strides, cursor = self.strides_type._unflatten_ir(handles, cursor)
        return tensor_descriptor(handle, shape.values, strides.values, self.block_type), cursor

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        super()._flatten_ir_types(builder, out)
        self.shape_type._flatten_ir_types(builder, out)
        self.strides_type._flatten_ir_types(builder, out)

    def __eq__(self, other: object) -> bool:
        return (
            super().__eq__(other)
            and self.shape_type == other.shape_type  # type: ignore[attr-defined]
            and self.strides_type == other.strides_type  # type: ignore[attr-defined]
        )

    def __hash__(self) -> int:
        return hash((self.block_type, self.shape_type, self.strides_type))


class tensor_descriptor(tensor_descriptor_base):
    """A descriptor with the tensor's shape and strides as values.

    >>> x = np.arange(16, dtype=np.int32).reshape(4, 4)
    >>> evaluate("tl.make_tensor_descriptor(x, (4, 4), (4, 1), (2, 4)).block_shape[0]", x=x)
    2
    """

    def __init__(self, handle: Any, shape: list[Any], strides: list[Any], block_type: block_type) -> None:
        super().__init__(handle, block_type)
        self.shape = _tuple(shape)
        self.strides = _tuple(strides)
        self.type = tensor_descriptor_type(block_type, self.shape.type, self.strides.type)

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)
        self.shape._flatten_ir(handles)
        self.strides._flatten_ir(handles)
