"""Faults sown into programs that have none: each is found, at its line, and without it there is no alarm.

A family makes one program for each of its parameters, with the fault or without; what differs is one thing: a barrier,
a mask, an offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from kernels.simulated import NAMES, simulated
from weft.ir.lane import Value
from weft.sim import (
    DeadlockError,
    MisalignedError,
    Options,
    OutOfBoundsError,
    RaceError,
    SimulationError,
    UninitializedError,
    run,
)

from .kit import SIZES, Kit

BAD = 77
"""The line that a fault is on."""
Made = tuple[Kit, dict[str, Any], type[SimulationError]]
FAMILIES: dict[str, tuple[Callable[..., Made], list[tuple[Any, ...]]]] = {}


def family(*axes: tuple[Any, ...]) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Programs for every combination of parameters."""

    def register(make: Callable[..., Made]) -> Callable[..., Made]:
        FAMILIES[make.__name__] = (make, list(product(*axes)))
        return make

    return register


def cases() -> Iterator[Any]:
    for name, (make, parameters) in FAMILIES.items():
        for given in parameters:
            yield pytest.param(make, given, id="-".join(map(str, (name, *given))))


NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f16": np.float16}


def filled(k: Kit, elem: str, count: int = 1) -> Value:
    """Registers with something in them."""
    return k.rename(k.constant(elem, 1), (0,) * count)


# -- races ------------------------------------------------------------------------------------------------------------


@family((1, 2, 4, 8, 16, 32, 64, 96), ("i16", "i32", "i64"))
def read_of_what_another_wrote(faulty: bool, distance: int, elem: str) -> Made:
    k = Kit(warps=4)
    index, size = k.thread(), SIZES[elem]
    buffer = k.shared(128 * size)
    k.store("shared", k.add2(buffer, k.mul(index, size)), filled(k, elem))
    if not faulty:
        k.barrier("warp" if distance < 32 else "block")
    elif distance >= 32:
        k.barrier("warp")  # which is too little
    k.at(BAD)
    k.load("shared", k.add2(buffer, k.mul(k.op("arith.xori", [index, k.int(distance)], "i32"), size)), elem)
    return k, {}, RaceError


@family((1, 16, 32, 64), (1, 2, 4))
def write_over_what_another_reads(faulty: bool, distance: int, vector: int) -> Made:
    k = Kit(warps=4)
    size = 4 * vector
    index, buffer = k.thread(), k.shared(128 * size)
    place = k.add2(buffer, k.mul(index, size))
    k.store("shared", place, filled(k, "i32", vector), vector)
    k.barrier()
    other = k.op("arith.xori", [index, k.int(distance)], "i32")
    k.load("shared", k.add2(buffer, k.mul(other, size)), "i32", vector)
    if not faulty:
        k.barrier()
    k.at(BAD)
    k.store("shared", place, filled(k, "i32", vector), vector)
    return k, {}, RaceError


@family((0, 1, 2, 3))
def turns_of_a_loop(faulty: bool, ahead: int) -> Made:
    """A buffer of `ahead` + 1 slots, written in turn; one slot too few if it is faulty."""
    k = Kit(warps=2)
    slots = ahead + 1 if faulty else ahead + 2
    index, buffer = k.thread(), k.shared(256 * slots)

    def iteration(i: Value) -> list[Value]:
        at = k.add2(buffer, k.mul(k.op("arith.remsi", [i, k.int(slots)], "i32"), 256))
        k.at(BAD)
        k.store("shared", k.add2(at, k.mul(index, 4)), i)
        if ahead == 0 or not faulty:
            k.barrier()
        back = k.op("arith.subi", [i, k.int(ahead)], "i32")
        late = k.op("arith.maxsi", [back, k.int(0)], "i32")
        read = k.add2(buffer, k.mul(k.op("arith.remsi", [late, k.int(slots)], "i32"), 256))
        k.load("shared", k.add2(read, k.mul(k.op("arith.xori", [index, k.int(33)], "i32"), 4)), "i32")
        return []

    k.loop([k.int(0), k.int(9), k.int(1)], [], iteration)
    return k, {}, RaceError


@family((4, 8, 16), ("wait", "barrier", "group"))
def copies(faulty: bool, size: int, missing: str) -> Made:
    k = Kit("x:i32*", warps=2)
    words = size // 4
    index, buffer = k.thread(step=words), k.shared(64 * size)
    k.copy_async(k.add2(buffer, k.mul(index, 4)), k.place("x", index), size)
    k.add("commit_async")
    if missing == "wait" and faulty:
        k.barrier()
    else:
        k.add("wait_async", attrs={"pending": int(faulty and missing == "group")})
        if not (faulty and missing == "barrier"):
            k.barrier()
    k.at(BAD)
    back = k.op("arith.subi", [k.int(63 * words), index], "i32")
    k.load("shared", k.add2(buffer, k.mul(back, 4)), "i32", words)
    return k, {"x": np.zeros(64 * words, np.int32)}, RaceError


