"""Loops that carry tiles are evaluated where a reduction reads what they give (backends/cpu/loops.py)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def sums(x, out, n, stride, X: tl.constexpr, R: tl.constexpr):
    row = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    acc = tl.zeros([X, R], tl.float32)
    for start in range(0, n, R):
        r = start + tl.arange(0, R)[None, :]
        value = tl.load(x + row * stride + r, r < n, other=100.0)
        acc = tl.where(r < n, acc + value * value, acc)
    tl.store(out + row, tl.sum(acc, 1)[:, None])


@weft.jit
def moments(x, out, rows, n: tl.constexpr, X: tl.constexpr, R: tl.constexpr):
    """As PyTorch's Inductor writes it: what is carried begins with the first piece."""
    row = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    mean, m2, weight = tl.zeros([X, R], tl.float32), tl.zeros([X, R], tl.float32), tl.zeros([X, R], tl.float32)
    for start in tl.range(0, n, R):
        r = start + tl.arange(0, R)[None, :]
        mask = (r < n) & (row < rows)
        value = tl.load(x + row * n + r, mask, other=0.0)
        if start == 0:
            new_mean, new_m2, new_weight = value, tl.zeros([X, R], tl.float32), tl.full([X, R], 1, tl.float32)
        else:
            delta = value - mean
            new_weight = weight + 1
            new_mean = mean + delta / new_weight
            new_m2 = m2 + delta * (value - new_mean)
        mean, m2 = tl.where(mask, new_mean, mean), tl.where(mask, new_m2, m2)
        weight = tl.where(mask, new_weight, weight)
    total = tl.sum(weight, 1)
    middle = tl.sum(mean * weight, 1) / total
    around = tl.sum(m2 + weight * (mean - middle[:, None]) * (mean - middle[:, None]), 1)
    tl.store(out + row, (around / total)[:, None], row < rows)


@weft.jit
def largest(x, out, n, R: tl.constexpr):
    best = tl.full([R], -1e30, tl.float32)
    where = tl.zeros([R], tl.int32)
    for start in range(0, n, R):
        r = start + tl.arange(0, R)
        value = tl.load(x + r, r < n, other=-1e30)
        where = tl.where(value > best, r, where)
        best = tl.maximum(best, value)
    tl.store(out, tl.max(best, 0))
    tl.store(out + 1, tl.sum(tl.where(best == tl.max(best, 0), where, 0), 0).to(tl.float32))


@weft.jit
def spread(x, out, C: tl.constexpr, n: tl.constexpr, R: tl.constexpr):
    """Indices along a piece are taken apart by numbers that are no powers of two."""
    acc = tl.zeros([1, R], tl.float32)
    for start in range(0, n, R):
        r = start + tl.arange(0, R)[None, :]
        acc += tl.load(x + r % C + 3 * C * (r // C), r < n, other=0.0)
    tl.store(out, tl.sum(acc))


def scratch(kernel: Any, *args: Any, **constants: Any) -> int:
    return int(kernel.warmup(*args, grid=(1,), **constants).metadata.scratch_bytes)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 100, 512, 513, 1000, 3000])
