# mypy: ignore-errors
"""The kernels of `ncu.py`, each with arguments small enough to be simulated: `WORKS[name].make()`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.gluon.language as gl
import weft.language as tl
from weft import gluon
from weft.gluon.language.nvidia.ampere import async_copy, mma_v2
from weft.gluon.language.nvidia.hopper import fence_async_shared, warpgroup_mma

__all__ = ["WORKS", "Launch", "Work", "aligned"]


@weft.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    """out = x, the last block masked."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@weft.jit
def copy_apart(x, out, step, BLOCK: tl.constexpr):
    """Elements that are `step` apart."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * step))


@weft.jit
def pick(x, index, out, BLOCK: tl.constexpr):
    """out = x[index]: the data say which sectors."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i)))


@weft.jit
def add_to(x, out, BLOCK: tl.constexpr):
    """out += x, atomically."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + i, tl.load(x + i), sem="relaxed")


@weft.jit
def row_sums(x, out, M: tl.constexpr, N: tl.constexpr):
    """Sums along rows."""
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    tl.store(out + i, tl.sum(tl.load(x + i[:, None] * N + j[None, :]), axis=1))


@weft.jit
def column_sums(x, out, M: tl.constexpr, N: tl.constexpr):
    """Sums along columns, across warps."""
    i, j = tl.arange(0, M), tl.program_id(0) * N + tl.arange(0, N)
    width = tl.num_programs(0) * N
    tl.store(out + j, tl.sum(tl.load(x + i[:, None] * width + j[None, :]), axis=0))


@weft.jit
def running_sums(x, out, BLOCK: tl.constexpr):
    """A scan."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@weft.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    """Of each row."""
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


@weft.jit
def layer_norm(x, out, weight, bias, columns, eps, BLOCK: tl.constexpr):
    """Of each row."""
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < columns
    value = tl.load(x + row * columns + i, mask=mask, other=0.0)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(mask, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w, b = tl.load(weight + i, mask=mask), tl.load(bias + i, mask=mask)
    tl.store(out + row * columns + i, centred * scale * w + b, mask=mask)


@weft.jit
def transpose(x, out, m, n, BLOCK: tl.constexpr):
    """out = x.T, tile by tile."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * n + j[None, :])
    tl.store(out + j[:, None] * m + i[None, :], tl.trans(tile))


@weft.jit
def row_sums_masked(x, out, rows, M: tl.constexpr, N: tl.constexpr):
    """Sums along rows, some of them stored."""
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    total = tl.sum(tl.load(x + i[:, None] * N + j[None, :]), axis=1)
    tl.store(out + i, total, mask=i < rows)


@weft.jit
def row_argmax(x, out, index, M: tl.constexpr, N: tl.constexpr):
    """The largest of each row, and where it is."""
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    value, where = tl.max(tl.load(x + i[:, None] * N + j[None, :]), axis=1, return_indices=True)
    tl.store(out + i, value)
    tl.store(index + i, where)


@weft.jit
def sums_in_pieces(x, out, columns, BLOCK: tl.constexpr):
    """The sum of a row, piece by piece, the last one masked."""
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + i, mask=start + i < columns, other=0.0)
    tl.store(out + row, tl.sum(total, axis=0))


@weft.jit
def sorted_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    """Rows in ascending order."""
    place = (tl.program_id(0) * M + tl.arange(0, M))[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + place, tl.sort(tl.load(x + place), dim=1))


@weft.jit
def bins(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """A histogram for each program."""
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), tl.histogram(value, BINS))


@weft.jit
def largest(x, out, n, BLOCK: tl.constexpr):
    """out = max(x, out), atomically, the last block masked."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_max(out + i, tl.load(x + i, mask=i < n), mask=i < n, sem="relaxed")


@weft.jit
def taken(x, index, out, M: tl.constexpr, N: tl.constexpr):
    """Elements of each row, through shared memory or lanes as the compiler wants."""
    place = (tl.program_id(0) * M + tl.arange(0, M))[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + place, tl.gather(tl.load(x + place), tl.load(index + place), 1))


@weft.jit
def multiply(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """One tile of c = a @ b, K in pieces."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    pa, pb = a + i[:, None] * K + k[None, :], b + k[:, None] * N + j[None, :]
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(pa), tl.load(pb), total)
        pa += BK
        pb += BK * N
    tl.store(c + i[:, None] * N + j[None, :], total)


