"""Rules of the operations that reach memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from .. import tt, types
from ..attrs import int_value, ints_of
from .rules import dims, fail, need_int, need_same, need_tile, rule, show


def _pointee(op: Operation, pointer: SSAValue) -> Attribute:
    """What the pointers point to, in their shape; for a block pointer, the block."""
    element = types.element_of(pointer.type)
    if not isinstance(element, tt.PtrType):
        fail(op, f"expected pointers, got {show(pointer)}")
    return types.like(pointer.type, element.pointee)


def _block(type: Attribute) -> TensorType[Attribute] | None:
    if isinstance(type, tt.PtrType) and isinstance(type.pointee, TensorType):
        return type.pointee
    return None


def _boundary(op: Operation, pointer: SSAValue) -> None:
    axes = ints_of(op.properties.get("boundaryCheck"))
    block = _block(pointer.type)
    if block is None:
        if axes or "padding" in op.properties:
            fail(op, f"boundaryCheck and padding belong to block pointers, not to {show(pointer)}")
        return
    rank = len(types.shape_of(block))
    if any(not 0 <= a < rank for a in axes) or len(set(axes)) != len(axes):
        fail(op, f"boundaryCheck {dims(axes)} must name different ones of {rank} dimensions")


def _mask(op: Operation, mask: SSAValue | None, pointer: SSAValue) -> None:
    if mask is None:
        return
    if _block(pointer.type) is not None:
        fail(op, "a block pointer takes no mask", "boundaryCheck says which dimensions to check")
    if mask.type != types.like(pointer.type, types.i1):
        fail(op, f"the mask of {show(pointer)} is {show(types.like(pointer.type, types.i1))}, got {show(mask)}")


@rule(tt.LoadOp)
def _load(op: tt.LoadOp) -> None:
    pointee = _pointee(op, op.ptr)
    if op.result.type != pointee:
        fail(op, f"through {show(op.ptr)} comes {show(pointee)}, not {show(op.result)}")
    _boundary(op, op.ptr)
    _mask(op, op.mask, op.ptr)
    if op.other is not None:
        if op.mask is None:
            fail(op, "`other` without a mask")
        if op.other.type != pointee:
            fail(op, f"`other` must be {show(pointee)}, got {show(op.other)}")
    padding = op.properties.get("padding")
    if padding is not None and int_value(padding) == tt.PaddingOption.PAD_NAN and not types.is_float(pointee):
        fail(op, f"{show(pointee)} has no NaN to pad with", "padding zero works for all types")


@rule(tt.StoreOp)
def _store(op: tt.StoreOp) -> None:
    pointee = _pointee(op, op.ptr)
    if op.value.type != pointee:
        fail(op, f"through {show(op.ptr)} goes {show(pointee)}, not {show(op.value)}")
    _boundary(op, op.ptr)
    _mask(op, op.mask, op.ptr)


@rule(tt.AtomicRMWOp)
def _rmw(op: tt.AtomicRMWOp) -> None:
    pointee = _pointee(op, op.ptr)
    need_same(op, "value and result", op.val, op.result)
    if op.val.type != pointee:
        fail(op, f"through {show(op.ptr)} goes {show(pointee)}, not {show(op.val)}")
    _mask(op, op.mask, op.ptr)
    kind = int_value(op.properties["atomic_rmw_op"])
    if kind not in tt.RMWOp._value2member_map_:
        fail(op, f"{kind} is not an operation on memory")
    if (kind == tt.RMWOp.FADD) != types.is_float(op.val.type) and kind != tt.RMWOp.XCHG:
        fail(op, f"{tt.RMWOp(kind).name.lower()} does not work on {show(op.val)}")
    _order(op)


@rule(tt.AtomicCASOp)
def _cas(op: tt.AtomicCASOp) -> None:
    pointee = _pointee(op, op.ptr)
    need_same(op, "values and result", op.cmp, op.val, op.result)
    if op.val.type != pointee:
        fail(op, f"through {show(op.ptr)} goes {show(pointee)}, not {show(op.val)}")
    _order(op)


@rule(tt.AtomicLoadOp)
def _atomic_load(op: tt.AtomicLoadOp) -> None:
    _half(op, op.result, (tt.MemSemantic.ACQUIRE, tt.MemSemantic.RELAXED))
    _mask(op, op.mask, op.ptr)


@rule(tt.AtomicStoreOp)
def _atomic_store(op: tt.AtomicStoreOp) -> None:
    _half(op, op.value, (tt.MemSemantic.RELEASE, tt.MemSemantic.RELAXED))
    _mask(op, op.mask, op.ptr)


def _half(op: tt.AtomicLoadOp | tt.AtomicStoreOp, value: SSAValue, orders: Sequence[tt.MemSemantic]) -> None:
    """The rules of an atomic load or store alone."""
    pointee = _pointee(op, op.ptr)
    if value.type != pointee:
        fail(op, f"through {show(op.ptr)} goes {show(pointee)}, not {show(value)}")
    _order(op)
    if int_value(op.properties["sem"]) not in orders:
        order = tt.MemSemantic(int_value(op.properties["sem"])).name.lower()
        fail(op, f"its order is {' or '.join(o.name.lower() for o in orders)}, not {order}")


@rule(tt.AtomicPollOp)
def _poll(op: tt.AtomicPollOp) -> None:
    if types.is_tensor(op.ptr.type):
        fail(op, f"waits for a scalar, not for {show(op.ptr)}")
    pointee = _pointee(op, op.ptr)
    if op.expected.type != pointee:
        fail(op, f"through {show(op.ptr)} comes {show(pointee)}, not {show(op.expected)}")
    if not isinstance(pointee, IntegerType) or pointee.width.data not in (16, 32, 64):
        fail(op, f"waits for integers of 16, 32 or 64 bits, not for {show(pointee)}")
    if op.result.type != types.i1:
        fail(op, f"returns whether it was found, an i1, not {show(op.result)}")
    if op.timeout is not None and op.timeout.type != types.i64:
        fail(op, f"the time-out is i64, not {show(op.timeout)}")
    _order(op)


def _order(op: Operation) -> None:
    if int_value(op.properties["sem"]) not in tt.MemSemantic._value2member_map_:
        fail(op, f"{int_value(op.properties['sem'])} is not a memory order")
    if int_value(op.properties["scope"]) not in tt.MemSyncScope._value2member_map_:
        fail(op, f"{int_value(op.properties['scope'])} is not a scope")


# -- block pointers ------------------------------------------------------------------------------------------------


def _each(op: Operation, values: Sequence[SSAValue], type: Attribute, subject: str, count: int) -> None:
    if len(values) != count:
        fail(op, f"{count} {subject} are needed, got {len(values)}")
    for value in values:
        if value.type != type:
            fail(op, f"{subject} are {show(type)}, got {show(value)}")


@rule(tt.MakeTensorPtrOp)
def _make_tensor_ptr(op: tt.MakeTensorPtrOp) -> None:
    block = _block(op.result.type)
    if block is None:
        fail(op, f"yields a pointer to a tensor, not {show(op.result)}")
    if op.base.type != types.ptr_of(block.element_type, op.result.type.address_space.data):  # type: ignore[attr-defined]
        fail(op, f"the base of {show(op.result)} cannot be {show(op.base)}")
    rank = len(types.shape_of(block))
    if rank == 0:
        fail(op, "a block has at least one dimension")
    _each(op, op.shape, types.i64, "sizes", rank)
    _each(op, op.strides, types.i64, "strides", rank)
    _each(op, op.offsets, types.i32, "offsets", rank)
    order = ints_of(op.properties["order"])
    if sorted(order) != list(range(rank)):
        fail(op, f"the order {dims(order)} is not a permutation of the {rank} dimensions")


@rule(tt.AdvanceOp)
def _advance(op: tt.AdvanceOp) -> None:
    need_same(op, "pointer and result", op.ptr, op.result)
    block = _block(op.ptr.type)
    if block is None:
        fail(op, f"expected a pointer to a tensor, got {show(op.ptr)}", "tt.addptr moves other pointers")
    _each(op, op.offsets, types.i32, "offsets", len(types.shape_of(block)))


# -- descriptors ---------------------------------------------------------------------------------------------------


def _described(op: Operation, value: SSAValue) -> TensorType[Attribute]:
    if not isinstance(value.type, types.TensorDescType):
        fail(op, f"expected a tensor descriptor, got {show(value)}")
    return value.type.block_type


@rule(tt.MakeTensorDescriptorOp)
def _make_descriptor(op: tt.MakeTensorDescriptorOp) -> None:
    block = _described(op, op.result)
    rank = len(types.shape_of(block))
    if not 1 <= rank <= 5:
        fail(op, f"a descriptor has 1 to 5 dimensions, not {rank}")
    if op.base.type != types.ptr_of(types.element_of(types.signless(block))):
        fail(op, f"the base of {show(op.result)} cannot be {show(op.base)}")
    _each(op, op.shape, types.i32, "sizes", rank)
    _each(op, op.strides, types.i64, "strides", rank)
    padding = op.properties.get("padding")
    if padding is not None and int_value(padding) == tt.PaddingOption.PAD_NAN and not types.is_float(block):
        fail(op, f"{show(types.element_of(block))} has no NaN to pad with")


def _same_elements(op: Operation, block: TensorType[Attribute], value: SSAValue) -> None:
    if types.element_of(types.signless(block)) != types.element_of(value.type):
        fail(op, f"a block of {show(block)} cannot be {show(value)}")


def _is_block(op: Operation, block: TensorType[Attribute], value: SSAValue) -> None:
    """`value` is the block; dimensions of size 1 may be missing."""
    _same_elements(op, block, value)
    want, tile = types.shape_of(block), need_tile(op, value)
    if [n for n in want if n != 1] != [n for n in tile if n != 1]:
        fail(op, f"the block {dims(want)} cannot be {show(value)}")


@rule(tt.DescriptorLoadOp)
def _descriptor_load(op: tt.DescriptorLoadOp) -> None:
    block = _described(op, op.desc)
    _each(op, op.indices, types.i32, "indices", len(types.shape_of(block)))
    _is_block(op, block, op.result)


@rule(tt.DescriptorStoreOp, tt.DescriptorReduceOp)
def _descriptor_store(op: tt.DescriptorStoreOp | tt.DescriptorReduceOp) -> None:
    block = _described(op, op.desc)
    _each(op, op.indices, types.i32, "indices", len(types.shape_of(block)))
    _is_block(op, block, op.src)
    if isinstance(op, tt.DescriptorReduceOp):
        kind = int_value(op.properties["kind"])
        if kind not in tt.DescriptorReduceKind._value2member_map_:
            fail(op, f"{kind} is not an operation on memory")
        if kind >= tt.DescriptorReduceKind.INC and not types.is_int(op.src.type):
            fail(op, f"{tt.DescriptorReduceKind(kind).name.lower()} does not work on {show(op.src)}")


def _rows(op: Operation, desc: SSAValue, rows: SSAValue, column: SSAValue, value: SSAValue) -> None:
    block = _described(op, desc)
    shape = types.shape_of(block)
    if len(shape) != 2 or shape[0] != 1:
        fail(op, f"rows are read through a block of one row, got {dims(shape)}")
    if len(need_tile(op, rows)) != 1:
        fail(op, f"the row numbers have one dimension, got {show(rows)}")
    need_int(op, rows)
    need_int(op, column)
    if types.shape_of(column.type):
        fail(op, f"the column is a scalar, got {show(column)}")
    _same_elements(op, block, value)
    if types.shape_of(value.type) != (types.shape_of(rows.type)[0], shape[1]):
        fail(op, f"{types.shape_of(rows.type)[0]} rows of {shape[1]} are not {show(value)}")


@rule(tt.DescriptorGatherOp)
def _gather(op: tt.DescriptorGatherOp) -> None:
    _rows(op, op.desc, op.x_offsets, op.y_offset, op.result)


@rule(tt.DescriptorScatterOp)
def _scatter(op: tt.DescriptorScatterOp) -> None:
    _rows(op, op.desc, op.x_offsets, op.y_offset, op.src)
