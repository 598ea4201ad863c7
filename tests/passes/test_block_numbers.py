"""Blocks of memory against NumPy: offsets on every side of the tensor, through block pointers and descriptors."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl

ROWS, COLS, BR, BC = 5, 21, 4, 8


@weft.jit
def copy_block_pointer(src, dst, i, j, R, C, BR: tl.constexpr, BC: tl.constexpr, PAD: tl.constexpr):
    at = tl.make_block_ptr(src, (R, C), (C, 1), (i, j), (BR, BC), (1, 0))
    tile = tl.load(at, boundary_check=(0, 1), padding_option=PAD)
    tl.store(dst + tl.arange(0, BR)[:, None] * BC + tl.arange(0, BC)[None, :], tile)


@weft.jit
def walk_block_pointer(src, dst, i, j, di, dj, steps, R, C, BR: tl.constexpr, BC: tl.constexpr):
    at = tl.make_block_ptr(src, (R, C), (C, 1), (i, j), (BR, BC), (1, 0))
    total = tl.zeros((BR, BC), tl.float32)
    for k in range(steps):
        total += tl.load(at, boundary_check=(0, 1), padding_option="zero")
        if k % 2 == 0:
            at = tl.advance(at, (di, 0))
        else:
            at = tl.advance(at, (0, dj))
    tl.store(dst + tl.arange(0, BR)[:, None] * BC + tl.arange(0, BC)[None, :], total)


@weft.jit
def store_block_pointer(dst, i, j, R, C, BR: tl.constexpr, BC: tl.constexpr):
    tile = (tl.arange(0, BR)[:, None] * BC + tl.arange(0, BC)[None, :] + 1).to(tl.float32)
    at = tl.make_block_ptr(dst, (R, C), (C, 1), (i, j), (BR, BC), (1, 0))
    tl.store(at, tile, boundary_check=(0, 1))


@weft.jit
def copy_descriptor(src, dst, i, j, R, C, BR: tl.constexpr, BC: tl.constexpr, PAD: tl.constexpr):
    desc = tl.make_tensor_descriptor(src, [R, C], [C, 1], [BR, BC], padding_option=PAD)
    out = tl.make_tensor_descriptor(dst, [BR, BC], [BC, 1], [BR, BC])
    out.store([0, 0], desc.load([i, j]))


@weft.jit
def chosen_descriptor(src, dst, n, R, C, BR: tl.constexpr, BC: tl.constexpr):
    desc = tl.make_tensor_descriptor(src, [R, C], [C, 1], [BR, BC], padding_option="nan")
    for k in range(n):
        if k > 1:
            desc = tl.make_tensor_descriptor(src + k * C, [R - k, C], [C, 1], [BR, BC], padding_option="nan")
        tile = desc.load([k, 0])
        tl.store(dst + k * BR * BC + tl.arange(0, BR)[:, None] * BC + tl.arange(0, BC)[None, :], tile)


def window(x: np.ndarray, i: int, j: int, fill: float) -> np.ndarray:
    """The block of `x` at (i, j), with `fill` outside."""
    out = np.full((BR, BC), fill, x.dtype)
    for r in range(BR):
        for c in range(BC):
            if 0 <= i + r < x.shape[0] and 0 <= j + c < x.shape[1]:
                out[r, c] = x[i + r, j + c]
    return out


PLACES = [(0, 0), (1, 3), (-1, -3), (-2, 17), (3, -7), (4, 20), (2, 16), (-4, 0), (5, 0), (0, 21), (100, -100)]


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(ROWS, COLS)).astype(np.float32)


@pytest.mark.parametrize(("pad", "fill"), [("zero", 0.0), ("nan", np.nan)])
@pytest.mark.parametrize(("kernel"), [copy_block_pointer, copy_descriptor], ids=["block pointer", "descriptor"])
def test_copies(kernel: object, pad: str, fill: float, x: np.ndarray) -> None:
    for i, j in PLACES:
        out = np.ones((BR, BC), np.float32)
        kernel[(1,)](x, out, i, j, ROWS, COLS, BR=BR, BC=BC, PAD=pad)  # type: ignore[index]
        np.testing.assert_array_equal(out, window(x, i, j, fill), err_msg=f"at {i}, {j}")


def test_a_walk(x: np.ndarray) -> None:
    for i, j, di, dj in [(0, 0, 1, 3), (-2, -5, 1, 4), (4, 20, -1, -5)]:
        out = np.zeros((BR, BC), np.float32)
        walk_block_pointer[(1,)](x, out, i, j, di, dj, 7, ROWS, COLS, BR=BR, BC=BC)
        wanted = np.zeros((BR, BC), np.float32)
        r, c = i, j
        for k in range(7):
            wanted += window(x, r, c, 0)
            r, c = (r + di, c) if k % 2 == 0 else (r, c + dj)
        np.testing.assert_allclose(out, wanted, rtol=1e-6, atol=1e-6)


def test_stores() -> None:
    tile = np.arange(1, BR * BC + 1, dtype=np.float32).reshape(BR, BC)
    for i, j in PLACES:
        guarded = np.zeros((ROWS + 2, COLS), np.float32)
        inner = guarded[1:-1]
        store_block_pointer[(1,)](inner, i, j, ROWS, COLS, BR=BR, BC=BC)
        wanted = np.zeros_like(guarded)
        for r in range(BR):
            for c in range(BC):
                if 0 <= i + r < ROWS and 0 <= j + c < COLS:
                    wanted[1 + i + r, j + c] = tile[r, c]
        np.testing.assert_array_equal(guarded, wanted, err_msg=f"at {i}, {j}")


def test_a_descriptor_that_a_loop_changes(x: np.ndarray) -> None:
    out = np.zeros((4, BR, BC), np.float32)
    chosen_descriptor[(1,)](x, out, 4, ROWS, COLS, BR=BR, BC=BC)
    for k in range(4):
        wanted = window(x[k:] if k > 1 else x, k, 0, np.nan)
        np.testing.assert_array_equal(out[k], wanted, err_msg=f"step {k}")
