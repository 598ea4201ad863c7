"""The operations of Triton's dialect `ttng`: what NVIDIA's GPUs have from Hopper on.

An mbarrier is a descriptor of one 64-bit word of shared memory. A phase of it is over when as many have arrived as
`init_barrier` said and as many bytes have been copied as `barrier_expect` said.

Names, properties and text are those of Triton 3.6.0. Those of Blackwell alone (tensor memory and its matrix unit)
are not here.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl import irdl
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, bool_attr, element_of, i32_attr, int_value, shape_of, type_text

from ..effects import PureOp, ReadWriteOp
from ..gpu.memory import MemDescType
from ..gpu.products import OperandFenceOp, SharedProductOp

# -- products ------------------------------------------------------------------------------------------------------


SIDE_BY_SIDE = "tt.side_by_side"
"""Of a product whose columns follow those of the product before: both have the same left operand, and the right one
lies in memory where that of the product before would go on. Such a row of products begins with the last of them, as one
product, and ends as one."""


@irdl.irdl_op_definition
class WarpGroupDotOp(SharedProductOp):
    """c + a * b by wgmma; `a` is a tile or in shared memory, `b` in shared memory; with `isAsync` it is only begun:

    %d = ttng.warp_group_dot %a, %b, %c, %use {inputPrecision = 0 : i32} : !ttg.memdesc<...> * !ttg.memdesc<...> -> ...

    Where `useC` is false, `c` counts as 0.
    """

    name = "ttng.warp_group_dot"
    a = irdl.operand_def()
    b = irdl.operand_def()
    c = irdl.operand_def()
    useC = irdl.opt_operand_def()
    inputPrecision = irdl.opt_prop_def()
    maxNumImpreciseAcc = irdl.opt_prop_def()
    isAsync = irdl.opt_prop_def()
    d = irdl.result_def()

    def begin(self) -> None:
        self.properties["isAsync"] = bool_attr(True)

    def row(self) -> list[WarpGroupDotOp]:
        """The products side by side of which this is one, alone or not, in order."""
        block = self.parent
        assert block is not None
        rows: list[list[WarpGroupDotOp]] = []
        for op in (op for op in block.ops if isinstance(op, WarpGroupDotOp)):
            if SIDE_BY_SIDE in op.attributes and rows:
                rows[-1].append(op)
            else:
                rows.append([op])
        return next(row for row in rows if self in row)

    @staticmethod
    def wait(b: Builder, values: Sequence[SSAValue], pending: int) -> Operation:
        return b.create(WarpGroupDotWaitOp, values, [v.type for v in values], {"pendings": i32_attr(pending)})

    @staticmethod
    def fence(b: Builder) -> Operation:
        return b.create(FenceAsyncSharedOp, (), (), {"bCluster": bool_attr(False)})

    @property
    def imprecise(self) -> int:
        """Elements along K after which sums of fp8 products are added by threads, in full precision; 0 for never.

        A limit of all of K keeps them apart from what the next product adds, in a loop.
        """
        limit = int_value(self.maxNumImpreciseAcc) if self.maxNumImpreciseAcc is not None else 0
        a = self.a.type
        element, shape = (a.element_type, a.shape) if isinstance(a, MemDescType) else (element_of(a), shape_of(a))
        return limit if type_text(element).startswith("f8") and 0 < limit <= shape[-1] else 0


@irdl.irdl_op_definition
class WarpGroupDotWaitOp(ReadWriteOp):
    """Wait until at most `pendings` products are under way; what is given is valid from the results on:

    %1 = ttng.warp_group_dot_wait %0 {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    """

    name = "ttng.warp_group_dot_wait"
    inputs = irdl.var_operand_def()
    pendings = irdl.prop_def()
    outputs = irdl.var_result_def()


# -- fences and clusters -------------------------------------------------------------------------------------------


@irdl.irdl_op_definition
class FenceAsyncSharedOp(OperandFenceOp):
    """What was written to shared memory is seen by wgmma and TMA:  ttng.fence_async_shared {bCluster = false}"""

    name = "ttng.fence_async_shared"
    bCluster = irdl.prop_def()


@irdl.irdl_op_definition
class ClusterArriveOp(ReadWriteOp):
    """This block has come so far:  ttng.cluster_arrive {relaxed = false}"""

    name = "ttng.cluster_arrive"
    relaxed = irdl.opt_prop_def()


@irdl.irdl_op_definition
class ClusterWaitOp(ReadWriteOp):
    """Wait until all blocks of the cluster have arrived:  ttng.cluster_wait"""

    name = "ttng.cluster_wait"


@irdl.irdl_op_definition
class WarpGroupTurnOp(ReadWriteOp):
    """Two warp groups take turns:  ttng.warp_group_turn {step = "take"}

    From `take` to `pass` a warp group is alone with what stands between, which the other does not begin until then.
    `begin` and `end` stand before and after the loop. It orders no accesses to memory.
    """

    name = "ttng.warp_group_turn"
    step = irdl.prop_def()


# -- mbarriers -----------------------------------------------------------------------------------------------------


@irdl.irdl_op_definition
class InitBarrierOp(ReadWriteOp):
    """Make an mbarrier at which `count` must arrive:  ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, ...>"""

    name = "ttng.init_barrier"
    alloc = irdl.operand_def()
    count = irdl.prop_def()


@irdl.irdl_op_definition
class InvalBarrierOp(ReadWriteOp):
    """The memory is no mbarrier any more:  ttng.inval_barrier %b : !ttg.memdesc<1xi64, ...>"""

    name = "ttng.inval_barrier"
    alloc = irdl.operand_def()


@irdl.irdl_op_definition
class BarrierExpectOp(ReadWriteOp):
    """Arrive, and let `size` bytes be copied before the phase is over, where `pred` holds:

    ttng.barrier_expect %b, 8192, %pred : !ttg.memdesc<1xi64, ...>

    With `fromCTA`, a mask of bits of a block's number in the cluster, each block's mbarrier gets its arrival from the
    block with those of its bits alone: 0 is from the first block to all.
    """

    name = "ttng.barrier_expect"
    alloc = irdl.operand_def()
    pred = irdl.operand_def()
    size = irdl.prop_def()
    fromCTA = irdl.opt_prop_def()


@irdl.irdl_op_definition
class WaitBarrierOp(ReadWriteOp):
    """Wait until the phase of this parity is over; `deps` is memory in use until then:

    ttng.wait_barrier %b, %phase, %pred deps %m : !ttg.memdesc<1xi64, ...>, !ttg.memdesc<64x64xf16, ...>
    """

    name = "ttng.wait_barrier"
    alloc = irdl.operand_def()
    phase = irdl.operand_def()
    pred = irdl.opt_operand_def()
    deps = irdl.var_operand_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


EACH_WARP, EVERY_BLOCK, DIVIDED = "tt.each_warp", "tt.every_block", "tt.divided"
"""`DIVIDED` of a copy that is `multicast`: each of the blocks that get it begins a part of it, not the first all."""
LATE = "tt.late"
"""Of what a partition does only when it has met the kernel's own warps again, which go on meanwhile."""


@irdl.irdl_op_definition
class ArriveBarrierOp(ReadWriteOp):
    """Arrive `count` times (`fromCTA` as in barrier_expect):

    ttng.arrive_barrier %b, 1, %pred : !ttg.memdesc<1xi64, ...>

    With the attribute `tt.each_warp`, every warp arrives for itself, when it has come so far; with `tt.every_block`
    besides, it does so at this mbarrier of every block of the cluster. Each block waits for these before it ends.
    """

    name = "ttng.arrive_barrier"
    alloc = irdl.operand_def()
    pred = irdl.opt_operand_def()
    count = irdl.prop_def()
    fromCTA = irdl.opt_prop_def()


@irdl.irdl_op_definition
class AsyncCopyMbarrierArriveOp(ReadWriteOp):
    """Arrive when this thread's copies so far are done:

    ttng.async_copy_mbarrier_arrive %b : !ttg.memdesc<1xi64, ...>
    """

    name = "ttng.async_copy_mbarrier_arrive"
    barrier = irdl.operand_def()
    noIncrement = irdl.opt_prop_def()


@irdl.irdl_op_definition
class AsyncSharedStoreOp(ReadWriteOp):
    """Begin to write a tile to shared memory; the bytes count at the mbarrier of the block that they go to:

    ttng.async_shared_store %v, %m, %b : tensor<64xi32, #a> -> !ttg.memdesc<64xi32, ...>, !ttg.memdesc<1xi64, ...>
    """

    name = "ttng.async_shared_store"
    src = irdl.operand_def()
    dst = irdl.operand_def()
    mbarrier = irdl.operand_def()


# -- tensor memory accelerator -------------------------------------------------------------------------------------


@irdl.irdl_op_definition
class AsyncTMACopyGlobalToLocalOp(ReadWriteOp):
    """Begin to copy a block of a tensor to shared memory; the bytes count at the mbarrier:

    ttng.async_tma_copy_global_to_local %desc[%i, %j] %m, %b, %pred : !tt.tensordesc<...>, ... -> !ttg.memdesc<...>
    """

    name = "ttng.async_tma_copy_global_to_local"
    desc = irdl.operand_def()
    coord = irdl.var_operand_def()
    barrier = irdl.operand_def()
    result = irdl.operand_def()
    pred = irdl.operand_def()
    multicast = irdl.opt_prop_def()
    cache = irdl.opt_prop_def()
    evict = irdl.opt_prop_def()
    isVolatile = irdl.opt_prop_def()


@irdl.irdl_op_definition
class AsyncTMACopyImagesToLocalOp(ReadWriteOp):
    """Begin to copy pixels and channels of images to shared memory; the bytes count at the mbarrier:

    ttng.async_tma_copy_im2col_to_local %desc[%n, %h, %w, %c] [%i, %j] %m, %b, %pred : !ttng.tensordesc_im2col<...>,
        !ttg.memdesc<...> -> !ttg.memdesc<...>

    The offsets, unsigned i16, are added to the coordinates of all pixels.
    """

    name = "ttng.async_tma_copy_im2col_to_local"
    desc = irdl.operand_def()
    coord = irdl.var_operand_def()
    offsets = irdl.var_operand_def()
    barrier = irdl.operand_def()
    result = irdl.operand_def()
    pred = irdl.operand_def()
    multicast = irdl.opt_prop_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class AsyncTMACopyLocalToGlobalOp(ReadWriteOp):
    """Begin to copy shared memory to a block of a tensor:

    ttng.async_tma_copy_local_to_global %desc[%i, %j] %m : !tt.tensordesc<...>, !ttg.memdesc<...>
    """

    name = "ttng.async_tma_copy_local_to_global"
    desc = irdl.operand_def()
    coord = irdl.var_operand_def()
    src = irdl.operand_def()


@irdl.irdl_op_definition
class AsyncTMAReduceOp(ReadWriteOp):
    """Begin to combine shared memory into a block of a tensor:

    ttng.async_tma_reduce add, %desc[%i, %j] %m : !tt.tensordesc<...>, !ttg.memdesc<...>
    """

    name = "ttng.async_tma_reduce"
    desc = irdl.operand_def()
    coord = irdl.var_operand_def()
    src = irdl.operand_def()
    kind = irdl.prop_def()


@irdl.irdl_op_definition
class AsyncTMAGatherOp(ReadWriteOp):
    """Begin to copy rows of a matrix to shared memory:

    ttng.async_tma_gather %desc[%rows, %y] %m, %b, %pred : !tt.tensordesc<...>, tensor<8xi32, #a>, i32, ...
    """

    name = "ttng.async_tma_gather"
    desc = irdl.operand_def()
    x_offsets = irdl.operand_def()
    y_offset = irdl.operand_def()
    barrier = irdl.operand_def()
    result = irdl.operand_def()
    pred = irdl.operand_def()


@irdl.irdl_op_definition
class AsyncTMAScatterOp(ReadWriteOp):
    """Begin to copy shared memory to rows of a matrix:

    ttng.async_tma_scatter %desc[%rows, %y] %m : !tt.tensordesc<...>, tensor<8xi32, #a>, i32, !ttg.memdesc<...>
    """

    name = "ttng.async_tma_scatter"
    desc = irdl.operand_def()
    x_offsets = irdl.operand_def()
    y_offset = irdl.operand_def()
    src = irdl.operand_def()


@irdl.irdl_op_definition
class AsyncTMAStoreWaitOp(ReadWriteOp):
    """Wait until at most `pendings` copies from shared memory still read it, or have not written all:

    ttng.async_tma_store_wait {pendings = 0 : i32}
    ttng.async_tma_store_wait {pendings = 0 : i32, read_only = false}
    """

    name = "ttng.async_tma_store_wait"
    pendings = irdl.prop_def()
    read_only = irdl.opt_prop_def()


# -- descriptors ---------------------------------------------------------------------------------------------------


@irdl.irdl_op_definition
class TensormapCreateOp(ReadWriteOp):
    """Write a tensor's descriptor to memory, the last dimension first:

    ttng.tensormap_create %p, %base, [%box...], [%sizes...], [%strides...], [%steps...] {...} : (...) -> ()
    """

    name = "ttng.tensormap_create"
    desc_ptr = irdl.operand_def()
    global_address = irdl.operand_def()
    box_dim = irdl.var_operand_def()
    global_dim = irdl.var_operand_def()
    global_stride = irdl.var_operand_def()
    element_stride = irdl.var_operand_def()
    elem_type = irdl.prop_def()
    interleave_layout = irdl.prop_def()
    swizzle_mode = irdl.prop_def()
    fill_mode = irdl.prop_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class TensormapFenceproxyAcquireOp(ReadWriteOp):
    """A descriptor that was written is seen by TMA:  ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>"""

    name = "ttng.tensormap_fenceproxy_acquire"
    desc_ptr = irdl.operand_def()


@irdl.irdl_op_definition
class ReinterpretTensorDescOp(PureOp):
    """The descriptor that lies at an address:

    %d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>
    """

    name = "ttng.reinterpret_tensor_descriptor"
    rawDesc = irdl.operand_def()
    result = irdl.result_def()
