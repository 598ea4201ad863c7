"""The operations of Triton's dialect `ttg`: tiles that have layouts, shared memory, asynchronous copies, warp groups.

    %1 = ttg.convert_layout %0 : tensor<64xf32, #blocked> -> tensor<64xf32, #mma>
    %m = ttg.local_alloc %1 : (tensor<64xf32, #mma>) -> !ttg.memdesc<64xf32, #shared, #smem>
    %v = ttg.local_load %m : !ttg.memdesc<64xf32, #shared, #smem> -> tensor<64xf32, #blocked>

Names, properties and text are those of Triton 3.6.0. Types are checked by `weft.ir.verify(module, "layout")`, not by
these classes. Operations on memory take effect in the order in which they stand; those called asynchronous are done at
the latest when what waits for them is over.
"""

from xdsl import irdl
from xdsl.traits import IsTerminator

from ..check.control import Isolated
from ..effects import PureOp, ReadOp, ReadWriteOp, WriteOp

# -- layouts -------------------------------------------------------------------------------------------------------


@irdl.irdl_op_definition
class ConvertLayoutOp(PureOp):
    """The same tile in another layout:  %1 = ttg.convert_layout %0 : tensor<8xf32, #a> -> tensor<8xf32, #b>"""

    name = "ttg.convert_layout"
    src = irdl.operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class SetAutoLayoutOp(PureOp):
    """A layout for a tile whose layout was to be inferred:

    %1 = gluon.set_auto_layout %0 : tensor<8xf32, #gluon.auto_encoding> -> tensor<8xf32, #blocked>
    """

    name = "gluon.set_auto_layout"
    src = irdl.operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class Fp4ToFpOp(PureOp):
    """Two e2m1 numbers of each byte, the lower half first, side by side along an axis:

    %1 = ttg.fp4_to_fp %0 {axis = 1 : i32} : tensor<8x4xi8, #a> -> tensor<8x8xbf16, #b>
    """

    name = "ttg.fp4_to_fp"
    src = irdl.operand_def()
    axis = irdl.prop_def()
    result = irdl.result_def()


# -- memory --------------------------------------------------------------------------------------------------------


@irdl.irdl_op_definition
class LocalAllocOp(ReadWriteOp):
    """Shared memory for a tile, until the program ends or it is given back; `src` is what it holds first:

    %m = ttg.local_alloc %v : (tensor<8xf32, #a>) -> !ttg.memdesc<8xf32, #shared, #smem>
    %m = ttg.local_alloc : () -> !ttg.memdesc<2x8xf32, #shared, #smem, mutable>
    """

    name = "ttg.local_alloc"
    src = irdl.opt_operand_def()
    alignment = irdl.opt_prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class LocalDeallocOp(ReadWriteOp):
    """Shared memory is not needed any more:  ttg.local_dealloc %m : !ttg.memdesc<8xf32, #shared, #smem, mutable>"""

    name = "ttg.local_dealloc"
    src = irdl.operand_def()


@irdl.irdl_op_definition
class LocalLoadOp(ReadOp):
    """Shared memory read into a tile:

    %v = ttg.local_load %m token %t : !ttg.memdesc<8xf32, #shared, #smem> -> tensor<8xf32, #a>

    `token` orders it behind the wait that yielded it.
    """

    name = "ttg.local_load"
    src = irdl.operand_def()
    token = irdl.opt_operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class LocalStoreOp(WriteOp):
    """A tile written to shared memory:

    ttg.local_store %v, %m : tensor<8xf32, #a> -> !ttg.memdesc<8xf32, #shared, #smem, mutable>
    """

    name = "ttg.local_store"
    src = irdl.operand_def()
    dst = irdl.operand_def()


