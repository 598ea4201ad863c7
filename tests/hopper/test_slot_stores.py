"""Tiles that are stored by way of a slot of the loop's ring, where buffers of their own would leave fewer slots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from .crossed import Crossed
from .running import aligned
from .specialized import SCHEDULES, described, is_specialized, simulated, why_not
from .tiles import Tiles, turned

slow = pytest.mark.slow
LARGE = Tiles(turned, sizes=(256, 128, 392), block=(256, 64, 64), programs=1, stages=5)
CASES: dict[str, Any] = {
    "one tile": LARGE,
    "two programs": replace(LARGE, sizes=(520, 200, 136), programs=2),
    "two slots": Tiles(turned, sizes=(512, 256, 392), block=(256, 128, 128), programs=1, warps=8),
    "several tiles, in two blocks": Crossed(sizes=(112, 200, 136), rows=(64, 32), programs=1, stages=7, blocks=2),
    "two buffers in turn": Crossed(sizes=(112, 400, 136), rows=(64, 32), columns=(256, 128), programs=1, stages=3),
    "several tiles": Crossed(sizes=(112, 200, 520), programs=1, stages=7),
}


def has_slot(made: Any) -> bool:
    """Whether the producer passes a slot over."""
    return "ttng.barrier_expect" in made.asm["ttgir"] and ", 0, %true" in made.asm["ttgir"]


def check(case: Any, schedule: Any = None) -> None:
    """Right, and by way of a slot."""
    c, made = case.run(options=schedule)
    assert is_specialized(made), why_not(made)
    assert has_slot(made) and "_stored" not in made.asm["ttgir"]
    np.testing.assert_allclose(c.astype(np.float64), case.exact(), atol=0.1, rtol=1e-2)


def test_by_way_of_a_slot() -> None:
    check(replace(LARGE, sizes=(256, 128, 72)))


@slow
@pytest.mark.parametrize("schedule", SCHEDULES[:4])
@pytest.mark.parametrize("name", CASES)
def test_in_any_order(name: str, schedule: Any) -> None:
    check(CASES[name], schedule)


@slow
@pytest.mark.parametrize("steps", [0, 1, 6])
def test_a_tile_may_have_no_iteration(steps: int) -> None:
    """The slot that is passed over is one more iteration of a tile, however many others there are."""
    a, b, bias = LARGE.operands()
    (m, n, _), (bm, bn, bk), k = LARGE.sizes, LARGE.block, 64 * steps
    c = aligned((m, n), np.float16)
    sides = [described(*x) for x in ((a, (bm, bk)), (b, (bk, bn)), (c, (bm, bn)))]
    sizes = {"BM": bm, "BN": bn, "BK": bk, "PROGRAMS": 1, "WS": True}
    made = simulated(turned, (1,), *sides, bias, m, n, k, **sizes, num_stages=5)
    assert has_slot(made)
    wanted = np.maximum(a[:, :k].astype(np.float64) @ b[:k].astype(np.float64) + bias, 0)
    np.testing.assert_allclose(c.astype(np.float64), wanted, atol=0.1, rtol=1e-2)


@slow
@pytest.mark.parametrize(
    "case",
    [
        Tiles(turned, sizes=(64, 64, 136), block=(64, 64, 64), programs=1, stages=4),
        Tiles(sizes=(64, 256, 136), block=(64, 256, 64), programs=1, stages=5),
    ],
    ids=["these leave as many slots", "each warp stores its own rows"],
)
def test_buffers_of_their_own(case: Tiles) -> None:
    _, made = case.run()
    assert "_stored" in made.asm["ttgir"] and not has_slot(made)
