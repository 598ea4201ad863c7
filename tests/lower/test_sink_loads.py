"""Operands of a product are loaded one by one where they are needed, after one barrier for both."""

from __future__ import annotations

import numpy as np

import weft
import weft.language as tl
import weft.sim
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import LaneOp


@weft.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, iterations):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for iteration in range(iterations):
        left = tl.load(a + rows[:, None] * K * iterations + iteration * K + inner[None, :])
        right = tl.load(b + (iteration * K + inner[:, None]) * N + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def loop() -> list[LaneOp]:
    """The operations of the loop, for tiles of 64x64x64."""
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", **dict.fromkeys("MNK", "constexpr"), "iterations": "i32"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    source = ASTSource(product, types, {"M": 64, "N": 64, "K": 64}, aligned)
    program = lane_program(source, "sim:cuda:80", {})
    return next(op for op in program.body.walk() if op.name == "for").regions[0].ops


def test_loads_stand_before_what_needs_them() -> None:
    ops = loop()
    loads = [i for i, op in enumerate(ops) if op.name == "load" and op.attrs["space"] == "shared"]
    loads += [i for i, op in enumerate(ops) if "ldmatrix" in str(op.attrs.get("isa"))]
    products = [i for i, op in enumerate(ops) if "mma" in str(op.attrs.get("isa"))]
    assert len(loads) > 4
    assert min(loads) < min(products) < max(loads) < max(products)


def test_one_barrier_is_enough_for_both_operands() -> None:
    """One for what is new, and one for those who still read what was there if it is overwritten."""
    kinds = []
    for op in loop():
        stores = op.name == "store" and op.attrs["space"] == "shared"
        loads = (op.name == "load" and op.attrs["space"] == "shared") or "ldmatrix" in str(op.attrs.get("isa"))
        kinds += ["store"] * stores + ["load"] * loads + ["barrier"] * (op.name == "barrier")
    first = kinds.index("load")
    assert "store" not in kinds[first:]
    assert "barrier" not in kinds[first:]
    assert kinds.count("barrier") <= 2


def test_the_product_is_right() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (64, 192)).astype(np.float16), rng.integers(-4, 5, (192, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    with weft.target("sim:cuda:80"):
        product[(1,)](a, b, c, M=64, N=64, K=64, iterations=3)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
