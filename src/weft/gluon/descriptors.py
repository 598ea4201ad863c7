"""Descriptors of tensors whose blocks lie in shared memory: types and values.

    tensor_descriptor<<['64', '64'], fp16>, NVMMASharedLayout(128, 16)>

In a signature: `tensordesc<fp16[64,64],NVMMASharedLayout(128, 16)>`; of images with four dimensions
`tensordesc_im2col<fp16[64,64],NVMMASharedLayout(128, 16),4>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

from weft.base import CompilationError
from weft.ir import signed_int_type
from weft.ir.gpu import laid_tensor
from weft.ir.types import TensorDescType
from weft.language.dtypes import block_type, dtype, int32, int64
from weft.language.protocol import base_type, base_value
from weft.language.signatures import laid_descriptors
from weft.language.tuples import tuple as _tuple, tuple_type
from weft.layouts import NVMMASharedLayout

from .types import blocks_of, mangled


class tensor_descriptor_type(base_type):
    """The block that is moved, its layout in shared memory, and the types of shape and strides."""

    images: ClassVar[bool] = False
    """Whether the block is of pixels and channels of images."""

    def __init__(self, block_type: block_type, shape_type: Any, strides_type: Any, layout: NVMMASharedLayout) -> None:
        self.block_type = block_type
        self.shape_type = shape_type
        self.strides_type = strides_type
        self.layout = layout

    def to_ir(self, builder: Any = None) -> TensorDescType:
        """The type in the IR, where integers have a sign."""
        element = self.block_type.element_ty
        kind = signed_int_type(element.int_bitwidth, element.is_int_signed()) if element.is_int() else element.to_ir()
        return TensorDescType(laid_tensor(self.block_type.shape, kind, self.layout), self.images)

    @property
    def nbytes(self) -> int:
        """Bytes of one block."""
        return prod(self.block_type.shape) * self.block_type.element_ty.primitive_bitwidth // 8

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of the part of it that one block of the cluster gets."""
        return self.nbytes // blocks_of(self.layout, self.block_type.shape)

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        handle = handles[cursor]
        shape, cursor = self.shape_type._unflatten_ir(handles, cursor + 1)
        strides, cursor = self.strides_type._unflatten_ir(handles, cursor)
        value = tensor_descriptor_im2col if self.images else tensor_descriptor
        return value(handle, shape.values, strides.values, self.block_type, self.layout), cursor

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        out.append(self.to_ir(builder))
        self.shape_type._flatten_ir_types(builder, out)
        self.strides_type._flatten_ir_types(builder, out)

    def _parts(self) -> tuple[Any, ...]:
        return self.block_type, self.shape_type, self.strides_type, self.layout

    def __str__(self) -> str:
        return f"tensor_descriptor{'_im2col' * self.images}<{self.block_type}, {self.layout!r}>"

    def __repr__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.block_type, self.layout))

    def mangle(self) -> str:
        prefix = "TDI" if self.images else "TD"
        return f"{prefix}{self.block_type.mangle()}_{mangled(self.layout)}{prefix}"


class tensor_descriptor_im2col_type(tensor_descriptor_type):
    """The type of a descriptor of images, of which a copy moves pixels and channels."""

    images = True


class block_descriptor(base_value):
    """A tensor in global memory, of which a block is moved at a time."""

    type: Any
    """Has the type of a block, `block_type`."""

    @property
    def block_type(self) -> block_type:
        """The type of the block that is moved."""
        moved: block_type = self.type.block_type
        return moved

    @property
    def block_shape(self) -> tuple[int, ...]:
        """The shape of the block that is moved."""
        return self.block_type.shape

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.block_type.element_ty


class tensor_descriptor(block_descriptor):
    """A tensor in global memory, of which bulk copies move a block at a time."""

    kind: ClassVar[type[tensor_descriptor_type]] = tensor_descriptor_type

    def __init__(
        self, handle: Any, shape: Sequence[Any], strides: Sequence[Any], block_type: block_type,
        layout: NVMMASharedLayout,
    ) -> None:  # fmt: skip
        self.handle = handle
        self.shape = _tuple(list(shape))
        self.strides = _tuple(list(strides))
        self.type: tensor_descriptor_type = self.kind(block_type, self.shape.type, self.strides.type, layout)

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)
        self.shape._flatten_ir(handles)
        self.strides._flatten_ir(handles)

    @property
    def layout(self) -> NVMMASharedLayout:
        """Where a block lies in shared memory."""
        return self.type.layout

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes that a copy brings one block of the cluster, which its barrier is to expect."""
        return self.type.nbytes_per_cta


class tensor_descriptor_im2col(tensor_descriptor):
    """Images in global memory, of which bulk copies move pixels and channels at a time."""

    kind = tensor_descriptor_im2col_type


def _from_signature(block: block_type, layout: str, images: int = 0) -> tensor_descriptor_type:
    """The type that a signature names by its block and the text of its layout, and the dimensions of images."""
    try:
        layout_object = eval(layout, {"__builtins__": {}, "NVMMASharedLayout": NVMMASharedLayout})
    except (SyntaxError, NameError, TypeError) as error:
        text = f"{layout!r} is not the layout of a descriptor: expected NVMMASharedLayout(...)"
        raise CompilationError(text) from error
    rank = images or len(block.shape)
    cls = tensor_descriptor_im2col_type if images else tensor_descriptor_type
    return cls(block, tuple_type([int32] * rank), tuple_type([int64] * rank), layout_object)


laid_descriptors[""] = _from_signature
