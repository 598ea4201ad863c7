"""The operations of Triton's dialect `ttg`: tiles that have layouts, shared memory, asynchronous copies, warp groups.

    %1 = ttg.convert_layout %0 : tensor<64xf32, #blocked> -> tensor<64xf32, #mma>
    %m = ttg.local_alloc %1 : (tensor<64xf32, #mma>) -> !ttg.memdesc<64xf32, #shared, #smem>
    %v = ttg.local_load %m : !ttg.memdesc<64xf32, #shared, #smem> -> tensor<64xf32, #blocked>

Names, properties and text are those of Triton 3.6.0. Types are checked by `weft.ir.verify(module, "layout")`, not by
these classes. Operations on memory take effect in the order in which they stand; those called asynchronous are done at
the latest when what waits for them is over.
"""

from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import IsTerminator

from ..check.control import Isolated
from ..effects import PureOp, ReadOp, ReadWriteOp, WriteOp

# -- layouts -------------------------------------------------------------------------------------------------------


@irdl_op_definition
class ConvertLayoutOp(PureOp):
    """The same tile in another layout:  %1 = ttg.convert_layout %0 : tensor<8xf32, #a> -> tensor<8xf32, #b>"""

    name = "ttg.convert_layout"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class SetAutoLayoutOp(PureOp):
    """A layout for a tile whose layout was to be inferred:

    %1 = gluon.set_auto_layout %0 : tensor<8xf32, #gluon.auto_encoding> -> tensor<8xf32, #blocked>
    """

    name = "gluon.set_auto_layout"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class Fp4ToFpOp(PureOp):
    """Two e2m1 numbers of each byte, the lower half first, side by side along an axis:

    %1 = ttg.fp4_to_fp %0 {axis = 1 : i32} : tensor<8x4xi8, #a> -> tensor<8x8xbf16, #b>
    """

    name = "ttg.fp4_to_fp"
    src = operand_def()
    axis = prop_def()
    result = result_def()


# -- memory --------------------------------------------------------------------------------------------------------


@irdl_op_definition
class LocalAllocOp(ReadWriteOp):
    """Shared memory for a tile, until the program ends or it is given back; `src` is what it holds first:

    %m = ttg.local_alloc %v : (tensor<8xf32, #a>) -> !ttg.memdesc<8xf32, #shared, #smem>
    %m = ttg.local_alloc : () -> !ttg.memdesc<2x8xf32, #shared, #smem, mutable>
    """

    name = "ttg.local_alloc"
    src = opt_operand_def()
    alignment = opt_prop_def()
    result = result_def()


@irdl_op_definition
class LocalDeallocOp(ReadWriteOp):
    """Shared memory is not needed any more:  ttg.local_dealloc %m : !ttg.memdesc<8xf32, #shared, #smem, mutable>"""

    name = "ttg.local_dealloc"
    src = operand_def()


@irdl_op_definition
class LocalLoadOp(ReadOp):
    """Shared memory read into a tile:

    %v = ttg.local_load %m token %t : !ttg.memdesc<8xf32, #shared, #smem> -> tensor<8xf32, #a>

    `token` orders it behind the wait that yielded it.
    """

    name = "ttg.local_load"
    src = operand_def()
    token = opt_operand_def()
    result = result_def()


@irdl_op_definition
class LocalStoreOp(WriteOp):
    """A tile written to shared memory:

    ttg.local_store %v, %m : tensor<8xf32, #a> -> !ttg.memdesc<8xf32, #shared, #smem, mutable>
    """

    name = "ttg.local_store"
    src = operand_def()
    dst = operand_def()


@irdl_op_definition
class LocalGatherOp(ReadOp):
    """Elements of shared memory that indices pick along an axis; the other coordinates are those of the index:

    %v = ttg.local_gather %m[%i] {axis = 0 : i32} : !ttg.memdesc<64x8xf32, #shared, #smem>, tensor<16x8xi32, #a>
        -> tensor<16x8xf32, #a>
    """

    name = "ttg.local_gather"
    src = operand_def()
    indices = operand_def()
    axis = prop_def()
    result = result_def()


