"""Loads of shared memory whose values only masked stores want are masked as these are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
import weft.sim
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import LaneOp


@weft.jit
def row_sums(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    total = tl.sum(tl.load(x + i[:, None] * N + j[None, :]), axis=1)
    tl.store(out + i, 2 * total + 1, mask=i < n)


@weft.jit
def row_sums_twice(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    total = tl.sum(tl.load(x + i[:, None] * N + j[None, :]), axis=1)
    tl.store(out + i, total, mask=i < n)
    tl.store(out + M + i, total, mask=i >= n)


def last_load(kernel: Any) -> tuple[LaneOp, list[LaneOp]]:
    """The last load of shared memory of tiles of 32x128, and the stores to global memory."""
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "M": "constexpr", "N": "constexpr"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(2)}
    program = lane_program(ASTSource(kernel, types, {"M": 32, "N": 128}, aligned), "sim:cuda:90", {})
    ops = list(program.body.walk())
    loads = [op for op in ops if op.name == "load" and op.attrs["space"] == "shared"]
    return loads[-1], [op for op in ops if op.name == "store" and op.attrs["space"] == "global"]


def test_a_load_gets_the_mask_of_its_store() -> None:
    load, [store] = last_load(row_sums)
    assert load.attrs["masked"] and store.attrs["masked"]
    assert load.operands[1].count == store.operands[2].count == 1


def test_a_load_for_two_masks_stays() -> None:
    load, stores = last_load(row_sums_twice)
    assert len(stores) == 2 and all(s.attrs["masked"] for s in stores)
    assert not load.attrs.get("masked")


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_what_is_not_stored_is_not_loaded(target: str) -> None:
    """20 of 32 sums: 20 threads load one word each, which is one pass."""
    x = np.random.default_rng(0).integers(-9, 10, (32, 128)).astype(np.float32)
    out = np.zeros(64, np.float32)
    report = row_sums[(1,)](x, out, 20, 32, 128, target=target)
    np.testing.assert_array_equal(out[:20], 2 * x.sum(axis=1)[:20] + 1)
    assert not out[20:].any()
    assert report.threads["store.global.32"] == 20
    assert report.threads["load.shared.32"] == 20
    assert report["shared_load_wavefronts"] == 1
    row_sums_twice[(1,)](x, out, 20, 32, 128, target=target)
    np.testing.assert_array_equal(out[32 + 20 : 64], x.sum(axis=1)[20:])


def test_variables_are_shown_although_not_all_have_them() -> None:
    x, out = np.ones((32, 128), np.float32), np.zeros(64, np.float32)
    with weft.sim.debug("tl.store(out + i") as stops:
        row_sums[(1,)](x, out, 32, 32, 128, target="sim:cuda:90")
    assert stops[0]["total"].tolist() == [128.0] * 32
