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


@pytest.mark.parametrize(("kernel", "asks"), [(centred, 1), (looked_up, 0), (not_stored, 0)])
def test_rows_of_later_programs(monkeypatch: pytest.MonkeyPatch, kernel: Any, asks: int) -> None:
    """Asked for are rows that wait in shared memory to be stored, and whose place the number of their program says."""
    monkeypatch.setattr(next_rows, "LEAST", 1)
    n, rows, block = 4_001, 3, 4096
    x = np.random.default_rng(0).integers(-3, 4, (rows, n)).astype(ml_dtypes.bfloat16)
    out, starts = np.zeros_like(x), np.arange(rows, dtype=np.int32) * n
    with weft.target("sim:cuda:90"):
        made = kernel[(rows,)](x, starts, out, n, B=block, num_warps=1, num_ctas=2)
    assert made.asm["ptx"].count("cp.async.bulk.prefetch.L2.global") == asks
    apart = x.astype(np.float64) - x.astype(np.float64).sum(1, keepdims=True)
    beyond = np.broadcast_to(-x.astype(np.float64).sum(1, keepdims=True), (rows, block - n))
    most = np.concatenate([apart, beyond], axis=1).max(1, keepdims=True)
    if kernel is not_stored:
        np.testing.assert_allclose(out[:, :1].astype(float), apart.max(1, keepdims=True), rtol=1e-2)
    else:
        np.testing.assert_allclose(out.astype(float), apart * most, rtol=2e-2)