@irdl_op_definition
class LocalScatterOp(WriteOp):
    """Elements put to where indices say along an axis; the other coordinates are those of the element:

    ttg.local_scatter %m[%i], %v {axis = 0 : i32} : !ttg.memdesc<64x8xf32, #shared, #smem, mutable>,
        tensor<16x8xi32, #a>, tensor<16x8xf32, #a>

    Where two go to one place, either is there afterwards.
    """

    name = "ttg.local_scatter"
    dst = operand_def()
    indices = operand_def()
    values = operand_def()
    axis = prop_def()


@irdl_op_definition
class LocalAtomicScatterRMWOp(ReadWriteOp):
    """Elements of memory that indices pick along an axis are changed, each step indivisible; yields what was there:

    %old = ttg.local_atomic_scatter_rmw add, %m[%i], %v, %mask {axis = 0 : i32} : (!ttg.memdesc<64x8xi32, ...>,
        tensor<16x8xi32, #a>, tensor<16x8xi32, #a>, tensor<16x8xi1, #a>) -> tensor<16x8xi32, #a>

    Where the mask does not hold nothing is done, and what is yielded is undefined.
    """

    name = "ttg.local_atomic_scatter_rmw"
    dst = operand_def()
    values = operand_def()
    indices = operand_def()
    mask = opt_operand_def()
    result = result_def()
    atomic_rmw_op = prop_def()
    axis = prop_def()


@irdl_op_definition
class LocalBarrierOp(ReadWriteOp):
    """All threads of the partition wait for each other, and see each other's shared memory:  ttg.local_barrier"""

    name = "ttg.local_barrier"


@irdl_op_definition
class GlobalScratchAllocOp(ReadWriteOp):
    """Global memory that belongs to this program:

    %p = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
    """

    name = "ttg.global_scratch_alloc"
    nbytes = prop_def()
    alignment = prop_def()
    result = result_def()


# -- views of memory -----------------------------------------------------------------------------------------------


@irdl_op_definition
class MemDescIndexOp(PureOp):
    """One of several buffers:

    %1 = ttg.memdesc_index %0[%i] : !ttg.memdesc<2x8xf32, #shared, #smem> -> !ttg.memdesc<8xf32, #shared, #smem>
    """

    name = "ttg.memdesc_index"
    src = operand_def()
    index = operand_def()
    result = result_def()


@irdl_op_definition
class MemDescSubsliceOp(PureOp):
    """A part of a buffer that begins at constant coordinates:

    %1 = ttg.memdesc_subslice %0[4, 0] : !ttg.memdesc<8x8xf32, ...> -> !ttg.memdesc<4x8xf32, ..., 8x8>
    """

    name = "ttg.memdesc_subslice"
    src = operand_def()
    offsets = prop_def()
    result = result_def()


@irdl_op_definition
class MemDescTransOp(PureOp):
    """The same memory with its dimensions in another order:

    %1 = ttg.memdesc_trans %0 {order = array<i32: 1, 0>} : !ttg.memdesc<4x8xf32, ...> -> !ttg.memdesc<8x4xf32, ...>
    """

    name = "ttg.memdesc_trans"
    src = operand_def()
    order = prop_def()
    result = result_def()


@irdl_op_definition
class MemDescReshapeOp(PureOp):
    """The same memory in another shape:

    %1 = ttg.memdesc_reshape %0 : !ttg.memdesc<4x8xf32, ...> -> !ttg.memdesc<32xf32, ...>
    """

    name = "ttg.memdesc_reshape"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class MemDescReinterpretOp(PureOp):
    """The same bytes as elements of another type, in another shape and layout:

    %1 = ttg.memdesc_reinterpret %0 : !ttg.memdesc<8xf32, ...> -> !ttg.memdesc<16xf16, ...>
    """

    name = "ttg.memdesc_reinterpret"
    src = operand_def()
    result = result_def()


