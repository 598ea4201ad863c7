"""Threads that come back from launches take turns at the interpreter's lock (`backends/cpu/turns.ll`)."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.cpu import driver, places
from weft.backends.cpu.engine import TURNS
from weft.backends.cpu.limits import SPIN_NS, TURN_MISS, TURN_PAUSE, TURN_WAITERS
from weft.backends.cpu.native import native
from weft.runtime import prepared


class Native:
    """The two functions; as built-in code calls them, without the lock."""

    def __init__(self) -> None:
        native()
        self.leave, self.back = (
            ctypes.CFUNCTYPE(None, ctypes.c_int64)(places._given[f"code {name}"]) for name in ("leave", "return")
        )

    def timed(self, thread: int) -> int:
        """Nanoseconds until a thread is back."""
        begin = time.perf_counter_ns()
        self.back(thread)
        return time.perf_counter_ns() - begin


@pytest.fixture
def turns() -> Iterator[Native]:
    before = list(TURNS.words)
    TURNS.words[:] = [0] * len(before)
    yield Native()
    TURNS.words[:] = before


def test_who_is_alone_has_the_turn(turns: Native) -> None:
    turns.back(7)
    assert TURNS.words[TURNS.HOLDER] == 7
    turns.leave(8)
    assert (TURNS.words[TURNS.HOLDER], TURNS.words[TURNS.COUNT]) == (7, 0), "it is not the other's"
    turns.leave(7)
    assert (TURNS.words[TURNS.HOLDER], TURNS.words[TURNS.COUNT]) == (0, 1)


def test_who_does_something_else_is_not_waited_for_long_nor_often(turns: Native) -> None:
    TURNS.words[TURNS.HOLDER] = 7
    for k in range(TURN_PAUSE // TURN_MISS):
        assert turns.timed(8) >= SPIN_NS
        assert (TURNS.words[TURNS.MISSES], TURNS.words[TURNS.PAUSE]) == (TURN_MISS * (k + 1), 0)
    turns.back(8)
    assert TURNS.words[TURNS.PAUSE] == TURN_PAUSE
    assert min(turns.timed(8) for _ in range(TURN_PAUSE)) < SPIN_NS
    assert (TURNS.words[TURNS.PAUSE], TURNS.words[TURNS.HOLDER], TURNS.words[TURNS.WAITING]) == (0, 7, 0)
    assert turns.timed(8) >= SPIN_NS, "it is tried again"


def test_who_waits_has_the_next_turn(turns: Native) -> None:
    """Also one more than may wait busily, and one that has waited long while others had turns."""
    TURNS.words[TURNS.HOLDER] = 7
    TURNS.words[TURNS.WAITING] = TURN_WAITERS
    thread = threading.Thread(target=turns.back, args=(8,))
    thread.start()
    time.sleep(0.001)  # it sleeps, and comes back to see whether there are fewer
    TURNS.words[TURNS.WAITING] -= TURN_WAITERS
    until = time.monotonic() + 20
    while thread.is_alive() and time.monotonic() < until:
        TURNS.words[TURNS.COUNT] += 1  # others have turns
    assert TURNS.words[TURNS.HOLDER] == 7
    thread.join()


def test_turns_pass_from_thread_to_thread(turns: Native) -> None:
    order: list[int] = []

    def calls(thread: int) -> None:
        for _ in range(300):
            turns.back(thread)
            order.append(thread)
            turns.leave(thread)

    threads = [threading.Thread(target=calls, args=(k + 1,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(order) == 1200 and TURNS.words[TURNS.WAITING] == 0


@pytest.mark.skipif(not prepared.supported(), reason="launches are not prepared on this Python")
def test_launches_of_many_threads_are_right(turns: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "AFTER", 1)
    driver.set_num_threads(1)

    @weft.jit
    def scaled(x, out, factor, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + offsets, tl.exp(tl.load(x + offsets)) * factor)

    x = np.linspace(0, 1, 1 << 14, dtype=np.float32)
    first = np.empty_like(x)
    for _ in range(4):
        scaled[(16,)](x, first, 1.0, BLOCK=1024)
    wrong: list[int] = []

    def work(k: int) -> None:
        out = np.empty_like(x)
        for _ in range(100):
            out[:] = 0
            scaled[(16,)](x, out, float(1 << k), BLOCK=1024)
            if not (out == first * (1 << k)).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    driver.set_num_threads(None)
    assert not wrong and TURNS.words[TURNS.COUNT] and TURNS.words[TURNS.WAITING] == 0
