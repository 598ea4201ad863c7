"""The Gluon kernels of `gpu.py`, loaded once for each side: `sides.gluon` and `sides.gl` are Weft's or Triton's."""

# mypy: ignore-errors
from sides import ampere, gl, gluon, hopper


@gluon.jit
def copy_1d(x, out, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    """out = x."""
    i = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = i < n
    gl.store(out + i, gl.load(x + i, mask=mask), mask=mask)


@gluon.jit
def copy_2d(x, out, m, n, xm, xn, om, on, BM: gl.constexpr, BN: gl.constexpr, load: gl.constexpr, store: gl.constexpr):
    """out = x, each with strides of its own."""
    i = gl.program_id(0) * BM
    j = gl.program_id(1) * BN
    a = i + gl.arange(0, BM, layout=gl.SliceLayout(1, load))
    b = j + gl.arange(0, BN, layout=gl.SliceLayout(0, load))
    source = x + a.to(gl.int64)[:, None] * xm + b.to(gl.int64)[None, :] * xn
    value = gl.load(source, mask=(a < m)[:, None] & (b < n)[None, :])
    value = gl.convert_layout(value, store)
    c = i + gl.arange(0, BM, layout=gl.SliceLayout(1, store))
    d = j + gl.arange(0, BN, layout=gl.SliceLayout(0, store))
    target = out + c.to(gl.int64)[:, None] * om + d.to(gl.int64)[None, :] * on
    gl.store(target, value, mask=(c < m)[:, None] & (d < n)[None, :])


@gluon.jit
def convert(out, n, BM: gl.constexpr, BN: gl.constexpr, first: gl.constexpr, second: gl.constexpr):
    """Each block's tile there and back n times."""
    out += gl.program_id(0) * BM * BN
    a = gl.arange(0, BM, layout=gl.SliceLayout(1, first))
    b = gl.arange(0, BN, layout=gl.SliceLayout(0, first))
    place = a[:, None] * BN + b[None, :]
    value = gl.load(out + place)
    for _ in range(n):
        other = gl.convert_layout(value, second)
        value = gl.convert_layout(other, first)
    gl.store(out + place, value)


@gluon.jit
def gather(x, index, out, n, BM: gl.constexpr, BN: gl.constexpr, layout: gl.constexpr):
    """Columns of each row, n times."""
    a = gl.arange(0, BM, layout=gl.SliceLayout(1, layout))
    b = gl.arange(0, BN, layout=gl.SliceLayout(0, layout))
    place = a[:, None] * BN + b[None, :]
    value = gl.load(x + place)
    which = gl.load(index + place)
    for _ in range(n):
        value = gl.gather(value, which, axis=1)
    gl.store(out + place, value)


@gluon.jit
def matmul_mma(
    a, b, c, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr,
    GROUP: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """c = a @ b by mma.sync, tiles copied ahead by cp.async; sizes are multiples of the blocks."""
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, num_warps // 2], [16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, mma, 2)
    right: gl.constexpr = gl.DotOperandLayout(1, mma, 2)
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [32 // (BK // 8), BK // 8], [num_warps, 1], [1, 0])
    wide: gl.constexpr = gl.BlockedLayout([1, 8], [32 // (BN // 8), BN // 8], [num_warps, 1], [1, 0])
    sa: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    pid = gl.program_id(0)
    columns = N // BN
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(M // BM - first, GROUP)
    m = first + pid % (GROUP * columns) % size
    n = pid % (GROUP * columns) // size
    ai = m * BM + gl.arange(0, BM, layout=gl.SliceLayout(1, rows))
    ak = gl.arange(0, BK, layout=gl.SliceLayout(0, rows))
    bk = gl.arange(0, BK, layout=gl.SliceLayout(1, wide))
    bj = n * BN + gl.arange(0, BN, layout=gl.SliceLayout(0, wide))
    pa = a + ai[:, None] * K + ak[None, :]
    pb = b + bk[:, None] * N + bj[None, :]
    ma = gl.allocate_shared_memory(a.dtype.element_ty, [STAGES, BM, BK], sa)
    mb = gl.allocate_shared_memory(b.dtype.element_ty, [STAGES, BK, BN], sa)
    for s in gl.static_range(STAGES - 1):
        ampere.async_copy.async_copy_global_to_shared(ma.index(s), pa)
        ampere.async_copy.async_copy_global_to_shared(mb.index(s), pb)
        ampere.async_copy.commit_group()
        pa += BK
        pb += BK * N
    acc = gl.zeros([BM, BN], gl.float32, mma)
    steps = K // BK
    for k in range(steps):
        ampere.async_copy.wait_group(STAGES - 2)
        gl.thread_barrier()
        x = ma.index(k % STAGES).load(left)
        y = mb.index(k % STAGES).load(right)
        ahead = k + STAGES - 1
        more = ahead < steps
        ampere.async_copy.async_copy_global_to_shared(ma.index(ahead % STAGES), pa, mask=more)
        ampere.async_copy.async_copy_global_to_shared(mb.index(ahead % STAGES), pb, mask=more)
        ampere.async_copy.commit_group()
        pa += BK
        pb += BK * N
        acc = ampere.mma_v2(x, y, acc)
    ampere.async_copy.wait_group(0)
    ci = m * BM + gl.arange(0, BM, layout=gl.SliceLayout(1, wide))
    cj = n * BN + gl.arange(0, BN, layout=gl.SliceLayout(0, wide))
    found = gl.convert_layout(acc.to(c.dtype.element_ty), wide)
    gl.store(c + ci[:, None] * N + cj[None, :], found)


@gluon.jit
def matmul_wgmma(
    a, b, c, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr,
    GROUP: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """c = a @ b by wgmma, tiles copied ahead by the copy engine; a, b and c are descriptors."""
    M, N = c.shape[0], c.shape[1]
    pid = gl.program_id(0)
    columns = N // BN
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(M // BM - first, GROUP)
    m = (first + pid % (GROUP * columns) % size) * BM
    n = (pid % (GROUP * columns) // size) * BN
    ma = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    mb = gl.allocate_shared_memory(b.dtype, [STAGES, BK, BN], b.layout)
    bars = gl.allocate_shared_memory(gl.int64, [STAGES, 1], hopper.mbarrier.MBarrierLayout())
    for s in gl.static_range(STAGES):
        hopper.mbarrier.init(bars.index(s), count=1)
    hopper.fence_async_shared()
    for s in gl.static_range(STAGES - 1):
        hopper.mbarrier.expect(bars.index(s), a.block_type.nbytes + b.block_type.nbytes)
        hopper.tma.async_copy_global_to_shared(a, [m, s * BK], bars.index(s), ma.index(s))
        hopper.tma.async_copy_global_to_shared(b, [s * BK, n], bars.index(s), mb.index(s))
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [num_warps, 1], [16, BN, 16])
    acc = hopper.warpgroup_mma_init(gl.zeros([BM, BN], gl.float32, mma))
    steps = K // BK
    for k in range(steps):
        stage = k % STAGES
        hopper.mbarrier.wait(bars.index(stage), k // STAGES & 1)
        acc = hopper.warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        ahead = k + STAGES - 1
        slot = ahead % STAGES
        more = ahead < steps
        hopper.mbarrier.expect(bars.index(slot), a.block_type.nbytes + b.block_type.nbytes, pred=more)
        hopper.tma.async_copy_global_to_shared(a, [m, ahead * BK], bars.index(slot), ma.index(slot), pred=more)
        hopper.tma.async_copy_global_to_shared(b, [ahead * BK, n], bars.index(slot), mb.index(slot), pred=more)
        acc = hopper.warpgroup_mma(ma.index(stage), mb.index(stage), acc, is_async=True)
    acc = hopper.warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    for s in gl.static_range(STAGES):
        hopper.mbarrier.invalidate(bars.index(s))
    out = gl.allocate_shared_memory(c.dtype, [BM, BN], c.layout)
    out.store(acc.to(c.dtype))
    hopper.fence_async_shared()
    hopper.tma.async_copy_shared_to_global(c, [m, n], out)
    hopper.tma.store_wait(0)