@gluon.jit
def convert(x, out, M: gl.constexpr, N: gl.constexpr, first: gl.constexpr, second: gl.constexpr):
    """A tile loaded in one layout, stored in another."""
    a, b = gl.arange(0, M, layout=gl.SliceLayout(1, first)), gl.arange(0, N, layout=gl.SliceLayout(0, first))
    c, d = gl.arange(0, M, layout=gl.SliceLayout(1, second)), gl.arange(0, N, layout=gl.SliceLayout(0, second))
    value = gl.convert_layout(gl.load(x + a[:, None] * N + b[None, :]), second)
    gl.store(out + c[:, None] * N + d[None, :], value)


@gluon.jit
def through_shared(x, out, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr, shared: gl.constexpr):
    """out = x.T through shared memory of some layout: stored by rows, loaded by columns."""
    i, j = gl.arange(0, M, layout=gl.SliceLayout(1, layout)), gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    memory = gl.allocate_shared_memory(x.dtype.element_ty, [M, N], shared)
    memory.store(gl.load(x + i[:, None] * N + j[None, :]))
    gl.thread_barrier()
    c, d = gl.arange(0, N, layout=gl.SliceLayout(1, layout)), gl.arange(0, M, layout=gl.SliceLayout(0, layout))
    gl.store(out + c[:, None] * M + d[None, :], memory.permute((1, 0)).load(layout))