@pytest.mark.parametrize("shape", [(1, 512), (4, 64)])
def test_a_sum_of_any_length(n: int, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(n).integers(-4, 5, (8, 3000)).astype(np.float32)
    out = np.full(8, 7, np.float32)
    sums[(8 // shape[0],)](x, out, n, 3000, X=shape[0], R=shape[1])
    np.testing.assert_array_equal(out, (x[:, :n] ** 2).sum(1))
    assert scratch(sums, x, out, n, 3000, X=shape[0], R=shape[1]) <= 4 * shape[0] * 16  # the sums alone


@pytest.mark.parametrize("n", [5, 256, 300, 1024, 1500])
@pytest.mark.parametrize("rows", [6, 8])
def test_moments_whose_first_piece_is_special(n: int, rows: int) -> None:
    x = np.random.default_rng(n).standard_normal((8, n), np.float32)
    out = np.full(8, 7, np.float32)
    moments[(4,)](x, out, rows, n, X=2, R=256)
    np.testing.assert_allclose(out[:rows], x[:rows].var(1), rtol=2e-5)
    assert (out[rows:] == 7).all()


def test_the_first_piece_is_emitted_by_itself() -> None:
    x, out = np.zeros((8, 1500), np.float32), np.zeros(8, np.float32)
    text = moments.warmup(x, out, 8, 1500, X=2, R=256, grid=(4,)).asm["llir"]
    program, _, _ = text.partition("define void @moments")  # behind it: the loop over programs
    chosen = [line for line in program.splitlines() if "select i1" in line and ", ptr " not in line]  # no address
    assert "fdiv" in program and not chosen


@pytest.mark.parametrize("n", [1, 700, 4096])
def test_tiles_that_depend_on_each_other(n: int) -> None:
    x = np.random.default_rng(n).permutation(n).astype(np.float32)
    out = np.zeros(2, np.float32)
    largest[(1,)](x, out, n, R=256)
    assert out.tolist() == [n - 1, int(x.argmax())]


def test_indices_that_are_divided_are_loaded_in_whole_vectors() -> None:
    x, out = np.random.default_rng(0).integers(-4, 5, (5, 3, 192)).astype(np.float32), np.zeros(1, np.float32)
    spread[(1,)](x, out, C=192, n=960, R=512)
    assert out[0] == x[:, 0].sum()
    text = spread.warmup(x, out, C=192, n=960, R=512, grid=(1,)).asm["llir"]
    assert "masked.gather" not in text


# -- those that are not fused -----------------------------------------------------------------------------------------


@weft.jit
def stored_too(x, out, n, R: tl.constexpr):
    acc = tl.zeros([R], tl.float32)
    for start in range(0, n, R):
        acc += tl.load(x + start + tl.arange(0, R))
    tl.store(out + tl.arange(0, R), acc)
    tl.store(out + R, tl.sum(acc, 0))


@weft.jit
def between(x, n, R: tl.constexpr):
    """What is loaded is overwritten before the sum is read."""
    acc = tl.zeros([R], tl.float32)
    for start in range(0, n, R):
        acc += tl.load(x + start + tl.arange(0, R))
    tl.store(x + tl.arange(0, R), tl.zeros([R], tl.float32))
    tl.store(x, tl.sum(acc, 0))


@weft.jit
def turned(x, out, n, R: tl.constexpr):
    """An element depends on another one."""
    acc = tl.zeros([R, R], tl.float32)
    for start in range(0, n, R):
        acc = tl.trans(acc) + tl.load(x + start + tl.arange(0, R)[None, :] + 0 * tl.arange(0, R)[:, None])
    tl.store(out + tl.arange(0, R), tl.sum(acc * (1 + tl.arange(0, R)[:, None]), 1))


def test_what_is_stored_too() -> None:
    x, out = np.arange(256, dtype=np.float32), np.zeros(65, np.float32)
    stored_too[(1,)](x, out, 256, R=64)
    np.testing.assert_array_equal(out[:64], x.reshape(4, 64).sum(0))
    assert out[64] == x.sum()


def test_what_is_loaded_is_overwritten_later() -> None:
    x = np.arange(256, dtype=np.float32)
    between[(1,)](x, 256, R=64)
    assert x[0] == 255 * 128 and (x[1:64] == 0).all()


def test_elements_that_depend_on_others() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(16, np.float32)
    turned[(1,)](x, out, 64, R=16)
    acc = np.zeros((16, 16), np.float32)
    for start in range(0, 64, 16):
        acc = acc.T + x[None, start : start + 16]
    np.testing.assert_array_equal(out, (acc * (1 + np.arange(16))[:, None]).sum(1))


@weft.jit
def two_loops(x, y, out, n: tl.constexpr, R: tl.constexpr):
    """Both sums are taken in one nest, which evaluates both loops, each with masks of its own."""
    first, second = tl.zeros([1, R], tl.float32), tl.zeros([1, R], tl.float32)
    for start in range(0, n, R):
        r = start + tl.arange(0, R)[None, :]
        first = tl.where(r < n, first + tl.load(x + r, r < n, other=9.0), first)
    sums_of_first = tl.sum(first, 1)
    for start in range(0, n, R):
        r = start + tl.arange(0, R)[None, :]
        second = tl.where(r < n, second + tl.load(y + r, r < n, other=9.0), second)
    sums_of_second = tl.sum(second, 1)
    tl.store(out + tl.arange(0, 1), sums_of_first)
    tl.store(out + 1 + tl.arange(0, 1), sums_of_second)


@pytest.mark.parametrize("n", [64, 100, 1000])
def test_two_loops_in_one_nest(n: int) -> None:
    x, y = np.random.default_rng(n).integers(-9, 9, (2, n)).astype(np.float32)
    out = np.zeros(2, np.float32)
    two_loops[(1,)](x, y, out, n, R=64)
    np.testing.assert_array_equal(out, [x.sum(), y.sum()])


@weft.jit
def parts(x, out, total: tl.constexpr, part: tl.constexpr, R: tl.constexpr):
    """As PyTorch's Inductor takes a reduction apart whose length is no multiple of the parts: an index is wrapped."""
    acc = tl.full([1, R], -1, tl.float32)
    for start in range(0, part, R):
        r = start + tl.arange(0, R)[None, :]
        at = r + part * tl.program_id(0)
        inside = (r < part) & (at < total)
        value = tl.load(x + at % total, inside, other=0.0)
        acc = tl.where(inside, tl.maximum(acc, tl.where(at < total, tl.abs(value), -1)), acc)
    tl.store(out + tl.program_id(0) + tl.arange(0, 1), tl.max(acc, 1))


@pytest.mark.parametrize("processor", [{}, {"vector_bits": 256}, {"vector_bits": 128}])
@pytest.mark.parametrize("total", [100, 1000, 1003])
def test_indices_that_are_wrapped(total: int, processor: dict[str, Any]) -> None:
    x = np.random.default_rng(total).integers(-9, 9, total).astype(np.float32)
    part, out = -(-total // 4), np.zeros(4, np.float32)
    parts[(4,)](x, out, total=total, part=part, R=64, **processor)
    np.testing.assert_array_equal(out, [np.abs(x[k * part : (k + 1) * part]).max() for k in range(4)])


def test_most_indices_that_are_wrapped_are_read_as_they_are() -> None:
    x = np.zeros(1003, np.float32)
    kernel = parts.warmup(x, x, total=1003, part=251, R=64, grid=(4,), cpu="x86-64-v4")
    blocks = re.split(r"\n(?=\w+:\n)", kernel.asm["llir"])
    assert any(block.count("load <16 x float>") == 4 and "rem i32" not in block for block in blocks)


# -- where carried tiles lie ------------------------------------------------------------------------------------------


@weft.jit
def columns(x, scale, out, rows, width, X: tl.constexpr, R: tl.constexpr):
    """Neighbours along the first dimension are neighbours in memory, but for what is the same in each row."""
    column = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    acc = tl.zeros([X, R], tl.float32)
    for start in range(0, rows, R):
        row = start + tl.arange(0, R)[None, :]
        value = tl.load(x + row * width + column, (row < rows) & (column < width), other=0.0)
        acc += tl.where(row < rows, value * tl.load(scale + row, row < rows, other=0.0), 0)
    tl.store(out + column, tl.sum(acc, 1)[:, None], column < width)


@pytest.mark.parametrize("shape", [(64, 4), (16, 64), (8, 64)])
@pytest.mark.parametrize("processor", [{}, {"vector_bits": 256}, {"vector_bits": 128}])
def test_carried_tiles_lie_as_what_is_loaded(shape: tuple[int, int], processor: dict[str, Any]) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (37, 100)).astype(np.float32)
    scale, out = np.arange(37, dtype=np.float32), np.zeros(100, np.float32)
    constants = {"X": shape[0], "R": shape[1], **processor}
    columns[(-(-100 // shape[0]),)](x, scale, out, 37, 100, **constants)
    np.testing.assert_array_equal(out, (x * scale[:, None]).sum(0))
    kernel = columns.warmup(x, scale, out, 37, 100, grid=(1,), **constants)
    assert "masked.gather" not in kernel.asm["llir"] and "masked.scatter" not in kernel.asm["llir"]
    tile, sums_of_columns = 4 * shape[0] * shape[1], max(64, 4 * shape[0])
    fused = shape[0] >= 16  # the lanes of a vector
    assert kernel.metadata.scratch_bytes == sums_of_columns + (0 if fused else tile)  # one copy of each
    assert ("stay in registers" in str(kernel.remarks)) == fused


def test_a_fused_loop_reads_vectors_side_by_side() -> None:
    """Four vectors of a row, 256 bytes, are read one after the other, and not four rows 400 bytes apart."""
    x = np.zeros((37, 100), np.float32)
    kernel = columns.warmup(x, x, x, 37, 100, X=64, R=4, grid=(1,), cpu="x86-64-v4")
    whole = kernel.asm["llir"].split("\nthen")[1].split("br label")[0]
    assert whole.count("load <16 x float>") == 4
    assert whole.count("mul i32") == 1, "all four are in one row"


@weft.jit
def sometimes_adds(out, n, c):
    acc = tl.zeros([256], tl.float32)
    for _ in range(0, n, 2):
        acc = acc * 2 + 1
        if c > 3:
            tl.atomic_add(out + 1, 1.0)
    tl.store(out, tl.sum(acc, 0))


def test_a_loop_with_a_branch_of_one_side_stays_where_it_is() -> None:
    """Found by the fuzzer (seed 2895214286552, AVX2): a side without operations has no block."""
    out = np.zeros(2, np.float32)
    sometimes_adds[(1,)](out, 6, 5)
    assert out.tolist() == [1792, 3]
