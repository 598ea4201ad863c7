"""What orders the warps of a specialised loop is taken out, one thing at a time: the simulator finds it. So it is done
to loops that are not divided, whose operands, or what these are computed from, the copy engine copies ("undivided").

Each fault is put into the lane program, behind everything that the compiler would mend, and run under schedules until
one ends in an error. Those that none finds are listed with why the program is as right with them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest

from weft.ir.lane import LaneProgram
from weft.runtime import simulate
from weft.sim import SimulationError, run

from .computed import Computed, scaled_by_rows
from .crossed import Crossed
from .faults import Fault, faults_of
from .gradients import Gradients
from .pointed import Pointed, backwards, grouped
from .recurrences import Recurrence
from .scaled import Scaled
from .specialized import SCHEDULES, Attention, Product, is_specialized
from .tiles import Tiles, in_halves, turned
from .turned import Turned

PROGRAMS: dict[str, Any] = {
    "product": Product(sizes=(64, 64, 328)),
    "product, 3 stages": Product(sizes=(64, 64, 456), stages=3),
    "product by pointers": Pointed(grouped, (64, 64, 384)),
    "product backwards": Pointed(backwards, (64, 64, 384)),
    "scaled product": Scaled(),
    "product over tiles": Tiles(sizes=(128, 64, 136), programs=1),
    "tiles in halves": Tiles(in_halves, sizes=(128, 128, 136), block=(64, 128, 64), programs=1),
    "tiles of a cluster": Tiles(sizes=(256, 64, 136), block=(128, 64, 64), programs=1, blocks=2),
    "tiles stored by threads": Tiles(sizes=(128, 64, 136), programs=1, made_tensors=False),
    "tiles by way of a slot": Tiles(
        turned, sizes=(256, 320, 264), block=(256, 64, 64), programs=1, stages=5
    ),
    "two left operands": Crossed(sizes=(112, 200, 136), programs=1),
    "attention": Attention(n=64, keys=9 * 16, block=(64, 16)),
    "attention, 3 stages": Attention(n=64, keys=13 * 16, block=(64, 16), stages=3),
    "attention, 8 warps": Attention(n=128, keys=18 * 16, block=(128, 16), warps=8),
    "gradients": Gradients(n=13 * 16, programs=1),
    "all gradients": Gradients(n=9 * 64, block=(64, 64), of="all", programs=1),
    "undivided": Gradients(n=13 * 16, stages=3, programs=1, asked=False),
    "undivided product": Turned("ab", sizes=(64, 64, 584)),
    "undivided computed operand": Computed(sizes=(64, 128, 584)),
    "undivided computed operand and rows": Computed(scaled_by_rows, sizes=(64, 128, 584)),
    "undivided recurrence": Recurrence(n=520),
    "undivided recurrence by threads": Recurrence(n=520, made_tensors=False),
}
"""So many iterations that phases which end one arrival early are a whole turn off at last. Of products, little is left
along K in the last one, which has code of its own (short_ends.py)."""
IN_PRODUCER = "the producer is one warp, all of whose lanes wait, and the lane that goes on is one of those"
BY_THE_OTHER = (
    "the producer begins K of j + n behind V of j + n - 1, for which it waits until V of j - 1 is given back: that is "
    "in iteration j, behind the wait for the product of K of j"
)
ENDED = "what is stored behind the loop shares bytes with its buffers, and no copy comes after the warps have met there"
FENCED_BEFORE = "the fence of the product before it comes after the last access to its registers"
MORE_STEPS = (
    "a warp that stores a tile has waited for the copies of its last step, which other warps have let begin behind "
    "what they read of the tile before, as a tile has more steps than there are buffers"
)
IDLE = "they are the warps that only make a warp group whole: it is enough that they arrive"
FENCED_BEHIND = "the fence behind the stores of the other operand is for both"
AWAITED_NEXT = (
    "the wait for the first product of the next iteration is one for this product too, but its registers are free later"
)
STILL_BEFORE = "the arrival gives another buffer back, and the product that the wait is for comes behind both"
FENCED_WITH_BARRIERS = "the fence behind the mbarriers is for what has been stored before too"
SHORT_END = "what is left along K adds to the same sums, and its wait is for the products before it too"
NEXT_GROUP = "the product is awaited with the next one, and is in its group then"
BY_Q = (
    "the producer begins dO of j + n behind Q of j + n, for which it waits until Q of j is given back: that is when "
    "the last product of j has ended, which began behind that of dO"
)
GIVEN_BACK_FIRST = (
    "the producer first begins the copy of another operand, which is given back behind the same wait for products: of "
    "the upper left one, or, before it begins that of the lower one, of the right ones"
)
PASSED = (
    "the warps that multiply have waited for the right operands of the round before: they gave the left one of that "
    "round back, for which the producer has waited"
)
OTHER_SLOT = "the arrival is for the other slot, and no copy into it begins before the wait"
ENDS_AT_ONCE = "in the simulator, a product ends for all warps of its warp group at once"
SLOT_IS_EMPTY = "the slot is passed over when all warps have read it, for which each of them has waited"
EQUIVALENT = {
    "product": {
        r"without barrier scope=warp 2": IN_PRODUCER,
        r"without fence kind=async 2": ENDED,
        r"(without|one group less awaited:) await kind=product pending=0 1": SHORT_END,
    },
    "product by pointers": {r"without barrier scope=warp 2": IN_PRODUCER, r"without fence kind=async 2": ENDED},
    "product backwards": {r"without barrier scope=warp 2": IN_PRODUCER, r"without fence kind=async 2": ENDED},
    "scaled product": {r"without barrier scope=warp 2": IN_PRODUCER, r"without fence kind=async 2": ENDED},
    "product over tiles": {r"without barrier scope=warp 6": IN_PRODUCER},
    "tiles in halves": {
        r"without barrier scope=warp 8": IN_PRODUCER,
        r"without barrier scope=block id=0 1": MORE_STEPS,
    },
    "tiles of a cluster": {
        r"without barrier scope=warp 6": IN_PRODUCER,
        r"without barrier.cluster.wait 3": IDLE,
    },
    "tiles stored by threads": {
        r"without barrier scope=warp 4": IN_PRODUCER,
        r"without barrier scope=block id=0 1": MORE_STEPS,
    },
    "tiles by way of a slot": {
        r"without barrier scope=block id=0 1": SLOT_IS_EMPTY,
        r"without barrier scope=warp [56]": IN_PRODUCER,
    },
    "two left operands": {
        r"before the product has ended: mbarrier.arrive.each [23689]": GIVEN_BACK_FIRST,
        r"without mbarrier.wait.parity 9": GIVEN_BACK_FIRST,
        r"after the arrival: mbarrier.wait.parity 8": PASSED,
        r"without wgmma.fence [24]": FENCED_BEFORE,
        r"without wgmma.commit_group 3": NEXT_GROUP,
        r"without barrier scope=warp [567]": IN_PRODUCER,
    },
    "attention": {
        r"without fence kind=async 3": ENDED,
        r"without wgmma.fence 4": FENCED_BEFORE,
        r"without barrier scope=warp [45]": IN_PRODUCER,
        r"without barrier scope=warp 2": BY_THE_OTHER,
        r"after the arrival: mbarrier.wait.parity 4": STILL_BEFORE,
        r"before the product has ended: mbarrier.arrive.each 2": BY_THE_OTHER,
    },
    "gradients": {
        r"without fence kind=async 2": FENCED_BEHIND,
        r"without wgmma.fence 2": FENCED_BEFORE,
        r"(without|one group less awaited:) await kind=product pending=1 3": AWAITED_NEXT,
        r"without barrier scope=warp 2": BY_Q,
        r"before the product has ended: mbarrier.arrive.each 2": BY_Q,
        r"without mbarrier.wait.parity 4": BY_Q,
        r"without barrier scope=warp [34]": IN_PRODUCER,
    },
    "all gradients": {
        r"without fence kind=async 2": FENCED_BEHIND,
        r"without wgmma.fence [245]": FENCED_BEFORE,
        r"before the product has ended: mbarrier.arrive.each 2": BY_Q,
        r"without mbarrier.wait.parity 4": BY_Q,
        r"without barrier scope=warp [45]": IN_PRODUCER,
    },
    "undivided": {
        r"without fence kind=async [12]": FENCED_WITH_BARRIERS,
        r"without wgmma.commit_group 2": NEXT_GROUP,
        r"without wgmma.fence 3": FENCED_BEFORE,
    },
    "undivided product": {},
    "undivided computed operand": {},
    "undivided computed operand and rows": {},
    "undivided recurrence": {
        r"after the arrival: mbarrier.wait.parity 1": OTHER_SLOT,
        r"without wgmma.fence [23]": FENCED_BEFORE,
    },
    "undivided recurrence by threads": {
        r"without barrier scope=block 1": ENDS_AT_ONCE,
        r"without wgmma.fence [23]": FENCED_BEFORE,
    },
}
"""By kind of program and the fault's name: why the program is as right with it."""


