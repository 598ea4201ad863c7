"""Programs with a fault: each is found, and the error names its line, its thread and its address."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from weft.base import DeviceAssertionError, Unsupported
from weft.ir.lane import Value
from weft.sim import (
    BarrierMisuseError,
    DeadlockError,
    DivergenceError,
    FenceError,
    MisalignedError,
    Options,
    OutOfBoundsError,
    RaceError,
    SimulationError,
    TrapError,
    UninitializedError,
    run,
)
from weft.targets.nvidia import descriptor

from .kit import Kit

BAD = 77
"""The line that the fault is on."""
EARLIER = 55
"""The line of the other access of a race."""


@dataclass
class Faulty:
    """A program that must fail."""

    kit: Kit
    error: type[Exception]
    arguments: dict[str, Any]
    text: str = ""
    grid: Any = 1


CASES: dict[str, Callable[[], Faulty]] = {}


def several(*values: Any) -> Callable[[Callable[..., Faulty]], Callable[..., Faulty]]:
    def register(make: Callable[..., Faulty]) -> Callable[..., Faulty]:
        for value in values:
            CASES[f"{make.__name__}-{value}"] = lambda v=value: make(v)
        return make

    return register


def case(make: Callable[[], Faulty]) -> Callable[[], Faulty]:
    CASES[make.__name__] = make
    return make


def _zeros(n: int, dtype: Any = np.int32) -> np.ndarray:
    return np.zeros(n, dtype)


# -- out of bounds ----------------------------------------------------------------------------------------------------


@several("load", "store", "atomic")
def one_too_many(what: str) -> Faulty:
    k = Kit("x:i32*", "y:i32*")
    index = k.thread()
    k.at(BAD)
    if what == "load":
        k.load("global", k.place("x", index), "i32")
    elif what == "store":
        k.store("global", k.place("x", index), index)
    else:
        k.atomic("global", "add", k.place("x", index), index)
    return Faulty(k, OutOfBoundsError, {"x": _zeros(31), "y": _zeros(99)}, "right after the end of `x`")


@several(-1, -1000)
def before_the_beginning(offset: int) -> Faulty:
    k = Kit("x:i32*")
    k.at(BAD)
    k.load("global", k.place("x", k.add2(k.thread(), offset)), "i32")
    return Faulty(k, OutOfBoundsError, {"x": _zeros(64)}, f"{-4 * offset} bytes before `x`")


@case
def mask_that_is_too_wide() -> Faulty:
    k = Kit("x:i32*", "n:i32", warps=2)
    index = k.thread()
    mask = k.op("arith.cmpi", [index, k.arg("n")], "i1", predicate="sle")
    k.at(BAD)
    k.store("global", k.place("x", index), index, mask=mask)
    return Faulty(k, OutOfBoundsError, {"x": _zeros(40), "n": 40})


@case
def vector_over_the_end() -> Faulty:
    k = Kit("x:i32*")
    k.at(BAD)
    k.load("global", k.place("x", k.thread(step=4)), "i32", 4)
    return Faulty(k, OutOfBoundsError, {"x": _zeros(126)})


@case
def program_beyond_the_array() -> Faulty:
    k = Kit("x:i32*")
    pid = k.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    index = k.add2(k.thread(), k.mul(pid, 32))
    k.at(BAD)
    k.store("global", k.place("x", index), index)
    return Faulty(k, OutOfBoundsError, {"x": _zeros(96)}, "program (3, 0, 0)", grid=4)


@several("load", "store")
def outside_of_shared(what: str) -> Faulty:
    k = Kit()
    place = k.add2(k.shared(124), k.mul(k.thread(), 4))
    k.at(BAD)
    if what == "load":
        k.load("shared", place, "i32")
    else:
        k.store("shared", place, k.thread())
    return Faulty(k, OutOfBoundsError, {}, "byte 124 of shared memory, which has 124")


@case
def copy_from_outside() -> Faulty:
    k = Kit("x:i32*")
    place = k.add2(k.shared(128), k.mul(k.thread(), 4))
    k.at(BAD)
    k.copy_async(place, k.place("x", k.thread()), 4)
    return Faulty(k, OutOfBoundsError, {"x": _zeros(8)})


# -- alignment --------------------------------------------------------------------------------------------------------


@several(2, 4)
def misaligned_vector(width: int) -> Faulty:
    k = Kit("x:i32*")
    k.at(BAD)
    k.load("global", k.place("x", k.add2(k.thread(step=width), 1)), "i32", width)
    return Faulty(k, MisalignedError, {"x": _zeros(256)}, f"no multiple of {4 * width}")


@case
def misaligned_shared() -> Faulty:
    k = Kit()
    place = k.add2(k.shared(1024), k.mul(k.thread(), 12))
    k.at(BAD)
    k.store("shared", place, k.rename(k.thread(), (0, 0)), 2)
    return Faulty(k, MisalignedError, {})


@case
def misaligned_row_of_ldmatrix() -> Faulty:
    k = Kit()
    place = k.add2(k.shared(1024), k.mul(k.thread(), 8))
    k.at(BAD)
    k.instruction("ldmatrix.x4", [place], [("i16", 8)])
    return Faulty(k, MisalignedError, {})


@case
def misaligned_copy() -> Faulty:
    k = Kit("x:i32*")
    place = k.add2(k.shared(1024), k.mul(k.thread(), 16))
    k.at(BAD)
    k.copy_async(place, k.place("x", k.add2(k.thread(step=4), 2)), 16)
    return Faulty(k, MisalignedError, {"x": _zeros(512)})


# -- nothing was written ----------------------------------------------------------------------------------------------


@several("value", "address", "mask", "branch", "register")
def undefined_decides(what: str) -> Faulty:
    k = Kit("x:i32*", "y:i32*")
    index = k.thread()
    mask = k.less(index, 20)
    x = k.load("global", k.place("x", index), "i32", mask=mask)
    if what == "register":
        x = k.add("undefined", (), [("i32", 1)]).result
    k.at(BAD)
    if what in ("value", "register"):
        k.store("global", k.place("y", index), k.add2(x, 1))
    elif what == "address":
        k.store("global", k.place("y", x), index)
    elif what == "mask":
        k.store("global", k.place("y", index), index, mask=k.less(x, 5))
    else:
        k.when(k.less(k.shuffle(x, k.int(25)), 5), lambda: ())
    return Faulty(k, UninitializedError, {"x": _zeros(20), "y": _zeros(32)}, "undefined")


@case
def undefined_through_a_product() -> Faulty:
    k = Kit("x:f16*", "y:f32*")
    index = k.thread(tuple(range(0, 256, 32)))
    a = k.load("global", k.place("x", index), "f16", mask=k.less(index, 200))
    b = k.rename(a, (0, 1, 2, 3))
    c = k.rename(k.constant("f32", 0), (0,) * 4)
    d = k.instruction("mma.sync.m16n8k16.f32.f16.f16.f32", [a, b, c], [("f32", 4)]).results[0]
    k.at(BAD)
    k.store("global", k.place("y", k.thread(step=4)), d, 4)
    return Faulty(k, UninitializedError, {"x": _zeros(200, np.float16), "y": _zeros(128, np.float32)})


@several("all", "one")
def shared_never_written(what: str) -> Faulty:
    k = Kit("y:i32*")
    index = k.thread()
    place = k.add2(k.shared(128), k.mul(index, 4))
    if what == "one":
        k.store("shared", place, index, mask=k.less(index, 31))
        k.barrier()
    k.at(BAD)
    k.load("shared", place, "i32")
    return Faulty(k, UninitializedError, {"y": _zeros(32)}, "never written")


@case
def undefined_through_shared() -> Faulty:
    k = Kit("y:i32*")
    index = k.thread()
    place = k.add2(k.shared(128), k.mul(index, 4))
    k.store("shared", place, k.add("undefined", (), [("i32", 1)]).result)
    x = k.load("shared", place, "i32")
    k.at(BAD)
    k.store("global", k.place("y", index), x)
    return Faulty(k, UninitializedError, {"y": _zeros(32)})


# -- races ------------------------------------------------------------------------------------------------------------


def _exchange(k: Kit, distance: int, before_load: Callable[[], None]) -> None:
    """Write to one's own place, read another's."""
    index = k.thread()
    buffer = k.shared(128 * k.warps)
    k.at(EARLIER)
    k.store("shared", k.add2(buffer, k.mul(index, 4)), index)
    before_load()
    k.at(BAD)
    k.load("shared", k.add2(buffer, k.mul(k.op("arith.xori", [index, k.int(distance)], "i32"), 4)), "i32")


@several(1, 16, 32, 64)
def no_barrier(distance: int) -> Faulty:
    k = Kit(warps=4)
    _exchange(k, distance, lambda: None)
    return Faulty(k, RaceError, {}, "the write by warp")


@several(32, 96)
def barrier_of_the_warp_only(distance: int) -> Faulty:
    k = Kit(warps=4)
    _exchange(k, distance, lambda: k.barrier("warp"))
    return Faulty(k, RaceError, {}, "the write by warp")


@several(1, 33)
def written_again_while_read(distance: int) -> Faulty:
    """No barrier between reading and the next iteration's writing."""
    k = Kit(warps=2)
    index = k.thread()
    buffer = k.shared(256)

    def body(i: Value) -> list[Value]:
        k.at(BAD)
        k.store("shared", k.add2(buffer, k.mul(index, 4)), i)
        k.barrier()
        k.at(EARLIER)
        k.load("shared", k.add2(buffer, k.mul(k.op("arith.xori", [index, k.int(distance)], "i32"), 4)), "i32")
        return []

    k.loop([k.int(0), k.int(3), k.int(1)], [], body)
    return Faulty(k, RaceError, {}, "the read by warp")