# -- out of bounds ----------------------------------------------------------------------------------------------------


@family(("load", "store", "atomic", "copy"), ("before", "after", "far"))
def outside(faulty: bool, what: str, where: str) -> Made:
    k = Kit("x:i32*", "y:i32*", warps=2)
    step = {"before": -1, "after": 1, "far": 1 << 20}[where] if faulty else 0
    index = k.thread()
    k.at(BAD)
    place = k.place("x", k.add2(index, step))
    if what == "load":
        k.load("global", place, "i32")
    elif what == "store":
        k.store("global", place, index)
    elif what == "atomic":
        k.atomic("global", "add", place, index)
    else:
        k.copy_async(k.add2(k.shared(256), k.mul(index, 4)), place, 4)
    return k, {"x": np.zeros(64, np.int32), "y": np.zeros(64, np.int32)}, OutOfBoundsError


@family(("i8", "i16", "f32", "i64"), (1, 31, 33, 63))
def masks(faulty: bool, elem: str, n: int) -> Made:
    """The mask lets one element too many through."""
    k = Kit(f"x:{elem}*", "n:i32", warps=2)
    index = k.thread()
    limit = k.add2(k.arg("n"), int(faulty))
    k.at(BAD)
    k.load("global", k.place("x", index), elem, mask=k.less(index, limit))
    return k, {"x": np.zeros(n, NUMPY[elem]), "n": n}, OutOfBoundsError


# -- alignment --------------------------------------------------------------------------------------------------------


@family(("global", "shared"), ("load", "store"), (8, 16))
def vectors(faulty: bool, space: str, what: str, size: int) -> Made:
    k = Kit("x:i32*")
    words = size // 4
    index = k.add2(k.thread(step=words), int(faulty))
    buffer = k.shared(32 * size + 16)
    place = k.place("x", index) if space == "global" else k.add2(buffer, k.mul(index, 4))
    if space == "shared" and what == "load":
        k.store("shared", k.add2(buffer, k.mul(k.thread(step=words), 4)), filled(k, "i32", words), words)
        k.barrier("warp")
    k.at(BAD)
    if what == "load":
        k.load(space, place, "i32", words)
    else:
        k.store(space, place, filled(k, "i32", words), words)
    return k, {"x": np.zeros(32 * words + 4, np.int32)}, MisalignedError


# -- nothing was written ----------------------------------------------------------------------------------------------


@family((1, 7, 31), ("shared", "register"))
def missing_elements(faulty: bool, missing: int, where: str) -> Made:
    """Some lanes have nothing: what they read was not written, or their mask did not hold."""
    k = Kit("x:i32*", "y:i32*")
    index = k.thread()
    enough = k.less(index, 32 - missing if faulty else 32)
    if where == "shared":
        place = k.add2(k.shared(128), k.mul(index, 4))
        k.store("shared", place, index, mask=enough)
        k.at(BAD)
        k.load("shared", place, "i32")
    else:
        value = k.load("global", k.place("x", index), "i32", mask=enough)
        k.at(BAD)
        k.store("global", k.place("y", index), value)
    return k, {"x": np.zeros(32, np.int32), "y": np.zeros(32, np.int32)}, UninitializedError


# -- deadlocks --------------------------------------------------------------------------------------------------------


@family((2, 4, 8), (1, 2, 3))
def barriers_that_some_miss(faulty: bool, warps: int, going: int) -> Made:
    k = Kit(warps=warps)
    warp = k.linear((0,), warp=tuple(1 << i for i in range((warps - 1).bit_length())))
    k.at(BAD)
    if faulty:
        k.when(k.less(warp, min(going, warps - 1)), lambda: k.barrier() or ())
    else:
        k.barrier()
    return k, {}, DeadlockError


@family((2, 4), (1, 2, 5))
def loops_of_different_lengths(faulty: bool, warps: int, iterations: int) -> Made:
    """A barrier in a loop that the last warp leaves one iteration earlier."""
    k = Kit(warps=warps)
    warp = k.linear((0,), warp=tuple(1 << i for i in range((warps - 1).bit_length())))
    last = k.equal(warp, warps - 1)
    upper = k.select(last, k.int(iterations - int(faulty)), k.int(iterations))
    k.at(BAD)
    k.loop([k.int(0), upper, k.int(1)], [], lambda i: k.barrier() or [])
    return k, {}, DeadlockError


@family((1, 3))
def phases_that_never_end(faulty: bool, arrivals: int) -> Made:
    """An mbarrier that expects one arrival more than there are."""
    k = Kit(warps=4)
    warp, barrier = k.linear((0,), warp=(1, 2)), k.shared(8)
    first = k.equal(warp, 0)
    k.when(first, lambda: k.instruction("mbarrier.init", [barrier, k.int(arrivals + int(faulty))]) and ())
    k.barrier()
    k.when(k.less(warp, arrivals), lambda: k.instruction("mbarrier.arrive", [barrier, k.int(1)]) and ())
    k.at(BAD)
    k.instruction("mbarrier.wait.parity", [barrier, k.int(0)])
    return k, {}, DeadlockError


