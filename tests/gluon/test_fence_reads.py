"""Fences that kernels leave out, where the asynchronous proxy reads what threads wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.compiler import ASTSource, as_target
from weft.compiler.gpu import layout_ir
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import async_copy, fence_async_shared, mbarrier, tma, warpgroup_mma
from weft.ir import print_module
from weft.runtime.gluon import TensorDescriptor

ROWS = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
MEMORY = gl.NVMMASharedLayout(128, 16, rank=2)
ACC = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])


@gluon.jit
def offsets(n: gl.constexpr, rows: gl.constexpr) -> Any:
    i = gl.arange(0, n, gl.SliceLayout(1, rows))[:, None]
    return i * n + gl.arange(0, n, gl.SliceLayout(0, rows))[None, :]


@gluon.jit
def store(desc: Any, x: Any, rows: gl.constexpr, FENCED: gl.constexpr) -> None:
    memory = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    memory.store(gl.load(x + offsets(64, rows)))
    if FENCED:
        fence_async_shared()
    tma.async_store(desc, [0, 0], memory)
    tma.store_wait(0)


@gluon.jit
def in_a_loop(desc: Any, x: Any, rows: gl.constexpr, FENCED: gl.constexpr) -> None:
    """The first iteration reads what was there before it, the later ones what the iteration before has written."""
    memory = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    memory.store(gl.zeros([64, 64], desc.dtype, rows))
    fence_async_shared()
    for _ in range(2):
        if FENCED:
            fence_async_shared()
        tma.async_store(desc, [0, 0], memory)
        tma.store_wait(0)
        memory.store(gl.load(x + offsets(64, rows)))


@gluon.jit
def copied(desc: Any, x: Any, rows: gl.constexpr, FENCED: gl.constexpr) -> None:
    """What is copied asynchronously is there after the wait: a fence before that is none for it."""
    memory = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    async_copy.async_copy_global_to_shared(memory, x + offsets(64, rows))
    async_copy.commit_group()
    if not FENCED:
        fence_async_shared()
    async_copy.wait_group(0)
    if FENCED:
        fence_async_shared()
    gl.thread_barrier()
    tma.async_store(desc, [0, 0], memory)
    tma.store_wait(0)


@gluon.jit
def ahead(desc: Any, x: Any, rows: gl.constexpr, FENCED: gl.constexpr) -> None:
    """A copy to one buffer is begun behind the fence, and another buffer is stored: that needs no second fence."""
    memory = gl.allocate_shared_memory(desc.dtype, [2] + desc.block_shape, desc.layout)
    async_copy.async_copy_global_to_shared(memory.index(0), x + offsets(64, rows))
    async_copy.commit_group()
    for i in range(2):
        async_copy.wait_group(0)
        if FENCED:
            fence_async_shared()
        gl.thread_barrier()
        async_copy.async_copy_global_to_shared(memory.index(1 - i), x + offsets(64, rows))
        async_copy.commit_group()
        tma.async_store(desc, [0, 0], memory.index(i))
        tma.store_wait(0)
    async_copy.wait_group(0)


@gluon.jit
def product(a: Any, b: Any, out: Any, rows: gl.constexpr, memory: gl.constexpr, acc: gl.constexpr) -> None:
    left = gl.allocate_shared_memory(gl.float16, [64, 64], memory, gl.load(a + offsets(64, rows)))
    right = gl.allocate_shared_memory(gl.float16, [64, 64], memory, gl.load(b + offsets(64, rows)))
    sums = warpgroup_mma(left, right, gl.zeros([64, 64], gl.float32, acc))
    gl.store(out + offsets(64, rows), gl.convert_layout(sums, rows))


@gluon.jit
def writer(memory: Any, x: Any, ready: Any, rows: gl.constexpr) -> None:
    memory.store(gl.load(x + offsets(64, rows)))
    mbarrier.arrive(ready)


@gluon.jit
def reader(memory: Any, desc: Any, ready: Any) -> None:
    mbarrier.wait(ready, 0)
    tma.async_store(desc, [0, 0], memory)
    tma.store_wait(0)


@gluon.jit
def partitions(desc: Any, x: Any, rows: gl.constexpr, FENCED: gl.constexpr) -> None:
    memory = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    ready = mbarrier.allocate_mbarrier()
    mbarrier.init(ready, 1)
    gl.warp_specialize([(writer, (memory, x, ready, rows)), (reader, (memory, desc, ready))], [4], [24])


def test_products() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    out = np.zeros((64, 64), np.float32)
    with weft.target("sim:cuda:90"):
        product[(1,)](a, b, out, ROWS, MEMORY, ACC)
    assert (out == a.astype(np.float32) @ b.astype(np.float32)).all()


@pytest.mark.parametrize("kernel", [store, in_a_loop, partitions, copied, ahead])
@pytest.mark.parametrize("copies", ["earliest", "latest"])
def test_copies(kernel: Any, copies: str) -> None:
    x = np.arange(4096, dtype=np.float16).reshape(64, 64)
    out = np.ones_like(x)
    desc = TensorDescriptor.from_tensor(out, [64, 64], MEMORY)
    with weft.target("sim:cuda:90"), weft.sim.options(copies=copies):
        kernel[(1,)](desc, x, ROWS, False)
    assert (out == x).all()


@pytest.mark.parametrize(("kernel", "fences"), [(store, 1), (in_a_loop, 2), (copied, 1), (ahead, 1)])
@pytest.mark.parametrize("fenced", [False, True])
def test_no_more_than_one_is_needed(kernel: Any, fences: int, fenced: bool) -> None:
    signature = {"desc": f"tensordesc<fp16[64,64],{MEMORY!r}>", "x": "*fp16"}
    source = ASTSource(kernel, signature, {"rows": ROWS, "FENCED": fenced})
    made = print_module(layout_ir(source, as_target("cuda:90"), {}))
    assert made.count("fence_async_shared") == fences + (kernel is copied and not fenced)  # there its own is none
