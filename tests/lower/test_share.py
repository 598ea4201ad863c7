"""What is computed twice is computed once: a compare-and-exchange is one shuffle, or one trip through shared memory."""

from __future__ import annotations

from collections import Counter

import numpy as np

import weft
import weft.language as tl
import weft.sim
from weft.compiler import ASTSource, lane_program
from weft.ir.lane import Block, Builder, LaneProgram, Value
from weft.lower.share import share
from weft.machines import machine_of


@weft.jit
def sort(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), dim=1))


def kinds(rows: int, columns: int) -> Counter[str]:
    """Registers shuffled, and accesses of shared memory, of each lane."""
    types = {"x": "*fp32", "out": "*fp32", "M": "constexpr", "N": "constexpr"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(2)}
    program = lane_program(ASTSource(sort, types, {"M": rows, "N": columns}, aligned), "sim:cuda:80", {})
    found: Counter[str] = Counter()
    for op in program.body.walk():
        if op.name == "shuffle":
            found["shuffle"] += op.result.count
        elif op.name in ("load", "store") and op.attrs["space"] == "shared":
            found[op.name] += op.operands[0].count
        elif op.name == "barrier":
            found["barrier"] += 1
    return found


def test_a_step_within_a_warp_is_one_shuffle() -> None:
    """64 columns: of 21 steps 10 are between lanes (4 + 3 + 2 + 1), for the 16 elements of each lane."""
    found = kinds(32, 64)
    assert found["shuffle"] == 16 * 10
    assert not found["store"]


def test_a_step_between_warps_is_one_trip() -> None:
    """1024 columns: of 55 steps 5 are between warps (3 + 2), for the 8 elements of each lane."""
    found = kinds(1, 1024)
    assert found["store"] == found["load"] == 5 * 8
    assert found["barrier"] <= 9


def test_sorted() -> None:
    x = np.random.default_rng(0).standard_normal((4, 256)).astype(np.float32)
    out = np.zeros_like(x)
    with weft.target("sim:cuda:80"):
        sort[(1,)](x, out, M=4, N=256)
    assert np.array_equal(out, np.sort(x, axis=1))


def test_zeros_of_both_signs_and_types_are_apart() -> None:
    body = Block((Value("i64", 1),))
    build = Builder(body)
    zeros = [build.constant("f32", 0.0), build.constant("f32", -0.0), build.constant("i32", 0), build.constant("f32", 0.0)]  # fmt: skip  # noqa: E501
    for zero in zeros:
        build.store("global", body.arguments[0], zero)
    program = LaneProgram("zeros", machine_of("cuda:80"), (), body, 1)
    share(program)
    stored = [op.operands[1] for op in body.ops if op.name == "store"]
    assert stored[0] is stored[3]
    assert len({id(v) for v in stored}) == 3


def test_what_nobody_wants_is_left_out_and_effects_are_not() -> None:
    body = Block((Value("i64", 1),))
    build = Builder(body)
    lane = build.linear((0,), lane=(1, 2, 4, 8, 16))
    build.op("arith.addi", [lane, build.constant("i32", 1)], "i32")
    build.atomic("global", "add", body.arguments[0], lane)
    share(LaneProgram("effects", machine_of("cuda:80"), (), body, 1))
    assert [op.name for op in body.ops] == ["linear", "atomic"]