# -- all of them ------------------------------------------------------------------------------------------------------


CASES = list(cases())


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in arguments.items()}


@pytest.mark.slow
def test_there_are_enough() -> None:
    assert len(CASES) >= 100
    assert len(CASES) + sum(simulated(name) is not None for name in NAMES) >= 200, "programs that are to raise no alarm"


@pytest.mark.parametrize(("make", "given"), CASES)
def test_caught(make: Callable[..., Made], given: tuple[Any, ...]) -> None:
    k, arguments, kind = make(True, *given)
    program = k.program()
    for order in ("forward", "backward", "random"):
        with pytest.raises(kind) as caught:
            run(program, 2, copied(arguments), Options(order=order, copies="latest"))
        assert caught.value.span is not None and caught.value.span.line == BAD
        assert caught.value.thread is not None and "program (" in str(caught.value)


@pytest.mark.parametrize(("make", "given"), CASES)
@pytest.mark.thinned(2)
def test_no_alarm(make: Callable[..., Made], given: tuple[Any, ...]) -> None:
    k, arguments, _ = make(False, *given)
    program = k.program()
    for order in ("forward", "backward"):
        for when in ("earliest", "latest"):
            run(program, 2, copied(arguments), Options(order=order, copies=when))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_no_alarm_in_test_kernels(name: str) -> None:
    kernel = simulated(name)
    if kernel is None:
        pytest.skip("it has no lowering")
    _, after = kernel.run(Options(order="backward", copies="earliest"))
    kernel.check(after)


MESSAGES = {
    ("read_of_what_another_wrote", 32, "i32"): (
        "kernel.py:77:5: error: race: reads byte 128 of shared memory (lane 0 of warp 0, program (0, 0, 0)), and 255 "
        "more of its kind here\n"
        "kernel.py:1:5: note: the write by warp 1, lane 0, which is not ordered with it\n"
        "hint: a barrier between the two orders them; for asynchronous copies, wait for their group before it"
    ),
    ("copies", 16, "wait"): (
        "kernel.py:77:5: error: race: reads byte 1008 of shared memory (lane 0 of warp 0, program (0, 0, 0)), and 127 "
        "more of its kind here\n"
        "kernel.py:1:5: note: an asynchronous copy by warp 1, lane 31, which is not ordered with it\n"
        "hint: a barrier between the two orders them; for asynchronous copies, wait for their group before it"
    ),
    ("outside", "store", "after"): (
        "kernel.py:77:5: error: writes 4 bytes outside of every array, at 0x700000000100: right after the end of "
        "`x`, which has 256 bytes (lane 31 of warp 1, program (0, 0, 0)), and 1 more of its kind here\n"
        "hint: pass a mask that is false where the index is outside of the array"
    ),
    ("vectors", "shared", "store", 16): (
        "kernel.py:77:5: error: 16 bytes at address 0x4, which is no multiple of 16 (lane 0 of warp 0, program "
        "(0, 0, 0)), and 63 more of its kind here\n"
        "hint: use narrower vectors, or align the address"
    ),
    ("missing_elements", 7, "shared"): (
        "kernel.py:77:5: error: reads byte 100 of shared memory, which was never written (lane 25 of warp 0, program "
        "(0, 0, 0)), and 13 more of its kind here\n"
        "hint: write it before, or give the load an `other` for where its mask does not hold"
    ),
    ("barriers_that_some_miss", 4, 2): (
        "kernel.py:77:5: error: deadlock: a barrier that 2 of 4 warps have reached never comes (warp 0, program "
        "(0, 0, 0))\n"
        "kernel.py:77:5: note: warps 0 to 1 wait here for a barrier that 2 of 4 warps have reached\n"
        "hint: every warp that a barrier expects must reach it, in the same order as the others"
    ),
}
"""What is said, whole, of one of each kind."""


def test_a_random_order_is_told() -> None:
    k, arguments, kind = FAMILIES["outside"][0](True, "load", "after")
    with pytest.raises(kind, match="note: found where copies land at the latest, warps in random order with seed 5"):
        run(k.program(), 1, arguments, Options(order="random", seed=5))


@pytest.mark.parametrize("which", MESSAGES, ids=[w[0] for w in MESSAGES])
def test_messages(which: tuple[Any, ...]) -> None:
    name, *given = which
    k, arguments, kind = FAMILIES[name][0](True, *given)
    with pytest.raises(kind) as caught:
        run(k.program(), 2, arguments)
    assert str(caught.value) == MESSAGES[which]
