"""Operations of `tt` that reach memory, through pointers, block pointers and tensor descriptors.

A place whose mask is false does not touch memory. What a masked-off load yields without `other` is undefined in
Triton and 0 in Weft; a masked-off atomic yields 0.
"""

from xdsl.irdl import (
    AttrSizedOperandSegments,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
)

from .effects import PureOp, ReadOp, ReadWriteOp, WriteOp

__all__ = [
    "AdvanceOp",
    "AtomicCASOp",
    "AtomicLoadOp",
    "AtomicPollOp",
    "AtomicRMWOp",
    "AtomicStoreOp",
    "DescriptorGatherOp",
    "DescriptorLoadOp",
    "DescriptorReduceOp",
    "DescriptorScatterOp",
    "DescriptorStoreOp",
    "LoadOp",
    "MakeTensorDescriptorOp",
    "MakeTensorPtrOp",
    "StoreOp",
]


@irdl_op_definition
class LoadOp(ReadOp):
    """Read one element for each pointer, or the block of a block pointer:

    %v = tt.load %p, %mask, %other cacheModifier = cg evictionPolicy = evict_last : tensor<8x!tt.ptr<f32>>
    %v = tt.load %bp {boundaryCheck = array<i32: 0>, padding = 1 : i32} : !tt.ptr<tensor<8x8xf16>>

    `other` needs `mask`; a block pointer takes neither.
    """

    name = "tt.load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    boundaryCheck = opt_prop_def()
    padding = opt_prop_def()
    cache = opt_prop_def()
    evict = opt_prop_def()
    isVolatile = opt_prop_def()
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


@irdl_op_definition
class StoreOp(WriteOp):
    """Write one element for each pointer, or the block of a block pointer:

    tt.store %p, %v, %mask cacheModifier = wb : tensor<8x!tt.ptr<f32>>

    Where two places name one address, either may be the one that stays.
    """

    name = "tt.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    boundaryCheck = opt_prop_def()
    cache = opt_prop_def()
    evict = opt_prop_def()


@irdl_op_definition
class AtomicRMWOp(ReadWriteOp):
    """Read, combine and write each element as one step; yields what was there before:

    %old = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %mask : (!tt.ptr<f32>, f32, i1) -> f32
    """

    name = "tt.atomic_rmw"
    atomic_rmw_op = prop_def()
    ptr = operand_def()
    val = operand_def()
    mask = opt_operand_def()
    sem = prop_def()
    scope = prop_def()
    result = result_def()


@irdl_op_definition
class AtomicCASOp(ReadWriteOp):
    """Write `val` where memory holds `cmp`, as one step; yields what was there before:

    %old = tt.atomic_cas acq_rel, gpu, %p, %cmp, %val : (!tt.ptr<i32>, i32, i32) -> i32
    """

    name = "tt.atomic_cas"
    ptr = operand_def()
    cmp = operand_def()
    val = operand_def()
    sem = prop_def()
    scope = prop_def()
    result = result_def()


@irdl_op_definition
class AtomicLoadOp(ReadWriteOp):
    """Read each element in one step, in an order with other accesses: what comes after it stays after it.

    %v = tt.atomic_load acquire, gpu, %p, %mask : (!tt.ptr<i32>, i1) -> i32
    """

    name = "tt.atomic_load"
    ptr = operand_def()
    mask = opt_operand_def()
    sem = prop_def()
    scope = prop_def()
    result = result_def()


@irdl_op_definition
class AtomicStoreOp(ReadWriteOp):
    """Write each element in one step, in an order with other accesses:

    tt.atomic_store release, gpu, %p, %v, %mask : !tt.ptr<i32>
    """

    name = "tt.atomic_store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    sem = prop_def()
    scope = prop_def()


