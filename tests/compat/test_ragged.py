"""triton.tools.ragged_tma: groups of rows of different sizes through one descriptor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compat.shim.tools.ragged_tma import atomic_add_ragged, create_ragged_descriptor, load_ragged, store_ragged

torch = pytest.importorskip("torch", reason="descriptors of PyTorch tensors")


@weft.jit
def double_groups(x, out, total, starts, sizes, M: tl.constexpr):
    group = tl.program_id(0)
    first, rows = tl.load(starts + group), tl.load(sizes + group)
    for row in range(0, rows, M):
        tile = load_ragged(x, first, rows, [row, 0])
        store_ragged(out, first, rows, [row, 0], tile * 2)
        atomic_add_ragged(total, first, rows, [row, 0], tile)


@weft.jit
def sum_of_group(x, out, first, rows, M: tl.constexpr):
    tile = load_ragged(x, first, rows, [0, 0, 0], ragged_dim=1)
    tl.store(out, tl.sum(tile))


@pytest.mark.parametrize("debug", [False, True])
def test_groups_of_rows(debug: bool) -> None:
    x = torch.arange(37 * 24, dtype=torch.float32).reshape(37, 24)
    out, total = torch.zeros_like(x), torch.ones_like(x)
    described = [create_ragged_descriptor(t, [8, 32]) for t in (x, out, total)]
    starts, sizes = np.array([0, 5, 5, 20], np.int32), np.array([5, 0, 15, 13], np.int32)
    double_groups[(4,)](*described, starts, sizes, 8, debug=debug)
    want = x * 2
    want[33:] = 0  # rows that belong to no group
    assert torch.equal(out, want)
    assert torch.equal(total, want / 2 + 1)


def test_groups_along_the_second_of_three_dimensions() -> None:
    x = torch.arange(2 * 9 * 8, dtype=torch.float32).reshape(2, 9, 8)
    out = torch.zeros(1)
    sum_of_group[(1,)](create_ragged_descriptor(x, [2, 4, 8], ragged_dim=-2), out, 5, 3, 4)
    assert out.item() == x[:, 5:8].sum().item()


@pytest.mark.parametrize(
    ("shape", "block", "axis", "message"),
    [
        ((4, 4), [2, 2], 1, r"^ragged_dim is one of the first 1 dimensions, got 1$"),
        ((4, 4), [2], 0, r"^block_shape \(2,\) is not of 2 dimensions"),
        ((1, 1, 4, 4), [1, 1, 2, 2], 0, r"^a ragged descriptor is of at most 3 dimensions"),
    ],
)
def test_what_no_ragged_descriptor_is_made_of(shape: Any, block: Any, axis: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_ragged_descriptor(torch.zeros(shape), block, axis)
