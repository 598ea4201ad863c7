"""Products by wgmma in forms that kernels give them: in a class of the user's, by more warps than there are rows."""

from __future__ import annotations

from typing import Union

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
from weft import gluon
from weft.base import CompilationError
from weft.gluon.language.nvidia.hopper import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_accumulator,
    warpgroup_mma_wait,
)

TILE = gl.constexpr(64)


@gluon.aggregate
class Product:
    """A sum of products; its value is a tensor before the first one, and something to wait for afterwards."""

    acc: Union[warpgroup_mma_accumulator, gl.tensor]  # noqa: UP007 - as programs for Python 3.9 write it
    begun: gl.tensor

    @gluon.constexpr_function
    def __init__(self, acc, begun):
        self.acc = acc
        self.begun = begun

    @gluon.jit
    def add(self, a, b):
        return Product(warpgroup_mma(a, b, self.acc, use_acc=self.begun, is_async=True), gl.to_tensor(True))

    @gluon.jit
    def wait(self):
        return Product(warpgroup_mma_wait(0, (self.acc,)), self.begun)


@gluon.jit
def buffer(x, layout: gl.constexpr, memory: gl.constexpr):
    i = gl.arange(0, TILE, gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, TILE, gl.SliceLayout(0, layout))[None, :]
    return gl.allocate_shared_memory(gl.float16, [TILE, TILE], memory, gl.load(x + i * TILE + j))


@gluon.jit
def put(y, value):
    layout: gl.constexpr = value.type.layout
    i = gl.arange(0, TILE, gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, TILE, gl.SliceLayout(0, layout))[None, :]
    gl.store(y + i * TILE + j, value)


@gluon.jit
def summed(x, y, z, n, warps: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [gl.num_warps(), 1], [1, 0])
    memory: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    a, b = buffer(x, rows, memory), buffer(y, rows, memory)
    fence_async_shared()
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], warps, [16, 64, 16])
    product = Product(gl.zeros([TILE, TILE], gl.float32, layout), gl.to_tensor(False))
    for _ in range(n):
        product = product.add(a, b)
        product = product.wait()
        product = product.add(a, b)
    product = product.wait()
    put(z, product.acc)


@gluon.jit
def held_alone(x, y, z, n, warps: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [gl.num_warps(), 1], [1, 0])
    memory: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    a, b = buffer(x, rows, memory), buffer(y, rows, memory)
    fence_async_shared()
    acc = gl.zeros([TILE, TILE], gl.float32, gl.NVMMADistributedLayout([3, 0], warps, [16, 64, 16]))
    for _ in range(n):
        acc = warpgroup_mma_wait(0, (acc,))
        acc = warpgroup_mma(a, b, acc, is_async=True)
    put(z, warpgroup_mma_wait(0, (acc,)))


def operands() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    return a, b, np.zeros((64, 64), np.float32)


@pytest.mark.parametrize("n", [1, 3])
def test_a_tensor_becomes_something_to_wait_for_within_a_class(n: int) -> None:
    """Loops compare what the parts of a value hold, not whether they were waited for."""
    a, b, c = operands()
    with weft.target("sim:cuda:90"):
        summed[(1,)](a, b, c, n, [4, 1])
    np.testing.assert_array_equal(c, 2 * n * (a.astype(np.float32) @ b.astype(np.float32)))


def test_a_variable_itself_stays_what_it_is() -> None:
    a, b, c = operands()
    with weft.target("sim:cuda:90"), pytest.raises(CompilationError) as found:
        held_alone[(1,)](a, b, c, 2, [4, 1])
    assert "Loop-carried variable `acc` has initial type" in str(found.value)
    assert "warpgroup_mma_accumulator" in str(found.value)


@pytest.mark.parametrize("warps", [[8, 1], [16, 1], [4, 2], [8, 2]])
def test_more_warps_than_rows(warps: list[int]) -> None:
    """64 rows are for four warps; the others compute the same rows again."""
    a, b, c = operands()
    with weft.target("sim:cuda:90"):
        summed[(1,)](a, b, c, 1, warps, num_warps=warps[0] * warps[1])
    np.testing.assert_array_equal(c, 2 * (a.astype(np.float32) @ b.astype(np.float32)))


@gluon.jit
def two_as_one(x, y, first, LARGE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    i = gl.arange(0, 256, layout)
    memory = gl.allocate_shared_memory(gl.float32, [3, 128], plain)
    half = gl.arange(0, 128, layout)
    for k in gl.static_range(3):
        memory.index(k).store(gl.load(x + k * 128 + half))
    both = memory.index(first)._reinterpret(gl.float32, [LARGE], plain)
    if LARGE == 256:
        gl.store(y + i, both.load(layout))


@pytest.mark.parametrize("first", [0, 1])
def test_buffers_beside_each_other_as_one(first: int) -> None:
    x, y = np.arange(384, dtype=np.float32), np.zeros(256, np.float32)
    with weft.target("sim:cuda:80"):
        two_as_one[(1,)](x, y, first, 256)
    np.testing.assert_array_equal(y, x[128 * first :][:256])


def test_more_than_the_allocation_is_refused() -> None:
    x, y = np.arange(384, dtype=np.float32), np.zeros(256, np.float32)
    with weft.target("sim:cuda:80"), pytest.raises(CompilationError) as found:
        two_as_one[(1,)](x, y, 0, 512)
    assert "takes 2048 bytes, the memory fp32[128] has 512 and is part of an allocation of 1536" in str(found.value)
