"""Barriers where accesses of global memory may meet, and none where each thread has elements of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from fuzz.compare import check
from weft.compiler import lane_program
from weft.ir.lane import Block, LaneOp, LaneProgram


@weft.jit
def own_elements(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@weft.jit
def other_array(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(0, n, B):
        tl.store(y + k + i, tl.load(x + k + i) * 2)


@weft.jit
def neighbours(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, i)
    tl.store(y + i, tl.load(x + (i ^ 64)))


@weft.jit
def load_first(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + (i ^ 64))
    tl.store(x + i, i)
    tl.store(y + i, v)


@weft.jit
def counted(x, y, n, B: tl.constexpr):
    tl.store(x, tl.load(x) + 1)


@weft.jit
def small(x, y, n, B: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(x + i, tl.load(x + i) + 1)


@weft.jit
def then_in_a_loop(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, i)
    total = tl.zeros([B], tl.int32)
    for k in range(n):
        total += tl.load(x + (i ^ k))
    tl.store(y + i, total)


@weft.jit
def turn_by_turn(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        tl.store(x + k + i, tl.load(x + k + i + 1))


@weft.jit
def ordered_already(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, i)
    tl.debug_barrier()
    tl.store(y + i, tl.load(x + (i ^ 64)))


@weft.jit
def added(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(x + i, 1)
    tl.atomic_add(x + (i ^ 64), 1)


@weft.jit
def seen_after_adding(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(x + i % 8, 1)
    tl.store(y + i, tl.load(x + i))


@weft.jit
def remainders(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B) % 64
    tl.store(x + i, tl.load(x + i) + 1)


@weft.jit
def own_turn_by_turn(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(0, n, B):
        tl.store(x + k + i, tl.load(x + k + i) * 2)


@weft.jit
def moved_pointers(x, y, n, B: tl.constexpr):
    at = x + tl.arange(0, B)
    for _ in range(n):
        tl.store(at, tl.load(at) * 2)
        at += B


@weft.jit
def moved_too_little(x, y, n, B: tl.constexpr):
    at = x + tl.arange(0, B)
    for _ in range(n):
        tl.store(at, tl.load(at) * 2)
        at += B // 2


@weft.jit
def halves(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        row = (tl.program_id(0) * n + k) * 2 * B
        a, b = tl.load(x + row + i), tl.load(x + row + B + i)
        tl.store(x + row + i, a - b)
        tl.store(x + row + B + i, a + b)


@weft.jit
def shared_edges(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        row = (tl.program_id(0) * n + k) * 2 * B
        tl.store(x + row + i, 1)
        tl.store(x + row + B - 1 + i, 2)


@weft.jit
def far_apart(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, i)
    tl.store(y + i, tl.load(x + B + (B - 1 - i)))
    tl.store(x + 2 * B + i, tl.load(x + n + i))


@weft.jit
def one_turn_only(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        for j in range(4):
            tl.store(x + k + j * B + i, tl.load(x + k + j * B + i) + 1)


@weft.jit
def many(x, y, n, B: tl.constexpr):
    i = tl.arange(0, 64)
    total = tl.zeros([64], tl.int32)
    for k in tl.static_range(B):
        total += tl.load(x + k * 64 + i)
    tl.store(x + 100 * 64 + i, total)


@weft.jit
def side_by_side(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, B)
    for k in tl.static_range(4):
        tl.store(x + i + k * B, tl.load(y + i + k * B))


@weft.jit
def halves_of_rows(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, 16)[:, None] * 128 + tl.arange(0, 64)[None, :]
    a, b = tl.load(x + i), tl.load(x + i + 64)
    tl.store(x + i, a - b)
    tl.store(x + i + 64, a + b)


@weft.jit
def overlapping_rows(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, 16)[:, None] * 128 + tl.arange(0, 64)[None, :]
    tl.store(x + i, 1)
    tl.store(x + i + 60, 2)


@weft.jit
def columns_turn_by_turn(x, y, n, B: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 1024 + tl.arange(0, 64)[None, :]
    for k in range(n):
        tl.store(x + k * 16384 + i, tl.load(x + k * 16384 + 512 + i))


@weft.jit
def where_a_branch_says(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        place = 0
        if k % 2 == 1:
            place = 32
            tl.store(y + k, k)
        tl.store(x + place + i, tl.load(x + place + i) + 1)


@weft.jit
def where_inner_turns_say(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        place = 0
        for _ in range(k):
            place += 32
        tl.store(x + place + i, tl.load(x + place + i) + 1)


@weft.jit
def where_a_condition_says(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(n):
        place = 0
        while place < k * 32:
            place += 32
        tl.store(x + place + i, tl.load(x + place + i) + 1)


@weft.jit
def where_a_branch_always_says(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for k in range(4):
        place = 0
        if n > 5:
            place = 32
            tl.store(y + k, k)
        tl.store(x + place + i, tl.load(x + place + i) + 1)


@weft.jit
def behind_a_loop_of_no_turns(x, y, n, B: tl.constexpr):
    """The reduction has a barrier in each iteration, and there may be none."""
    i = tl.arange(0, B)
    tl.store(x + i, i)
    total = 0
    for k in range(n):
        total += tl.max(i + k, 0)
    tl.store(y + i, tl.load(x + (i ^ 512)) + total)


@weft.jit
def behind_a_while(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, i)
    while n > 0:
        n -= tl.max(i, 0)
    tl.store(y + i, tl.load(x + (i ^ 512)) + n)


@weft.jit
def addresses_change_places(x, y, n, B: tl.constexpr):
    """None of them grows by a constant, and each by the others."""
    a = tl.arange(0, B)
    b, c = a + B, a + 2 * B
    for _ in range(n):
        tl.store(x + a, tl.load(x + (b ^ 1)))
        a, b, c = b, c, a


def _program(kernel: Any, size: int = 1024, aligned: bool = False, **options: Any) -> LaneProgram:
    hints = {(i,): [["tt.divisibility", 16]] for i in range(3)} if aligned else {}
    source = weft.ASTSource(kernel, {"x": "*i32", "y": "*i32", "n": "i32"}, {"B": size}, hints)
    return lane_program(source, "sim:cuda:90", options)


def _found(program: LaneProgram) -> list[tuple[LaneOp, bool]]:
    """The barriers for global memory, and whether they are in a loop."""

    def walk(block: Block, inside: bool) -> Any:
        for op in block.ops:
            if op.name == "barrier" and op.attrs.get("of") == "global":
                yield op, inside
            for region in op.regions:
                yield from walk(region, inside or op.name in ("for", "while"))

    return list(walk(program.body, False))


@pytest.mark.parametrize(
    "kernel,in_loops",
    [
        (own_elements, []), (other_array, []), (ordered_already, []), (added, []),
        (neighbours, [False]), (load_first, [False]), (counted, [False]), (small, [False]), (remainders, [False]),
        (then_in_a_loop, [False]), (seen_after_adding, [False]), (turn_by_turn, [True, True]),
        (own_turn_by_turn, []), (moved_pointers, []), (halves, []), (shared_edges, [True]),
        (moved_too_little, [True]), (far_apart, [False, False]), (one_turn_only, [True]),
        (where_a_branch_says, [True]), (where_inner_turns_say, [True]), (where_a_condition_says, [True]),
        (where_a_branch_always_says, []), (addresses_change_places, [True, True]),
        (behind_a_loop_of_no_turns, [False]), (behind_a_while, [False]),
    ],
)  # fmt: skip
def test_where_barriers_are(kernel: Any, in_loops: list[bool]) -> None:
    assert [inside for _, inside in _found(_program(kernel, aligned=True))] == in_loops


def test_pieces_of_rows_at_any_address_wait_for_those_of_the_iteration_before() -> None:
    """Which lane has an end of such a row depends on where it begins, so that addresses tell less."""
    assert [inside for _, inside in _found(_program(own_turn_by_turn))] == [True]


@pytest.mark.parametrize(
    "kernel,in_loops",
    [(side_by_side, []), (halves_of_rows, []), (overlapping_rows, [False]), (columns_turn_by_turn, [])],
)
@pytest.mark.parametrize("aligned", [False, True])
def test_what_vectors_and_rows_cannot_meet(kernel: Any, in_loops: list[bool], aligned: bool) -> None:
    assert [inside for _, inside in _found(_program(kernel, aligned=aligned))] == in_loops


def test_so_many_that_it_is_not_found_out() -> None:
    assert _found(_program(many, 20)) == []
    assert len(_found(_program(many, 90))) == 1


def test_who_waits() -> None:
    assert {op.attrs["scope"] for op, _ in _found(_program(neighbours))} == {"block"}
    assert {op.attrs["scope"] for op, _ in _found(_program(neighbours, num_warps=1))} == {"warp"}
    assert {op.attrs["scope"] for op, _ in _found(_program(neighbours, num_ctas=2))} == {"cluster"}
    assert not _found(_program(own_elements, num_ctas=2))


def test_a_cluster_sees_what_another_block_stored() -> None:
    x, y = np.zeros(1024, np.int32), np.zeros(1024, np.int32)
    with weft.target("sim:cuda:90"):
        then_in_a_loop[(1,)](x, y, 3, B=1024, num_ctas=4, num_warps=1)
    i = np.arange(1024)
    np.testing.assert_array_equal(y, i + (i ^ 1) + (i ^ 2))


@pytest.mark.parametrize("seed,blocks", [(11097, 4), (11703, 4), (14469, 4), (14510, 2)])
def test_random_kernels_in_clusters(seed: int, blocks: int) -> None:
    """In these a block loaded what another had not stored yet."""
    check(seed, f"sim:cuda:90-x{blocks}")
