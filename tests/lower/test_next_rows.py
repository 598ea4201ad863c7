"""Long rows are asked for before the programs that load them begin."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.lower import next_rows


@weft.jit
def centred(x, starts, out, n, B: tl.constexpr):
    """By the sum of the row, and the largest of what is left."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    apart = value - tl.sum(value, 0)
    tl.store(out + row + i, (apart * tl.max(apart, 0)).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def looked_up(x, starts, out, n, B: tl.constexpr):
    """Where a row begins is loaded."""
    row, i = tl.load(starts + tl.program_id(0)), tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    apart = value - tl.sum(value, 0)
    tl.store(out + tl.program_id(0) * n + i, (apart * tl.max(apart, 0)).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def not_stored(x, starts, out, n, B: tl.constexpr):
    """Reduced twice."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    apart = value - tl.sum(value, 0)
    tl.store(out + row, tl.max(tl.where(i < n, apart, -1e30), 0).to(out.dtype.element_ty))


@weft.jit
def of_some(x, starts, out, n, B: tl.constexpr):
    """Programs beyond the last row end at once."""
    row, i = tl.program_id(0), tl.arange(0, B)
    there = (row < 3) & (i < n)
    value = tl.load(x + row * n + i, mask=there, other=0.0).to(tl.float32)
    apart = value - tl.sum(value, 0)
    tl.store(out + row * n + i, (apart * tl.max(apart, 0)).to(out.dtype.element_ty), mask=there)


@weft.jit
def from_elsewhere(x, starts, out, n, B: tl.constexpr):
    """Numbers that begin at 8, of a row that has so many elements more."""
    i = tl.arange(8, B + 8)
    mask = i < n + 8
    row = tl.program_id(0) * n - 8
    value = tl.load(x + row + i, mask=mask, other=0.0).to(tl.float32)
    apart = value - tl.sum(value, 0)
    tl.store(out + row + i, (apart * tl.max(apart, 0)).to(out.dtype.element_ty), mask=mask)


@pytest.mark.parametrize("n", [4_001, 4_080])
@pytest.mark.parametrize(
    ("kernel", "asks"), [(centred, 1), (looked_up, 0), (not_stored, 0), (of_some, 1), (from_elsewhere, 1)]
)
def test_rows_of_later_programs(monkeypatch: pytest.MonkeyPatch, kernel: Any, asks: int, n: int) -> None:
    """Rows are prefetched if they are reduced and stored, and if their address follows from the number of the program.
    The simulator reports prefetches outside of arrays. Rows of 4,080 elements are aligned, so a plain load has them."""
    monkeypatch.setattr(next_rows, "programs_ahead", lambda *given: 1)
    rows, block = 3, 4096
    x = np.random.default_rng(0).integers(-3, 4, (rows, n)).astype(ml_dtypes.bfloat16)
    out, starts = np.zeros_like(x), np.arange(rows, dtype=np.int32) * n
    with weft.target("sim:cuda:90"):
        made = kernel[(rows + 2 * (kernel is of_some),)](x, starts, out, n, B=block, num_warps=1, num_ctas=2)
    assert made.asm["ptx"].count("cp.async.bulk.prefetch.L2.global") == asks
    apart = x.astype(np.float64) - x.astype(np.float64).sum(1, keepdims=True)
    beyond = np.broadcast_to(-x.astype(np.float64).sum(1, keepdims=True), (rows, block - n))
    most = np.concatenate([apart, beyond], axis=1).max(1, keepdims=True)
    if kernel is not_stored:
        np.testing.assert_allclose(out[:, :1].astype(float), apart.max(1, keepdims=True), rtol=1e-2)
    else:
        np.testing.assert_allclose(out.astype(float), apart * most, rtol=2e-2)


def test_rows_of_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first warp prefetches them in a branch, before anything is loaded."""
    monkeypatch.setattr(next_rows, "programs_ahead", lambda *given: 1)
    monkeypatch.setattr(next_rows, "LARGE", 64)
    x = np.random.default_rng(0).integers(-3, 4, (3, 1008)).astype(np.float32)
    out = np.zeros_like(x)
    with weft.target("sim:cuda:90"):
        made = centred[(3,)](x, x, out, 1008, B=1024, num_warps=2, num_ctas=2)
    before, _, behind = made.asm["ptx"].partition("cp.async.bulk.prefetch.L2.global")
    assert "ld.global" not in before and "ld.global" in behind
    apart = x - x.sum(1, keepdims=True)
    most = np.maximum(apart.max(1, keepdims=True), -x.sum(1, keepdims=True))
    np.testing.assert_allclose(out, apart * most, rtol=1e-4)
