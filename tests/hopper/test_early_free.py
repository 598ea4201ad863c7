"""Tiles with a buffer less than stages, whose copies begin when an iteration has read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .recurrences import Recurrence
from .specialized import SCHEDULES

slow = pytest.mark.slow
WAYS = [
    pytest.param(Recurrence(), id="engine"),
    pytest.param(Recurrence(made_tensors=False), id="threads", marks=slow),
    pytest.param(Recurrence(warps=8), id="8 warps", marks=slow),
]


def buffers(made: Any) -> list[int]:
    """Of each copied tile, in the order of the loads."""
    (remark,) = made.remarks.of("pipelined")
    return [copy.buffers for copy in remark.copies]


@pytest.mark.parametrize("options", [SCHEDULES[3], *(pytest.param(x, marks=slow) for x in SCHEDULES)], ids=str)
@pytest.mark.parametrize("case", WAYS)
def test_a_recurrence(case: Recurrence, options: Any) -> None:
    """It has the bits that it has without copies ahead. The gate, v and k are read first, by the first product. Each
    thread of 8 warps has few copies to begin, which land sooner than the engine's."""
    found, made = case.run(options)
    assert buffers(made) == [1, 1, 1, 2, 2]
    by_engine = case.made_tensors and case.warps == 4
    assert ("async_tma_copy_global_to_local" in made.asm["ttgir"]) == by_engine
    plain, _ = case.run(num_stages=1)
    for x, exact in zip(found, plain, strict=True):
        np.testing.assert_array_equal(x, exact)


def test_copies_begin_where_a_tile_was_read() -> None:
    """Those of k, of which there is one buffer, behind the first use of its product; those of q before all products."""
    _, made = Recurrence().run()
    text = made.asm["ttgir"]
    body = text[text.index("scf.for") : text.index("scf.yield")]
    product = body.index("ttng.warp_group_dot ")
    places = [body.index(f"async_tma_copy_global_to_local %{name}_") for name in "qwvk"]
    assert max(places[:2]) < product < min(places[2:])
    assert body.count("ttng.barrier_expect") == 1
