"""Gluon kernels whose blocks work together in clusters, each with what it should give; for the simulator and the GPU.

A check takes `run(kernel, grid, *arguments, **options)`, which launches and leaves the results in the NumPy arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import gluon
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import cluster, fence_async_shared, mbarrier, tma, warpgroup_mma
from weft.runtime.gluon import TensorDescriptor

Run = Callable[..., None]
CHECKS: dict[str, Callable[[Run], None]] = {}
SPLITS: dict[str, list[list[int]]] = {
    "rows": [[1, 0]],
    "columns": [[0, 1]],
    "copies": [[0, 0]],
    "both": [[1, 0], [0, 1]],
    "columns of copies": [[0, 1], [0, 0]],
    "four rows": [[1, 0], [2, 0]],
    "eight": [[0, 1], [1, 0], [2, 0]],
}
"""How the blocks of a cluster divide a matrix: the `cga_layout` of layouts."""


def wide(split: str) -> gl.BlockedLayout:
    """Lanes along rows, four columns each."""
    return gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0], SPLITS[split])


def tall(split: str) -> gl.BlockedLayout:
    """Lanes along columns, two rows each."""
    return gl.BlockedLayout([2, 1], [4, 8], [2, 2], [0, 1], SPLITS[split])


def line(split: str) -> gl.BlockedLayout:
    """A layout of vectors for clusters of the same size, which divide them as far as they divide rows or columns."""
    found, at = [], 1
    for basis in SPLITS[split]:
        found.append([at if any(basis) else 0])
        at <<= any(basis)
    return gl.BlockedLayout([2], [32], [4], [0], found)


def options(split: str) -> dict[str, int]:
    """Of a launch."""
    return {"num_ctas": 1 << len(SPLITS[split]), "num_warps": 4}


def numbers(seed: int, *shape: int, dtype: Any = np.float32) -> Any:
    """Whole numbers, so that sums are exact in any order."""
    return np.random.default_rng(seed).integers(-99, 99, shape).astype(dtype)


def pairs() -> list[tuple[str, str]]:
    """Divisions of clusters of one size."""
    found = itertools.product(SPLITS, SPLITS)
    return [(a, b) for a, b in found if len(SPLITS[a]) == len(SPLITS[b])]


def check(name: str, *parameters: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A check for each group of parameters."""

    def keep(function: Callable[..., None]) -> Callable[..., None]:
        for values in parameters or [()]:
            values = values if isinstance(values, tuple) else (values,)
            CHECKS["-".join([name, *map(str, values)])] = lambda run, values=values: function(run, *values)
        return function

    return keep


# -- moving ------------------------------------------------------------------------------------------------------------


@gluon.jit
def moved(x, y, M: gl.constexpr, N: gl.constexpr, A: gl.constexpr, B: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, A))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, A))[None, :]
    x += gl.program_id(0) * M * N
    y += gl.program_id(0) * M * N
    tile = gl.convert_layout(gl.load(x + i * N + j), B)
    i = gl.arange(0, M, gl.SliceLayout(1, B))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, B))[None, :]
    gl.store(y + i * N + j, tile)


@check("convert", *((a, b, t) for a, b in pairs() for t in ("float32", "int8")))
def convert(run: Run, a: str, b: str, dtype: str) -> None:
    x = numbers(0, 3, 64, 64, dtype=dtype)
    y = np.zeros_like(x)
    run(moved, (3,), x, y, 64, 64, wide(a), tall(b), **options(a))
    np.testing.assert_array_equal(x, y)


@gluon.jit
def turned(x, y, n, M: gl.constexpr, N: gl.constexpr, A: gl.constexpr, B: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, A))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, A))[None, :]
    tile = gl.load(x + i * N + j)
    for _ in range(n):
        tile = gl.convert_layout(gl.convert_layout(tile, B) + 1, A)
    gl.store(y + i * N + j, tile)


@check("loop", ("rows", "columns"), ("both", "four rows"), ("copies", "rows"))
def loop(run: Run, a: str, b: str) -> None:
    """The same memory again and again: no block may be an iteration ahead of those that read from it."""
    x = numbers(0, 64, 64)
    y = np.zeros_like(x)
    run(turned, (1,), x, y, 7, 64, 64, wide(a), tall(b), **options(a))
    np.testing.assert_array_equal(x + 7, y)


