"""A partition that reads what another has not written yet: the race of the two is reported, whoever comes first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import gluon
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import mbarrier
from weft.sim import RaceError, SimulationError, UninitializedError

HERE = Path(__file__).resolve().parent
WIDE = gl.BlockedLayout([1], [32], [4], [0])
NARROW = gl.BlockedLayout([4], [32], [1], [0])
ORDERS = ["forward", "backward", "random"]


@gluon.jit
def _read(x, memory, bar):
    layout: gl.constexpr = WIDE
    gl.store(x + gl.arange(0, 128, layout), memory.load(layout))


@gluon.jit
def _write(x, memory, bar):
    layout: gl.constexpr = NARROW
    memory.store(gl.full([128], 3, gl.int32, layout))


@gluon.jit
def _read_then_arrive(x, memory, bar):
    _read(x, memory, bar)
    mbarrier.arrive(bar, count=1)


@gluon.jit
def _wait_then_write(x, memory, bar):
    mbarrier.wait(bar, 0)
    _write(x, memory, bar)


@gluon.jit
def _do_nothing(x, memory, bar):
    pass


@gluon.jit
def partitions(x, first: gl.constexpr, second: gl.constexpr):
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    memory = gl.allocate_shared_memory(gl.int32, [128], plain)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    gl.warp_specialize([(first, (x, memory, bar)), (second, (x, memory, bar))], [1], [24])


def caught(first: Any, second: Any, **options: Any) -> SimulationError:
    with weft.sim.options(**options), pytest.raises(SimulationError) as found:
        partitions[(2,)](np.zeros(128, np.int32), first, second, target="sim:cuda:90")
    assert weft.sim.last_run().errors[0] is found.value
    return found.value


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(3))
def test_the_race_is_found(order: str, seed: int) -> None:
    error = caught(_read, _write, order=order, seed=seed)
    assert isinstance(error, RaceError)
    lines = {error.span and error.span.source_line(), *(n.span and n.span.source_line() for n in error.notes)}
    assert {line.strip().partition("(")[0] for line in lines if line} == {"gl.store", "memory.store"}


def test_whole_message() -> None:
    text = str(caught(_read, _write)).replace(str(HERE) + os.sep, "")
    assert (
        text
        == """\
test_late_writes.py:33:5: error: race: writes byte 0 of shared memory (lane 0 of warp 4, program (0, 0, 0)), \
and 63 more of its kind here
   33 |     memory.store(gl.full([128], 3, gl.int32, layout))
      |     ^
test_late_writes.py:27:45: note: the read by warp 0, lane 0, which is not ordered with it
   27 |     gl.store(x + gl.arange(0, 128, layout), memory.load(layout))
      |                                             ^
hint: a barrier between the two orders them; for asynchronous copies, wait for their group before it"""
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("second", [_do_nothing, _wait_then_write], ids=["nobody writes", "written after the read"])
def test_what_is_no_race_is_not_called_one(order: str, second: Any) -> None:
    error = caught(_read_then_arrive, second, order=order)
    assert isinstance(error, UninitializedError)
    assert "which was never written" in str(error)


def test_all_errors() -> None:
    """Kept instead of raised, the race comes before the read that it explains."""
    with weft.sim.options(raise_first=False):
        report = partitions[(2,)](np.zeros(128, np.int32), _read, _write, target="sim:cuda:90")
    assert [type(e) for e in report.errors][:2] == [RaceError, UninitializedError]
