"""Tiles that change their layouts through shared memory are stored before the first of them is loaded."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl
import weft.sim
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import LaneProgram


@weft.jit
def product(a, b, c, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(c + i * N + j, tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j)))


@weft.jit
def moments(x, out, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(values, axis=0))
    tl.store(out + 1, tl.sum(values * values, axis=0))


@weft.jit
def centred(x, out, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    difference = values - tl.sum(values, axis=0)
    tl.store(out, tl.sum(difference * difference, axis=0))


def lowered(kernel: object, elem: str, n: int, warps: int = 4) -> LaneProgram:
    pointers = [name for name in kernel.arg_names if name != "N"]
    types = {**dict.fromkeys(pointers, f"*{elem}"), "N": "constexpr"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(len(pointers))}
    return lane_program(ASTSource(kernel, types, {"N": n}, aligned), "sim:cuda:90", {"num_warps": warps})


def accesses(program: LaneProgram) -> str:
    """A letter for each access of shared memory and each barrier: s, l and b."""
    told = ""
    for op in program.body.ops:
        if op.name in ("store", "load") and op.attrs["space"] == "shared":
            told += op.name[0]
        elif op.name == "instruction" and "matrix" in op.attrs["isa"]:
            told += op.attrs["isa"][0]
        elif op.name == "barrier":
            told += "b"
    return told


@pytest.mark.parametrize("elem", ["fp32", "fp16"])
def test_both_operands_of_a_product_wait_at_one_barrier(elem: str) -> None:
    told = accesses(lowered(product, elem, 32))
    assert told.startswith("ssb"), told
    assert told[3] == "l", told


def test_two_sums_wait_at_one_barrier() -> None:
    assert accesses(lowered(moments, "fp32", 1024)).count("b") == 1


def test_what_needs_the_first_sum_waits_for_it() -> None:
    assert accesses(lowered(centred, "fp32", 1024)).startswith("sbls")


def test_tiles_share_bytes_where_fewer_blocks_would_fit() -> None:
    """With 32 KB for both tiles, only six blocks would run at a time on a multiprocessor; registers suffice for
    seven."""
    apart, shared = (lowered(product, "fp32", 64, warps).shared_bytes for warps in (2, 1))
    assert apart == 2 * 4 * 64 * 64
    assert shared == 4 * 64 * 64


@pytest.mark.parametrize("elem", [np.float32, np.float16])
def test_the_product_is_right(elem: type) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (32, 32)).astype(elem) for _ in range(2))
    c = np.zeros((32, 32), elem)
    with weft.target("sim:cuda:90"):
        product[(1,)](a, b, c, N=32)
    np.testing.assert_array_equal(c, (a.astype(np.float64) @ b.astype(np.float64)).astype(elem))


def test_the_sums_are_right() -> None:
    x, out = np.random.default_rng(0).integers(-4, 5, 1024).astype(np.float32), np.zeros(2, np.float32)
    with weft.target("sim:cuda:90"):
        moments[(1,)](x, out, N=1024)
    assert out.tolist() == [x.sum(), (x * x).sum()]