@gluon.jit
def stored(x, y, M: gl.constexpr, N: gl.constexpr, A: gl.constexpr, B: gl.constexpr, S: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, A))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, A))[None, :]
    memory = gl.allocate_shared_memory(gl.float32, [2, M, N], S)
    memory.index(1).store(gl.load(x + i * N + j))
    i = gl.arange(0, M, gl.SliceLayout(1, B))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, B))[None, :]
    gl.store(y + i * N + j, memory.index(1).load(B))


@check("memory", *((a, b, s) for a, b in pairs() for s in SPLITS if len(SPLITS[s]) == len(SPLITS[a]) < 3))
def memory(run: Run, a: str, b: str, shared: str) -> None:
    """Through shared memory that the blocks divide in any way."""
    x = numbers(0, 64, 64)
    y = np.zeros_like(x)
    layout = gl.SwizzledSharedLayout(4, 1, 8, [1, 0], SPLITS[shared])
    run(stored, (1,), x, y, 64, 64, wide(a), tall(b), layout, **options(a))
    np.testing.assert_array_equal(x, y)


# -- rows and columns --------------------------------------------------------------------------------------------------


@gluon.jit
def totals(x, y, M: gl.constexpr, N: gl.constexpr, A: gl.constexpr, AXIS: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, A))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, A))[None, :]
    left: gl.constexpr = N if AXIS == 0 else M
    total = gl.sum(gl.load(x + gl.program_id(0) * M * N + i * N + j), AXIS)
    gl.store(y + gl.program_id(0) * left + gl.arange(0, left, gl.SliceLayout(AXIS, A)), total)


@check("sum", *((s, axis) for s in SPLITS for axis in (0, 1)))
def sums(run: Run, split: str, axis: int) -> None:
    for layout in (wide(split), tall(split)):
        for shape in ((64, 64), (8, 128), (16, 16)):
            x = numbers(0, 2, *shape)
            y = np.zeros((2, shape[1 - axis]), np.float32)
            run(totals, (2,), x, y, *shape, layout, axis, **options(split))
            np.testing.assert_array_equal(x.sum(1 + axis), y)


@gluon.jit
def largest(x, y, z, M: gl.constexpr, N: gl.constexpr, A: gl.constexpr, AXIS: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, A))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, A))[None, :]
    value, place = gl.max(gl.load(x + i * N + j), AXIS, return_indices=True)
    at = gl.arange(0, N if AXIS == 0 else M, gl.SliceLayout(AXIS, A))
    gl.store(y + at, value)
    gl.store(z + at, place)


@check("argmax", *((s, axis) for s in SPLITS for axis in (0, 1)))
def argmax(run: Run, split: str, axis: int) -> None:
    """Two results of one reduction."""
    x = numbers(0, 32, 64)
    y, z = np.zeros(x.shape[1 - axis], np.float32), np.zeros(x.shape[1 - axis], np.int32)
    run(largest, (1,), x, y, z, 32, 64, wide(split), axis, **options(split))
    np.testing.assert_array_equal(x.max(axis), y)
    np.testing.assert_array_equal(x.argmax(axis), z)


@gluon.jit
def plus(a, b):
    return a + b


@gluon.jit
def prefixes(x, y, M: gl.constexpr, N: gl.constexpr, A: gl.constexpr, AXIS: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, A))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, A))[None, :]
    gl.store(y + i * N + j, gl.associative_scan(gl.load(x + i * N + j), AXIS, plus))


@check("scan", *((s, axis) for s in SPLITS for axis in (0, 1)))
def scan(run: Run, split: str, axis: int) -> None:
    x = numbers(0, 64, 32)
    y = np.zeros_like(x)
    run(prefixes, (1,), x, y, 64, 32, wide(split), axis, **options(split))
    np.testing.assert_array_equal(np.cumsum(x, axis), y)


@gluon.jit
def gathered(x, k, y, M: gl.constexpr, N: gl.constexpr, A: gl.constexpr, B: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, A))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, A))[None, :]
    value = gl.load(x + i * N + j)
    i = gl.arange(0, M, gl.SliceLayout(1, B))[:, None]
    j = gl.arange(0, N, gl.SliceLayout(0, B))[None, :]
    gl.store(y + i * N + j, gl.gather(value, gl.load(k + i * N + j), 0))


