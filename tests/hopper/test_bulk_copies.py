"""Loops that are not divided among warps, whose operands the copy engine copies ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .gradients import Gradients
from .specialized import SCHEDULES, Product, is_specialized

scheduled = pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
slow = pytest.mark.slow
PLAIN = Gradients(n=64, asked=False, stages=3)


def by_engine(made: Any) -> bool:
    """Whether the copy engine copies the operands of a kernel's loops, by the side of nobody."""
    text = made.asm["ttgir"]
    return "async_tma_copy_global_to_local" in text and not is_specialized(made)


def check(case: Gradients, options: Any = None) -> Any:
    """That the copy engine copies, and that this is right."""
    found, made = case.run(options=options)
    assert by_engine(made)
    for x, exact in zip(found, case.exact(), strict=True):
        np.testing.assert_allclose(x, exact, atol=0.03 * np.abs(exact).max())
    return made


def test_rows_are_copied_by_threads_beside_it() -> None:
    """A row is read where it is used: `sums` after the products that begin before it is."""
    made = check(PLAIN, SCHEDULES[3])
    text = made.asm["ttgir"]
    body = text[text.index("scf.for") :]
    assert body.count("async_copy_global_to_local") == 2 and body.count("async_tma_copy_global_to_local") == 2
    first, second = (i for i in range(len(body)) if body.startswith("ttg.local_load", i))
    assert first < body.index("math.exp2") < body.rindex("ttng.warp_group_dot_wait", 0, second) < second


@slow
@scheduled
@pytest.mark.parametrize(
    "case",
    [
        PLAIN,
        Gradients(n=256, asked=False, block=(64, 64), head=64, stages=3, causal=True),
        Gradients(n=128, asked=False, block=(64, 16), of="queries", stages=3),
        Gradients(n=64, asked=False, block=(64, 64), of="all", stages=3),
        Gradients(n=64, asked=False, block=(64, 64), stages=4),
    ],
    ids=["keys", "causal", "queries", "all", "one iteration of four"],
)
def test_gradients(case: Gradients, options: Any) -> None:
    check(case, options)


def test_with_two_buffers_few_copies_land_earlier_by_threads() -> None:
    _, made = Gradients(n=64, asked=False).run()
    assert not by_engine(made)


@pytest.mark.parametrize("options", [SCHEDULES[1], *(pytest.param(x, marks=slow) for x in SCHEDULES[2:])], ids=str)
@pytest.mark.parametrize("warps", [4, pytest.param(8, marks=slow)])
def test_a_product_that_only_adds(warps: int, options: Any) -> None:
    """Copies need no fence, and the threads no addresses. Sums have the bits that threads' copies give."""
    case = Product(trans=False, sizes=(16 * warps, 64, 264), block=(16 * warps, 64, 64), warps=warps, stages=4)
    found, made = case.run(asked=False, options=options)
    assert by_engine(made)
    other, by_threads = case.run(asked=False, stages=2)
    assert not by_engine(by_threads)
    np.testing.assert_array_equal(found, other)
    np.testing.assert_allclose(found, case.exact(), atol=1e-2)