@case
def two_writers() -> Faulty:
    k = Kit(warps=2)
    buffer = k.shared(128)
    lane = k.linear((0,), lane=(4, 8, 16, 32, 64))
    k.at(BAD)
    k.store("shared", k.add2(buffer, lane), k.thread())
    return Faulty(k, RaceError, {}, "two lanes write different values")


@case
def two_stores_to_one_place() -> Faulty:
    k = Kit(warps=2)
    index = k.thread()
    buffer = k.shared(256)
    k.at(EARLIER)
    k.store("shared", k.add2(buffer, k.mul(index, 4)), index)
    k.at(BAD)
    k.store("shared", k.add2(buffer, k.mul(k.op("arith.xori", [index, k.int(32)], "i32"), 4)), index)
    return Faulty(k, RaceError, {}, "the write by warp")


@several("no wait", "no barrier", "no commit", "too few awaited")
def copy_not_awaited(what: str) -> Faulty:
    k = Kit("x:i32*", warps=2)
    index = k.thread()
    buffer = k.shared(256)
    k.at(EARLIER)
    k.copy_async(k.add2(buffer, k.mul(index, 4)), k.place("x", index), 4)
    if what != "no commit":
        k.add("commit_async")
    if what != "no wait":
        k.add("wait_async", attrs={"pending": 1 if what == "too few awaited" else 0})
    if what != "no barrier":
        k.barrier()
    k.at(BAD)
    k.load("shared", k.add2(buffer, k.mul(k.op("arith.xori", [index, k.int(32)], "i32"), 4)), "i32")
    return Faulty(k, RaceError, {"x": _zeros(64)}, "an asynchronous copy by warp")