ONE_STEP = {"tiles of one step": Tiles(sizes=(384, 64, 64), programs=1, made_tensors=False)}
AHEAD = {"scaled product, ahead": Scaled(sizes=(64, 64, 576), stages=4)}


@cache
def compiled(name: str) -> tuple[LaneProgram, Any, Any]:
    """The lane program, the grid and the arguments of one of the programs."""
    seen: list[tuple[LaneProgram, Any, Any]] = []

    def spy(program: LaneProgram, sizes: Any, arguments: Any) -> Any:
        seen.append((program, sizes, arguments))
        return run(program, sizes, arguments)

    with mock.patch.object(simulate, "run", spy):
        made = (PROGRAMS | ONE_STEP | AHEAD)[name].run()[-1]
    assert is_specialized(made) == (not name.startswith("undivided"))
    return seen[0]


def found(name: str, fault: Fault) -> str:
    """The error that some schedule ends in; empty if none does."""
    program, sizes, arguments = compiled(name)
    with fault:
        for options in SCHEDULES:
            try:
                run(program, sizes, arguments, replace(options, steps=10_000))
            except SimulationError as error:
                return type(error).__name__
    return ""


def is_equivalent(name: str, fault: Fault) -> bool:
    return any(re.fullmatch(pattern, fault.name) for pattern in EQUIVALENT[name.split(",")[0]])


