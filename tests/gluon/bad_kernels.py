"""Gluon kernels that are wrong; what is said of each stands in errors.txt."""

# ruff: noqa: F841, RUF059

from weft import gluon
from weft.gluon import language as gl
from weft.gluon.language.nvidia import blackwell
from weft.gluon.language.nvidia.ampere import async_copy, mbarrier, mma_v2
from weft.gluon.language.nvidia.hopper import tma, warpgroup_mma


@gluon.jit
def meets_another_layout(x):
    a = gl.full([32, 64], 1, gl.int32, gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))
    b = gl.full([32, 64], 2, gl.int32, gl.BlockedLayout([4, 1], [4, 8], [1, 4], [0, 1]))
    c = a + b


@gluon.jit
def same_place_other_name(x):
    i = gl.arange(0, 128, gl.SliceLayout(0, gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])))
    j = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    k = i * j


@gluon.jit
def too_many_warps(x):
    i = gl.arange(0, 128, gl.BlockedLayout([1], [32], [8], [0]))


@gluon.jit
def too_many_threads(x):
    i = gl.arange(0, 128, gl.BlockedLayout([1], [64], [4], [0]))


@gluon.jit
def rank_of_layout(x):
    i = gl.arange(0, 128, gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0]))


@gluon.jit
def no_slice(x):
    i = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    j = i[None, :]


@gluon.jit
def slice_of_other_axis(x):
    i = gl.arange(0, 128, gl.SliceLayout(0, gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])))
    j = i[:, None]


@gluon.jit
def conversion_that_moves(x):
    a = gl.full([32, 64], 1, gl.int32, gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))
    b = gl.convert_layout(a, gl.BlockedLayout([4, 1], [4, 8], [1, 4], [0, 1]), assert_trivial=True)


@gluon.jit
def registers_for_memory(x):
    m = gl.allocate_shared_memory(gl.float32, [32, 64], gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))


@gluon.jit
def shape_of_stored(x):
    m = gl.allocate_shared_memory(gl.float32, [32, 64], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    m.store(gl.zeros([64, 32], gl.float32, gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])))


@gluon.jit
def tile_smaller_than_swizzle(x):
    m = gl.allocate_shared_memory(gl.float16, [16, 16], gl.NVMMASharedLayout(128, 16))


@gluon.jit
def k_too_small(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    a = gl.full([64, 8], 1, gl.float16, gl.DotOperandLayout(0, mma, 2))
    b = gl.full([8, 64], 1, gl.float16, gl.DotOperandLayout(1, mma, 2))
    c = mma_v2(a, b, gl.zeros([64, 64], gl.float32, mma))


@gluon.jit
def precision_without_instruction(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    a = gl.full([64, 8], 1, gl.float32, gl.DotOperandLayout(0, mma, 1))
    b = gl.full([8, 64], 1, gl.float32, gl.DotOperandLayout(1, mma, 1))
    c = mma_v2(a, b, gl.zeros([64, 64], gl.float32, mma), input_precision="tf32x3")


@gluon.jit
def precision_without_wgmma(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 8])
    sh: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float32)
    a = gl.allocate_shared_memory(gl.float32, [64, 64], sh)
    c = warpgroup_mma(a, a.permute((1, 0)), gl.zeros([64, 64], gl.float32, mma), precision="ieee")


@gluon.jit
def n_not_divided(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 128, 16])
    sh: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    a = gl.allocate_shared_memory(gl.float16, [64, 64], sh)
    b = gl.allocate_shared_memory(gl.float16, [64, 64], sh)
    c = warpgroup_mma(a, b, gl.zeros([64, 64], gl.float32, mma))


@gluon.jit
def tensor_memory(x):
    m = blackwell.allocate_tensor_memory(gl.float32, [128, 128], blackwell.TensorMemoryLayout([128, 128], 1))


@gluon.jit
def nothing_says_layout(x):
    i = gl.arange(0, 128)
    gl.store(x, gl.sum(i, 0))


@gluon.jit
def two_layouts(x):
    i = gl.arange(0, 128)
    a = gl.set_auto_layout(i, gl.BlockedLayout([1], [32], [4], [0]))
    b = gl.set_auto_layout(i, gl.BlockedLayout([2], [32], [4], [0]))
    gl.store(x + a, gl.load(x + a))


@gluon.jit
def loop_changes_layout(x, n):
    acc = gl.zeros([128], gl.float32, gl.BlockedLayout([1], [32], [4], [0]))
    for _ in range(n):
        acc = gl.convert_layout(acc, gl.BlockedLayout([2], [32], [4], [0]))


