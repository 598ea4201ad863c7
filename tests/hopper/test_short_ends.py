"""The last iteration of products by descriptors, of which little may be left."""

from __future__ import annotations

import numpy as np
import pytest

from .running import DTYPES, aligned
from .specialized import described, is_specialized, product, simulated

slow = pytest.mark.slow
LENGTHS = [72, *(pytest.param(k, marks=slow) for k in (8, 16, 64, 80, 88, 128, 136))]


@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize(("kind", "trans"), [("f16", False), ("f16", True), pytest.param("f32", True, marks=slow)])
def test_the_last_iteration(kind: str, trans: bool, k: int) -> None:
    """Where an instruction multiplies all that is left, no other follows it; the sums have the same bits."""
    bm, bn, bk, n = 64, 64, 64 if kind == "f16" else 32, 64
    rng, shapes = np.random.default_rng(0), ((bm, k), (n, k) if trans else (k, n))
    a, b = (aligned(shape, DTYPES[kind]) for shape in shapes)
    a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
    found, counts = [], []
    for specialized in (True, False):
        c = np.zeros((bm, n), np.float32)
        sides = described(a, (bm, bk)), described(b, (bn, bk) if trans else (bk, bn)), c
        more = {"BM": bm, "BN": bn, "BK": bk, "TRANS": trans, "WS": specialized, "num_stages": 2}
        made = simulated(product, (1, 1), *sides, n, k, **more)
        assert is_specialized(made) == specialized
        found.append(c)
        counts.append(sum(count for what, count in made.report.kinds.items() if "wgmma.m64" in what))
    np.testing.assert_array_equal(found[0], found[1])
    each, all_of_one = 16 if kind == "f16" else 8, 4
    left = k % bk
    assert counts[1] - counts[0] == ((all_of_one - 1) * 4 if 0 < left <= each else 0)