@irdl.irdl_op_definition
class LocalGatherOp(ReadOp):
    """Elements of shared memory that indices pick along an axis; the other coordinates are those of the index:

    %v = ttg.local_gather %m[%i] {axis = 0 : i32} : !ttg.memdesc<64x8xf32, #shared, #smem>, tensor<16x8xi32, #a>
        -> tensor<16x8xf32, #a>
    """

    name = "ttg.local_gather"
    src = irdl.operand_def()
    indices = irdl.operand_def()
    axis = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class LocalScatterOp(WriteOp):
    """Elements put to where indices say along an axis; the other coordinates are those of the element:

    ttg.local_scatter %m[%i], %v {axis = 0 : i32} : !ttg.memdesc<64x8xf32, #shared, #smem, mutable>,
        tensor<16x8xi32, #a>, tensor<16x8xf32, #a>

    Where two go to one place, either is there afterwards.
    """

    name = "ttg.local_scatter"
    dst = irdl.operand_def()
    indices = irdl.operand_def()
    values = irdl.operand_def()
    axis = irdl.prop_def()


@irdl.irdl_op_definition
class LocalAtomicScatterRMWOp(ReadWriteOp):
    """Elements of memory that indices pick along an axis are changed, each step indivisible; yields what was there:

    %old = ttg.local_atomic_scatter_rmw add, %m[%i], %v, %mask {axis = 0 : i32} : (!ttg.memdesc<64x8xi32, ...>,
        tensor<16x8xi32, #a>, tensor<16x8xi32, #a>, tensor<16x8xi1, #a>) -> tensor<16x8xi32, #a>

    Where the mask does not hold nothing is done, and what is yielded is undefined.
    """

    name = "ttg.local_atomic_scatter_rmw"
    dst = irdl.operand_def()
    values = irdl.operand_def()
    indices = irdl.operand_def()
    mask = irdl.opt_operand_def()
    result = irdl.result_def()
    atomic_rmw_op = irdl.prop_def()
    axis = irdl.prop_def()


@irdl.irdl_op_definition
class LocalBarrierOp(ReadWriteOp):
    """All threads of the partition wait for each other, and see each other's shared memory:  ttg.local_barrier"""

    name = "ttg.local_barrier"


@irdl.irdl_op_definition
class GlobalScratchAllocOp(ReadWriteOp):
    """Global memory that belongs to this program:

    %p = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
    """

    name = "ttg.global_scratch_alloc"
    nbytes = irdl.prop_def()
    alignment = irdl.prop_def()
    result = irdl.result_def()


# -- views of memory -----------------------------------------------------------------------------------------------


@irdl.irdl_op_definition
class MemDescIndexOp(PureOp):
    """One of several buffers:

    %1 = ttg.memdesc_index %0[%i] : !ttg.memdesc<2x8xf32, #shared, #smem> -> !ttg.memdesc<8xf32, #shared, #smem>
    """

    name = "ttg.memdesc_index"
    src = irdl.operand_def()
    index = irdl.operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class MemDescSubsliceOp(PureOp):
    """A part of a buffer that begins at constant coordinates:

    %1 = ttg.memdesc_subslice %0[4, 0] : !ttg.memdesc<8x8xf32, ...> -> !ttg.memdesc<4x8xf32, ..., 8x8>
    """

    name = "ttg.memdesc_subslice"
    src = irdl.operand_def()
    offsets = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class MemDescTransOp(PureOp):
    """The same memory with its dimensions in another order:

    %1 = ttg.memdesc_trans %0 {order = array<i32: 1, 0>} : !ttg.memdesc<4x8xf32, ...> -> !ttg.memdesc<8x4xf32, ...>
    """

    name = "ttg.memdesc_trans"
    src = irdl.operand_def()
    order = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class MemDescReshapeOp(PureOp):
    """The same memory in another shape:

    %1 = ttg.memdesc_reshape %0 : !ttg.memdesc<4x8xf32, ...> -> !ttg.memdesc<32xf32, ...>
    """

    name = "ttg.memdesc_reshape"
    src = irdl.operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class MemDescReinterpretOp(PureOp):
    """The same bytes as elements of another type, in another shape and layout:

    %1 = ttg.memdesc_reinterpret %0 : !ttg.memdesc<8xf32, ...> -> !ttg.memdesc<16xf16, ...>
    """

    name = "ttg.memdesc_reinterpret"
    src = irdl.operand_def()
    result = irdl.result_def()


