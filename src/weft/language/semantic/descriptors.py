"""Tensor descriptors: made, loaded, stored, combined, gathered and scattered.

The block type of a descriptor says the sign of its integers, because a minimum in memory must know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from typing import Any

from weft import ir
from weft.ir import tt

from .. import dtypes as dt
from ..constants import unwrap, unwrap_shape
from ..descriptors import descriptor_ir_type, tensor_descriptor, tensor_descriptor_base
from ..dtypes import block_of, block_type, pointer_type
from ..tensors import tensor
from .base import block_shape, shape_text
from .memory import Memory

_ADDABLE = ("uint32", "int32", "uint64", "fp32", "fp16", "bf16")
_ORDERED = ("uint32", "int32", "uint64", "int64", "fp16", "bf16")
_BITS = ("uint32", "int32", "uint64", "int64")


class Descriptors(Memory):
    """What a descriptor does."""

    def make_tensor_descriptor(
        self, base: tensor, shape: Sequence[Any], strides: Sequence[Any], block_shape: Any, padding_option: str = "zero"
    ) -> tensor_descriptor:
        """A descriptor of the tensor at `base`, accessed in blocks of `block_shape`."""
        self._check_ranks(shape, strides, block_shape)
        if not isinstance(base.type, pointer_type) or base.type.element_ty.is_block():
            raise TypeError(f"make_tensor_descriptor needs a scalar pointer as its base, got {base.type}")
        element = base.type.element_ty
        if element.is_int1() or element.is_ptr():
            raise TypeError(f"a tensor descriptor cannot have elements of type {element}")
        self._check_row(element, unwrap(block_shape[-1]))
        last_stride = strides[-1]
        if isinstance(last_stride, tensor):
            raise ValueError("Tensor descriptor last dim must be 1, known at compile time, but got a tensor")
        if unwrap(last_stride) != 1:
            raise ValueError(f"Tensor descriptor last dim must be 1 but got {unwrap(last_stride)}")
        block = block_type(element, unwrap_shape(block_shape))
        sizes, steps, operands, properties = self._descriptor_parts(base, shape, strides, padding_option)
        descriptor = tensor_descriptor(None, sizes, steps, block)
        descriptor.handle = self.builder.create(
            tt.MakeTensorDescriptorOp, operands, (descriptor_ir_type(block),), properties
        ).result
        return descriptor

    @staticmethod
    def _check_ranks(shape: Sequence[Any], strides: Sequence[Any], block: Sequence[Any]) -> None:
        rank = len(shape)
        if not 1 <= rank <= 5:
            raise ValueError(f"Expected 1 <= ndim <= 5 but got {rank} dimensions")
        if len(strides) != rank:
            raise ValueError(f"Expected {rank} strides but got {len(strides)}")
        if len(block) != rank:
            raise ValueError(f"Expected block_shape to have {rank} dimensions but got {len(block)}")

    @staticmethod
    def _check_row(element: dt.dtype, last: int) -> None:
        width = element.primitive_bitwidth // 8
        if last * width < 16:
            raise ValueError(
                "Descriptor block shape must have at least 16 bytes in the last dimension, "
                f"but got {last} * {width} = {last * width} bytes"
            )

    def _descriptor_parts(
        self, base: tensor, shape: Sequence[Any], strides: Sequence[Any], padding_option: str
    ) -> tuple[list[tensor], list[tensor], list[Any], dict[str, Any]]:
        """Sizes and strides as tensors; the operands and the properties of the operation."""
        padding = self._str_to_padding_option(padding_option)
        if base.type.element_ty.is_int() and padding == tt.PaddingOption.PAD_NAN:  # type: ignore[attr-defined]
            raise ValueError("Padding option `nan` is not supported for integer blocks")
        sizes = [self.make_scalar(unwrap(s), dt.int32) for s in shape]
        steps = [self.make_scalar(unwrap(s), dt.int64) for s in strides]
        properties = {} if padding in (None, tt.PaddingOption.PAD_ZERO) else {"padding": ir.enum_attr(padding)}
        return sizes, steps, [base.handle, *(s.handle for s in (*sizes, *steps))], properties

    def _checked(self, desc: Any) -> None:
        if not isinstance(desc, tensor_descriptor_base):
            raise TypeError(f"expected a tensor descriptor, got {desc}")

    def _offsets(self, desc: tensor_descriptor_base, offsets: Sequence[Any]) -> list[Any]:
        rank = len(desc.block_type.shape)
        if len(offsets) != rank:
            raise ValueError(f"expected {rank} offsets, but got {len(offsets)}")
        for offset in offsets:
            if isinstance(offset, tensor) and block_shape(offset):
                raise ValueError(f"an offset into a tensor descriptor must be a scalar, got {offset}")
        return self._convert_to_ir_values(offsets, require_i64=False)

    def descriptor_load(self, desc: Any, offsets: Sequence[Any], cache_modifier: str, eviction_policy: str) -> tensor:
        """Read the block at `offsets`."""
        self._checked(desc)
        operands = (desc.handle, *self._offsets(desc, offsets))
        cache = self._str_to_load_cache_modifier(cache_modifier)
        hints = ir.access_hints(cache, self._str_to_eviction_policy(eviction_policy))
        return self._value(tt.DescriptorLoadOp, operands, desc.block_type, hints)

    def validate_store_like(self, desc: Any, value: tensor, offsets: Sequence[Any]) -> None:
        """What is written must have the shape of the block."""
        self._checked(desc)
        if block_shape(value) != desc.block_type.shape:
            raise ValueError(
                f"the value has shape {shape_text(block_shape(value))}, "
                f"the descriptor's block {shape_text(desc.block_type.shape)}"
            )

    def descriptor_store(self, desc: Any, value: Any, offsets: Sequence[Any]) -> None:
        """Write a block to `offsets`."""
        self._checked(desc)
        value = self.to_tensor(value)
        self.validate_store_like(desc, value, offsets)
        value = self.cast(value, desc.dtype)
        self.builder.create(tt.DescriptorStoreOp, (desc.handle, value.handle, *self._offsets(desc, offsets)))

    def check_reducible(self, desc: Any, kind: tt.DescriptorReduceKind) -> None:
        """TypeError where the elements of a descriptor cannot be combined so."""
        adds, orders = kind == tt.DescriptorReduceKind.ADD, kind.name in ("MIN", "MAX")
        types = _ADDABLE if adds else _ORDERED if orders else _BITS
        if desc.dtype.name not in types:
            raise TypeError(
                f"Unsupported dtype {desc.dtype} for atomic_{kind.name.lower()}: it takes {', '.join(types)}"
            )

    def _reduce(self, kind: tt.DescriptorReduceKind, desc: Any, value: Any, offsets: Sequence[Any]) -> None:
        self._checked(desc)
        value = self.to_tensor(value)
        self.validate_store_like(desc, value, offsets)
        self.check_reducible(desc, kind)
        value = self.cast(value, desc.dtype)
        operands = (desc.handle, value.handle, *self._offsets(desc, offsets))
        self.builder.create(tt.DescriptorReduceOp, operands, (), {"kind": ir.enum_attr(kind)})

    descriptor_atomic_add = partialmethod(_reduce, tt.DescriptorReduceKind.ADD)
    descriptor_atomic_min = partialmethod(_reduce, tt.DescriptorReduceKind.MIN)
    descriptor_atomic_max = partialmethod(_reduce, tt.DescriptorReduceKind.MAX)
    descriptor_atomic_and = partialmethod(_reduce, tt.DescriptorReduceKind.AND)
    descriptor_atomic_or = partialmethod(_reduce, tt.DescriptorReduceKind.OR)
    descriptor_atomic_xor = partialmethod(_reduce, tt.DescriptorReduceKind.XOR)

    def _check_rows(self, desc: Any, x_offsets: Any, name: str) -> tuple[int, int]:
        """Rules of gather and scatter; gives the number of rows and of columns."""
        self._checked(desc)
        block = desc.block_type.shape
        if len(block) != 2:
            raise ValueError(f"descriptor must be 2D, but got a block of shape {shape_text(block)}")
        if block[0] != 1:
            raise ValueError(f"descriptor block must have 1 row, but got {shape_text(block)}")
        if not isinstance(x_offsets, tensor) or len(block_shape(x_offsets)) != 1:
            raise ValueError(f"x offsets must be 1D, but got {x_offsets}")
        rows = block_shape(x_offsets)[0]
        if rows < 8:
            raise ValueError(f"descriptor {name} must have at least 8 rows, but got {rows}")
        least = 32 // desc.dtype.primitive_bitwidth * 8
        if block[1] < least:
            raise ValueError(
                f"descriptor {name} of {desc.dtype} must have at least {least} columns, but got {block[1]}"
            )
        if not x_offsets.dtype.is_int() or x_offsets.dtype.int_bitwidth not in (8, 16, 32):
            raise TypeError(f"x offsets must be integers of at most 32 bits, but got {x_offsets.dtype}")
        return rows, block[1]

    def descriptor_gather(
        self, desc: Any, x_offsets: Any, y_offset: Any, cache_modifier: str, eviction_policy: str
    ) -> tensor:
        """Rows picked by `x_offsets`, from column `y_offset`."""
        if cache_modifier or eviction_policy:
            raise ValueError("cache modifier and eviction policy are not supported yet for descriptor gather")
        rows, columns = self._check_rows(desc, x_offsets, "gather")
        result = block_of(desc.dtype, (rows, columns))
        (column,) = self._convert_to_ir_values((y_offset,), require_i64=False)
        return self._value(tt.DescriptorGatherOp, (desc.handle, self.cast(x_offsets, dt.int32).handle, column), result)

    def descriptor_scatter(self, desc: Any, value: Any, x_offsets: Any, y_offset: Any) -> None:
        """Rows written where `x_offsets` say, from column `y_offset`."""
        rows, columns = self._check_rows(desc, x_offsets, "scatter")
        value = self.to_tensor(value)
        if block_shape(value) != (rows, columns):
            raise ValueError(
                f"the value has shape {shape_text(block_shape(value))}, the rows {shape_text((rows, columns))}"
            )
        (column,) = self._convert_to_ir_values((y_offset,), require_i64=False)
        value = self.cast(value, desc.dtype)
        operands = (desc.handle, self.cast(x_offsets, dt.int32).handle, column, value.handle)
        self.builder.create(tt.DescriptorScatterOp, operands)
