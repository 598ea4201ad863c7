"""Rules of the operations of `ttng`: products of warp groups, mbarriers, copies of the copy engine."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from .. import tt
from ..attrs import int_value
from ..check.rules import dims, fail, need_same, need_tile, rule, show
from ..gpu.check_memory import need_held, need_memory
from ..gpu.memory import MemDescType
from ..types import TensorDescType, bit_width, element_of, i1, i16, i32, i64, numel_of, shape_of, signless
from . import ttng

# -- products ----------------------------------------------------------------------------------------------


def _matrix(op: Operation, value: SSAValue) -> tuple[tuple[int, ...], Attribute]:
    if isinstance(value.type, MemDescType):
        return value.type.shape, value.type.element_type
    return need_tile(op, value), element_of(value.type)


@rule(ttng.WarpGroupDotOp)
def _warp_group_dot(op: ttng.WarpGroupDotOp) -> None:
    need_same(op, "accumulator and result", op.c, op.d)
    need_memory(op, op.b)
    (a, x), (b, y) = _matrix(op, op.a), _matrix(op, op.b)
    c = need_tile(op, op.c)
    if not len(a) == len(b) == len(c) == 2:
        fail(op, f"expected matrices, got {dims(a)}, {dims(b)} and {dims(c)}")
    if a[1] != b[0] or c != (a[0], b[1]):
        fail(op, f"{dims(a)} times {dims(b)} into {dims(c)}")
    if bit_width(x) != bit_width(y):
        fail(op, f"cannot multiply {show(op.a)} by {show(op.b)}")
    if c[0] % 64:
        fail(op, f"wgmma computes 64 rows at a time, the accumulator has {c[0]}", "tt.dot computes other shapes")
    first = op.row()[0]
    if first is op and ttng.SIDE_BY_SIDE in op.attributes:
        fail(op, f"{ttng.SIDE_BY_SIDE}: there is no product before it in its block")
    if first.a.type != op.a.type:
        fail(op, f"products side by side have one left operand, got {show(first.a)} and {show(op.a)}")


@rule(ttng.WarpGroupDotWaitOp)
def _warp_group_dot_wait(op: ttng.WarpGroupDotWaitOp) -> None:
    if [v.type for v in op.operands] != [v.type for v in op.results]:
        fail(op, "each operand is a result")


# -- mbarriers ---------------------------------------------------------------------------------------------


def _barrier(op: Operation, value: SSAValue) -> None:
    memory = need_memory(op, value, mutable=True)
    if memory.element_type != i64 or len(memory.shape) != 1:
        fail(op, f"an mbarrier is one i64 for each block (!ttg.memdesc<1xi64, ...>), got {show(value)}")


@rule(ttng.AsyncSharedStoreOp)
def _async_shared_store(op: ttng.AsyncSharedStoreOp) -> None:
    need_held(op, need_memory(op, op.dst, mutable=True), op.src)
    _barrier(op, op.mbarrier)


@rule(
    ttng.InitBarrierOp, ttng.InvalBarrierOp, ttng.BarrierExpectOp, ttng.WaitBarrierOp, ttng.ArriveBarrierOp,
    ttng.AsyncCopyMbarrierArriveOp,
)  # fmt: skip
def _mbarrier(op: Operation) -> None:
    _barrier(op, op.operands[0])
    count = op.properties.get("count")
    if count is not None and int_value(count) < 1:
        fail(op, f"the count must be 1 or more, got {int_value(count)}")
    if isinstance(op, ttng.WaitBarrierOp):
        if op.phase.type != i32:
            fail(op, f"the phase is i32, got {show(op.phase)}")
        for value in op.deps:
            need_memory(op, value)
    pred = getattr(op, "pred", None)
    if pred is not None and pred.type != i1:
        fail(op, f"the predicate is i1, got {show(pred)}")


# -- tensors -----------------------------------------------------------------------------------------------


def _block(op: Operation, desc: SSAValue, memory: SSAValue) -> TensorType[Attribute]:
    """The block that the descriptor describes; the memory holds it."""
    if not isinstance(desc.type, TensorDescType):
        fail(op, f"expected a tensor descriptor, got {show(desc)}")
    block, described = desc.type.block_type, need_memory(op, memory)
    is_whole = numel_of(block) == prod(described.shape)
    is_parts = ttng.EACH_WARP in op.attributes and prod(described.shape) % numel_of(block) == 0
    if element_of(signless(block)) != described.element_type or not (is_whole or is_parts):
        fail(op, f"a block of {show(desc)} cannot be {show(memory)}")
    return block


@rule(ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMACopyLocalToGlobalOp, ttng.AsyncTMAReduceOp)
def _tma(op: Operation) -> None:
    loads = isinstance(op, ttng.AsyncTMACopyGlobalToLocalOp)
    memory: SSAValue = op.result if loads else op.src  # type: ignore[attr-defined]
    block = _block(op, op.operands[0], memory)
    if op.operands[0].type.of_images:  # type: ignore[attr-defined]
        fail(op, f"a descriptor of images is for loads of images, got {show(op.operands[0])}")
    if loads:
        _barrier(op, op.barrier)  # type: ignore[attr-defined]
        need_memory(op, memory, mutable=True)
    coordinates = op.coord  # type: ignore[attr-defined]
    if len(coordinates) != len(shape_of(block)) or any(v.type != i32 for v in coordinates):
        fail(op, f"a block of {len(shape_of(block))} dimensions needs as many coordinates, i32 each")


@rule(ttng.AsyncTMACopyImagesToLocalOp)
def _tma_images(op: ttng.AsyncTMACopyImagesToLocalOp) -> None:
    block = _block(op, op.desc, op.result)
    if not isinstance(op.desc.type, TensorDescType) or not op.desc.type.of_images or len(shape_of(block)) != 2:
        fail(op, f"needs a descriptor of pixels and channels (!ttng.tensordesc_im2col), got {show(op.desc)}")
    _barrier(op, op.barrier)
    need_memory(op, op.result, mutable=True)
    rank = len(op.coord)
    if not 3 <= rank <= 5 or len(op.offsets) != rank - 2:
        fail(op, f"images have 3 to 5 coordinates and two offsets less, got {rank} and {len(op.offsets)}")
    if any(v.type != i32 for v in op.coord) or any(v.type != i16 for v in op.offsets):
        fail(op, "coordinates are i32, offsets i16")


@rule(ttng.AsyncTMAGatherOp, ttng.AsyncTMAScatterOp)
def _tma_rows(op: ttng.AsyncTMAGatherOp | ttng.AsyncTMAScatterOp) -> None:
    if not isinstance(op.desc.type, TensorDescType):
        fail(op, f"expected a tensor descriptor, got {show(op.desc)}")
    if len(need_tile(op, op.x_offsets)) != 1 or element_of(op.x_offsets.type) != i32 or op.y_offset.type != i32:
        fail(op, f"rows are a tile of i32, the column an i32, got {show(op.x_offsets)} and {show(op.y_offset)}")
    need_memory(op, op.result if isinstance(op, ttng.AsyncTMAGatherOp) else op.src)
    if isinstance(op, ttng.AsyncTMAGatherOp):
        _barrier(op, op.barrier)


@rule(ttng.ReinterpretTensorDescOp)
def _reinterpret_desc(op: ttng.ReinterpretTensorDescOp) -> None:
    if not isinstance(op.rawDesc.type, tt.PtrType) or not isinstance(op.result.type, TensorDescType):
        fail(op, f"makes a tensor descriptor of a pointer, got {show(op.rawDesc)} to {show(op.result)}")