@check("gather", *pairs())
def gather(run: Run, a: str, b: str) -> None:
    x = numbers(0, 64, 32)
    k = np.random.default_rng(1).integers(0, 64, x.shape).astype(np.int32)
    y = np.zeros_like(x)
    run(gathered, (1,), x, k, y, 64, 32, wide(a), tall(b), **options(a))
    np.testing.assert_array_equal(np.take_along_axis(x, k, 0), y)


@gluon.jit
def counted(x, y, N: gl.constexpr, BINS: gl.constexpr, A: gl.constexpr):
    at = gl.arange(0, BINS, A)
    gl.store(y + at, gl.histogram(gl.load(x + gl.arange(0, N, A)), BINS, layout=A))


@check("histogram", *SPLITS)
def histogram(run: Run, split: str) -> None:
    x = np.random.default_rng(0).integers(0, 80, 1024).astype(np.int32)
    y = np.zeros(64, np.int32)
    run(counted, (1,), x, y, 1024, 64, line(split), **options(split))
    np.testing.assert_array_equal(np.bincount(x, minlength=80)[:64], y)


# -- once for all blocks -----------------------------------------------------------------------------------------------


@gluon.jit
def tickets(ticket, total, y, z, N: gl.constexpr, A: gl.constexpr):
    """A scalar atomic is one for the cluster, and all of its blocks have what it gives; an element is added once."""
    mine = gl.atomic_add(ticket, 1)
    at = gl.arange(0, N, A)
    gl.store(y + mine * N + at, at + mine)
    before = gl.atomic_add(total + at, at + 1)
    gl.store(z + mine * N + at, before)
    gl.store(ticket + 1, 7)


@check("atomics", *SPLITS)
def atomics(run: Run, split: str) -> None:
    ticket, total = np.zeros(2, np.int32), np.zeros(512, np.int32)
    y, z = np.zeros((3, 512), np.int32), np.zeros((3, 512), np.int32)
    run(tickets, (3,), ticket, total, y, z, 512, line(split), **options(split))
    at = np.arange(512)
    assert ticket.tolist() == [3, 7]
    np.testing.assert_array_equal(at + np.arange(3)[:, None], y)
    np.testing.assert_array_equal(3 * (at + 1), total)
    np.testing.assert_array_equal(np.sort(z, axis=0), (at + 1) * np.arange(3)[:, None])


@gluon.jit
def where(y):
    """Which program, of how many; the same in all blocks."""
    one: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0], [[1]])
    at = gl.arange(0, 256, one)
    number = (gl.program_id(2) * gl.num_programs(1) + gl.program_id(1)) * gl.num_programs(0) + gl.program_id(0)
    gl.store(y + number * 256 + at, number * 256 + at)


@check("programs")
def programs(run: Run) -> None:
    y = np.zeros((2 * 3 * 4, 256), np.int32)
    run(where, (2, 3, 4), y, num_ctas=2)
    np.testing.assert_array_equal(y.ravel(), np.arange(y.size))


# -- bulk copies -------------------------------------------------------------------------------------------------------