@gluon.jit
def pick_in_rows(x, index, out, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    """A gather along rows that lie within a warp."""
    i, j = gl.arange(0, M, layout=gl.SliceLayout(1, layout)), gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    place = i[:, None] * N + j[None, :]
    gl.store(out + place, gl.gather(gl.load(x + place), gl.load(index + place), axis=1))


@gluon.jit
def product(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, shared: gl.constexpr, W: gl.constexpr):
    """One tile of c = a @ b by mma.sync, operands through shared memory."""
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    am, ak = gl.arange(0, M, layout=gl.SliceLayout(1, rows)), gl.arange(0, K, layout=gl.SliceLayout(0, rows))
    bk, bn = gl.arange(0, K, layout=gl.SliceLayout(1, rows)), gl.arange(0, N, layout=gl.SliceLayout(0, rows))
    left = gl.allocate_shared_memory(a.dtype.element_ty, [M, K], shared)
    right = gl.allocate_shared_memory(b.dtype.element_ty, [K, N], shared)
    left.store(gl.load(a + am[:, None] * K + ak[None, :]))
    right.store(gl.load(b + bk[:, None] * N + bn[None, :]))
    gl.thread_barrier()
    x, y = left.load(gl.DotOperandLayout(0, mma, W)), right.load(gl.DotOperandLayout(1, mma, W))
    total = mma_v2(x, y, gl.zeros([M, N], gl.float32, mma))
    cm, cn = gl.arange(0, M, layout=gl.SliceLayout(1, mma)), gl.arange(0, N, layout=gl.SliceLayout(0, mma))
    gl.store(c + cm[:, None] * N + cn[None, :], total)


@gluon.jit
def group_product(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """One tile of c = a @ b by wgmma, operands through shared memory."""
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    am, ak = gl.arange(0, M, layout=gl.SliceLayout(1, rows)), gl.arange(0, K, layout=gl.SliceLayout(0, rows))
    bk, bn = gl.arange(0, K, layout=gl.SliceLayout(1, rows)), gl.arange(0, N, layout=gl.SliceLayout(0, rows))
    left = gl.allocate_shared_memory(a.dtype.element_ty, [M, K], shared)
    right = gl.allocate_shared_memory(b.dtype.element_ty, [K, N], shared)
    left.store(gl.load(a + am[:, None] * K + ak[None, :]))
    right.store(gl.load(b + bk[:, None] * N + bn[None, :]))
    fence_async_shared()
    gl.thread_barrier()
    total = warpgroup_mma(left, right, gl.zeros([M, N], gl.float32, mma), is_async=False)
    cm, cn = gl.arange(0, M, layout=gl.SliceLayout(1, mma)), gl.arange(0, N, layout=gl.SliceLayout(0, mma))
    gl.store(c + cm[:, None] * N + cn[None, :], total)


@gluon.jit
def copy_ahead(x, out, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr, shared: gl.constexpr):
    """out = x through shared memory by asynchronous copies."""
    i, j = gl.arange(0, M, layout=gl.SliceLayout(1, layout)), gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    memory = gl.allocate_shared_memory(x.dtype.element_ty, [M, N], shared)
    place = i[:, None] * N + j[None, :]
    async_copy.async_copy_global_to_shared(memory, x + place)
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.thread_barrier()
    gl.store(out + place, memory.load(layout))


@dataclass(frozen=True)
class Launch:
    """A grid, and the arguments in order: arrays of the host, and numbers."""

    grid: tuple[int, ...]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Work:
    """A kernel, what makes its arguments, and its constants and options."""

    kernel: Any
    make: Callable[[], Launch]
    constants: dict[str, Any]
    least: int = 80
    """The compute capability that it needs."""


def aligned(array: Any) -> Any:
    """The same elements at an address divisible by 128, as memory of a GPU is."""
    raw = np.empty(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 128
    found = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def _floats(*shape: int, dtype: Any = np.float32) -> Any:
    return aligned(np.random.default_rng(0).integers(-9, 10, shape).astype(dtype))


def _launch(grid: tuple[int, ...], *arguments: Any) -> Callable[[], Launch]:
    return lambda: Launch(grid, arguments)


def _line(kernel: Any, n: int, block: int, dtype: Any = np.float32, *more: Any, grid: int = 0, **options: Any) -> Work:
    """A kernel on a line of elements: x and out."""
    blocks = grid or -(-n // block)

    def make() -> Launch:
        return Launch((blocks,), (_floats(n, dtype=dtype), _floats(n, dtype=dtype), *more))

    return Work(kernel, make, {"BLOCK": block, **options})


def _products() -> dict[str, Work]:
    """Products in the Triton language: by wgmma where there is one."""
    f16, size = np.float16, {"M": 64, "N": 64}
    half = _launch((1,), _floats(64, 128, dtype=f16), _floats(128, 64, dtype=f16), _floats(64, 64), 128)
    single = _launch((1,), _floats(64, 64), _floats(64, 64), _floats(64, 64), 64)
    return {
        "dot f16, loop": Work(multiply, half, {**size, "BK": 32, "num_stages": 3, "made_tensors": False}),
        "dot f16, 8 warps": Work(multiply, half, {**size, "BK": 64, "num_warps": 8, "num_stages": 1}),
        "dot f32": Work(multiply, single, {**size, "BK": 32, "num_stages": 2}),
    }


def _rows() -> dict[str, Work]:
    """What is done with the rows of a matrix."""
    wide, i32 = {"M": 32, "N": 128}, np.int32
    index = aligned(np.random.default_rng(3).integers(0, 64, (128, 64)).astype(i32))
    counted = aligned(np.random.default_rng(4).integers(0, 64, 2048).astype(i32))
    place = {"M": 32, "N": 64}
    return {
        "sum of rows, 32x128": Work(row_sums, _launch((4,), _floats(128, 128), _floats(128)), wide),
        "sum of rows, 32x512, 8 warps": Work(
            row_sums, _launch((2,), _floats(64, 512), _floats(64)), {"M": 32, "N": 512, "num_warps": 8}
        ),
        "sum of rows, masked": Work(row_sums_masked, _launch((4,), _floats(128, 128), _floats(128), 100), wide),
        "largest of rows, and where": Work(
            row_argmax, _launch((4,), _floats(128, 128), _floats(128), _floats(128, dtype=i32)), wide
        ),
        "sum of a row in pieces": Work(
            sums_in_pieces, _launch((8,), _floats(8, 1000), _floats(8), 1000), {"BLOCK": 256}
        ),
        "sorted rows, 32x64": Work(sorted_rows, _launch((4,), _floats(128, 64), _floats(128, 64)), place),
        "histogram of 512": Work(bins, _launch((4,), counted, _floats(4, 64, dtype=i32)), {"BLOCK": 512, "BINS": 64}),
        "gather of rows, 32x64": Work(taken, _launch((4,), _floats(128, 64), index, _floats(128, 64)), place),
    }


def _language() -> dict[str, Work]:
    index = np.random.default_rng(1).permutation(4096).astype(np.int32)
    columns = 1000
    wide = (_floats(8, 4096), _floats(8, 4096), _floats(4096), _floats(4096), 4096, 1e-5)
    return {
        "copy f32": _line(copy, 8192, 1024, np.float32, 8192),
        "copy f32, masked": _line(copy, 7001, 1024, np.float32, 7001),
        "copy f16": _line(copy, 8192, 1024, np.float16, 8192),
        "copy i8": _line(copy, 8192, 1024, np.int8, 8192),
        "copy f32, every 3rd": _line(copy_apart, 6144, 512, np.float32, 3, grid=4),
        "gather of f32": Work(pick, _launch((4,), _floats(4096), aligned(index), _floats(4096)), {"BLOCK": 1024}),
        "atomic add f32": _line(add_to, 4096, 1024),
        "atomic add i32": _line(add_to, 4096, 1024, np.int32),
        "atomic max i32, masked": _line(largest, 4001, 1024, np.int32, 4001),
        **_rows(),
        **_products(),
        "sum of columns, 64x64": Work(column_sums, _launch((4,), _floats(64, 256), _floats(256)), {"M": 64, "N": 64}),
        "cumulative sum": _line(running_sums, 4096, 1024),
        "softmax 1000": Work(softmax, _launch((8,), _floats(8, 1000), _floats(8, 1000), columns), {"BLOCK": 1024}),
        "layer norm 4096": Work(layer_norm, _launch((8,), *wide), {"BLOCK": 4096, "num_warps": 8}),
        "transpose f32": Work(
            transpose, _launch((2, 2), _floats(128, 128), _floats(128, 128), 128, 128), {"BLOCK": 64}
        ),
        **{
            f"transpose {name}": Work(
                transpose,
                _launch((2, 2), _floats(128, 128, dtype=dtype), _floats(128, 128, dtype=dtype), 128, 128),
                {"BLOCK": 64},
            )
            for name, dtype in (("f16", np.float16), ("i8", np.int8))
        },
    }


def _tile(kernel: Any, m: int, n: int, dtype: Any, **constants: Any) -> Work:
    """A Gluon kernel on one tile: x and out."""
    make = _launch((1,), _floats(m, n, dtype=dtype), _floats(m, n, dtype=dtype))
    return Work(kernel, make, {"M": m, "N": n, **constants, "num_warps": 4})


def _gluon() -> dict[str, Work]:
    row4, col4 = gl.BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0]), gl.BlockedLayout([4, 1], [32, 1], [1, 4], [0, 1])
    wide, tall = gl.BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0]), gl.BlockedLayout([8, 1], [16, 2], [1, 4], [0, 1])
    bytes16 = gl.BlockedLayout([1, 16], [4, 8], [4, 1], [1, 0])
    bytes16t = gl.BlockedLayout([16, 1], [8, 4], [1, 4], [0, 1])
    mma = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    flat = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    f16, f32, i8 = np.float16, np.float32, np.int8
    converts = {
        "transposition f32": (row4, col4, f32),
        "transposition f16": (wide, tall, f16),
        "transposition i8": (bytes16, bytes16t, i8),
        "mma f32 to blocked": (mma, row4, f32),
        "mma f16 to blocked": (mma, wide, f16),
        "mma f16 to transposed": (mma, tall, f16),
        "blocked f16 to operand 0": (wide, gl.DotOperandLayout(0, mma, 2), f16),
        "blocked f16 to operand 1": (wide, gl.DotOperandLayout(1, mma, 2), f16),
    }
    shared = {
        "plain, conflicts on purpose": (gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), f32, flat),
        "swizzled": (gl.SwizzledSharedLayout(1, 1, 32, [1, 0]), f32, flat),
        "swizzled by 8, f16": (gl.SwizzledSharedLayout(8, 1, 8, [1, 0]), f16, flat),
    }
    rows = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    index = aligned(np.random.default_rng(2).integers(0, 32, (64, 32)).astype(np.int32))
    gathered = _launch((1,), _floats(64, 32), index, _floats(64, 32))
    swizzled = gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    plain = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    operands = _launch((1,), _floats(64, 64, dtype=f16), _floats(64, 64, dtype=f16), _floats(64, 64))
    single = _launch((1,), _floats(64, 64), _floats(64, 64), _floats(64, 64))
    size = {"M": 64, "N": 64, "K": 64, "num_warps": 4}
    return {
        **{f"convert {k}": _tile(convert, 64, 128, t, first=a, second=b) for k, (a, b, t) in converts.items()},
        **{f"shared, {k}": _tile(through_shared, 64, 64, t, layout=d, shared=s) for k, (s, t, d) in shared.items()},
        "gather within rows": Work(pick_in_rows, gathered, {"M": 64, "N": 32, "layout": rows, "num_warps": 4}),
        "product f16, swizzled": Work(product, operands, {**size, "shared": swizzled, "W": 2}),
        "product f16, conflicts": Work(product, operands, {**size, "shared": plain, "W": 2}),
        "product tf32": Work(product, single, {**size, "shared": plain, "W": 1}),
        "product f16 of a warp group": Work(group_product, operands, size, 90),
        "copy ahead f16": _tile(copy_ahead, 64, 64, f16, layout=wide, shared=swizzled),
    }


WORKS: dict[str, Work] = {**_language(), **_gluon()}
