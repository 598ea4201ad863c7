"""Loads of numbers before the first reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def loss_kernel(x, labels, out, n, WRITES: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    most = tl.max(value, 0)
    if WRITES:
        tl.store(labels + row, 1)
    total = tl.sum(tl.exp(value - most), 0)
    right = tl.load(x + row * n + tl.load(labels + row))
    tl.store(out + row, most + tl.log(total) - right)


@pytest.mark.parametrize("writes", [False, True])
def test_a_label_is_loaded_beside_its_row(writes: bool) -> None:
    """And what it leads to; not over a store, which may write the label."""
    rng = np.random.default_rng(0)
    x, labels, out = rng.standard_normal((3, 100)).astype(np.float32), rng.integers(2, 100, 3), np.zeros(3, np.float32)
    args: tuple[Any, ...] = (x, labels, out, 100, writes)
    text = loss_kernel.warmup(*args, BLOCK=128, grid=(3,), target="cuda:90").asm["ttgir"]
    loads = [i for i, line in enumerate(text.splitlines()) if "tt.load" in line]
    first, last = (k(i for i, line in enumerate(text.splitlines()) if "tt.reduce\"" in line) for k in (min, max))
    assert len(loads) == 3
    assert loads[0] < first < last < loads[1] if writes else loads[2] < first
    with weft.target("sim:cuda:90"):
        loss_kernel[(3,)](*args, BLOCK=128)
    total = np.log(np.exp(x).sum(1))
    np.testing.assert_allclose(out, total - (x[:, 1] if writes else x[np.arange(3), labels]), rtol=1e-4)
