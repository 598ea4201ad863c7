"""Shared memory that blocks of a cluster hold together: gathered, scattered, changed and sliced by all of them.

Layouts are drawn at random: how the blocks of a cluster divide the memory, and the tile of indices, are two choices,
each with copies or without. What is right says NumPy.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import weft
from backends.nvidia.assembling import needs_ptxas
from weft import gluon
from weft.base import CompilationError
from weft.gluon import language as gl
from weft.sim import options

SHAPE = (16, 32)


@gluon.jit
def offsets(shape: gl.constexpr, layout: gl.constexpr) -> Any:
    """Of the elements of an array, row by row."""
    at = gl.arange(0, shape[0])[:, None] * shape[1] + gl.arange(0, shape[1])[None, :]
    return gl.set_auto_layout(at, layout)


@gluon.jit
def pick(
    x: Any, values: Any, index: Any, mask: Any, out: Any, final: Any, op: gl.constexpr, picked: gl.constexpr,
    axis: gl.constexpr, whole: gl.constexpr, rows: gl.constexpr, memory: gl.constexpr,
) -> None:  # fmt: skip
    shape: gl.constexpr = (16, 32)
    everything = offsets(shape, whole)
    held = gl.allocate_shared_memory(x.dtype.element_ty, shape, memory, gl.load(x + everything))
    gl.barrier(cluster=True)
    at = offsets(picked, rows)
    which = gl.load(index + at)
    if op == "gather":
        gl.store(out + at, held.gather(which, axis=axis))
    elif op == "scatter":
        held.scatter(gl.load(values + at), which, axis=axis)
    elif op == "add":
        old = held.atomic_scatter_add(gl.load(values + at), which, axis=axis, mask=gl.load(mask + at) != 0)
        gl.store(out + at, old, mask=gl.load(mask + at) != 0)
    elif op == "xchg":
        gl.store(out + at, held.atomic_scatter_xchg(gl.load(values + at), which, axis=axis))
    else:
        held.atomic_scatter_max(gl.load(values + at), which, axis=axis)
    gl.barrier(cluster=True)
    gl.store(final + everything, held.load(whole))


def cga(chosen: random.Random, blocks: int) -> list[list[int]]:
    """How the blocks of a cluster divide a tile: each bit of a rank halves a dimension, or makes copies."""
    parts, found = [1, 1], []
    for _ in range(blocks.bit_length() - 1):
        dim = chosen.choice([0, 1, None])
        found.append([parts[d] if d == dim else 0 for d in range(2)])
        if dim is not None:
            parts[dim] *= 2
    return found


def rows(bases: list[list[int]]) -> gl.BlockedLayout:
    return gl.BlockedLayout([1, 2], [4, 8], [2, 1], [1, 0], cga_layout=bases)


def expected(op: str, x: Any, values: Any, index: Any, mask: Any, axis: int) -> tuple[Any, Any]:
    """What is there before, for each index, and what is there in the end."""
    whole = tuple(slice(n) if d != axis else slice(None) for d, n in enumerate(index.shape))
    old, final = np.take_along_axis(x[whole], index, axis), x.copy()
    for at in np.ndindex(*index.shape):
        to = (index[at], at[1]) if axis == 0 else (at[0], index[at])
        if op in ("scatter", "xchg"):
            final[to] = values[at]
        elif op == "max":
            final[to] = max(final[to], values[at])
        elif op == "add" and mask[at]:
            final[to] += values[at]
    return old, final


def drawn(seed: int) -> tuple[Any, ...]:
    """A program: operation, blocks, layouts, and the arrays for it."""
    chosen, numbers = random.Random(seed), np.random.default_rng(seed)
    op = ("gather", "scatter", "add", "xchg", "max")[seed % 5]
    blocks = (1, 2, 4)[seed // 5 % 3]
    axis = chosen.randrange(2)
    picked = tuple(n // chosen.choice([1, 2]) for n in SHAPE)
    kind = np.int32 if op == "max" else chosen.choice([np.int32, np.float32])
    x, values = (numbers.integers(0, 90, shape).astype(kind) for shape in (SHAPE, picked))
    index = numbers.random(SHAPE).argsort(axis)  # each element once
    index = np.ascontiguousarray(index[: picked[0], : picked[1]]).astype(np.int32)
    mask = numbers.integers(0, 2, picked).astype(np.int32)
    memory = gl.SwizzledSharedLayout(chosen.choice([1, 4]), 2, 4, [1, 0], cga(chosen, blocks))
    layouts = rows(cga(chosen, blocks)), rows(cga(chosen, blocks)), memory
    return op, blocks, axis, picked, layouts, (x, values, index, mask)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.thinned(3)
def test_picked(seed: int) -> None:
    op, blocks, axis, picked, layouts, (x, values, index, mask) = drawn(seed)
    out, final = np.zeros(picked, x.dtype), np.zeros_like(x)
    with weft.target("sim:cuda:90"), options(order=("forward", "backward", "random")[seed % 3]):
        pick[(1,)](x, values, index, mask, out, final, op, picked, axis, *layouts, num_warps=2, num_ctas=blocks)
    old, last = expected(op, x, values, index.astype(np.int64), mask, axis)
    assert (final == last).all()
    if op in ("gather", "xchg"):
        assert (out == old).all()
    elif op == "add":
        assert (out == np.where(mask, old, 0)).all()


@needs_ptxas
@pytest.mark.parametrize("seed", [0, 2, 6, 8, 12, 13, 14])
def test_ptxas_takes_it(seed: int) -> None:
    op, blocks, axis, picked, layouts, arrays = drawn(seed)
    out, final = np.zeros(picked, arrays[0].dtype), np.zeros_like(arrays[0])
    for target in ("cuda:90",) if blocks > 1 else ("cuda:80", "cuda:90"):
        compiled = pick.warmup(
            *arrays, out, final, op, picked, axis, *layouts, num_warps=2, num_ctas=blocks, grid=(1,), target=target
        )
        assert compiled.asm["cubin"]


@pytest.mark.parametrize("name", ["and", "or", "xor", "min"])
def test_bits_of_several_values_in_one_place(name: str) -> None:
    @gluon.jit
    def kernel(x: Any, index: Any, out: Any, name: gl.constexpr, layout: gl.constexpr) -> None:
        i = gl.arange(0, 64, layout=layout)
        memory: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
        held = gl.allocate_shared_memory(gl.int32, [64], memory, gl.full([64], 0x55, gl.int32, layout))
        if name == "and":
            held.atomic_scatter_and(gl.load(x + i), gl.load(index + i), axis=0)
        elif name == "or":
            held.atomic_scatter_or(gl.load(x + i), gl.load(index + i), axis=0)
        elif name == "xor":
            held.atomic_scatter_xor(gl.load(x + i), gl.load(index + i), axis=0)
        else:
            held.atomic_scatter_min(gl.load(x + i), gl.load(index + i), axis=0)
        gl.store(out + i, held.load(layout))

    x = np.random.default_rng(3).integers(-128, 128, 64).astype(np.int32)
    index = np.random.default_rng(4).integers(0, 16, 64).astype(np.int32)
    out, wanted = np.zeros(64, np.int32), np.full(64, 0x55, np.int32)
    with weft.target("sim:cuda:80"):
        kernel[(1,)](x, index, out, name, gl.BlockedLayout([1], [32], [2], [0]), num_warps=2)
    ufunc = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum}[name]
    ufunc.at(wanted, index, x)
    assert (out == wanted).all()


def test_values_indices_and_mask_are_broadcast() -> None:
    @gluon.jit
    def kernel(x: Any, out: Any, changed: Any, layout: gl.constexpr) -> None:
        row, column = gl.arange(0, 16, gl.SliceLayout(1, layout)), gl.arange(0, 32, gl.SliceLayout(0, layout))
        memory: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
        held = gl.allocate_shared_memory(gl.int32, [16, 32], memory, gl.zeros([16, 32], gl.int32, layout))
        value = gl.load(x + row)[:, None]
        held.scatter(value, (31 - column)[None, :], axis=1)
        at = row[:, None] * 32 + column[None, :]
        gl.store(out + at, held.load(layout))
        old = held.atomic_scatter_add(value, column[None, :], axis=1, mask=(row < 8)[:, None])
        gl.store(changed + at, old + held.load(layout), mask=(row < 8)[:, None])

    x = np.arange(16, dtype=np.int32)
    out, changed = np.zeros(SHAPE, np.int32), np.zeros(SHAPE, np.int32)
    with weft.target("sim:cuda:80"):
        kernel[(1,)](x, out, changed, rows([]), num_warps=2)
    assert (out == x[:, None]).all()
    assert (changed == np.where(x < 8, 3 * x, 0)[:, None]).all()


@gluon.jit
def part_of(
    x: Any, values: Any, out: Any, final: Any, stores: gl.constexpr, start: gl.constexpr, length: gl.constexpr,
    dim: gl.constexpr, size: gl.constexpr, whole: gl.constexpr, rows: gl.constexpr, memory: gl.constexpr,
) -> None:  # fmt: skip
    shape: gl.constexpr = (16, 32)
    everything = offsets(shape, whole)
    held = gl.allocate_shared_memory(gl.int32, shape, memory, gl.load(x + everything))
    gl.barrier(cluster=True)
    part = held.slice(start, length, dim)
    at = offsets(size, rows)
    if stores:
        part.store(gl.load(values + at))
    else:
        gl.store(out + at, part.load(rows))
    gl.barrier(cluster=True)
    gl.store(final + everything, held.load(whole))


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.thinned(2)
def test_parts_in_other_blocks(seed: int) -> None:
    chosen, numbers = random.Random(seed), np.random.default_rng(seed)
    blocks, dim = (2, 4)[seed % 2], chosen.randrange(2)
    length = SHAPE[dim] // chosen.choice([2, 4])
    start = chosen.randrange(0, SHAPE[dim], length)
    size = tuple(length if d == dim else n for d, n in enumerate(SHAPE))
    memory = gl.SwizzledSharedLayout(chosen.choice([1, 2]), 1, 4, [1, 0], cga(chosen, blocks))
    layouts = rows(cga(chosen, blocks)), rows(cga(chosen, blocks)), memory
    x = numbers.integers(0, 1000, SHAPE).astype(np.int32)
    values = numbers.integers(1000, 2000, size).astype(np.int32)
    out, final, wanted = np.zeros(size, np.int32), np.zeros_like(x), x.copy()
    where = tuple(slice(start, start + length) if d == dim else slice(None) for d in range(2))
    stores = seed % 3 > 0
    with weft.target("sim:cuda:90"):
        part_of[(1,)](x, values, out, final, stores, start, length, dim, size, *layouts, num_warps=2, num_ctas=blocks)
    if stores:
        wanted[where] = values
    else:
        assert (out == x[where]).all()
    assert (final == wanted).all()


def test_what_cannot_be() -> None:
    memory = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    floats, ones = np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.int32)
    args = (ones, ones, floats, floats, "max", SHAPE, 0, rows([]), rows([]), memory)
    with weft.target("sim:cuda:90"), pytest.raises(CompilationError, match="atomic_scatter_max is for integers"):
        pick[(1,)](floats, floats, *args, num_warps=2)
    shorts = ones.astype(np.int16)
    args = (ones, ones, shorts, shorts, "max", SHAPE, 0, rows([]), rows([]), memory)
    with weft.target("sim:cuda:90"), pytest.raises(CompilationError, match="elements of 16 bits of shared memory"):
        pick[(1,)](shorts, shorts, *args, num_warps=2)