@case
def copy_over_what_is_read() -> Faulty:
    k = Kit("x:i32*", warps=2)
    index = k.thread()
    buffer = k.shared(256)
    k.store("shared", k.add2(buffer, k.mul(index, 4)), index)
    k.barrier()
    k.at(EARLIER)
    k.load("shared", k.add2(buffer, k.mul(k.op("arith.xori", [index, k.int(32)], "i32"), 4)), "i32")
    k.at(BAD)
    k.copy_async(k.add2(buffer, k.mul(index, 4)), k.place("x", index), 4)
    return Faulty(k, RaceError, {"x": _zeros(64)}, "the read by warp")


@case
def ldmatrix_too_early() -> Faulty:
    k = Kit()
    tile = k.shared(512)
    index = k.thread(step=16)
    k.at(EARLIER)
    k.store("shared", k.add2(tile, index), k.rename(k.constant("i16", 1), (0,) * 8), 8)
    k.at(BAD)
    k.instruction("ldmatrix.x4", [k.add2(tile, k.linear((0,), lane=(32, 64, 128, 256, 16)))], [("i16", 8)])
    return Faulty(k, RaceError, {}, "the write by warp 0, lane")


@case
def mbarrier_arrives_too_early() -> Faulty:
    """The producer arrives before it writes."""
    k = Kit(warps=2)
    lane, warp = k.linear((0,), lane=(4, 8, 16, 32, 64)), k.linear((0,), warp=(1,))
    barrier, buffer = k.shared(8), k.shared(128, 16)
    k.when(k.equal(warp, 0), lambda: k.instruction("mbarrier.init", [barrier, k.int(1)]) and ())
    k.barrier()

    def produce() -> None:
        k.instruction("mbarrier.arrive", [barrier, k.int(1)])
        k.at(EARLIER)
        k.store("shared", k.add2(buffer, lane), lane)

    def consume() -> None:
        k.instruction("mbarrier.wait.parity", [barrier, k.int(0)])
        k.at(BAD)
        k.load("shared", k.add2(buffer, lane), "i32")

    k.when(k.equal(warp, 0), produce, consume)
    return Faulty(k, RaceError, {}, "the write by warp 0")


