"""Loops of products that go on into the next iteration together, that add to each other's results, and that store."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

from .running import DTYPES, aligned
from .specialized import SCHEDULES, described, is_specialized, simulated

slow = pytest.mark.slow
BM, BN, BK, STEPS = 64, 64, 64, 5


@weft.jit
def two_sums(a, b, c, out, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """a b^T and a c^T."""
    one, other = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, warp_specialize=True):
        left = a.load([0, at])
        one = tl.dot(left, b.load([0, at]).T, one)
        other = tl.dot(left, c.load([0, at]).T, other)
    at = out + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(at, one)
    tl.store(at + BM * BN, other)


@weft.jit
def one_sum(a, b, c, out, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """a (b + c)^T, in the first half, and in the second of all steps what there was before it."""
    one, before = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, K, BK, warp_specialize=True):
        before += one
        left = a.load([0, at])
        one = tl.dot(left, c.load([0, at]).T, tl.dot(left, b.load([0, at]).T, one))
    at = out + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(at, one)
    tl.store(at + BM * BN, before)


@weft.jit
def stored_rows(a, b, c, out, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]
    """A loop that loads what other threads have stored in the iteration before: a row backwards."""
    one, rows = tl.zeros((BM, BN), tl.float32), tl.arange(0, BM)
    for at in tl.range(0, K, BK, warp_specialize=True):
        one = tl.dot(a.load([0, at]), b.load([0, at]).T, one)
        tl.store(out + rows, tl.load(out + BM - 1 - rows) + tl.sum(one, 1))


def operands() -> list[np.ndarray]:
    rng, found = np.random.default_rng(0), []
    for _ in range(3):
        found.append(aligned((BM, STEPS * BK), DTYPES["f16"]))
        found[-1][...] = rng.standard_normal(found[-1].shape)
    return found


def run(kernel: Any, options: Any) -> tuple[np.ndarray, list[str]]:
    """The results, and products and waits in the loop."""
    out = aligned((2, BM, BN), np.float32)
    out[...] = 0
    sides = [described(x, (BM, BK)) for x in operands()]
    more = {"BM": BM, "BN": BN, "BK": BK, "num_warps": 4, "num_stages": 2}
    made = simulated(kernel, (1,), *sides, out, STEPS * BK, **more, options=options)
    assert is_specialized(made)
    text = made.asm["ttgir"].split("default {")[1].split("scf.for")[1].split("scf.yield")[0]
    found = re.findall(r"(warp_group_dot_wait|warp_group_dot) .*?(?:pendings = (\d)|isAsync)", text)
    return out, [f"wait {pending}" if "wait" in name else "begin" for name, pending in found]


def sums(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of the columns of each step, added up step by step."""
    parts = [left[:, i : i + BK].astype(np.float64) @ right[:, i : i + BK].T for i in range(0, STEPS * BK, BK)]
    return np.cumsum(parts, axis=0)


@slow
@pytest.mark.parametrize("options", SCHEDULES[:4], ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
def test_two_sums(options: Any) -> None:
    found, steps = run(two_sums, options)
    a, b, c = (x.astype(np.float64) for x in operands())
    np.testing.assert_allclose(found, [a @ b.T, a @ c.T], atol=1e-3)
    assert steps == ["begin", "begin", "wait 1"]


@slow
@pytest.mark.parametrize("options", SCHEDULES[:4], ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
def test_one_sum(options: Any) -> None:
    found, _ = run(one_sum, options)
    a, b, c = (x.astype(np.float64) for x in operands())
    after = sums(a, b) + sums(a, c)
    np.testing.assert_allclose(found, [after[-1], after[:-1].sum(0)], atol=1e-3)


@slow
@pytest.mark.parametrize("options", SCHEDULES[:4], ids=lambda o: f"{o.copies}-{o.order}{o.seed}")
def test_stored_rows(options: Any) -> None:
    found, _ = run(stored_rows, options)
    a, b, _ = (x.astype(np.float64) for x in operands())
    row = np.zeros(BM)
    for product in sums(a, b):
        row = row[::-1] + product.sum(1)
    np.testing.assert_allclose(found[0, 0], row, atol=1e-3)
