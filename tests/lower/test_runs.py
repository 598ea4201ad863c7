"""Registers that are known to hold the same are computed once: comparisons with multiples, quotients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import LaneOp


@weft.jit
def chosen(x, out, n, N: tl.constexpr):
    j = tl.arange(0, N)
    below = j < n
    value = tl.load(x + j, mask=below, other=7.0) + 1.0
    tl.store(out + j, tl.where(below, value, -1.0))


@weft.jit
def pieces(x, out, n, N: tl.constexpr):
    j = tl.arange(0, N)
    tl.store(out + j, tl.load(x + j // 8) * (j // 8 < n))


def ops_of(kernel: Any, aligned: bool) -> list[LaneOp]:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "N": "constexpr"}
    facts = {(i,): [["tt.divisibility", 16]] for i in range(3 if aligned else 2)}
    return list(lane_program(ASTSource(kernel, types, {"N": 1024}, facts), "sim:cuda:90", {}).body.walk())


@pytest.mark.parametrize(("aligned", "each"), [(True, 2), (False, 8)])
def test_a_mask_is_computed_once_for_a_run(aligned: bool, each: int) -> None:
    """Of 1024 elements each of 128 threads has two runs of four; where the row may end within one, one at a time."""
    ops = ops_of(chosen, aligned)
    assert max(op.result.count for op in ops if op.name == "arith.cmpi") == each
    assert max(op.operands[0].count for op in ops if op.name == "select") == 8


def test_a_quotient_is_computed_once_for_a_run() -> None:
    ops = ops_of(pieces, aligned=False)
    assert {op.result.count for op in ops if op.name in ("arith.divsi", "arith.cmpi")} == {2}


@pytest.mark.parametrize("n", [0, 16, 500, 512, 1000, 1024])
def test_what_is_chosen(n: int) -> None:
    x, out = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)
    chosen[(1,)](x, out, n, N=1024, target="sim:cuda:90")
    np.testing.assert_array_equal(out, np.where(np.arange(1024) < n, x + 1, -1))


@pytest.mark.parametrize("n", [0, 3, 64, 128])
def test_pieces(n: int) -> None:
    x, out = np.arange(1, 129, dtype=np.float32), np.zeros(1024, np.float32)
    pieces[(1,)](x, out, n, N=1024, target="sim:cuda:90")
    j = np.arange(1024) // 8
    np.testing.assert_array_equal(out, x[j] * (j < n))


@weft.jit
def counted(x, out, n, steps, N: tl.constexpr):
    j = tl.arange(0, N)
    counts, total = tl.zeros((N,), tl.int32), tl.zeros((N,), tl.float32)
    for k in range(steps):
        below = k * N + j < n
        counts += below.to(tl.int32)
        total += tl.load(x + k * N + j, mask=below, other=0.0)
    tl.store(out + j, total * counts)


def test_a_loop_carries_a_count_for_each_run() -> None:
    types = {"x": "*fp32", "out": "*fp32", "n": "i32", "steps": "i32", "N": "constexpr"}
    facts = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    ops = lane_program(ASTSource(counted, types, {"N": 1024}, facts), "sim:cuda:90", {}).body.walk()
    [loop] = [op for op in ops if op.name == "for"]
    assert sorted((v.elem, v.count) for v in loop.results) == [("f32", 8), ("i32", 2)]


@pytest.mark.parametrize(("n", "steps"), [(2048, 2), (1504, 2), (1000, 3), (0, 1), (512, 0)])
def test_what_is_counted(n: int, steps: int) -> None:
    x, out = np.arange(3072, dtype=np.float32), np.full(1024, 5, np.float32)
    counted[(1,)](x, out, n, steps, N=1024, target="sim:cuda:90")
    inside = (np.arange(3072) < n).reshape(3, 1024)[:steps]
    np.testing.assert_array_equal(out, (x.reshape(3, 1024)[:steps] * inside).sum(0) * inside.sum(0))
