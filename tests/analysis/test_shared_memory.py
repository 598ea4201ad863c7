"""Lifetimes of buffers, and accesses that meet, in lane programs made for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sim.kit import Kit
from weft.analysis import Lifetime, lifetimes
from weft.ir.lane import LaneProgram, Value
from weft.lower.barriers import insert_barriers, is_ordered
from weft.lower.placement import place

LANE = (4, 8, 16, 32, 64)
WARP = (128, 256)


def own(k: Kit) -> Value:
    """A place of each thread's own, in bytes."""
    return k.linear((0,), lane=LANE, warp=WARP)


def other(k: Kit, bits: int) -> Value:
    """The place of the thread whose number differs in these bits."""
    return k.linear((4 * bits,), lane=LANE, warp=WARP)


def finished(k: Kit) -> LaneProgram:
    program = k.program()
    insert_barriers(program)
    assert is_ordered(program)
    return program


def barriers(program: LaneProgram) -> list[str]:
    return [op.attrs["scope"] for op in program.body.walk() if op.name == "barrier"]


# -- where barriers are needed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "scopes"), [(0, []), (1, ["warp"]), (16, ["warp"]), (32, ["block"]), (65, ["block"])])
def test_who_reads_decides(bits: int, scopes: list[str]) -> None:
    k = Kit(warps=4)
    buffer = k.shared(512)
    k.store("shared", k.add2(buffer, own(k)), k.int(1))
    k.load("shared", k.add2(buffer, other(k, bits)), "i32")
    assert barriers(finished(k)) == scopes


def test_reads_need_none_and_writes_after_them_do() -> None:
    k = Kit(warps=4)
    buffer = k.shared(512)
    k.load("shared", k.add2(buffer, other(k, 32)), "i32")
    k.load("shared", k.add2(buffer, other(k, 64)), "i32")
    k.store("shared", k.add2(buffer, own(k)), k.int(1))
    assert barriers(finished(k)) == ["block"]


def test_buffers_apart_need_none() -> None:
    k = Kit(warps=4)
    for _ in range(3):
        k.store("shared", k.add2(k.shared(512), own(k)), k.int(1))
    k.load("shared", k.add2(k.shared(512), other(k, 32)), "i32")
    assert barriers(finished(k)) == []


def test_one_barrier_for_all_that_came_before() -> None:
    k = Kit(warps=4)
    first, second = k.shared(512), k.shared(512)
    k.store("shared", k.add2(first, own(k)), k.int(1))
    k.store("shared", k.add2(second, own(k)), k.int(1))
    k.load("shared", k.add2(first, other(k, 32)), "i32")
    k.load("shared", k.add2(second, other(k, 32)), "i32")
    assert barriers(finished(k)) == ["block"]


def test_a_mask_that_leaves_one_warp() -> None:
    k = Kit(warps=4)
    buffer, row = k.shared(512), k.linear((0,), lane=LANE)
    mine = k.equal(k.linear((0,), warp=(1, 2)), 2)
    k.store("shared", k.add2(buffer, row), k.int(1), mask=mine)
    k.load("shared", k.add2(buffer, k.linear((4,), lane=LANE)), "i32", mask=mine)
    assert barriers(finished(k)) == ["warp"]


def test_atomics_do_not_meet_each_other() -> None:
    k = Kit(warps=4)
    buffer = k.shared(4)
    k.store("shared", buffer, k.int(0), mask=k.equal(k.thread(), 0))
    for _ in range(3):
        k.atomic("shared", "add", buffer, k.int(1))
    k.load("shared", buffer, "i32")
    assert barriers(finished(k)) == ["block", "block"]


def test_branches_are_pending_either_way() -> None:
    k = Kit("n:i32", warps=4)
    buffer = k.shared(512)

    def then() -> None:
        k.store("shared", k.add2(buffer, own(k)), k.int(1))

    k.when(k.less(k.arg("n"), 3), then)
    k.load("shared", k.add2(buffer, other(k, 32)), "i32")
    assert barriers(finished(k)) == ["block"]


# -- loops ------------------------------------------------------------------------------------------------------------


def looped(slots: int, body: Callable[[Kit, Value, Value], Any]) -> LaneProgram:
    """A loop over `body(k, buffer, index)`."""
    k = Kit("n:i32", warps=4)
    buffer = k.shared(512 * slots)

    def iteration(i: Value) -> list[Value]:
        body(k, buffer, i)
        return []

    k.loop([k.int(0), k.arg("n"), k.int(1)], [], iteration)
    return finished(k)


def exchange(k: Kit, place: Value) -> None:
    k.store("shared", k.add2(place, own(k)), k.int(1))
    k.load("shared", k.add2(place, other(k, 32)), "i32")


def test_a_loop_needs_one_more_where_it_comes_round() -> None:
    assert barriers(looped(1, lambda k, buffer, i: exchange(k, buffer))) == ["block", "block"]


@pytest.mark.parametrize("slots", [2, 3, 4, 6, 8])
@pytest.mark.parametrize("name", ["arith.remsi", "arith.remui"])
def test_slots_that_go_round_need_one(slots: int, name: str) -> None:
    """Slot i % n is written again only after a barrier of the iteration between."""

    def body(k: Kit, buffer: Value, i: Value) -> None:
        exchange(k, k.add2(buffer, k.mul(k.op(name, [i, k.int(slots)], "i32"), 512)))

    assert barriers(looped(slots, body)) == ["block"]