@gluon.jit
def no_mbarrier(x):
    m = gl.allocate_shared_memory(gl.float32, [64], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    mbarrier.init(m, 1)


@gluon.jit
def shape_of_copied(x):
    i = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    m = gl.allocate_shared_memory(gl.float32, [64], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_copy_global_to_shared(m, x + i)


@gluon.jit
def no_operand(x):
    a = gl.full([64, 8], 1, gl.float16, gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    c = mma_v2(a, a, gl.zeros([64, 64], gl.float32, mma))


@gluon.jit
def no_power_of_two(x):
    a = gl.full([8, 4], 1, gl.float16, gl.BlockedLayout([3, 4], [8, 4], [4, 1], [1, 0]))


@gluon.jit
def halves_in_lanes(x):
    a, b = gl.split(gl.full([64, 2], 1, gl.float16, gl.BlockedLayout([1, 1], [16, 2], [4, 1], [1, 0])))


@gluon.jit
def reordered(x):
    a = gl.full([64, 2], 1, gl.float16, gl.BlockedLayout([1, 1], [16, 2], [4, 1], [1, 0])).reshape(
        128, can_reorder=True
    )


@gluon.jit
def other_shapes(x):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    c = gl.zeros([32, 64], gl.int32, layout) + gl.zeros([32, 32], gl.int32, layout)


@gluon.jit
def other_ranks(x):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    c = gl.zeros([32, 64], gl.int32, layout) + gl.arange(0, 64, gl.SliceLayout(0, layout))


@gluon.jit
def histogram_without_layout(x):
    c = gl.histogram(gl.arange(0, 64, gl.BlockedLayout([1], [32], [4], [0])), 16)


@gluon.jit
def outside_of_buffers(x):
    m = gl.allocate_shared_memory(gl.float32, [2, 64], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    m.index(2)


@gluon.jit
def outside_of_memory(x):
    m = gl.allocate_shared_memory(gl.float32, [64, 64], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    m.slice(48, 32, 1)


@gluon.jit
def _one(n):
    gl.warp_specialize([(_two, (n,)), (_two, (n,))], [1], [24])


@gluon.jit
def _two(n):
    pass


@gluon.jit
def nested_partitions(x, n):
    gl.warp_specialize([(_one, (n,)), (_two, (n,))], [1], [24])


@gluon.jit
def descriptor_of_other_layout(x):
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float32)
    desc = tma.make_tensor_descriptor(x, [64, 64], [64, 1], [64, 64], shared)
    memory = gl.allocate_shared_memory(gl.float32, [64, 64], gl.NVMMASharedLayout(32, 32))
    tma.async_copy_shared_to_global(desc, [0, 0], memory)


@gluon.jit
def operand_of_other_product(x):
    one: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    two: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [1, 4], [16, 8])
    a = gl.full([64, 32], 1, gl.float16, gl.DotOperandLayout(0, one, 2))
    b = gl.full([32, 64], 1, gl.float16, gl.DotOperandLayout(1, two, 2))
    c = mma_v2(a, b, gl.zeros([64, 64], gl.float32, one))


@gluon.jit
def amd_instruction(x):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    c = gl.amd.cdna3.mfma(x, x, gl.zeros([32, 64], gl.float32, layout))


@gluon.jit
def branch_changes_layout(x, n):
    a = gl.zeros([128], gl.float32, gl.BlockedLayout([1], [32], [4], [0]))
    if n > 3:
        a = gl.zeros([128], gl.float32, gl.BlockedLayout([2], [32], [4], [0]))
    gl.store(x, gl.sum(a, 0))


@gluon.jit
def branches_differ(x, n):
    if n > 3:
        a = gl.zeros([128], gl.float32, gl.BlockedLayout([1], [32], [4], [0]))
    else:
        a = gl.zeros([128], gl.float32, gl.BlockedLayout([2], [32], [4], [0]))
    gl.store(x, gl.sum(a, 0))


@gluon.jit
def memory_in_arithmetic(x):
    memory = gl.allocate_shared_memory(gl.float32, [64], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    gl.zeros([64], gl.float32, gl.BlockedLayout([1], [32], [4], [0])) + memory


@gluon.jit
def pointers_and_memory(x):
    memory = gl.allocate_shared_memory(gl.float32, [64], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    gl.store(memory, gl.zeros([64], gl.float32, gl.BlockedLayout([1], [32], [4], [0])))


@gluon.jit
def tensor_for_a_worker(x):
    i = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    gl.warp_specialize([(_two, (i,)), (_two, (i,))], [1], [24])


@gluon.jit
def shape_that_is_a_number(x):
    gl.zeros(64, gl.float32, gl.BlockedLayout([1], [32], [4], [0]))


@gluon.jit
def pendings_not_known(x, n):
    tma.store_wait(n)


@gluon.jit
def _idle(x):
    pass


@gluon.jit
def registers_on_ampere(x):
    gl.warp_specialize([(_idle, (x,)), (_idle, (x,))], [1], [24])


@gluon.jit
def registers_beyond_the_file(x):
    gl.warp_specialize([(_idle, (x,)), (_idle, (x,)), (_idle, (x,))], [4, 4], [248, 248])


@gluon.jit
def warps_beyond_a_block(x):
    gl.warp_specialize([(_idle, (x,)), (_idle, (x,))], [32], [24])


@gluon.jit
def other_widths_along_k(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    a = gl.full([64, 32], 1, gl.float16, gl.DotOperandLayout(0, mma, 4))
    b = gl.full([32, 16], 1, gl.float16, gl.DotOperandLayout(1, mma, 2))
    c = mma_v2(a, b, gl.zeros([64, 16], gl.float32, mma))
    gl.store(x + gl.arange(0, 64, gl.SliceLayout(1, mma)), gl.sum(c, 1))


@gluon.jit
def rows_no_instruction_divides(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    a = gl.full([8, 16], 1, gl.float16, gl.DotOperandLayout(0, mma, 2))
    b = gl.full([16, 8], 1, gl.float16, gl.DotOperandLayout(1, mma, 2))
    c = mma_v2(a, b, gl.zeros([8, 8], gl.float32, mma))


@gluon.jit
def order_that_wgmma_cannot_read(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    a = gl.allocate_shared_memory(gl.float16, [64, 64], gl.SwizzledSharedLayout(2, 1, 4, [1, 0]))
    c = warpgroup_mma(a, a, gl.zeros([64, 64], gl.float32, mma))
    gl.store(x + gl.arange(0, 64, gl.SliceLayout(1, mma)), gl.sum(c, 1))


@gluon.jit
def bases_beyond_the_tile(x):
    bases: gl.constexpr = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0]]
    gl.allocate_shared_memory(gl.float32, [8, 8], gl.SharedLinearLayout(bases))


@gluon.jit
def padding_for_another_tile(x):
    layout: gl.constexpr = gl.PaddedSharedLayout.with_identity_for([[16, 4]], [16, 16], [1, 0])
    gl.allocate_shared_memory(gl.float32, [8, 8], layout)


@gluon.jit
def copies_of_single_elements(x):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    m = gl.allocate_shared_memory(gl.float16, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_copy_global_to_shared(m, x.to(gl.pointer_type(gl.float16)) + gl.arange(0, 128, layout))
    async_copy.wait_group(0)


@gluon.jit
def copies_of_unknown_addresses(x, n):
    layout: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    m = gl.allocate_shared_memory(gl.float16, [1024], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_copy_global_to_shared(m, x.to(gl.pointer_type(gl.float16)) + n + gl.arange(0, 1024, layout))
    async_copy.wait_group(0)


@gluon.jit
def copies_across_the_order(x):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    m = gl.allocate_shared_memory(gl.float16, [32, 32], gl.SwizzledSharedLayout(1, 1, 1, [0, 1]))
    i = gl.arange(0, 32, gl.SliceLayout(1, layout))[:, None] * 32
    p = x.to(gl.pointer_type(gl.float16)) + i + gl.arange(0, 32, gl.SliceLayout(0, layout))[None, :]
    async_copy.async_copy_global_to_shared(m, p)
    async_copy.wait_group(0)


@gluon.jit
def more_memory_than_there_is(x):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    plain: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    stages = gl.allocate_shared_memory(gl.float32, [8, 64, 64], plain)
    result = gl.allocate_shared_memory(gl.float32, [8, 64, 64], plain)
    stages.index(0).store(gl.zeros([64, 64], gl.float32, layout))
    result.index(1).store(stages.index(0).load(layout))
    gl.store(x, gl.sum(gl.sum(result.index(1).load(layout) + stages.index(0).load(layout), 1), 0))


@gluon.jit
def product_under_way(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    a = gl.allocate_shared_memory(gl.float16, [64, 64], gl.NVMMASharedLayout(128, 16))
    c = warpgroup_mma(a, a, gl.zeros([64, 64], gl.float32, mma), is_async=True)
    gl.store(x + gl.arange(0, 64, gl.SliceLayout(1, mma)), gl.sum(c, 1))


@gluon.jit
def loop_of_products_under_way(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    a = gl.allocate_shared_memory(gl.float16, [64, 64], gl.NVMMASharedLayout(128, 16))
    c = gl.zeros([64, 64], gl.float32, mma)
    for i in range(4):
        c = warpgroup_mma(a, a, c, is_async=True)


@gluon.jit
def part_that_begins_anywhere(x):
    memory = gl.allocate_shared_memory(gl.float32, [64, 64], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    part = memory.slice(3, 16, 1)


@gluon.jit
def slice_of_fifty(x):
    memory = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.slice(0, 50)


@gluon.jit
def copied_to_registers(x):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    places = x + gl.arange(0, 128, layout)
    async_copy.async_copy_global_to_shared(gl.load(places), places)


@gluon.jit
def partition_alone(x):
    gl.warp_specialize(slice_of_fifty, [1], [24])


@gluon.jit
def product_of_vectors(x):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    a = gl.allocate_shared_memory(gl.float16, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    b = gl.allocate_shared_memory(gl.float16, [64, 64], gl.NVMMASharedLayout(128, 16))
    warpgroup_mma(a, b, gl.zeros([64, 64], gl.float32, mma))


@gluon.jit
def layout_for_a_value(x):
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    gl.allocate_shared_memory(gl.float32, [128], shared, shared)


@gluon.jit
def layout_for_a_type(x):
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    gl.allocate_shared_memory(gl.float32, [128], shared)._reinterpret(shared, [128], shared)


@gluon.jit
def too_many_lane_bases(x):
    i = gl.arange(0, 128, gl.DistributedLinearLayout([], [[1], [2], [4], [8], [16], [32]], [[64]], [], [128]))
