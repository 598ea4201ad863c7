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
from weft.backends.cpu.limits import (
    SPIN_NS,
    TURN_FREE_NS,
    TURN_MISS,
    TURN_NAP_NS,
    TURN_NAPS,
    TURN_PAUSE,
    TURN_WAITERS,
)
from weft.backends.cpu.native import native
from weft.backends.cpu.pool_layout import LINE
from weft.runtime import prepared


class Native:
    """The functions of `turns.ll`, called without the lock, as native code calls them."""

    def __init__(self) -> None:
        native()
        word = ctypes.c_int64
        self.leave = ctypes.CFUNCTYPE(None, word)(places._given["code leave"])
        self.back = ctypes.CFUNCTYPE(word, word)(places._given["code return"])
        self.asked = ctypes.CFUNCTYPE(None, word)(places._given["code asked"])

    def timed(self, thread: int) -> tuple[int, int]:
        """Nanoseconds until a thread is back, and when it asks for the lock without a turn."""
        begin = time.perf_counter_ns()
        then = self.back(thread)
        return time.perf_counter_ns() - begin, then


def waiting() -> bool:
    """Whether somebody stands in a place, or has left it occupied."""
    return any(TURNS.words[TURNS.PLACES :])


@pytest.fixture
def turns() -> Iterator[Native]:
    before = list(TURNS.words)
    TURNS.words[:] = [0] * len(before)
    yield Native()
    TURNS.words[:] = before


def test_who_is_alone_has_the_turn(turns: Native) -> None:
    assert turns.back(7) == 0 and TURNS.words[TURNS.HOLDER] == 7
    turns.leave(8)
    assert (TURNS.words[TURNS.HOLDER], TURNS.words[TURNS.COUNT]) == (7, 0), "it is not the other's"
    turns.leave(7)
    assert (TURNS.words[TURNS.HOLDER], TURNS.words[TURNS.COUNT]) == (0, 1)


def test_who_does_something_else_is_not_waited_for_long_nor_often(turns: Native) -> None:
    """It is a miss where the lock was free, and is not where somebody had it."""
    for k in range(TURN_PAUSE // TURN_MISS):
        TURNS.words[TURNS.HOLDER] = 7 + k
        took, then = turns.timed(99)
        assert took >= SPIN_NS and 0 < then <= time.monotonic_ns()
        turns.asked(time.monotonic_ns() - 50 * TURN_FREE_NS)
        assert (TURNS.words[TURNS.MISSES], TURNS.words[TURNS.PAUSE]) == (TURN_MISS * k, 0)
        turns.asked(time.monotonic_ns() + TURN_FREE_NS)
        assert (TURNS.words[TURNS.MISSES], TURNS.words[TURNS.PAUSE]) == (TURN_MISS * (k + 1), 0)
    turns.asked(time.monotonic_ns() + TURN_FREE_NS)
    assert TURNS.words[TURNS.PAUSE] == TURN_PAUSE
    TURNS.words[TURNS.HOLDER] = 8
    assert min(turns.timed(99) for _ in range(TURN_PAUSE)) < (SPIN_NS, 0)
    assert (TURNS.words[TURNS.PAUSE], TURNS.words[TURNS.HOLDER]) == (0, 8) and not waiting()
    assert turns.timed(99)[0] >= SPIN_NS, "it is tried again"


def test_one_asks_in_a_long_turn(turns: Native) -> None:
    """The others sleep a little, look again, and have the next turn; some time later each asks."""
    TURNS.words[TURNS.HOLDER] = 7
    assert turns.timed(8)[1] and TURNS.words[TURNS.HOLDER] == 8, "and nobody is before it when the lock is given away"
    took, then = turns.timed(9)
    assert then == 0 and took >= TURN_NAP_NS * TURN_NAPS * (TURN_NAPS + 1) // 2
    TURNS.words[TURNS.COUNT] += 1
    assert turns.timed(9)[1], "another turn"


@pytest.mark.parametrize("before", [0, 1, TURN_WAITERS])
def test_who_waits_has_the_next_turn(turns: Native, before: int) -> None:
    """Also behind others, and who is one too many to wait busily."""
    TURNS.words[TURNS.HOLDER] = 7
    TURNS.words[TURNS.ASKED] = 7  # somebody has in this turn
    for place in range(before):
        TURNS.words[TURNS.PLACES + LINE // 8 * place] = 9
    thread = threading.Thread(target=turns.back, args=(8,))
    thread.start()
    time.sleep(1e-4)
    turns.leave(7)
    for place in range(before):
        TURNS.words[TURNS.PLACES + LINE // 8 * place] = 0
    thread.join()
    assert TURNS.words[TURNS.HOLDER] == 8 and not waiting()


def test_who_waits_in_a_row_has_its_turn_in_it(turns: Native) -> None:
    TURNS.words[TURNS.HOLDER] = 7
    until = time.monotonic() + 30
    orders = []
    while [1, 2, 3] not in orders and time.monotonic() < until:  # on a busy machine they may come late, and sleep
        order: list[int] = []

        def wait(thread: int, order: list[int] = order) -> None:
            turns.back(thread)
            order.append(thread)
            turns.leave(thread)

        threads = [threading.Thread(target=wait, args=(k,)) for k in (1, 2, 3)]
        for thread in threads:
            thread.start()
        turns.leave(7)
        for thread in threads:
            thread.join()
        assert sorted(order) == [1, 2, 3] and TURNS.words[TURNS.HOLDER] == 0 and not waiting()
        orders.append(order)
        TURNS.words[TURNS.HOLDER] = 7
    assert [1, 2, 3] in orders


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
    assert len(order) == 1200 and not waiting()


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
    assert not wrong and TURNS.words[TURNS.COUNT] and not waiting()