@several("before", "after", "not written")
def atomics_and_plain(what: str) -> Faulty:
    """A plain access of what others change by atomics, with no barrier between."""
    k = Kit(warps=2)
    buffer = k.shared(16)
    first = k.equal(k.thread(), 0)
    k.at(BAD if what == "not written" else EARLIER)
    if what != "not written":
        k.store("shared", buffer, k.int(0), mask=first)
    if what == "after":
        k.barrier()
        k.at(EARLIER)
    elif what == "before":
        k.at(BAD)
    k.atomic("shared", "add", buffer, k.int(1))
    if what == "after":
        k.at(BAD)
        k.load("shared", buffer, "i32")
    error = UninitializedError if what == "not written" else RaceError
    return Faulty(k, error, {})


# -- control flow and barriers ----------------------------------------------------------------------------------------


@several("if", "while", "for")
def lanes_disagree(what: str) -> Faulty:
    k = Kit(warps=2)
    index = k.thread()
    k.at(BAD)
    if what == "if":
        k.when(k.less(index, 40), lambda: ())
    elif what == "for":
        k.loop([k.int(0), index, k.int(1)], [], lambda i: [])
    else:
        k.repeat([index], lambda v: [k.less(k.int(0), v), v], lambda v: [k.add2(v, -1)])
    return Faulty(k, DivergenceError, {})


@case
def barrier_in_one_branch() -> Faulty:
    k = Kit(warps=4)
    warp = k.linear((0,), warp=(1, 2))

    def then() -> None:
        k.at(BAD)
        k.barrier()

    k.when(k.less(warp, 3), then)
    return Faulty(k, DeadlockError, {}, "3 of 4 warps")


@case
def different_barriers() -> Faulty:
    k = Kit(warps=2)
    warp = k.linear((0,), warp=(1,))

    def at(line: int) -> Callable[[], None]:
        def barrier() -> None:
            k.at(line)
            k.barrier()

        return barrier

    k.when(k.less(warp, 1), at(BAD), at(EARLIER))
    return Faulty(k, DeadlockError, {}, "different barriers")


@case
def warps_that_left() -> Faulty:
    k = Kit(warps=2)
    warp = k.linear((0,), warp=(1,))
    k.when(k.less(warp, 1), lambda: (k.add("return"), ())[1])
    k.at(BAD)
    k.barrier()
    return Faulty(k, DeadlockError, {}, "has ended")


@case
def loops_of_different_length() -> Faulty:
    k = Kit(warps=2)
    warp = k.linear((2,), warp=(1,))

    def body(i: Value) -> list[Value]:
        k.at(BAD)
        k.barrier()
        return []

    k.loop([k.int(0), warp, k.int(1)], [], body)
    return Faulty(k, DeadlockError, {}, "1 of 2 warps")