@irdl_op_definition
class AtomicPollOp(ReadWriteOp):
    """Wait until a scalar in memory is `expected`: true; false if it is not after `timeout` nanoseconds:

    %found = tt.atomic_poll acquire, gpu, %p, %expected timeout %ns : !tt.ptr<i32>, i32 -> i1

    Memory is read once at least.  Without a time-out it waits as long as it takes.
    """

    name = "tt.atomic_poll"
    ptr = operand_def()
    expected = operand_def()
    timeout = opt_operand_def()
    sem = prop_def()
    scope = prop_def()
    result = result_def()


@irdl_op_definition
class MakeTensorPtrOp(PureOp):
    """A block pointer: a base, the whole tensor's shape and strides, and where the block begins:

    %bp = tt.make_tensor_ptr %base, [%m, %n], [%sm, %sn], [%i, %j] {order = array<i32: 1, 0>} : <tensor<8x8xf16>>
    """

    name = "tt.make_tensor_ptr"
    base = operand_def()
    shape = var_operand_def()
    strides = var_operand_def()
    offsets = var_operand_def()
    order = prop_def()
    result = result_def()
    irdl_options = (SameVariadicOperandSize(),)


@irdl_op_definition
class AdvanceOp(PureOp):
    """A block pointer moved:  %q = tt.advance %bp, [%c0, %c8] : <tensor<8x8xf16>>"""

    name = "tt.advance"
    ptr = operand_def()
    offsets = var_operand_def()
    result = result_def()


@irdl_op_definition
class MakeTensorDescriptorOp(PureOp):
    """A descriptor of a tensor in memory, accessed a block at a time:

    %d = tt.make_tensor_descriptor %base, [%m, %n], [%sm, %sn] : !tt.ptr<f16>, !tt.tensordesc<tensor<8x64xf16>>
    """

    name = "tt.make_tensor_descriptor"
    base = operand_def()
    shape = var_operand_def()
    strides = var_operand_def()
    padding = opt_prop_def()
    result = result_def()
    irdl_options = (SameVariadicOperandSize(),)


@irdl_op_definition
class DescriptorLoadOp(ReadOp):
    """Read a block; elements outside the tensor are the descriptor's padding:

    %v = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<8x64xf16>> -> tensor<8x64xf16>
    """

    name = "tt.descriptor_load"
    desc = operand_def()
    indices = var_operand_def()
    cache = opt_prop_def()
    evict = opt_prop_def()
    result = result_def()


@irdl_op_definition
class DescriptorStoreOp(ReadWriteOp):
    """Write a block; elements outside the tensor are dropped:

    tt.descriptor_store %d[%i, %j], %v : !tt.tensordesc<tensor<8x64xf16>>, tensor<8x64xf16>
    """

    name = "tt.descriptor_store"
    desc = operand_def()
    src = operand_def()
    indices = var_operand_def()


@irdl_op_definition
class DescriptorReduceOp(ReadWriteOp):
    """Combine a block with memory, each element as one step:

    tt.descriptor_reduce add, %d[%i, %j], %v : !tt.tensordesc<tensor<8x64xf16>>, tensor<8x64xf16>
    """

    name = "tt.descriptor_reduce"
    kind = prop_def()
    desc = operand_def()
    src = operand_def()
    indices = var_operand_def()


@irdl_op_definition
class DescriptorGatherOp(ReadOp):
    """Read the rows that a tile of row numbers names, from one column on:

    %v = tt.descriptor_gather %d[%rows, %col]
         : (!tt.tensordesc<tensor<1x32xf32>>, tensor<8xi32>, i32) -> tensor<8x32xf32>
    """

    name = "tt.descriptor_gather"
    desc = operand_def()
    x_offsets = operand_def()
    y_offset = operand_def()
    result = result_def()


@irdl_op_definition
class DescriptorScatterOp(ReadWriteOp):
    """Write the rows that a tile of row numbers names, from one column on:

    tt.descriptor_scatter %d[%rows, %col], %v : !tt.tensordesc<tensor<1x32xf32>>, tensor<8xi32>, i32, tensor<8x32xf32>
    """

    name = "tt.descriptor_scatter"
    desc = operand_def()
    x_offsets = operand_def()
    y_offset = operand_def()
    src = operand_def()
