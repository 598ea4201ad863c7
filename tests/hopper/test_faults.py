"""Kernels with one mistake each, compiled by the real Triton: all are caught, at every timing, both sites named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.sim import (
    BarrierMisuseError,
    BulkCopyError,
    DeadlockError,
    FenceError,
    InFlightError,
    Options,
    RaceError,
    SimulationError,
)

from .running import EVERY, Described, aligned, integers, simulate

TILE = (64, 64)
every = pytest.mark.parametrize("options", EVERY, ids=lambda o: f"{o.copies}-{o.order}")


def arguments(name: str) -> dict[str, Any]:
    """What the kernel of that name takes."""
    x = integers(0, TILE, np.float16)
    if name.startswith("faulty_copy"):
        return {"x": Described(x, TILE), "y": Described(aligned(TILE, np.float16), TILE)}
    if name.startswith("faulty_product"):
        b, c = integers(1, TILE, np.float16), aligned(TILE, np.float32)
        return {"a": Described(x, TILE), "b": Described(b, TILE), "c": Described(c, TILE)}
    return {"x": aligned((4,), np.int32)}


CAUGHT: dict[str, tuple[type[SimulationError], ...]] = {
    "faulty_copy_no_init": (BarrierMisuseError,),
    "faulty_copy_one_arrival_of_two": (DeadlockError,),
    "faulty_copy_too_few_bytes": (DeadlockError,),
    "faulty_copy_too_many_bytes": (DeadlockError,),
    "faulty_copy_two_arrivals": (BarrierMisuseError,),
    "faulty_copy_no_wait": (RaceError,),
    "faulty_copy_wrong_phase": (RaceError, DeadlockError),  # by whether the copy has landed when it is waited for
    "faulty_copy_second_phase": (DeadlockError,),
    "faulty_copy_invalidated": (BarrierMisuseError,),
    "faulty_copy_no_fence": (FenceError,),
    "faulty_copy_overwritten": (RaceError,),
    "faulty_copy_no_store_wait": (BulkCopyError,),
    "faulty_product_unfenced_operand": (FenceError,),
    "faulty_product_operand_overwritten": (RaceError,),
    "faulty_product_operand_reloaded": (RaceError,),
    "faulty_product_one_outstanding": (InFlightError,),
    "deadlocked_partitions": (DeadlockError,),
}


@every
@pytest.mark.parametrize("name", CAUGHT)
def test_caught(name: str, options: Options) -> None:
    with pytest.raises(SimulationError) as found:
        simulate(name, 2, arguments(name), options)
    assert type(found.value) in CAUGHT[name], found.value
    assert found.value.span is not None


@pytest.mark.parametrize("copies", ["earliest", "latest"])
@pytest.mark.parametrize("name", CAUGHT)
@pytest.mark.thinned(2)
def test_collected(name: str, copies: str) -> None:
    """Without raising, the launch ends, and the error is in the report."""
    report = simulate(name, 1, arguments(name), Options(raise_first=False, copies=copies))
    assert any(type(e) in CAUGHT[name] for e in report.errors)


@every
@pytest.mark.parametrize("kind", ["copy", "product"])
def test_without_a_mistake(kind: str, options: Options) -> None:
    name = f"faulty_{kind}_none"
    given = arguments(name)
    simulate(name, 1, given, options)
    if kind == "copy":
        np.testing.assert_array_equal(given["y"].base, 2 * given["x"].base)
    else:
        a, b = (given[n].base.astype(np.float32) for n in "ab")
        np.testing.assert_array_equal(given["c"].base, a @ b.T)


MESSAGES = {
    "faulty_copy_too_few_bytes": """\
deadlock: phase 0 of the mbarrier at byte 8192 never ends: 4096 bytes were announced and 8192 have come \
(warp 0, program (0, 0, 0))
note: warps 0 to 3 wait here for phase 0 of the mbarrier at byte 8192: 4096 bytes were announced and 8192 have come
note: made here, for 1 arrival in each phase
note: bytes were announced here last
note: a copy brought bytes from here
hint: in each phase an mbarrier needs all its arrivals and exactly the bytes announced; nothing under way \
brings them""",
    "deadlocked_partitions": """\
deadlock: phase 0 of the mbarrier at byte 0 never ends: 0 of 1 arrivals have come (warp 0, program (0, 0, 0))
note: warps 0 to 3 wait here for phase 0 of the mbarrier at byte 0: 0 of 1 arrivals have come
note: made here, for 1 arrival in each phase
note: warp 4 waits here for phase 0 of the mbarrier at byte 16: 0 of 1 arrivals have come
note: made here, for 1 arrival in each phase
hint: in each phase an mbarrier needs all its arrivals and exactly the bytes announced; nothing under way \
brings them""",
    "faulty_copy_no_wait": """\
race: reads byte 0 of shared memory (lane 0 of warp 0, program (0, 0, 0)), and 511 more of its kind here
note: a bulk copy by warp 0, lane 0, whose mbarrier has not been waited for
hint: wait for the phase of the copy's mbarrier: with the parity of that phase, before the first access""",
    "faulty_copy_no_fence": """\
the asynchronous proxy reads byte 0 of shared memory, and may not see what was written \
(lane 0 of warp 0, program (0, 0, 0))
note: written by warp 0, lane 0, with no fence since
hint: after the stores and before the barrier, each thread that wrote must call fence_async_shared""",
    "faulty_copy_two_arrivals": """\
2 more arrivals at an mbarrier that waits for 0 of 1 (lane 0 of warp 0, program (0, 0, 0))
note: initialised here
hint: init it once, before anyone uses it, with as many arrivals as there will be in each phase""",
    "faulty_copy_invalidated": """\
there is no mbarrier at byte 8192 of shared memory (lane 0 of warp 0, program (0, 0, 0))
note: invalidated here
hint: init it once, before anyone uses it, with as many arrivals as there will be in each phase""",
    "faulty_copy_overwritten": """\
race: writes byte 0 of shared memory while it is read asynchronously (lane 0 of warp 0, program (0, 0, 0))
note: a bulk copy reads it and has not been waited for
hint: wait for the copy (store_wait) before what it reads is written""",
    "faulty_product_operand_reloaded": """\
race: writes byte 0 of shared memory while it is read asynchronously (lane 0 of warp 0, program (0, 0, 0))
note: a wgmma reads it and has not been waited for
hint: wait for the product (warpgroup_mma_wait) before its operands are written""",
    "faulty_product_one_outstanding": """\
`store` uses registers that a wgmma still works on (warp 0, program (0, 0, 0))
note: the product was begun here, and has not been waited for
hint: use what warpgroup_mma_wait returns, with few enough products left outstanding""",
}
"""Whole messages, without the places: those are lines of gluon_sources.py."""


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str) -> None:
    with pytest.raises(SimulationError) as found:
        simulate(name, 1, arguments(name))
    lines = []
    for line in str(found.value).splitlines():
        where, _, rest = line.partition(": ")
        if where != "hint":
            assert where.startswith("gluon_sources.py:"), line
            line = rest.removeprefix("error: ")
        lines.append(line)
    assert "\n".join(lines) == MESSAGES[name]
