"""The operations of Triton's dialect `amdg` that its pipeline for CDNA and RDNA leaves in most kernels, and their text.

They are read, verified and written; what they mean for code is for a back end to say. Others of the dialect, and the
layout `#ttg.amd_rotating_shared`, are not known here.
"""

from __future__ import annotations

from xdsl import irdl
from xdsl.ir import Attribute

from weft.base import LayoutError

from .. import tt
from ..check.rules import fail, need_same_shape, need_tile, rule, show
from ..effects import PureOp, ReadOp, ReadWriteOp, WriteOp
from ..gpu.encoding import encoding_of
from ..text import register
from ..text.elements import PROPERTIES, Choice, Form, Hints, Rule, words
from ..text.forms import is_type, same_as
from ..types import element_of, i1, i32, like, ptr_of

NARROW = "amdg.narrow"
"""On a `tt.addptr`: its distances in bytes have 32 bits, with a sign."""
BIAS = (1 << 31) - (1 << 16)
"""What is added to such distances, so that they have no sign. Elements of an array lie less than 2^31 bytes from each
other, so that the distance of one from a pointer into the array is from -2^31 up to 2^31; the highest 2^16 distances
stay free, and so do the lowest ones, which an array has that is 2^17 bytes shorter than 2^31 at most."""


@irdl.irdl_op_definition
class BufferLoadOp(ReadOp):
    """Load through one pointer and a tile of offsets, in elements:

    %v = amdg.buffer_load %p[%offsets], %mask, %other cacheModifier = cg stride = %s : tensor<256xf32, #blocked>
    """

    name = "amdg.buffer_load"
    ptr = irdl.operand_def()
    offsets = irdl.operand_def()
    stride = irdl.opt_operand_def()
    mask = irdl.opt_operand_def()
    other = irdl.opt_operand_def()
    cache = irdl.opt_prop_def()
    contiguity = irdl.opt_prop_def()
    result = irdl.result_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class BufferStoreOp(WriteOp):
    """Store through one pointer and a tile of offsets, in elements:

    amdg.buffer_store %v, %p[%offsets], %mask cacheModifier = cs stride = %s : tensor<256xf32, #blocked>
    """

    name = "amdg.buffer_store"
    value = irdl.operand_def()
    ptr = irdl.operand_def()
    offsets = irdl.operand_def()
    stride = irdl.opt_operand_def()
    mask = irdl.opt_operand_def()
    cache = irdl.opt_prop_def()
    contiguity = irdl.opt_prop_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class InThreadTransposeOp(PureOp):
    """The same tile with the registers of each thread in another order:

    %1 = amdg.in_thread_transpose %0 : tensor<32x16xf16, #blocked> -> tensor<32x16xf16, #linear>
    """

    name = "amdg.in_thread_transpose"
    src = irdl.operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class SetPrioOp(ReadWriteOp):
    """The priority of this warp from here on:  rocdl.s.setprio 1"""

    name = "rocdl.s.setprio"
    priority = irdl.prop_def()


@irdl.irdl_op_definition
class SchedBarrierOp(ReadWriteOp):
    """Instructions of kinds that the mask leaves out do not move past here:  rocdl.sched.barrier 0"""

    name = "rocdl.sched.barrier"
    mask = irdl.prop_def()


# -- text ----------------------------------------------------------------------------------------------------------


def _base(group: str) -> Rule:
    return lambda parts: (ptr_of(element_of(parts.type(group))),)


def _tile(group: str, element: Attribute) -> Rule:
    return lambda parts: (like(parts.type(group), element),)


PROPERTIES["buffer_cache"] = Hints(cacheModifier=Choice("cache", words(tt.CacheModifier), tt.CacheModifier.NONE))
register(
    BufferLoadOp,
    Form(
        "%ptr[%offsets]?[, %mask]?[, %other]@buffer_cache?[ stride = %stride]{} : <result>",
        ptr=_base("result"),
        offsets=_tile("result", i32),
        mask=_tile("result", i1),
        other=same_as("result"),
        stride=is_type(i32),
    ),
)
register(
    BufferStoreOp,
    Form(
        "%value, %ptr[%offsets]?[, %mask]@buffer_cache?[ stride = %stride]{} : <value>",
        ptr=_base("value"),
        offsets=_tile("value", i32),
        mask=_tile("value", i1),
        stride=is_type(i32),
    ),
)
register(InThreadTransposeOp, Form("%src{} : <src> -> <result>"))
register(SetPrioOp, Form("@priority{}"))
register(SchedBarrierOp, Form("@mask{}"))


# -- rules ---------------------------------------------------------------------------------------------------------


@rule(BufferLoadOp, BufferStoreOp)
def _buffer(op: BufferLoadOp | BufferStoreOp) -> None:
    value = op.result if isinstance(op, BufferLoadOp) else op.value
    need_tile(op, value)
    if op.ptr.type != ptr_of(element_of(value.type)):
        fail(op, f"through {show(op.ptr)} nothing comes or goes of {show(value)}")
    if op.offsets.type != like(value.type, i32):
        fail(op, f"the offsets are {show(like(value.type, i32))}, got {show(op.offsets)}")
    if op.mask is not None and op.mask.type != like(value.type, i1):
        fail(op, f"the mask is {show(like(value.type, i1))}, got {show(op.mask)}")


@rule(InThreadTransposeOp)
def _in_thread(op: InThreadTransposeOp) -> None:
    need_same_shape(op, op.src, op.result)
    source, result = encoding_of(op.src.type), encoding_of(op.result.type)
    if source is None or result is None or source.linear is None or result.linear is None:
        return
    try:
        moved = source.linear.invert_and_compose(result.linear)
    except LayoutError as error:
        fail(op, error.message, error.hint)
    if not moved.is_trivial_over(["lane", "warp", "block"]):
        fail(op, f"moves elements between threads\n    from  {show(op.src)}\n    to    {show(op.result)}")
