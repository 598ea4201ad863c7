"""Partitions of a cluster: tiles converted across blocks, and barriers of the cluster, within one partition alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from backends.nvidia.assembling import needs_ptxas
from weft import gluon
from weft.base import CompilationError
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import cluster, mbarrier
from weft.sim import options

ROWS = gl.BlockedLayout([1, 4], [4, 8], [2, 2], [1, 0], cga_layout=[[0, 1], [0, 2]])
COLUMNS = gl.BlockedLayout([2, 1], [8, 4], [4, 1], [0, 1], cga_layout=[[0, 1], [1, 0]])


@gluon.jit
def there_and_back(x: Any, out: Any, rows: gl.constexpr, columns: gl.constexpr, times: Any) -> None:
    at = gl.arange(0, 32, gl.SliceLayout(1, rows))[:, None] * 64 + gl.arange(0, 64, gl.SliceLayout(0, rows))[None, :]
    value = gl.load(x + at)
    for _ in range(times):
        value = gl.convert_layout(gl.convert_layout(value, columns), rows) + 1
    gl.store(out + at, value)


@gluon.jit
def beside(x: Any, y: Any, rows: gl.constexpr, columns: gl.constexpr, first: Any, second: Any) -> None:
    """Two partitions go across the blocks, each as often as it is told; a third one never does."""
    gl.warp_specialize(
        [
            (there_and_back, (x, x, rows, columns, first)),
            (there_and_back, (y, y, rows, columns, second)),
            (nothing, ()),
        ],
        [4, 2],
    )


@gluon.jit
def nothing() -> None:
    pass


@gluon.jit
def written(x: Any, out: Any, layout: gl.constexpr) -> None:
    """One partition alone waits for the whole cluster; the kernel itself does too, before and after."""
    at = gl.arange(0, 128, layout)
    gl.barrier(cluster=True)
    gl.warp_specialize([(nothing, ()), (exchanged, (x, out, layout))], [4])
    gl.barrier(cluster=True)
    gl.store(out + 128 + at, at)


@gluon.jit
def exchanged(x: Any, out: Any, layout: gl.constexpr) -> None:
    memory: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0], [[1]])
    at = gl.arange(0, 128, layout)
    held = gl.allocate_shared_memory(gl.int32, [128], memory, gl.load(x + at))
    cluster.barrier()
    gl.store(out + at, held.gather(127 - at, axis=0))


@pytest.mark.parametrize(("first", "second"), [(3, 1), (0, 2), (1, 0)])
def test_partitions_go_across_blocks(first: int, second: int) -> None:
    x, y = (np.random.default_rng(i).normal(size=(32, 64)).astype(np.float32) for i in range(2))
    wanted = x + np.float32(first), y + np.float32(second)
    with weft.target("sim:cuda:90"), options(order="random"):
        beside[(2,)](x, y, ROWS, COLUMNS, first, second, num_warps=4, num_ctas=4)
    np.testing.assert_allclose(x, wanted[0], rtol=1e-6)
    np.testing.assert_allclose(y, wanted[1], rtol=1e-6)


def test_barriers_of_one_partition() -> None:
    layout = gl.BlockedLayout([1], [32], [4], [0], cga_layout=[[1]])
    x, out = np.arange(128, dtype=np.int32), np.zeros(256, np.int32)
    with weft.target("sim:cuda:90"):
        written[(1,)](x, out, layout, num_warps=4, num_ctas=2)
    assert (out[:128] == x[::-1]).all() and (out[128:] == x).all()


@needs_ptxas
def test_ptxas_takes_it() -> None:
    """One mbarrier for each partition that needs one, made before the partitions part."""
    x = np.zeros((32, 64), np.float32)
    kernel = beside.warmup(x, x, ROWS, COLUMNS, 1, 1, num_warps=4, num_ctas=4, grid=(2,), target="cuda:90")
    ptx = kernel.asm["ptx"]
    assert ptx.count("mbarrier.init.shared::cta.b64") == 2
    assert (
        ptx.index("mbarrier.init") < ptx.index("barrier.cluster.wait") < ptx.index("mbarrier.try_wait.acquire.cluster")
    )
    assert kernel.asm["cubin"]


def test_an_arrival_apart_from_its_wait_is_for_whole_blocks() -> None:
    @gluon.jit
    def apart(x: Any) -> None:
        cluster.arrive()
        gl.store(x, 1)
        cluster.wait()

    @gluon.jit
    def kernel(x: Any) -> None:
        gl.warp_specialize([(nothing, ()), (apart, (x,))], [4])

    with weft.target("sim:cuda:90"), pytest.raises(CompilationError, match="that is not waited for at once"):
        kernel[(1,)](np.zeros(1, np.int32), num_warps=4, num_ctas=2)


@gluon.jit
def told(x: Any, out: Any, mask: gl.constexpr, layout: gl.constexpr, memory: gl.constexpr) -> None:
    """Blocks write to the memory of all; the mbarrier of each is told by the block that `mask` names."""
    at = gl.arange(0, 128, layout)
    held = gl.allocate_shared_memory(gl.int32, [128], memory, gl.zeros([128], gl.int32, layout))
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=2)
    gl.barrier(cluster=True)
    held.scatter(gl.load(x + at), 127 - at, axis=0)
    gl.barrier(cluster=True)
    mbarrier.arrive(bar, count=1, from_cta=mask)
    mbarrier.expect(bar, 16, from_cta=mask)
    mbarrier.wait(bar, phase=0, pred=False)
    gl.barrier(cluster=True)
    gl.store(out + at, held.load(layout))


@gluon.jit
def all_told(out: Any, mask: gl.constexpr, layout: gl.constexpr) -> None:
    at = gl.arange(0, 128, layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=3)
    gl.barrier(cluster=True)
    for phase in range(3):
        mbarrier.arrive(bar, count=2, from_cta=mask)
        mbarrier.arrive(bar, from_cta=mask)
        mbarrier.wait(bar, phase & 1)
        gl.barrier(cluster=True)
    gl.store(out + at, at)
    mbarrier.invalidate(bar)


@pytest.mark.parametrize("mask", [0, 1, 2, 3, None])
def test_blocks_arrive_at_the_mbarriers_of_others(mask: int | None) -> None:
    layout, out = gl.BlockedLayout([1], [32], [2], [0], cga_layout=[[1], [0]]), np.zeros(128, np.int32)
    with weft.target("sim:cuda:90"), options(order="random"):
        all_told[(1,)](out, mask, layout, num_warps=2, num_ctas=4)
    assert (out == np.arange(128)).all()


def test_bytes_that_another_block_announces_are_waited_for() -> None:
    layout, x = gl.BlockedLayout([1], [32], [2], [0], cga_layout=[[1]]), np.arange(128, dtype=np.int32)
    memory, out = gl.SwizzledSharedLayout(1, 1, 1, [0], [[1]]), np.zeros(128, np.int32)
    with weft.target("sim:cuda:90"):
        told[(1,)](x, out, 0, layout, memory, num_warps=2, num_ctas=2)
    assert (out == x[::-1]).all()


@needs_ptxas
def test_ptxas_takes_arrivals_at_others() -> None:
    layout, out = gl.BlockedLayout([1], [32], [2], [0], cga_layout=[[1], [0]]), np.zeros(128, np.int32)
    kernel = all_told.warmup(out, 1, layout, num_warps=2, num_ctas=4, grid=(1,), target="cuda:90")
    ptx = kernel.asm["ptx"]
    assert ptx.count("mbarrier.arrive.release.cluster.shared::cluster.b64") == 4  # of count 2 and 1, to 2 blocks each
    assert "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64" in ptx and kernel.asm["cubin"]
    memory = gl.SwizzledSharedLayout(1, 1, 1, [0], [[1], [0]])
    assert told.warmup(out, out, 0, layout, memory, num_warps=2, num_ctas=4, grid=(1,), target="cuda:90").asm["cubin"]


def test_a_mask_beyond_the_cluster() -> None:
    layout = gl.BlockedLayout([1], [32], [2], [0], cga_layout=[[1]])
    with weft.target("sim:cuda:90"), pytest.raises(CompilationError, match="from_cta must be a number known when"):
        all_told[(1,)](np.zeros(128, np.int32), 2, layout, num_warps=2, num_ctas=2)


def test_some_of_several_buffers() -> None:
    """From any of them on, in a cluster too: they are not elements of a tile."""

    @gluon.jit
    def kernel(x: Any, out: Any, layout: gl.constexpr, memory: gl.constexpr) -> None:
        at = gl.arange(0, 32, layout)
        held = gl.allocate_shared_memory(gl.int32, [7, 32], memory)
        for i in gl.static_range(7):
            held.index(i).store(gl.load(x + 32 * i + at))
        gl.store(out + at, held.slice(3, 2).index(1).load(layout) + held.slice(1, 4).slice(1, 3).index(2).load(layout))

    x, out = np.arange(7 * 32, dtype=np.int32), np.zeros(32, np.int32)
    with weft.target("sim:cuda:90"):
        for bases, blocks in (([], 1), ([[1]], 2)):
            layout = gl.BlockedLayout([1], [32], [1], [0], cga_layout=bases)
            kernel[(1,)](x, out, layout, gl.SwizzledSharedLayout(1, 1, 1, [0], bases), num_warps=1, num_ctas=blocks)
            assert (out == 2 * x[128:160]).all()


@gluon.jit
def after(x: Any, out: Any, stores: gl.constexpr, layout: gl.constexpr) -> None:
    """A barrier of the cluster right before the partitions, and perhaps a store before it."""
    at = gl.arange(0, 128, layout)
    if stores:
        gl.store(out + at, gl.load(x + at))
    gl.barrier(cluster=True)
    gl.warp_specialize([(nothing, ()), (nothing, ())], [4])


@pytest.mark.parametrize("stores", [False, True])
def test_partitions_meet_at_the_barrier_of_the_cluster_before_them(stores: bool) -> None:
    """All warps do, of each kind once: by the hardware's barrier, which releases what was stored, if anything was."""
    layout = gl.BlockedLayout([1], [32], [4], [0], cga_layout=[[1]])
    x = np.zeros(128, np.int32)
    made = after.warmup(x, x, stores, layout, num_warps=4, num_ctas=2, grid=(1,), target="cuda:90")
    ptx = made.asm["ptx"]
    assert ptx.count("barrier.cluster.arrive.aligned") == (2 if stores else 0)
    assert ptx.count("barrier.cluster.arrive.relaxed") == (0 if stores else 2)
    assert "mbarrier.try_wait" not in ptx, "there is no other barrier of the cluster"
