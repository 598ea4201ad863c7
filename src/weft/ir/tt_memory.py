"""Operations of `tt` that reach memory, through pointers, block pointers and tensor descriptors.

A place whose mask is false does not touch memory. What a masked-off load yields without `other` is undefined in
Triton and 0 in Weft; a masked-off atomic yields 0.
"""

from xdsl import irdl

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


@irdl.irdl_op_definition
class LoadOp(ReadOp):
    """Read one element for each pointer, or the block of a block pointer:

    %v = tt.load %p, %mask, %other cacheModifier = cg evictionPolicy = evict_last : tensor<8x!tt.ptr<f32>>
    %v = tt.load %bp {boundaryCheck = array<i32: 0>, padding = 1 : i32} : !tt.ptr<tensor<8x8xf16>>

    `other` needs `mask`; a block pointer takes neither.
    """

    name = "tt.load"
    ptr = irdl.operand_def()
    mask = irdl.opt_operand_def()
    other = irdl.opt_operand_def()
    boundaryCheck = irdl.opt_prop_def()
    padding = irdl.opt_prop_def()
    cache = irdl.opt_prop_def()
    evict = irdl.opt_prop_def()
    isVolatile = irdl.opt_prop_def()
    result = irdl.result_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class StoreOp(WriteOp):
    """Write one element for each pointer, or the block of a block pointer:

    tt.store %p, %v, %mask cacheModifier = wb : tensor<8x!tt.ptr<f32>>

    Where two places name one address, either may be the one that stays.
    """

    name = "tt.store"
    ptr = irdl.operand_def()
    value = irdl.operand_def()
    mask = irdl.opt_operand_def()
    boundaryCheck = irdl.opt_prop_def()
    cache = irdl.opt_prop_def()
    evict = irdl.opt_prop_def()


@irdl.irdl_op_definition
class AtomicRMWOp(ReadWriteOp):
    """Read, combine and write each element as one step; yields what was there before:

    %old = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %mask : (!tt.ptr<f32>, f32, i1) -> f32
    """

    name = "tt.atomic_rmw"
    atomic_rmw_op = irdl.prop_def()
    ptr = irdl.operand_def()
    val = irdl.operand_def()
    mask = irdl.opt_operand_def()
    sem = irdl.prop_def()
    scope = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class AtomicCASOp(ReadWriteOp):
    """Write `val` where memory holds `cmp`, as one step; yields what was there before:

    %old = tt.atomic_cas acq_rel, gpu, %p, %cmp, %val : (!tt.ptr<i32>, i32, i32) -> i32
    """

    name = "tt.atomic_cas"
    ptr = irdl.operand_def()
    cmp = irdl.operand_def()
    val = irdl.operand_def()
    sem = irdl.prop_def()
    scope = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class AtomicLoadOp(ReadWriteOp):
    """Read each element in one step, in an order with other accesses: what comes after it stays after it.

    %v = tt.atomic_load acquire, gpu, %p, %mask : (!tt.ptr<i32>, i1) -> i32
    """

    name = "tt.atomic_load"
    ptr = irdl.operand_def()
    mask = irdl.opt_operand_def()
    sem = irdl.prop_def()
    scope = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class AtomicStoreOp(ReadWriteOp):
    """Write each element in one step, in an order with other accesses:

    tt.atomic_store release, gpu, %p, %v, %mask : !tt.ptr<i32>
    """

    name = "tt.atomic_store"
    ptr = irdl.operand_def()
    value = irdl.operand_def()
    mask = irdl.opt_operand_def()
    sem = irdl.prop_def()
    scope = irdl.prop_def()


