"""Copies of blocks of tensors by gfx1250's tensor data mover.

Triton's operations take a descriptor; here the tensor is said by its parts, which are scalars: a pointer, sizes and
strides, the outermost dimension first, and where the block begins.
"""

from __future__ import annotations

from xdsl import irdl

from ..check.rules import fail, rule, show
from ..effects import PureOp, ReadWriteOp
from ..gpu import MemDescType
from ..text import register
from ..text.elements import Form, Parts
from ..text.forms import each_is, is_type
from ..types import bit_width, i1, i32, i64, ptr_of


@irdl.irdl_op_definition
class TensorLoadOp(ReadWriteOp):
    """Begin to copy the block at some offsets to shared memory, where the predicate holds:

    amdg.tensor_load %p[%m, %n][%s, %one][%i, %j], %pred, %memory : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>

    With `mbarrier` each warp that copies arrives at it once, when its part is there.
    """

    name = "amdg.tensor_load"
    base = irdl.operand_def()
    shape = irdl.var_operand_def()
    strides = irdl.var_operand_def()
    offsets = irdl.var_operand_def()
    pred = irdl.operand_def()
    memory = irdl.operand_def()
    mbarrier = irdl.opt_operand_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class TensorStoreOp(ReadWriteOp):
    """Begin to copy shared memory to the block at some offsets:

    amdg.tensor_store %p[%m, %n][%s, %one][%i, %j], %memory : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    """

    name = "amdg.tensor_store"
    base = irdl.operand_def()
    shape = irdl.var_operand_def()
    strides = irdl.var_operand_def()
    offsets = irdl.var_operand_def()
    memory = irdl.operand_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class DescriptorBaseOp(PureOp):
    """The pointer of a descriptor that the kernel was given:

    %p = amdg.descriptor_base %desc : !tt.tensordesc<tensor<64x64xf16>>
    """

    name = "amdg.descriptor_base"
    desc = irdl.operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class TensorWaitOp(ReadWriteOp):
    """Wait until at most so many of these copies are under way:  amdg.tensor_wait {num = 0 : i32}"""

    name = "amdg.tensor_wait"
    num = irdl.prop_def()


def _memory(parts: Parts) -> MemDescType:
    type = parts.type("memory")
    assert isinstance(type, MemDescType)
    return type


def _form(text: str) -> Form:
    return Form(
        text,
        base=lambda parts: (ptr_of(_memory(parts).element_type),),
        shape=each_is(i32, "shape"),
        strides=each_is(i64, "strides"),
        offsets=each_is(i32, "offsets"),
        pred=is_type(i1),
    )


WHERE = "%base[%shape...][%strides...][%offsets...]"
register(TensorLoadOp, _form(WHERE + ", %pred, %memory?[ barrier %mbarrier]{} : <memory>?[, <mbarrier>]"))
register(TensorStoreOp, _form(WHERE + ", %memory{} : <memory>"))
register(TensorWaitOp, Form("{}"))
register(DescriptorBaseOp, Form("%desc{} : <desc> -> <result>"))


@rule(TensorLoadOp, TensorStoreOp)
def _copy(op: TensorLoadOp | TensorStoreOp) -> None:
    type = op.memory.type
    if not isinstance(type, MemDescType):
        fail(op, f"copies to or from shared memory, got {show(op.memory)}")
    if op.base.type != ptr_of(type.element_type):
        fail(op, f"through {show(op.base)} nothing comes or goes of {show(op.memory)}")
    rank = len(type.shape)
    if not 1 <= rank <= 5 or {len(op.shape), len(op.strides), len(op.offsets)} != {rank}:
        fail(op, f"{show(op.memory)} has {rank} dimensions: so many sizes, strides and offsets, and 1 to 5 of them")
    if bit_width(type.element_type) not in (8, 16, 32, 64):
        fail(op, f"copies elements of 1, 2, 4 or 8 bytes, got {show(op.memory)}")
