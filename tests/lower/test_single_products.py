"""Products by single multiplications take their operands from shared memory, a slice of the sum at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.nvidia import emit
from weft.backends.nvidia.ptxas import assemble, find_tool
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import LaneOp, LaneProgram, Value
from weft.layouts import BlockedLayout, DotOperandLayout
from weft.layouts.plan import machine_of, plan_local_access
from weft.passes.store_operands import memory_for


@weft.jit
def attention(q, k, v, out, n, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m, d = tl.arange(0, BM), tl.arange(0, HEAD)
    query = tl.load(q + m[:, None] * HEAD + d[None, :])
    acc = tl.zeros((BM, HEAD), tl.float32)
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        key = tl.load(k + j[None, :] * HEAD + d[:, None])
        scores = tl.dot(query, key, input_precision="ieee")
        value = tl.load(v + j[:, None] * HEAD + d[None, :])
        acc = tl.dot(scores * 0.5, value, acc, input_precision="ieee")
    tl.store(out + m[:, None] * HEAD + d[None, :], acc)


@weft.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for iteration in range(3):
        left = tl.load(a + m[:, None] * K * 3 + iteration * K + k[None, :])
        if TURNED:
            right = tl.trans(tl.load(b + n[:, None] * K * 3 + iteration * K + k[None, :]))
        else:
            right = tl.load(b + (iteration * K + k[:, None]) * N + n[None, :])
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], total)


def program_of(target: str, head: int, bm: int, bn: int) -> LaneProgram:
    """Attention in full precision."""
    types = {**dict.fromkeys(("q", "k", "v", "out"), "*fp32"), "n": "i32"}
    types |= dict.fromkeys(("HEAD", "BM", "BN"), "constexpr")
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(5)}
    source = ASTSource(attention, types, {"HEAD": head, "BM": bm, "BN": bn}, aligned)
    return lane_program(source, target, {})


def multiplied(value: Value, users: dict[Value, list[LaneOp]]) -> bool:
    """Whether a loaded value is multiplied, perhaps under other names."""
    return any(
        op.name == "math.fma" or (op.name in ("rename", "join") and multiplied(op.result, users))
        for op in users.get(value, ())
    )


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_few_registers_are_loaded_at_a_time(target: str) -> None:
    """Of a query of 64 by 64, which the loop does not change, of its scores, of keys and values."""
    program = program_of(target, 64, 64, 32)
    (loop,) = (op for op in program.body.walk() if op.name == "for")
    users: dict[Value, list[LaneOp]] = {}
    for op in program.body.walk():
        for value in op.operands:
            users.setdefault(value, []).append(op)
    kinds = []
    for op in program.body.walk():
        if op.name == "load" and op.attrs["space"] == "shared" and multiplied(op.result, users):
            assert op in loop.regions[0].ops
            assert op.result.count <= 32
            kinds.append("load")
        if op.name == "math.fma":
            kinds.append("multiply")
    assert kinds.count("load") > 64
    changes = sum(a != b for a, b in itertools.pairwise(kinds))
    assert changes > 40


@pytest.mark.skipif(find_tool() is None, reason="there is no ptxas on this machine")
@pytest.mark.parametrize("shape", [(64, 32, 32), (64, 64, 32), (128, 64, 32)])
def test_nothing_is_spilled(shape: tuple[int, int, int]) -> None:
    emitted = emit(program_of("sim:cuda:90", *shape))
    assert assemble(emitted.code, emitted.processor).spilled_bytes == 0


@pytest.mark.parametrize("head", [32, 64])
def test_attention_is_right(head: int) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-3, 4, (rows, head)).astype(np.float32) for rows in (32, 96, 96))
    out = np.zeros_like(q)
    with weft.target("sim:cuda:90"):
        attention[(1,)](q, k, v, out, 96, HEAD=head, BM=32, BN=32)
    np.testing.assert_array_equal(out, (q @ k.T * 0.5) @ v)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(8, 32, 16), (64, 32, 64)])
def test_product_is_right(dtype: type, turned: bool, shape: tuple[int, int, int]) -> None:
    """Of few rows in f16 too, for which there is no matrix instruction; its slices are widened."""
    rng = np.random.default_rng(1)
    m, n, k = shape
    a, b = rng.integers(-3, 4, (m, 3 * k)).astype(dtype), rng.integers(-3, 4, (3 * k, n)).astype(dtype)
    c = np.zeros((m, n), np.float32)
    with weft.target("sim:cuda:90"):
        product[(1,)](a, np.ascontiguousarray(b.T) if turned else b, c, M=m, N=n, K=k, TURNED=turned)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("side", [0, 1])
def test_memory_has_no_conflicts(side: int) -> None:
    """Rows that lanes read at the same time lie in different banks, though they are four apart."""
    parent = BlockedLayout([4, 4], [4, 8], [4, 1], [1, 0])
    held = BlockedLayout([1, 4], [2, 16], [4, 1], [1, 0])
    shape, machine = [64, 64], machine_of("cuda:90")
    operand = DotOperandLayout(side, parent, 0).to_linear(shape)
    for order in ([1, 0], [0, 1]):
        memory = memory_for(shape, 32, [held.to_linear(shape)], operand, machine, order)
        assert memory is not None
        assert plan_local_access(operand, memory, shape, 32, machine).access.excess == 0