@gluon.jit
def copied(source, to, BYTES: gl.constexpr, B: gl.constexpr, MULTICAST: gl.constexpr):
    """A tile to shared memory, doubled, and back, by the copy engine; each block what it has of it."""
    memory = gl.allocate_shared_memory(source.dtype, source.block_shape, source.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    for k in range(4):
        row = (gl.program_id(0) * 4 + k) * source.block_shape[0]
        mbarrier.expect(bar, BYTES)
        tma.async_copy_global_to_shared(source, [row, 0], bar, memory, multicast=MULTICAST)
        mbarrier.wait(bar, k & 1)
        value = memory.load(B)
        memory.store(value * 2)
        fence_async_shared()
        tma.async_copy_shared_to_global(to, [row, 0], memory)
        tma.store_wait(pendings=0)
    mbarrier.invalidate(bar)


@check("bulk", *((s, m) for s in ("rows", "columns", "copies", "both", "columns of copies") for m in (False, True)))
def bulk(run: Run, split: str, multicast: bool) -> None:
    x = numbers(0, 8 * 64, 64, dtype=np.float16)
    y = np.zeros_like(x)
    layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16, cga_layout=SPLITS[split])
    parts = 1 << sum(any(b) for b in SPLITS[split])
    source, target = (TensorDescriptor.from_tensor(a, [64, 64], layout) for a in (x, y))
    run(copied, (2,), source, target, 64 * 64 * 2 // parts, wide(split), multicast, **options(split))
    np.testing.assert_array_equal(y, 2 * x)


@gluon.jit
def multiplied(a, b, c, n, BYTES: gl.constexpr, A: gl.constexpr, MULTICAST: gl.constexpr):
    """A product by wgmma: blocks that share rows of `a`, or columns of `b`, get them by one copy."""
    first = gl.allocate_shared_memory(a.dtype, [2, a.block_shape[0], a.block_shape[1]], a.layout)
    second = gl.allocate_shared_memory(b.dtype, [2, b.block_shape[0], b.block_shape[1]], b.layout)
    bars = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(bars.index(i), count=1)
    row = gl.program_id(0) * a.block_shape[0]
    column = gl.program_id(1) * b.block_shape[1]
    total = gl.zeros([a.block_shape[0], b.block_shape[1]], gl.float32, A)
    for k in range(n):
        bar = bars.index(k % 2)
        mbarrier.expect(bar, BYTES)
        at = k * a.block_shape[1]
        tma.async_copy_global_to_shared(a, [row, at], bar, first.index(k % 2), multicast=MULTICAST)
        tma.async_copy_global_to_shared(b, [at, column], bar, second.index(k % 2), multicast=MULTICAST)
        mbarrier.wait(bar, k // 2 & 1)
        total = warpgroup_mma(first.index(k % 2), second.index(k % 2), total)
        cluster.arrive()
        cluster.wait()
    i = row + gl.arange(0, a.block_shape[0], gl.SliceLayout(1, A))[:, None]
    j = column + gl.arange(0, b.block_shape[1], gl.SliceLayout(0, A))[None, :]
    gl.store(c + i * (gl.num_programs(1) * b.block_shape[1]) + j, total)
    for i in gl.static_range(2):
        mbarrier.invalidate(bars.index(i))


@check("wgmma", *((s, m) for s in ("rows", "columns", "both", "four rows") for m in (False, True)))
def wgmma(run: Run, split: str, multicast: bool) -> None:
    """Rows and columns of the result are divided; operands along what they share with it."""
    division = SPLITS[split]
    rows, columns = (1 << sum(bool(basis[d]) for basis in division) for d in (0, 1))
    m, n, k = 64 * rows, 64 * columns, 64
    a, b = numbers(0, 2 * m, 5 * k, dtype=np.float16) / 8, numbers(1, 5 * k, 2 * n, dtype=np.float16) / 8
    a, b = a.astype(np.float16), b.astype(np.float16)
    c = np.zeros((2 * m, 2 * n), np.float32)
    of_a, of_b = [[x, 0] for x, _ in division], [[0, x] for _, x in division]
    left = gl.NVMMASharedLayout.get_default_for([m, k], gl.float16, cga_layout=of_a)
    right = gl.NVMMASharedLayout.get_default_for([k, n], gl.float16, cga_layout=of_b)
    layout = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16], division)
    operands = TensorDescriptor.from_tensor(a, [m, k], left), TensorDescriptor.from_tensor(b, [k, n], right)
    bytes_of_block = (m // rows + n // columns) * k * 2
    run(multiplied, (2, 2), *operands, c, 5, bytes_of_block, layout, multicast, **options(split))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@gluon.jit
def doubled(x, y, columns):
    i = gl.arange(0, 16, gl.CoalescedLayout())[:, None]
    j = gl.arange(0, 256, gl.CoalescedLayout())[None, :]
    gl.store(y + i * columns + j, gl.load(x + i * columns + j) * 2)


@check("coalesced", 2, 4, 16)
def coalesced(run: Run, blocks: int) -> None:
    """Layouts that are found are divided among the blocks."""
    x = numbers(0, 16, 256)
    y = np.zeros_like(x)
    run(doubled, (1,), x, y, 256, num_ctas=blocks)
    np.testing.assert_array_equal(y, 2 * x)