@case
def mbarrier_nobody_arrives() -> Faulty:
    k = Kit()
    barrier = k.shared(8)
    k.instruction("mbarrier.init", [barrier, k.int(2)])
    k.instruction("mbarrier.arrive", [barrier, k.int(1)])
    k.at(BAD)
    k.instruction("mbarrier.wait.parity", [barrier, k.int(0)])
    return Faulty(k, DeadlockError, {}, "1 of 2 arrivals have come")


@case
def mbarrier_waits_for_bytes() -> Faulty:
    k = Kit()
    barrier = k.shared(8)
    k.instruction("mbarrier.init", [barrier, k.int(1)])
    k.instruction("mbarrier.arrive.expect_tx", [barrier, k.int(64)])
    k.at(BAD)
    k.instruction("mbarrier.wait.parity", [barrier, k.int(0)])
    return Faulty(k, DeadlockError, {}, "64 bytes were announced and 0 have come")


@several("arrive", "wait.parity", "inval", "init")
def mbarrier_misused(what: str) -> Faulty:
    k = Kit()
    barrier = k.shared(8)
    k.at(BAD)
    operands = [barrier] if what == "inval" else [barrier, k.int(0)]
    k.instruction(f"mbarrier.{what}", operands)
    return Faulty(k, BarrierMisuseError, {}, "0" if what == "init" else "there is no mbarrier at byte 0")


@case
def mbarrier_arrived_too_often() -> Faulty:
    k = Kit()
    barrier = k.shared(8)
    k.at(EARLIER)
    k.instruction("mbarrier.init", [barrier, k.int(1)])
    k.at(BAD)
    k.instruction("mbarrier.arrive", [barrier, k.int(2)])
    return Faulty(k, BarrierMisuseError, {}, "initialised here")


@several("no fence", "fence too early", "other warps only")
def wgmma_without_fence(what: str) -> Faulty:
    """Ordinary stores, then the tensor core reads."""
    k = Kit(warps=4)
    warpgroup_product(k, what)
    return Faulty(k, FenceError, {}, "with no fence since")


def warpgroup_product(k: Kit, what: str) -> Value:
    """64 x 8 x 16 of ones and twos: A and B without a swizzle, in groups of 8 rows of 256 bytes."""
    k.at(EARLIER)
    a, b = k.shared(2048), k.shared(256)

    def fence() -> None:
        k.add("fence", attrs={"kind": "async"})

    if what == "fence too early":
        fence()
    k.store("shared", k.add2(a, k.thread(step=16)), k.rename(k.constant("f16", 1), (0,) * 8), 8)
    k.store("shared", k.add2(b, k.thread(step=2)), k.constant("f16", 2))
    if what == "fenced":
        fence()
    elif what == "other warps only":
        k.when(k.less(k.int(0), k.linear((0,), warp=(1, 2))), fence)
    k.barrier()
    k.at(BAD)
    descs = [k.constant("i64", descriptor(at, 128, 256)) for at in (0, 2048)]
    zero = k.rename(k.constant("f32", 0), (0,) * 4)
    operands = [*descs, zero, k.int(0)]
    k.instruction("wgmma.fence", [])
    made = k.instruction("wgmma.m64n8k16.f32.f16.f16", operands, [("f32", 4)])
    k.instruction("wgmma.commit_group", [])
    return k.add("await", made.results, [("f32", 4)], {"kind": "product", "pending": 0}).result


def test_wgmma_with_a_fence() -> None:
    k = Kit("c:f32*", warps=4)
    c = warpgroup_product(k, "fenced")
    k.store("global", k.place("c", k.thread(step=4)), c, 4)
    got = np.zeros(512, np.float32)
    run(k.program(), 1, {"c": got})
    assert (got == 32).all()


@case
def wgmma_by_two_warps() -> Faulty:
    k = Kit(warps=2)
    k.at(BAD)
    zero = k.rename(k.constant("f32", 0), (0,) * 4)
    desc = k.constant("i64", 0)
    k.instruction("wgmma.m64n8k16.f32.f16.f16", [desc, desc, zero, k.int(0)], [("f32", 4)])
    return Faulty(k, DivergenceError, {}, "all four warps")


@case
def trap() -> Faulty:
    k = Kit()
    k.at(BAD)
    k.add("trap")
    return Faulty(k, TrapError, {})