QUICK = (
    "without mbarrier.wait.parity 1",
    "without mbarrier.arrive.each 1",
    "one group less awaited: await kind=product pending=1 1",
    "without wgmma.fence 1",
)


def test_faults_are_found() -> None:
    faults = {fault.name: fault for fault in faults_of(compiled("product")[0])}
    for name in QUICK:
        assert found("product", faults[name]), name


@pytest.mark.parametrize("step", ["begin", "take", "pass", "end"])
def test_a_step_of_turns_that_is_missing_is_found(step: str) -> None:
    faults = {fault.name: fault for fault in faults_of(compiled("attention, 8 warps")[0])}
    assert found("attention, 8 warps", faults[f"without turn.{step} 1"]) == "DeadlockError"


@pytest.mark.slow
def test_without_a_fault_nothing_is_found() -> None:
    program, _, arguments = compiled("product")
    for fault in faults_of(program):
        with fault:
            pass
    assert not found("product", Fault("none", lambda: lambda: None))
    assert np.isfinite(next(a for a in arguments.values() if isinstance(a, np.ndarray))).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_fault_is_found(name: str) -> None:
    faults = faults_of(compiled(name)[0])
    assert len(faults) >= 20
    missed = {fault.name for fault in faults if not found(name, fault)}
    right = {fault.name for fault in faults if is_equivalent(name, fault)}
    assert missed == right


@pytest.mark.slow
def test_between_tiles_of_one_step_warps_wait_for_each_other() -> None:
    """What MORE_STEPS says does not hold there: nothing else keeps the next tile's stores from this one's loads."""
    (name,) = ONE_STEP
    faults = {fault.name: fault for fault in faults_of(compiled(name)[0])}
    assert found(name, faults["without barrier scope=block id=0 1"])


IN_THE_LOOP = [
    *(f"without mbarrier.wait.parity {i}" for i in (1, 2, 3)),
    *(f"without wgmma.commit_group {i}" for i in (1, 2, 3)),
    *(f"{how}await kind=product pending=1 {i}" for how in ("without ", "one group less awaited: ") for i in (1, 2)),
    *(f"{how}mbarrier.arrive.each {i}" for how in ("without ", "before the product has ended: ") for i in (1, 2)),
    *(f"without wgmma.fence {i}" for i in (1, 2)),
]
"""Of a loop whose product is begun an iteration ahead: before it, and for both iterations of its body."""


@pytest.mark.slow
def test_faults_of_products_ahead_are_found() -> None:
    """The iterations behind the loop are there for other numbers of steps too: those are never run here."""
    (name,) = AHEAD
    faults = {fault.name: fault for fault in faults_of(compiled(name)[0])}
    missed = [fault for fault in IN_THE_LOOP if not found(name, faults[fault])]
    assert not missed


def test_blocks_of_a_cluster_wait_for_no_memory() -> None:
    """They meet once, when they have made mbarriers, and end when their buffers are empty: nothing is released."""
    ops = list(compiled("tiles of a cluster")[0].body.walk())
    kinds = {str(op.attrs.get("isa", op.attrs.get("kind"))) for op in ops}
    assert "barrier.cluster.made.arrive" in kinds
    assert not kinds & {"barrier.cluster.arrive", "async.cluster"}
    assert not any(op.name == "barrier" and op.attrs["scope"] == "cluster" for op in ops)
