"""Shared memory: allocating it, loading and storing tiles, and looking at parts of it another way."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from weft import ir
from weft.base import LayoutError, hinted
from weft.ir import tt
from weft.ir.gpu import allocated_bytes, naming, ttg
from weft.language import dtypes as dt
from weft.language.dtypes import dtype
from weft.language.semantic import block_shape, shape_text
from weft.language.tensors import tensor
from weft.layouts import DistributedLayout, SharedLayout, bank_conflicts

from ..memory import shared_memory_descriptor
from ..types import described, distributed_type, shared_memory_descriptor_type
from .laid import Laid


class SharedMemory(Laid):
    """Operations on descriptors of shared memory."""

    # -- what takes tiles takes no memory ----------------------------------------------------------------------

    def to_tensor(self, x: Any, check_type: bool = True) -> Any:
        """A Python number as a scalar; tensors as they are. TypeError for shared memory."""
        _check_no_memory(x)
        return super().to_tensor(x, check_type)

    def binary_op_type_checking_impl(self, lhs: Any, rhs: Any, *args: Any, **more: Any) -> tuple[tensor, tensor]:
        """Both operands in one type, shape and layout. TypeError for shared memory."""
        _check_no_memory(lhs)
        _check_no_memory(rhs)
        return super().binary_op_type_checking_impl(lhs, rhs, *args, **more)

    def load(self, ptr: Any, *args: Any, **more: Any) -> tensor:
        """Read what pointers point to; shared memory is loaded by its own method."""
        _check_no_memory(ptr)
        return super().load(ptr, *args, **more)

    def store(self, ptr: Any, *args: Any, **more: Any) -> None:
        """Write to where pointers point; shared memory is stored to by its own method."""
        if isinstance(ptr, shared_memory_descriptor):
            raise hinted(TypeError(f"expected pointers, got shared memory, {ptr}"), "memory.store(value)")
        super().store(ptr, *args, **more)

    # -- memory ------------------------------------------------------------------------------------------------

    def _described(
        self, element: dtype, shape: Sequence[int], layout: SharedLayout, alloc_shape: Sequence[int]
    ) -> shared_memory_descriptor_type:
        return shared_memory_descriptor_type(element, list(shape), layout, list(alloc_shape))

    def _view(
        self, op: Any, memory: Any, result: shared_memory_descriptor_type, *operands: Any, **properties: Any
    ) -> shared_memory_descriptor:
        """An operation that gives another look at memory."""
        created = self.builder.create(op, (memory.handle, *operands), (result.to_ir(),), properties)
        return shared_memory_descriptor(created.results[0], *result.parts())

    def allocate_shared(self, element_ty: Any, shape: Any, layout: Any, value: Any) -> shared_memory_descriptor:
        """Shared memory for a tile, which may hold a value at first."""
        if not isinstance(element_ty, dtype) or element_ty.is_block():
            raise TypeError(f"expected `element_ty` to be an element type, got {element_ty!r}")
        for size in shape:
            if type(size) is not int or size <= 0:
                raise ValueError(f"all elements of `shape` must be positive integers, got {shape}")
        if not isinstance(layout, SharedLayout):
            raise _no_memory_layout("`layout`", layout)
        type_ = self._described(element_ty, shape, layout, shape)
        self._check_rank(type_)
        operands = [] if value is None else [value.handle]
        if value is not None:
            self._check_same(type_, value)
        handle = self.builder.create(ttg.LocalAllocOp, operands, (type_.to_ir(),)).results[0]
        return shared_memory_descriptor(handle, *type_.parts())

    @staticmethod
    def _check_rank(type_: shared_memory_descriptor_type) -> None:
        rank = len(type_.shape)
        if not type_.layout.rank <= rank <= type_.layout.rank + 1:
            raise LayoutError(
                f"shared memory of shape {type_.shape} has rank {rank}, the layout has rank {type_.layout.rank}: "
                f"{type_.layout!r}",
                hint="a layout is for the last dimensions; one more dimension in front counts buffers",
            )

    def _check_same(self, type_: shared_memory_descriptor_type, value: Any) -> None:
        """A value must have the shape and the element type of the memory that it goes to."""
        if not isinstance(value, tensor) or not block_shape(value):
            raise TypeError(f"expected the value to be a tensor, got {value}")
        if block_shape(value) != tuple(type_.shape):
            raise ValueError(
                f"source shape {shape_text(block_shape(value))} and destination shape {shape_text(type_.shape)} "
                "must match"
            )
        if value.dtype != type_.element_ty:
            raise hinted(
                ValueError(f"source dtype {value.dtype} and destination dtype {type_.element_ty} must match"),
                f"cast the value: x.to({type_.element_ty!r})",
            )

    def shared_load(self, memory: Any, layout: Any) -> tensor:
        """What shared memory holds, as a tile in a layout."""
        if not isinstance(layout, DistributedLayout):
            raise hinted(
                TypeError(f"expected `layout` to be a layout of registers, got {described(layout)}"),
                "it says which thread gets which element of the loaded tile, not where the tile is in memory",
            )
        result = self.given_type(memory.dtype, memory.shape, layout)
        return self._value(ttg.LocalLoadOp, (memory.handle,), result)

    def shared_store(self, memory: Any, value: Any) -> None:
        """Put a tile into shared memory."""
        self._check_same(memory.type, value)
        self.builder.create(ttg.LocalStoreOp, (value.handle, memory.handle))

    def _picked(self, memory: Any, indices: Any, axis: Any) -> dict[str, Any]:
        """The properties that say along which axis indices pick elements of shared memory."""
        if not isinstance(indices, tensor) or not block_shape(indices) or not indices.dtype.is_int():
            raise TypeError(f"expected the indices to be a tensor of integers, got {indices}")
        if type(axis) is not int:
            raise TypeError(f"expected `axis` to be an int known when compiling, got {axis}")
        rank = len(memory.shape)
        if rank != memory.layout.rank:
            raise hinted(ValueError(f"{memory} is several buffers: one of them is needed"), "memory.index(i)")
        if not -rank <= axis < rank:
            raise ValueError(f"the axis must be from {-rank} to {rank - 1}, got {axis}")
        axis %= rank
        shape = block_shape(indices)
        if len(shape) != rank or any(i != axis and shape[i] > memory.shape[i] for i in range(rank)):
            raise ValueError(
                f"the indices must have at most the shape of the memory but along axis {axis}: "
                f"got {shape_text(shape)} and {shape_text(memory.shape)}"
            )
        return {"axis": ir.i32_attr(axis)}

    def shared_gather(self, memory: Any, indices: Any, axis: Any) -> tensor:
        """Elements of shared memory that indices pick along an axis, in the layout of the indices."""
        properties = self._picked(memory, indices, axis)
        result = indices.type.with_element_ty(memory.dtype)
        return self._value(ttg.LocalGatherOp, (memory.handle, indices.handle), result, properties)

    def shared_scatter(self, memory: Any, values: Any, indices: Any, axis: Any) -> None:
        """Put values to where indices say along an axis."""
        values, indices = self._spread(memory, values, indices)
        properties = self._picked(memory, indices, axis)
        self.builder.create(ttg.LocalScatterOp, (memory.handle, indices.handle, values.handle), (), properties)

    def _spread(self, memory: Any, values: Any, indices: Any, *masks: Any) -> list[tensor]:
        """Values, indices and maybe a mask, broadcast to one shape. The values must be elements of the memory."""
        if not isinstance(indices, tensor) or not block_shape(indices) or not indices.dtype.is_int():
            raise TypeError(f"expected the indices to be a tensor of integers, got {indices}")
        if not isinstance(values, tensor) or not block_shape(values) or values.dtype != memory.dtype:
            type_found = getattr(values, "type", values)
            wanted = indices.type.with_element_ty(memory.dtype)
            raise TypeError(f"expected a value for each index, {wanted}, or what is broadcast to it, got {type_found}")
        return list(self.broadcast_tensors(values, indices, *masks))

    def shared_atomic_scatter(self, memory: Any, name: str, values: Any, indices: Any, axis: Any, mask: Any) -> tensor:
        """Change the elements that indices pick, each step indivisible; what was there, in the layout of the values."""
        kind, function = memory.dtype, f"atomic_scatter_{name}"
        if not kind.is_int() and (name not in ("add", "xchg") or not kind.is_floating()):
            raise hinted(
                TypeError(f"{function} is for integers, the memory holds {kind}"),
                "of floats there are atomic_scatter_add and atomic_scatter_xchg",
            )
        masks = [] if mask is None else [self.to_tensor(mask)]
        if masks and not masks[0].type.scalar.is_bool():
            raise TypeError(f"{function}: the mask must be a tensor of bools, got {masks[0].type}")
        values, indices, *masks = self._spread(memory, values, indices, *masks)
        properties = self._picked(memory, indices, axis)
        properties["atomic_rmw_op"] = ir.enum_attr(_step_of(name, kind))
        operands = [memory.handle, values.handle, indices.handle, *(m.handle for m in masks)]
        return self._value(ttg.LocalAtomicScatterRMWOp, operands, values.type, properties)

    def shared_dealloc(self, memory: Any) -> None:
        """The last use of an allocation: before it, its memory is given to nothing else."""
        self.builder.create(ttg.LocalDeallocOp, (memory.handle,))

    # -- views -------------------------------------------------------------------------------------------------

    def memdesc_slice(self, memory: Any, start: Any, length: Any, dim: Any) -> shared_memory_descriptor:
        """A part of a buffer along one dimension."""
        for name, value in (("start", start), ("length", length), ("dim", dim)):
            if type(value) is not int:
                raise hinted(
                    TypeError(f"expected `{name}` to be an int known when compiling, got {value}"),
                    "a buffer that is chosen when the kernel runs: memory.index(i)",
                )
        if not -memory.rank <= dim < memory.rank:
            raise ValueError(f"slice: the dimension must be from 0 to {memory.rank - 1}, got {dim}")
        dim %= memory.rank
        size = memory.shape[dim]
        if length < 1 or start < 0 or start + length > size:
            raise ValueError(
                f"slice: elements {start} to {start + length - 1} along dimension {dim} of memory of shape "
                f"{shape_text(memory.shape)}, which has 0 to {size - 1} there"
            )
        in_buffer = dim >= memory.rank - memory.layout.rank  # of several buffers any may be taken
        if in_buffer and length & (length - 1):
            raise ValueError(f"slice: the length must be a power of two, got {length}")
        if in_buffer and start % length:
            raise hinted(
                ValueError(
                    f"slice: the start must be a multiple of the length, got elements {start} to {start + length - 1}"
                ),
                "take parts of a size that divides the start, or load the whole and select elements",
            )
        shape = [length if d == dim else s for d, s in enumerate(memory.shape)]
        offsets = [start if d == dim else 0 for d in range(memory.rank)]
        result = self._described(memory.dtype, shape, memory.layout, memory.type.alloc_shape)
        return self._view(ttg.MemDescSubsliceOp, memory, result, offsets=ir.i32_array(offsets))

    def memdesc_index(self, memory: Any, index: Any) -> shared_memory_descriptor:
        """One of several buffers."""
        number = self.to_tensor(index)
        if number.type != dt.int32:
            raise TypeError(f"expected `index` to be int32, got {number.type}")
        if memory.rank < 2:
            raise ValueError(f"index: memory of shape {shape_text(memory.shape)} has no dimension of buffers in front")
        if type(index) is int and not 0 <= index < memory.shape[0]:
            raise ValueError(f"index {index} of memory of shape {shape_text(memory.shape)}, whose buffers are 0 to "
                             f"{memory.shape[0] - 1}")  # fmt: skip
        shape = memory.shape[1:]
        result = self._described(memory.dtype, shape, memory.layout, shape)
        return self._view(ttg.MemDescIndexOp, memory, result, number.handle)

    def memdesc_trans(self, memory: Any, order: Sequence[Any]) -> shared_memory_descriptor:
        """The same memory with its dimensions in another order."""
        rank = memory.rank
        if sorted(order) != list(range(rank)):
            raise ValueError(
                f"permute: the order must have each of the dimensions of {shape_text(memory.shape)} once, "
                f"got {list(order)}"
            )
        allocated = memory.type.alloc_shape
        front, sizes = allocated[: len(allocated) - rank], allocated[len(allocated) - rank :]
        layout = naming.memory_transposed(memory.layout, sizes[-memory.layout.rank :], order)
        shape = [memory.shape[d] for d in order]
        result = self._described(memory.dtype, shape, layout, [*front, *(sizes[d] for d in order)])
        return self._view(ttg.MemDescTransOp, memory, result, order=ir.i32_array(order))

    def memdesc_reshape(self, memory: Any, shape: Sequence[int]) -> shared_memory_descriptor:
        """The same memory in another shape."""
        if any(type(size) is not int for size in shape):
            raise TypeError(f"all elements of `shape` must be integers, got {list(shape)}")
        if prod(shape) != prod(memory.shape):
            raise ValueError(
                f"memdesc_reshape total elements mismatch: {shape_text(memory.shape)} -> {shape_text(shape)}, "
                f"{prod(memory.shape)} and {prod(shape)}"
            )
        layout = naming.memory_reshaped(memory.layout, memory.shape, shape)
        allocated = memory.type.alloc_shape
        front = allocated[: len(allocated) - memory.rank]
        result = self._described(memory.dtype, shape, layout, [*front, *shape])
        return self._view(ttg.MemDescReshapeOp, memory, result)

    def memdesc_reinterpret(self, memory: Any, dtype: Any, shape: Any, layout: Any) -> shared_memory_descriptor:
        """The same bytes, with those behind them in the allocation, as elements of another type, shape and layout."""
        if not isinstance(layout, SharedLayout):
            raise _no_memory_layout("`layout`", layout)
        result = self._described(dtype, shape, layout, shape)
        self._check_rank(result)
        have, want = memory.type.nbytes_per_cta, result.nbytes_per_cta
        allocated = allocated_bytes(memory.handle)
        if allocated is not None and want > allocated:
            raise ValueError(
                f"_reinterpret: {dtype}{shape_text(shape)} takes {want} bytes, the memory "
                f"{memory.dtype}{shape_text(memory.shape)} has {have}"
                + (f" and is part of an allocation of {allocated}" if allocated != have else "")
            )
        return self._view(ttg.MemDescReinterpretOp, memory, result)

    # -- questions ---------------------------------------------------------------------------------------------

    def bank_conflicts(self, distr_ty: Any, shared_ty: Any) -> int:
        """The wavefronts beyond the unavoidable ones of an access to shared memory in these layouts."""
        if not isinstance(distr_ty, distributed_type):
            raise TypeError(
                f"bank_conflicts expects the register layout to be a distributed_type, got {type(distr_ty).__name__}"
            )
        if not isinstance(shared_ty, shared_memory_descriptor_type):
            raise TypeError(
                "bank_conflicts expects the shared layout to be a shared_memory_descriptor_type, got "
                f"{type(shared_ty).__name__}"
            )
        shape = tuple(shared_ty.shape)
        if distr_ty.shape != shape:
            raise ValueError(
                f"register shape {shape_text(distr_ty.shape)} and shared shape {shape_text(shape)} must match"
            )
        if shared_ty.element_ty != distr_ty.element_ty:
            raise ValueError(
                f"mismatched dtypes between register ({distr_ty.element_ty}) and shared ({shared_ty.element_ty}) "
                "layouts"
            )
        if list(shape) != shared_ty.alloc_shape[-len(shape) :]:
            raise ValueError(
                f"bank_conflicts is not known for parts of a buffer: shape {shape_text(shape)} of "
                f"{shape_text(shared_ty.alloc_shape)}"
            )
        return bank_conflicts(distr_ty.layout, shared_ty.layout, shape, distr_ty.element_ty.primitive_bitwidth)


def _step_of(name: str, kind: dtype) -> tt.RMWOp:
    """The atomic step of a name on elements of a type."""
    if name == "add":
        return tt.RMWOp.FADD if kind.is_floating() else tt.RMWOp.ADD
    unsigned = name in ("max", "min") and (kind.is_int_unsigned() or kind.is_bool())
    return tt.RMWOp[f"U{name}".upper() if unsigned else name.upper()]


def _check_no_memory(value: Any) -> None:
    if isinstance(value, shared_memory_descriptor):
        raise hinted(
            TypeError(f"expected a tensor, got shared memory, {value}"), "memory.load(layout) is the tile that it holds"
        )


def _no_memory_layout(name: str, layout: Any) -> TypeError:
    kind = "the register layout " if isinstance(layout, DistributedLayout) else ""
    return hinted(
        TypeError(f"expected {name} to be a layout of shared memory, got {kind}{layout!r}"),
        "SwizzledSharedLayout, NVMMASharedLayout, PaddedSharedLayout or SharedLinearLayout",
    )