# -- asynchronous copies -------------------------------------------------------------------------------------------


@irdl.irdl_op_definition
class AsyncCopyGlobalToLocalOp(ReadWriteOp):
    """Begin to copy an element for each pointer to shared memory, as `tt.load` would load it:

    %t = ttg.async_copy_global_to_local %p, %m mask %k other %o : tensor<8x!tt.ptr<f32>, #a> -> <8xf32, #shared, ...>

    `contiguity` says how many elements in a row one copy may take.
    """

    name = "ttg.async_copy_global_to_local"
    src = irdl.operand_def()
    result = irdl.operand_def()
    mask = irdl.opt_operand_def()
    other = irdl.opt_operand_def()
    cache = irdl.opt_prop_def()
    evict = irdl.opt_prop_def()
    isVolatile = irdl.opt_prop_def()
    contiguity = irdl.opt_prop_def()
    token = irdl.result_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class AsyncCommitGroupOp(ReadWriteOp):
    """The copies since the last one are a group:  %t = ttg.async_commit_group tokens %a, %b"""

    name = "ttg.async_commit_group"
    inputTokens = irdl.var_operand_def()
    asyncToken = irdl.result_def()


@irdl.irdl_op_definition
class AsyncWaitOp(ReadWriteOp):
    """Wait until at most `num` groups of copies are under way:  %t = ttg.async_wait %a, %b {num = 2 : i32}"""

    name = "ttg.async_wait"
    asyncToken = irdl.var_operand_def()
    num = irdl.prop_def()
    retToken = irdl.result_def()


# -- warp groups ---------------------------------------------------------------------------------------------------


@irdl.irdl_op_definition
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
    explicitCaptures = irdl.var_operand_def()
    partitionNumWarps = irdl.prop_def()
    warpGroupStartIds = irdl.opt_prop_def()
    requestedRegisters = irdl.opt_prop_def()
    actualRegisters = irdl.opt_prop_def()
    defaultPassthrough = irdl.var_result_def()
    defaultRegion = irdl.region_def()
    partitionOpHolder = irdl.region_def()


@irdl.irdl_op_definition
class WarpSpecializePartitionsOp(irdl.IRDLOperation, Isolated):
    """The partitions of a `ttg.warp_specialize`, a region each; it has no text of its own."""

    name = "ttg.warp_specialize.partitions"
    partitionRegions = irdl.var_region_def()
    traits = irdl.traits_def(IsTerminator())


@irdl.irdl_op_definition
class WarpYieldOp(irdl.IRDLOperation):
    """The end of `default`, with its results:  ttg.warp_yield %x : i32"""

    name = "ttg.warp_yield"
    values = irdl.var_operand_def()
    traits = irdl.traits_def(IsTerminator())


@irdl.irdl_op_definition
class WarpReturnOp(irdl.IRDLOperation):
    """The end of a partition:  ttg.warp_return"""

    name = "ttg.warp_return"
    traits = irdl.traits_def(IsTerminator())


# -- on the way to a pipelined loop --------------------------------------------------------------------------------


@irdl.irdl_op_definition
class MaskOp(ReadWriteOp):
    """Operations that take effect only where a scalar condition holds; read and written in generic form."""

    name = "ttg.mask"
    pred = irdl.operand_def()
    result = irdl.var_result_def()
    region = irdl.region_def()


@irdl.irdl_op_definition
class MaskReturnOp(irdl.IRDLOperation):
    """The end of `ttg.mask`; read and written in generic form."""

    name = "ttg.mask.return"
    result = irdl.var_operand_def()
    traits = irdl.traits_def(IsTerminator())


@irdl.irdl_op_definition
class PredicateStageOp(PureOp):
    """Does a stage of a pipelined loop run at this iteration?

    %c = ttg.predicate_stage %iv, %ub, %step maxStage 2 stage 1 : i32 -> i1
    """

    name = "ttg.predicate_stage"
    iv = irdl.operand_def()
    ub = irdl.operand_def()
    step = irdl.operand_def()
    maxStage = irdl.prop_def()
    stage = irdl.prop_def()
    result = irdl.result_def()