@irdl.irdl_op_definition
class AtomicPollOp(ReadWriteOp):
    """Wait until a scalar in memory is `expected`: true; false if it is not after `timeout` nanoseconds:

    %found = tt.atomic_poll acquire, gpu, %p, %expected timeout %ns : !tt.ptr<i32>, i32 -> i1

    Memory is read at least once.  Without a time-out it waits as long as it takes.
    """

    name = "tt.atomic_poll"
    ptr = irdl.operand_def()
    expected = irdl.operand_def()
    timeout = irdl.opt_operand_def()
    sem = irdl.prop_def()
    scope = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class MakeTensorPtrOp(PureOp):
    """A block pointer: a base, the whole tensor's shape and strides, and where the block begins:

    %bp = tt.make_tensor_ptr %base, [%m, %n], [%sm, %sn], [%i, %j] {order = array<i32: 1, 0>} : <tensor<8x8xf16>>
    """

    name = "tt.make_tensor_ptr"
    base = irdl.operand_def()
    shape = irdl.var_operand_def()
    strides = irdl.var_operand_def()
    offsets = irdl.var_operand_def()
    order = irdl.prop_def()
    result = irdl.result_def()
    irdl_options = (irdl.SameVariadicOperandSize(),)


@irdl.irdl_op_definition
class AdvanceOp(PureOp):
    """A block pointer moved:  %q = tt.advance %bp, [%c0, %c8] : <tensor<8x8xf16>>"""

    name = "tt.advance"
    ptr = irdl.operand_def()
    offsets = irdl.var_operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class MakeTensorDescriptorOp(PureOp):
    """A descriptor of a tensor in memory, accessed a block at a time:

    %d = tt.make_tensor_descriptor %base, [%m, %n], [%sm, %sn] : !tt.ptr<f16>, !tt.tensordesc<tensor<8x64xf16>>
    """

    name = "tt.make_tensor_descriptor"
    base = irdl.operand_def()
    shape = irdl.var_operand_def()
    strides = irdl.var_operand_def()
    padding = irdl.opt_prop_def()
    result = irdl.result_def()
    irdl_options = (irdl.SameVariadicOperandSize(),)


@irdl.irdl_op_definition
class DescriptorLoadOp(ReadOp):
    """Read a block; elements outside the tensor are the descriptor's padding:

    %v = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<8x64xf16>> -> tensor<8x64xf16>
    """

    name = "tt.descriptor_load"
    desc = irdl.operand_def()
    indices = irdl.var_operand_def()
    cache = irdl.opt_prop_def()
    evict = irdl.opt_prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class DescriptorStoreOp(ReadWriteOp):
    """Write a block; elements outside the tensor are dropped:

    tt.descriptor_store %d[%i, %j], %v : !tt.tensordesc<tensor<8x64xf16>>, tensor<8x64xf16>
    """

    name = "tt.descriptor_store"
    desc = irdl.operand_def()
    src = irdl.operand_def()
    indices = irdl.var_operand_def()


@irdl.irdl_op_definition
class DescriptorReduceOp(ReadWriteOp):
    """Combine a block with memory, each element as one step:

    tt.descriptor_reduce add, %d[%i, %j], %v : !tt.tensordesc<tensor<8x64xf16>>, tensor<8x64xf16>
    """

    name = "tt.descriptor_reduce"
    kind = irdl.prop_def()
    desc = irdl.operand_def()
    src = irdl.operand_def()
    indices = irdl.var_operand_def()


@irdl.irdl_op_definition
class DescriptorGatherOp(ReadOp):
    """Read the rows that a tile of row numbers names, from one column on:

    %v = tt.descriptor_gather %d[%rows, %col]
         : (!tt.tensordesc<tensor<1x32xf32>>, tensor<8xi32>, i32) -> tensor<8x32xf32>
    """

    name = "tt.descriptor_gather"
    desc = irdl.operand_def()
    x_offsets = irdl.operand_def()
    y_offset = irdl.operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class DescriptorScatterOp(ReadWriteOp):
    """Write the rows that a tile of row numbers names, from one column on:

    tt.descriptor_scatter %d[%rows, %col], %v : !tt.tensordesc<tensor<1x32xf32>>, tensor<8xi32>, i32, tensor<8x32xf32>
    """

    name = "tt.descriptor_scatter"
    desc = irdl.operand_def()
    x_offsets = irdl.operand_def()
    y_offset = irdl.operand_def()
    src = irdl.operand_def()
