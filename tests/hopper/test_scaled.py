"""Loops that scale each product and add it to a sum: right, bit by bit what the loop without warps apart gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from .scaled import Scaled, by_pointers
from .specialized import SCHEDULES, is_specialized, why_not


def check(case: Scaled, options: Any = None) -> Any:
    found, made = case.run(options=options)
    assert is_specialized(made)
    plain, other = case.run(stages=1)
    assert not is_specialized(other) and why_not(other) == ["num_stages is 1"]
    np.testing.assert_array_equal(found, plain)
    exact = case.exact()
    np.testing.assert_allclose(found, exact, atol=2e-3 * np.abs(exact).max())
    return made


def test_scales_are_loaded_an_iteration_ahead() -> None:
    made = check(Scaled(), SCHEDULES[3])
    loop = made.asm["ttgir"].split("scf.for")[1].split("scf.yield")[0]
    loads, product = (loop.index(word) for word in ("tt.load", "ttng.wait_barrier"))
    assert loads < product and "%by_row_0 = %by_row" in loop


CASES = {
    **{f"{n} steps": Scaled(sizes=(64, 64, n * 64), stages=4) for n in (2, 3, 4, 5, 8)},
    "by pointers": Scaled(kernel=by_pointers, stages=3),
    "by pointers, a step that sticks out": Scaled(sizes=(64, 64, 304), kernel=by_pointers, stages=3),
    "two scales of columns": Scaled(sizes=(64, 128, 256), block=(64, 128, 64), stages=3),
    "bf16": Scaled(kind="bf16", stages=3),
    "8 warps": Scaled(sizes=(128, 128, 512), block=(128, 128, 128), warps=8, stages=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_scaled_products(case: Scaled) -> None:
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("options", SCHEDULES, ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
def test_under_schedules(options: Any) -> None:
    check(Scaled(sizes=(128, 64, 448)), options)
    check(Scaled(sizes=(128, 64, 448), stages=3), options)
    check(Scaled(sizes=(64, 64, 512), kernel=by_pointers, stages=4), options)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [None, by_pointers], ids=["by descriptors", "by pointers"])
def test_eight_warps_do_it_unasked(kernel: Any) -> None:
    """Where the sum and what is added to it leave no room for a second block."""
    case = Scaled(sizes=(128, 128, 384), block=(128, 128, 128), warps=8, stages=3, asked=False)
    case = case if kernel is None else replace(case, kernel=kernel)
    check(case)
    assert not is_specialized(replace(case, warps=4, block=(64, 64, 128)).run()[1])


PARTS = {
    "columns": Scaled(sizes=(128, 256, 256), block=(128, 256, 128), warps=8, stages=3, asked=False),
    "columns, by pointers": Scaled(
        sizes=(128, 256, 256), block=(128, 256, 128), kernel=by_pointers, warps=8, stages=3, asked=False
    ),
    "rows": Scaled(sizes=(128, 128, 256), block=(128, 128, 128), stages=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_sums_without_room_are_divided(name: str) -> None:
    """The sum of a thread and what is added to it would take 256 registers; the bits are those of smaller blocks."""
    case = PARTS[name]
    made = check(case)
    (bm, bn, bk), by_rows = case.block, name == "rows"
    assert made.remarks.of("product split")
    smaller = replace(case, block=(bm // 2, bn, bk) if by_rows else (bm, bn // 2, bk))
    found, other = smaller.run()
    assert not other.remarks.of("product split")
    np.testing.assert_array_equal(case.run()[0], found)
