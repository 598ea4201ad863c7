"""Loops that wait for what another program, or another thread, stores: every turn loads anew.

The launches are in a child process, where one that waits for ever can be ended.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", KERNELS)
def test_every_turn_loads_anew(tmp_path: Path, name: str) -> None:
    _run(tmp_path, HEAD + KERNELS[name] + LAUNCH)


def test_a_program_sees_what_an_earlier_one_stored(tmp_path: Path) -> None:
    _run(tmp_path, HEAD + PROGRAMS)
