"""Loops that wait for what another program, or another thread, stores: every iteration loads anew.

The launches are in a child process, where one that waits for ever can be ended.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

HEAD = """
import faulthandler, threading, time
import numpy as np
import weft
import weft.language as tl

faulthandler.dump_traceback_later(60, exit=True)

def after_a_while(array):
    def store():
        time.sleep(0.2)
        array[:] = 1
    threading.Thread(target=store).start()

"""
KERNELS = {
    "a volatile scalar": """
@weft.jit
def kernel(x, out, n):
    p = tl.load(x, volatile=True)
    while p == 0:
        p = tl.load(x, volatile=True)
    tl.store(out, p)
""",
    "a volatile tile with a mask": """
@weft.jit
def kernel(x, out, n):
    i = tl.arange(0, 32)
    s = tl.sum(tl.load(x + i, mask=i < n, other=0, volatile=True))
    while s < n:
        s = tl.sum(tl.load(x + i, mask=i < n, other=0, volatile=True))
    tl.store(out, s > 0)
""",
    "a volatile gather": """
@weft.jit
def kernel(x, out, n):
    i = (tl.arange(0, 32) * 7) % 32
    s = 0
    while s < n:
        s = tl.sum(tl.load(x + i, mask=i < n, other=0, volatile=True))
    tl.store(out, s > 0)
""",
    "a plain scalar": """
@weft.jit
def kernel(x, out, n):
    while tl.load(x) == 0:
        pass
    tl.store(out, 1)
""",
}
LAUNCH = """
x, out = np.zeros(32, np.int32), np.zeros(1, np.int32)
kernel.warmup(x, out, 30, grid=(1,))
after_a_while(x)
kernel[(1,)](x, out, 30)
assert out[0] == 1
"""
PROGRAMS = """
@weft.jit
def kernel(flag, data, out):
    if tl.program_id(0) == 0:
        tl.store(data + tl.arange(0, 16), tl.full([16], 3, tl.int32))
        tl.store(flag, 1)
    else:
        while tl.load(flag) == 0:
            pass
        tl.store(out + tl.program_id(0), tl.sum(tl.load(data + tl.arange(0, 16))))

for _ in range(100):
    flag, data, out = np.zeros(1, np.int32), np.zeros(16, np.int32), np.zeros(8, np.int32)
    kernel[(8,)](flag, data, out)
    assert (out[1:] == 48).all()
"""


def _run(tmp_path: Path, text: str) -> None:
    path = tmp_path / "waiting.py"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_every_turn_loads_anew(tmp_path: Path) -> None:
    """All in one process; of one that waits for ever, the traceback says which it is."""
    _run(tmp_path, HEAD + "".join(kernel + LAUNCH for kernel in KERNELS.values()))


def test_a_program_sees_what_an_earlier_one_stored(tmp_path: Path) -> None:
    _run(tmp_path, HEAD + PROGRAMS)


EACH_OTHER = """
@weft.jit
def for_the_next(flag, out, n):
    p = tl.program_id(0)
    if p + 1 < n:
        while tl.load(flag + p + 1, volatile=True) != 1:
            pass
    tl.store(flag + p, 1)
    tl.store(out + p, p)

@weft.jit
def rounds(count, x, out, n, ROUNDS: tl.constexpr):
    p = tl.program_id(0)
    for r in range(ROUNDS):
        v = tl.load(x + (r % 2) * n + (p + 1) % n)
        tl.store(x + ((r + 1) % 2) * n + p, v + 1)
        arrived = tl.atomic_add(count, 1) + 1
        while arrived < n * (r + 1):
            arrived = tl.atomic_add(count, 0)
    tl.store(out + p, tl.load(x + (ROUNDS % 2) * n + p))

for n in (2, 3, 30):
    for _ in range(3):
        flag, out = np.zeros(n, np.int32), np.zeros(n, np.int32)
        for_the_next[(n,)](flag, out, n)
        assert (out == np.arange(n)).all()
        count, x = np.zeros(1, np.int32), np.zeros(2 * n, np.int32)
        rounds[(n,)](count, x, out, n, 3)
        assert (out == 3).all()
"""


def test_programs_wait_for_later_ones_and_for_all(tmp_path: Path) -> None:
    _run(tmp_path, HEAD + EACH_OTHER)


@weft.jit
def steps(x, out, n):
    i = 0
    while i < n:  # what it reads does not tell how long it goes on
        tl.store(out + i, tl.load(x + i))
        i += 1


@weft.jit
def search(x, out, n):
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if tl.load(x + middle) < 5:
            low = middle + 1
        else:
            high = middle
    tl.store(out, low)


@weft.jit
def spin(x, out, n):
    for i in range(n):
        while tl.atomic_cas(x + i, 0, 1) == 1:
            pass
    tl.store(out, 1)


@pytest.mark.parametrize(("kernel", "waits"), [(steps, False), (search, True), (spin, True)])
def test_which_kernels_may_wait(kernel: Any, waits: bool) -> None:
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    assert kernel.warmup(x, out, 8, grid=(1,)).metadata.waits is waits


@weft.jit
def bisect(KEYS, TABLE, OUT, n):
    program = tl.program_id(0)
    key = tl.load(KEYS + program)
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if tl.load(TABLE + middle) < key:
            low = middle + 1
        else:
            high = middle
    tl.store(OUT + program, low)


def test_launches_are_watched_by_one_thread() -> None:
    """Starting a thread takes longer than most launches: a binary search is a `while` that reads its condition too."""
    table, out = np.arange(64, dtype=np.float32), np.zeros(64, np.int32)
    keys, watchers = table[::-1].copy(), set()
    for _ in range(20):
        bisect[(64,)](keys, table, out, 64)
        np.testing.assert_array_equal(out, np.arange(64)[::-1])
        watchers |= {t for t in threading.enumerate() if t.name == "weft-watch"}
    assert len(watchers) <= 1  # none where there are as many workers as programs
