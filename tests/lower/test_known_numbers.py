"""What a reduction need not exchange, since it is a known number from step to step: weights of a Welford reduction."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compiler import ASTSource, lane_program


@weft.jit
def _merged(mean, m2, weight, other_mean, other_m2, other_weight):
    delta = other_mean - mean
    total = weight + other_weight
    share = tl.where(total == 0.0, 0.0, other_weight / total)
    return mean + delta * share, m2 + other_m2 + delta * delta * weight * share, total


@weft.jit
def deviations(x, out, N: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < N, other=0.0)
    weight = tl.where(i < N, tl.full([BLOCK], 1.0, tl.float32), 0.0)
    mean, m2, total = tl.reduce((v, tl.zeros([BLOCK], tl.float32), weight), 0, _merged)
    tl.store(out, mean)
    tl.store(out + 1, m2)
    tl.store(out + 2, total)


@pytest.mark.parametrize(("n", "moved"), [(1024, 2), (1000, 3)])
def test_weights_that_are_known_stay_where_they_are(n: int, moved: int) -> None:
    """Where no element is left out, the mask and then the weights are known: only numbers move, and none is divided."""
    types: dict[str, Any] = {"x": "*fp32", "out": "*fp32", "N": "constexpr", "BLOCK": "constexpr"}
    program = lane_program(ASTSource(deviations, types, {"N": n, "BLOCK": 1024}), "sim:cuda:90", {})
    kinds = Counter(op.name for op in program.body.walk())
    assert kinds["shuffle"] == 5 * moved
    assert len(program.shared) == moved
    assert (kinds["arith.divf"] == 0) == (moved == 2)


@pytest.mark.parametrize("n", [1024, 1000])
def test_the_result_is_the_same(n: int) -> None:
    x, out = np.random.default_rng(n).normal(3, 2, 1024).astype(np.float32), np.zeros(3, np.float32)
    deviations[(1,)](x, out, n, 1024, target="sim:cuda:90")
    np.testing.assert_allclose(out, [x[:n].mean(), x[:n].var() * n, n], rtol=1e-4)


@weft.jit
def of_equal_numbers(x, out, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK)).to(tl.uint32)
    greatest, place = tl.max(value ^ value, 0, return_indices=True)
    tl.store(out, greatest)
    tl.store(out + 1, place)


def test_comparisons_of_unsigned_numbers_are_known_too() -> None:
    x, out = np.arange(256, dtype=np.int32), np.full(2, 7, np.int32)
    of_equal_numbers[(1,)](x, out, 256, target="sim:cuda:90")
    assert out.tolist() == [0, 0]
