"""Rules of the operations on shared memory, asynchronous copies and partitions."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from weft.base import LayoutError
from weft.layouts import LinearLayout, reshape_result, trans_result

from .. import tt, types
from ..attrs import int_value, ints_of
from ..check.rules import dims, fail, need_same, need_same_shape, need_tile, rule, show
from . import ttg
from .memory import SHARED_MEMORY, AsyncTokenType, MemDescType, allocated_bytes


def need_memory(op: Operation, value: SSAValue, mutable: bool = False) -> MemDescType:
    """The type of an operand that is memory, and may be written to if `mutable`."""
    if not isinstance(value.type, MemDescType):
        fail(op, f"expected memory (!ttg.memdesc), got {show(value)}")
    if mutable and not value.type.data.mutable:
        fail(op, f"writes to memory that is not mutable: {show(value)}", "allocate it with `mutable`")
    return value.type


def need_held(op: Operation, memory: MemDescType, tile: SSAValue) -> None:
    """The tile is what the memory holds."""
    if need_tile(op, tile) != memory.shape or types.element_of(tile.type) != memory.element_type:
        fail(op, f"memory and tile differ in shape or elements\n    memory  {memory.text()}\n    tile    {show(tile)}")


def _tokens(op: Operation, *values: SSAValue | None) -> None:
    for value in values:
        if value is not None and not isinstance(value.type, AsyncTokenType):
            fail(op, f"expected a token (!ttg.async.token), got {show(value)}")


# -- allocations, loads and stores ---------------------------------------------------------------------------------


@rule(ttg.LocalAllocOp)
def _local_alloc(op: ttg.LocalAllocOp) -> None:
    memory = need_memory(op, op.result)
    if memory.data.space != SHARED_MEMORY:
        fail(op, f"allocates shared memory, not {memory.data.space}")
    if op.src is not None:
        need_held(op, memory, op.src)
    elif not memory.data.mutable:
        fail(op, f"memory with nothing in it must be mutable, got {memory.text()}")
    if memory.data.allocated != memory.shape:
        fail(op, f"an allocation is not a part of another: {memory.text()}")


@rule(ttg.LocalDeallocOp)
def _local_dealloc(op: ttg.LocalDeallocOp) -> None:
    need_memory(op, op.src)


@rule(ttg.LocalLoadOp)
def _local_load(op: ttg.LocalLoadOp) -> None:
    need_held(op, need_memory(op, op.src), op.result)
    _tokens(op, op.token)


@rule(ttg.LocalStoreOp)
def _local_store(op: ttg.LocalStoreOp) -> None:
    need_held(op, need_memory(op, op.dst, mutable=True), op.src)


@rule(ttg.LocalGatherOp, ttg.LocalScatterOp)
def _picked(op: ttg.LocalGatherOp | ttg.LocalScatterOp) -> None:
    gathers = isinstance(op, ttg.LocalGatherOp)
    _check_picked(op, not gathers, op.result if gathers else op.values)  # type: ignore[union-attr]


@rule(ttg.LocalAtomicScatterRMWOp)
def _picked_atomic(op: ttg.LocalAtomicScatterRMWOp) -> None:
    _check_picked(op, True, op.values)
    if op.result.type != op.values.type:
        fail(op, f"yields what was there for each value, {show(op.values)}, not {show(op.result)}")
    if op.mask is not None and op.mask.type != types.like(op.values.type, types.i1):
        fail(op, f"a mask has a bit for each value, {show(op.values)}, got {show(op.mask)}")


def _check_picked(op: Any, writes: bool, tile: SSAValue) -> None:
    """An index for each element of a tile, of memory of the same elements."""
    memory = need_memory(op, op.operands[0], mutable=writes)
    shape, axis = need_tile(op, op.indices), int_value(op.axis)
    if need_tile(op, tile) != shape or tile.type.encoding != op.indices.type.encoding:  # type: ignore[attr-defined]
        fail(op, f"an index for each element, in one layout: {show(op.indices)} and {show(tile)}")
    if types.element_of(tile.type) != memory.element_type or not isinstance(
        types.element_of(op.indices.type), IntegerType
    ):
        fail(op, f"integers are indices of elements of {memory.text()}, got {show(op.indices)} and {show(tile)}")
    others = [i for i in range(len(memory.shape)) if i != axis]
    if not 0 <= axis < len(memory.shape) or len(shape) != len(memory.shape):
        fail(op, f"axis {axis} of {memory.text()} with indices {show(op.indices)}")
    if any(shape[i] > memory.shape[i] for i in others):
        fail(op, f"but along axis {axis} indices are within the memory: {memory.text()} and {show(op.indices)}")


@rule(ttg.GlobalScratchAllocOp)
def _scratch(op: ttg.GlobalScratchAllocOp) -> None:
    if op.result.type != types.ptr_of(types.i8):
        fail(op, f"yields !tt.ptr<i8>, not {show(op.result)}")


# -- views ---------------------------------------------------------------------------------------------------------


def _view(op: Operation, source: MemDescType, result: MemDescType) -> None:
    """Both are the same kind of memory."""
    if source.data.space != result.data.space or source.data.mutable != result.data.mutable:
        fail(op, f"a view of {source.text()} cannot be {result.text()}")


def _same_elements(op: Operation, source: MemDescType, result: MemDescType) -> None:
    _view(op, source, result)
    if source.element_type != result.element_type:
        fail(op, f"the elements of {source.text()} and {result.text()} differ in type")


@rule(ttg.MemDescIndexOp)
def _index(op: ttg.MemDescIndexOp) -> None:
    source, result = need_memory(op, op.src), need_memory(op, op.result)
    _same_elements(op, source, result)
    if result.shape != source.shape[1:]:
        fail(op, f"one of {dims(source.shape)} has the shape {dims(source.shape[1:])}, not {dims(result.shape)}")
    if source.data.layout != result.data.layout:
        fail(op, f"a buffer has the layout of all of them\n    buffers  {source.text()}\n    buffer   {result.text()}")


@rule(ttg.MemDescSubsliceOp)
def _subslice(op: ttg.MemDescSubsliceOp) -> None:
    source, result = need_memory(op, op.src), need_memory(op, op.result)
    _same_elements(op, source, result)
    offsets = ints_of(op.properties["offsets"])
    if not len(offsets) == len(source.shape) == len(result.shape):
        fail(op, f"offsets {dims(offsets)} and shape {dims(result.shape)} of a part of {dims(source.shape)}")
    buffers = len(source.shape) - source.data.layout.named.rank
    for dim, (offset, part, whole) in enumerate(zip(offsets, result.shape, source.shape, strict=True)):
        if offset < 0 or offset + part > whole:
            fail(op, f"{dims(result.shape)} from {dims(offsets)} on reaches outside of {dims(source.shape)}")
        if dim >= buffers and offset % part:
            fail(op, f"the offsets {dims(offsets)} must be multiples of the part's shape {dims(result.shape)}")
    if source.data.layout != result.data.layout or source.data.allocated != result.data.allocated:
        fail(op, f"a part keeps the layout of the whole\n    whole  {source.text()}\n    part   {result.text()}")


def _follows(
    op: Operation, source: MemDescType, result: MemDescType, infer: Callable[[LinearLayout], LinearLayout]
) -> None:
    """The result lies as the view makes it of the source; compared for whole allocations of one buffer."""
    for memory in (source, result):
        if memory.data.allocated != memory.shape or len(memory.shape) != len(memory.linear.out_dims):
            return
    try:
        wanted = infer(source.linear)
    except LayoutError as error:
        fail(op, f"{error.message}\n    {source.text()}", error.hint)
    if wanted != result.linear:
        fail(
            op,
            "the result has another layout than the source\n"
            f"    source    {source.text()}\n    result    {result.text()}\n    expected  bases {wanted.bases}",
        )


@rule(ttg.MemDescTransOp)
def _trans(op: ttg.MemDescTransOp) -> None:
    source, result = need_memory(op, op.src), need_memory(op, op.result)
    _same_elements(op, source, result)
    order = ints_of(op.properties["order"])
    if sorted(order) != list(range(len(source.shape))):
        fail(op, f"the order {dims(order)} is not a permutation of the {len(source.shape)} dimensions")
    wanted = tuple(source.shape[i] for i in order)
    if result.shape != wanted:
        fail(op, f"{dims(source.shape)} in the order {dims(order)} is {dims(wanted)}, not {dims(result.shape)}")
    _follows(op, source, result, lambda layout: trans_result(layout, order))


@rule(ttg.MemDescReshapeOp)
def _reshape(op: ttg.MemDescReshapeOp) -> None:
    source, result = need_memory(op, op.src), need_memory(op, op.result)
    _same_elements(op, source, result)
    if prod(source.shape) != prod(result.shape):
        fail(op, f"{source.text()} and {result.text()} differ in the number of elements")
    _follows(op, source, result, lambda layout: reshape_result(layout, result.shape))


@rule(ttg.MemDescReinterpretOp)
def _reinterpret(op: ttg.MemDescReinterpretOp) -> None:
    source, result = need_memory(op, op.src), need_memory(op, op.result)
    _view(op, source, result)
    have, need = allocated_bytes(op.src), result.bytes
    if have is not None and need > have:
        fail(op, f"{result.text()} has {need} bytes, and {source.text()} is in an allocation of {have}")


# -- asynchronous copies -------------------------------------------------------------------------------------------


@rule(ttg.AsyncCopyGlobalToLocalOp)
def _async_copy(op: ttg.AsyncCopyGlobalToLocalOp) -> None:
    memory = need_memory(op, op.result, mutable=True)
    element = types.element_of(op.src.type)
    if not types.is_tensor(op.src.type) or not isinstance(element, tt.PtrType):
        fail(op, f"expected a tile of pointers, got {show(op.src)}")
    if types.shape_of(op.src.type) != memory.shape or element.pointee != memory.element_type:
        fail(op, f"through {show(op.src)} nothing comes for {memory.text()}")
    if op.mask is not None and types.element_of(op.mask.type) != types.i1:
        fail(op, f"the mask is i1, got {show(op.mask)}")
    if op.other is not None and op.other.type != types.like(op.src.type, element.pointee):
        fail(op, f"`other` must be {show(types.like(op.src.type, element.pointee))}, got {show(op.other)}")
    _tokens(op, op.token)


@rule(ttg.AsyncCommitGroupOp, ttg.AsyncWaitOp)
def _groups(op: Operation) -> None:
    _tokens(op, *op.operands, *op.results)
    num = op.properties.get("num")
    if num is not None and int_value(num) < 0:
        fail(op, f"cannot wait until {int_value(num)} groups are under way")


# -- warp groups ---------------------------------------------------------------------------------------------------


@rule(ttg.WarpSpecializeOp)
def _warp_specialize(op: ttg.WarpSpecializeOp) -> None:
    warps = ints_of(op.properties["partitionNumWarps"])
    holder = op.partitionOpHolder.block.first_op
    if not isinstance(holder, ttg.WarpSpecializePartitionsOp) or len(holder.regions) != len(warps):
        fail(op, f"{len(warps)} numbers of warps for another number of partitions")
    wanted = [v.type for v in op.operands]
    for i, (count, region) in enumerate(zip(warps, holder.regions, strict=True)):
        if count < 1 or count & (count - 1):
            fail(op, f"partition {i} has {count} warps, which is no power of two")
        if len(region.blocks) != 1 or [a.type for a in region.block.args] != wanted:
            fail(op, f"partition {i} takes {', '.join(map(show, wanted)) or 'nothing'}")
    registers = op.properties.get("requestedRegisters")
    if registers is not None and len(ints_of(registers)) != len(warps):
        fail(op, f"registers are requested for {len(ints_of(registers))} of {len(warps)} partitions")
    last = op.defaultRegion.block.last_op
    if last is not None and [v.type for v in last.operands] != [v.type for v in op.results]:
        fail(last, f"yields {', '.join(show(v) for v in last.operands)} for {', '.join(show(v) for v in op.results)}")


@rule(ttg.WarpYieldOp, ttg.WarpReturnOp)
def _warp_end(op: Operation) -> None:
    parent = op.parent_op()
    wanted = ttg.WarpSpecializeOp if isinstance(op, ttg.WarpYieldOp) else ttg.WarpSpecializePartitionsOp
    if not isinstance(parent, wanted):
        fail(op, f"belongs at the end of a region of {wanted.name}")


@rule(ttg.PredicateStageOp)
def _predicate(op: ttg.PredicateStageOp) -> None:
    need_same(op, "bounds", op.iv, op.ub, op.step)
    if op.result.type != types.i1:
        fail(op, f"yields i1, not {show(op.result)}")
    need_same_shape(op, op.iv, op.result)