def test_slots_by_masks_go_round() -> None:
    def body(k: Kit, buffer: Value, i: Value) -> None:
        exchange(k, k.add2(buffer, k.mul(k.op("arith.andi", [i, k.int(1)], "i32"), 512)))

    assert barriers(looped(2, body)) == ["block"]


def test_slots_by_data_may_be_any() -> None:
    def body(k: Kit, buffer: Value, i: Value) -> None:
        exchange(k, k.add2(buffer, k.mul(k.op("arith.remsi", [i, k.arg("n")], "i32"), 512)))

    assert barriers(looped(2, body)) == ["block", "block"]


@pytest.mark.parametrize(("stages", "count"), [(2, 2), (3, 1), (4, 1)])
def test_a_pipeline(stages: int, count: int) -> None:
    """Copies run ahead; with one slot more than copies under way, one barrier each iteration is enough."""
    ahead = min(2, stages)
    k = Kit("x:i32*", "n:i32", warps=4)
    buffer = k.shared(512 * stages)

    def copy(slot: Value) -> None:
        k.copy_async(k.add2(k.add2(buffer, k.mul(slot, 512)), own(k)), k.place("x", k.thread()), 4)
        k.add("commit_async")

    for i in range(ahead):
        copy(k.int(i))

    def around(slot: Value) -> Value:
        following = k.add2(slot, 1)
        return k.select(k.op("arith.cmpi", [following, k.int(stages)], "i1", predicate=5), k.int(0), following)

    def iteration(i: Value, read: Value, write: Value) -> list[Value]:
        k.add("wait_async", attrs={"pending": ahead - 1})
        k.load("shared", k.add2(k.add2(buffer, k.mul(read, 512)), other(k, 32)), "i32")
        copy(write)
        return [around(read), around(write)]

    k.loop([k.int(0), k.arg("n"), k.int(1)], [k.int(0), k.int(ahead % stages)], iteration)
    assert barriers(finished(k)) == ["block"] * count


# -- lifetimes and placement ------------------------------------------------------------------------------------------


def test_buffers_of_different_times_share_bytes() -> None:
    k = Kit(warps=4)
    for size in (512, 1024, 512):
        exchange(k, k.shared(size))
    program = k.program()
    place(program)
    first, _, third = (a.offset for a in program.shared)
    assert program.shared_bytes == 1024 and {first, third} == {0, 512}, "the first and the third go side by side"
    insert_barriers(program)
    assert is_ordered(program)
    assert barriers(program) == ["block"] * 4, "none between the second and whichever is beside what it uses"


def test_a_buffer_of_a_loop_lives_for_all_of_it() -> None:
    k = Kit("n:i32", warps=4)
    outer = k.shared(512)
    k.store("shared", k.add2(outer, own(k)), k.int(1))

    def iteration(i: Value) -> list[Value]:
        k.load("shared", k.add2(outer, other(k, 32)), "i32")
        exchange(k, k.shared(512))
        exchange(k, k.shared(512))
        return []

    k.loop([k.int(0), k.arg("n"), k.int(1)], [], iteration)
    program = k.program()
    whole, first, second = lifetimes(program)
    assert whole is not None and first is not None and second is not None
    assert whole.overlaps(first) and whole.overlaps(second) and not first.overlaps(second)
    place(program)
    assert program.shared_bytes == 1024


def test_copies_on_their_way_keep_a_buffer() -> None:
    k = Kit("x:i32*", warps=4)
    buffer = k.shared(512)
    k.copy_async(k.add2(buffer, own(k)), k.place("x", k.thread()), 4)
    k.add("commit_async")
    exchange(k, k.shared(512))
    k.add("wait_async", attrs={"pending": 0})
    program = k.program()
    copied, exchanged = lifetimes(program)
    assert copied is not None and exchanged is not None and copied.overlaps(exchanged)


def test_a_buffer_that_is_not_used_takes_nothing() -> None:
    k = Kit(warps=1)
    k.shared(512)
    program = k.program()
    assert lifetimes(program) == [None]
    place(program)
    assert program.shared_bytes == 0


def test_lifetimes_overlap() -> None:
    assert Lifetime(1, 3).overlaps(Lifetime(3, 4)) and not Lifetime(1, 2).overlaps(Lifetime(3, 4))


# -- arrivals of each warp for itself ---------------------------------------------------------------------------------


def arriving(isa: str, at: int) -> list[str]:
    """The barriers before an arrival, behind a read of what lies `at` threads further."""
    k = Kit(warps=4)
    buffer, word = k.shared(512), k.shared(8)
    k.load("shared", k.add2(buffer, other(k, at)), "i32")
    more = [k.int(1)] if isa == "mbarrier.arrive" else []
    k.instruction(isa, [word, *more], active=k.equal(k.thread(), 0) if more else None)
    return barriers(finished(k))


@pytest.mark.parametrize("at", [0, 1, 16, 32, 64])
def test_each_warp_arrives_for_what_it_did_itself(at: int) -> None:
    """Its lanes meet before one of them arrives; nobody waits for another warp. One arrival for all waits for all."""
    assert arriving("mbarrier.arrive.each", at) == ["warp"]
    assert arriving("mbarrier.arrive", at) == ["block"]


def test_no_barrier_before_the_arrival_of_a_warp_that_did_nothing() -> None:
    k = Kit(warps=4)
    word = k.shared(8)
    k.instruction("mbarrier.arrive.each", [word])
    assert barriers(finished(k)) == []