# -- asynchronous copies -------------------------------------------------------------------------------------------


@irdl_op_definition
class AsyncCopyGlobalToLocalOp(ReadWriteOp):
    """Begin to copy an element for each pointer to shared memory, as `tt.load` would load it:

    %t = ttg.async_copy_global_to_local %p, %m mask %k other %o : tensor<8x!tt.ptr<f32>, #a> -> <8xf32, #shared, ...>

    `contiguity` says how many elements in a row one copy may take.
    """

    name = "ttg.async_copy_global_to_local"
    src = operand_def()
    result = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    cache = opt_prop_def()
    evict = opt_prop_def()
    isVolatile = opt_prop_def()
    contiguity = opt_prop_def()
    token = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


@irdl_op_definition
class AsyncCommitGroupOp(ReadWriteOp):
    """The copies since the last one are a group:  %t = ttg.async_commit_group tokens %a, %b"""

    name = "ttg.async_commit_group"
    inputTokens = var_operand_def()
    asyncToken = result_def()


@irdl_op_definition
class AsyncWaitOp(ReadWriteOp):
    """Wait until at most `num` groups of copies are under way:  %t = ttg.async_wait %a, %b {num = 2 : i32}"""

    name = "ttg.async_wait"
    asyncToken = var_operand_def()
    num = prop_def()
    retToken = result_def()


# -- warp groups ---------------------------------------------------------------------------------------------------


@irdl_op_definition
class WarpSpecializeOp(ReadWriteOp):
    """Several programs side by side: the program's own warps go on in `default`, others run the partitions.

    ttg.warp_specialize(%a) attributes {requestedRegisters = array<i32: 24>}
    default {
      ttg.warp_yield
    }
    partition0(%b: i32) num_warps(4) {
      ttg.warp_return
    } : (i32) -> ()

    The partitions see nothing of the outside but what they are given. The results are those of `default`.
    """

    name = "ttg.warp_specialize"
    explicitCaptures = var_operand_def()
    partitionNumWarps = prop_def()
    warpGroupStartIds = opt_prop_def()
    requestedRegisters = opt_prop_def()
    actualRegisters = opt_prop_def()
    defaultPassthrough = var_result_def()
    defaultRegion = region_def()
    partitionOpHolder = region_def()


@irdl_op_definition
class WarpSpecializePartitionsOp(IRDLOperation, Isolated):
    """The partitions of a `ttg.warp_specialize`, a region each; it has no text of its own."""

    name = "ttg.warp_specialize.partitions"
    partitionRegions = var_region_def()
    traits = traits_def(IsTerminator())


@irdl_op_definition
class WarpYieldOp(IRDLOperation):
    """The end of `default`, with its results:  ttg.warp_yield %x : i32"""

    name = "ttg.warp_yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())


@irdl_op_definition
class WarpReturnOp(IRDLOperation):
    """The end of a partition:  ttg.warp_return"""

    name = "ttg.warp_return"
    traits = traits_def(IsTerminator())


# -- on the way to a pipelined loop --------------------------------------------------------------------------------


@irdl_op_definition
class MaskOp(ReadWriteOp):
    """Operations that take effect only where a scalar condition holds; read and written in generic form."""

    name = "ttg.mask"
    pred = operand_def()
    result = var_result_def()
    region = region_def()


@irdl_op_definition
class MaskReturnOp(IRDLOperation):
    """The end of `ttg.mask`; read and written in generic form."""

    name = "ttg.mask.return"
    result = var_operand_def()
    traits = traits_def(IsTerminator())


@irdl_op_definition
class PredicateStageOp(PureOp):
    """Does a stage of a pipelined loop run at this iteration?

    %c = ttg.predicate_stage %iv, %ub, %step maxStage 2 stage 1 : i32 -> i1
    """

    name = "ttg.predicate_stage"
    iv = operand_def()
    ub = operand_def()
    step = operand_def()
    maxStage = prop_def()
    stage = prop_def()
    result = result_def()
