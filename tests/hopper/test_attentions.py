"""Variants of attention, all right; each is specialised, or a remark says why it is not (`make specialized-test`)."""

from __future__ import annotations

import numpy as np
import pytest

from .attentions import KERNELS, SCORED
from .specialized import SCHEDULES, is_specialized, why_not


def test_there_are_enough() -> None:
    assert len(SCORED) + len(KERNELS) >= 50


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORED)
def test_scores(name: str) -> None:
    scored = SCORED[name]
    found, sums, made = scored.case.run(options=SCHEDULES[3])
    assert is_specialized(made) and not why_not(made)
    np.testing.assert_allclose(found, scored.case.exact(scored.change), atol=0.03)
    plain, plain_sums, other = scored.case.run(stages=1)
    assert not is_specialized(other)
    np.testing.assert_array_equal(found, plain)
    np.testing.assert_array_equal(sums, plain_sums)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_structures(name: str) -> None:
    case = KERNELS[name]
    found, exact, made = case.run()
    np.testing.assert_allclose(found, exact, atol=0.02 * max(1.0, np.abs(exact).max() / 4))
    assert is_specialized(made) is not bool(case.stays)
    assert why_not(made) == ([case.stays] if case.stays else [])
    plain, _, other = case.run(stages=1)
    assert not is_specialized(other)
    np.testing.assert_array_equal(found, plain)