@pytest.mark.parametrize("order", ["forward", "backward", "random"])
@pytest.mark.parametrize("name", CASES)
def test_caught(name: str, order: str) -> None:
    made = CASES[name]()
    options = Options(order=order, seed=5)
    with pytest.raises(SimulationError) as found:
        run(made.kit.program(), made.grid, made.arguments, options)
    error = found.value
    assert type(error) is made.error, error
    assert error.span is not None
    swapped = name.startswith(("different_barriers", "mbarrier_arrives_too_early")) and error.span.line == EARLIER
    assert error.span.line == BAD or swapped, str(error)
    assert made.text in str(error) or swapped
    assert error.thread is not None
    if isinstance(error, (OutOfBoundsError, MisalignedError, RaceError)):
        assert error.address is not None
    if isinstance(error, RaceError) and "two lanes" not in str(error):
        assert {error.span.line, error.notes[0].span.line} == {BAD, EARLIER}
    json.dumps(error.to_dict(), default=str)


@pytest.mark.parametrize("copies", ["earliest", "latest"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.thinned(3)
def test_all_are_collected(name: str, copies: str) -> None:
    """Without raising: the error is in the report, once for its place, and the launch ends."""
    made = CASES[name]()
    if name == "wgmma_by_two_warps":  # there is no going on
        return
    report = run(made.kit.program(), made.grid, made.arguments, Options(raise_first=False, copies=copies))
    kinds = [(type(e), e.span.line) for e in report.errors if e.span is not None]
    assert (made.error, BAD) in kinds or (made.error, EARLIER) in kinds
    assert len(kinds) == len(set(kinds))
    json.dumps(report.to_dict(), default=str)


def test_an_error_in_full() -> None:
    made = CASES["no_barrier-32"]()
    with pytest.raises(RaceError) as found:
        run(made.kit.program(), 1, {})
    assert str(found.value).splitlines() == [
        "kernel.py:77:5: error: race: reads byte 128 of shared memory (lane 0 of warp 0, program (0, 0, 0)), "
        "and 127 more of its kind here",
        "kernel.py:55:5: note: the write by warp 1, lane 0, which is not ordered with it",
        "hint: a barrier between the two orders them; for asynchronous copies, wait for their group before it",
    ]


def test_checks_can_be_turned_off() -> None:
    made = CASES["no_barrier-32"]()
    assert not run(made.kit.program(), 1, {}, Options(races=False)).errors
    made = CASES["shared_never_written-all"]()
    assert not run(made.kit.program(), 1, made.arguments, Options(uninitialized=False)).errors
    made = CASES["one_too_many-store"]()
    assert not run(made.kit.program(), 1, made.arguments, Options(bounds=False)).errors


def test_late_copies_show_what_an_early_read_sees() -> None:
    """With the races unchecked, a read too early gets the old values, or with copies that land at once the new ones."""
    for copies, want in (("latest", 0), ("earliest", 9)):
        k = Kit("x:i32*", "y:i32*")
        index = k.thread()
        place = k.add2(k.shared(128), k.mul(index, 4))
        k.store("shared", place, k.int(0))
        k.copy_async(place, k.place("x", index), 4)
        k.store("global", k.place("y", index), k.load("shared", place, "i32"))
        y = np.ones(32, np.int32)
        run(k.program(), 1, {"x": np.full(32, 9, np.int32), "y": y}, Options(races=False, copies=copies))
        assert (y == want).all()


def test_assertions_and_unknown_instructions() -> None:
    k = Kit()
    k.at(BAD)
    k.add("assert", [k.less(k.thread(), 20)], attrs={"message": "too many"})
    with pytest.raises(DeviceAssertionError, match="too many"):
        run(k.program(), 1, {})
    k = Kit(target="cuda:80")
    k.instruction("stmatrix.x1", [k.thread(step=16), k.rename(k.constant("i16", 0), (0, 0))])
    with pytest.raises(Unsupported, match=r"stmatrix\.x1"):
        run(k.program(), 1, {})
    k = Kit()
    k.op("libdevice.nothing", [k.int(1)], "i32")
    with pytest.raises(Unsupported, match=r"libdevice\.nothing"):
        run(k.program(), 1, {})
