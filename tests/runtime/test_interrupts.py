"""Ctrl-C while a kernel runs: SIGINT from outside, to a process of its own, which then has to launch again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import weft
import weft.language as tl

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be sent SIGINT there")

SOON = 5.0
"""Seconds that an interrupt may take here; alone on a machine it is 0.1."""

HEAD = """
import faulthandler, os, signal, sys, threading, time
import numpy as np
import weft
import weft.language as tl

faulthandler.dump_traceback_later(60, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs in the background may have it ignored

@weft.jit(do_not_specialize=["first"])
def wait(flag, out, first):
    pid = tl.program_id(0)
    if pid >= first:
        while tl.load(flag) == 0:
            pass
    tl.store(out + pid, pid + 1)

def right(count):
    out[:] = 0
    wait[(count,)](np.ones(1, np.int32), out, 0)
    return (out[:count] == np.arange(1, count + 1)).all() and not out[count:].any()

def say(text):
    print(text, flush=True)

flag, out = np.zeros(1, np.int32), np.zeros(5000, np.int32)
assert right(1) and right(1) and right(1)  # now a launch compiles nothing, where Python may lose a signal (in __del__)
"""
TAIL = """
say("caught")
assert right(1) and right(3) and right(5000)
say("over")
"""


def interrupt(tmp_path: Path, body: str, threads: int = 3) -> str:
    """Run a script, send it SIGINT soon after it says "ready"; what it says after, in time, up to "over"."""
    path = tmp_path / "interrupted.py"
    path.write_text(HEAD + body + TAIL, encoding="utf-8")
    environment = {**os.environ, "WEFT_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line == "ready\n":
                break
        time.sleep(0.4)
        begin = time.perf_counter()
        child.send_signal(signal.SIGINT)
        said = ""
        for line in child.stdout:
            said += line
            if line == "caught\n":
                assert time.perf_counter() - begin < SOON
    assert child.returncode == 0
    assert said.endswith("caught\nover\n"), said
    return said


LAUNCH = """
say("ready")
try:
    {launch}
    sys.exit("the launch was not interrupted")
except KeyboardInterrupt:
    pass
"""


@pytest.mark.parametrize("grid", [1, 2, 3, 5000])
@pytest.mark.thinned(2)
def test_programs_that_wait_for_ever(tmp_path: Path, grid: int) -> None:
    interrupt(tmp_path, LAUNCH.format(launch=f"wait[({grid},)](flag, out, 0)"))


def test_only_a_worker_waits(tmp_path: Path) -> None:
    interrupt(tmp_path, "wait[(3,)](flag, out, 3)\n" + LAUNCH.format(launch="wait[(3,)](flag, out, 2)"))


def test_launches_that_were_short_before(tmp_path: Path) -> None:
    """What programs cost is known by then, and chunks are made of many."""
    body = "for _ in range(50):\n    assert right(5000)\n"
    interrupt(tmp_path, body + LAUNCH.format(launch="wait[(5000,)](flag, out, 1)"))


def test_one_thread(tmp_path: Path) -> None:
    interrupt(tmp_path, LAUNCH.format(launch="wait[(5000,)](flag, out, 1)"), threads=1)


LOOPS = {
    "tiles": """
    i = tl.arange(0, 1 << 16)
    total = tl.zeros([1 << 16], tl.float32)
    for _ in range(iterations):
        total += tl.exp(tl.load(x + i) * 0.5)
    tl.store(x + i, total)
""",
    "small tiles": """
    i = tl.arange(0, 16)
    total = tl.zeros([16], tl.float32)
    for _ in range(iterations):
        for k in range(16):
            total = total * 0.5 + tl.load(x + i + k)
    tl.store(x + i, total)
""",
    "scalars": """
    n = tl.program_id(0).to(tl.int64)
    for k in range(iterations):
        n = (n * 25214903917 + k) ^ (n >> 7)
    tl.store(x, n.to(tl.float32))
""",
    "a loop in a loop": """
    n = tl.program_id(0).to(tl.int64)
    i = 0
    while i < iterations:
        i += 1
        for k in range(iterations):
            n = (n * 25214903917 + k) & 0xFFFFFFFFFFFF
    tl.store(x, n.to(tl.float32))
""",
    "rarely a branch": """
    i = tl.arange(0, 1 << 18)
    for k in range(iterations):
        if k % 100 == 0:
            tl.store(x + i, tl.sqrt(tl.load(x + i)))
""",
    "each element": """
    i = tl.arange(0, 32)
    y = tl.map_elementwise(last, tl.load(x + i), i * 0 + iterations)
    tl.store(x + i, y)
""",
}
LOOPING = """
@weft.jit
def last(v, iterations):
    n = iterations * 0
    while n < iterations:
        n += 1
        v = v * 1.5 + n
    return v

@weft.jit(do_not_specialize=["iterations"])
def loop(x, iterations: tl.int64):
{body}
x = np.ones(1 << 18, np.float32)
for _ in range(3):
    loop[(1,)](x, 3, **options)
"""
FOR_EVER = "loop[({grid},)](x, 1 << 50, **options)"


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.thinned(3)
def test_long_loops(tmp_path: Path, name: str) -> None:
    body = "options = {}\n" + LOOPING.format(body=LOOPS[name].strip("\n"))
    interrupt(tmp_path, body + LAUNCH.format(launch=FOR_EVER.format(grid=1)))


def test_checks_of_debug(tmp_path: Path) -> None:
    body = "options = {'debug': True}\n" + LOOPING.format(body=LOOPS["small tiles"].strip("\n"))
    interrupt(tmp_path, body + LAUNCH.format(launch=FOR_EVER.format(grid=7)))


def test_a_handler_that_raises_something_else(tmp_path: Path) -> None:
    body = """
class Enough(Exception):
    pass

def handler(number, frame):
    assert threading.current_thread() is threading.main_thread()
    raise Enough(number)

signal.signal(signal.SIGINT, handler)
say("ready")
try:
    wait[(2,)](flag, out, 0)
    sys.exit("nothing was raised")
except Enough as error:
    assert error.args == (signal.SIGINT,) and error.__traceback__.tb_frame.f_code.co_name == "<module>"
"""
    interrupt(tmp_path, body)


def test_a_handler_that_returns_lets_the_launch_go_on(tmp_path: Path) -> None:
    body = """
def handler(number, frame):
    say("handled")
    timer.start()

def release():
    flag[:] = 1

timer = threading.Timer(0.5, release)
signal.signal(signal.SIGINT, handler)
say("ready")
wait[(5000,)](flag, out, 0)
assert (out == np.arange(1, 5001)).all()
"""
    assert interrupt(tmp_path, body).startswith("handled\n")


def test_a_handler_may_launch(tmp_path: Path) -> None:
    body = """
def handler(number, frame):
    other = np.zeros(64, np.int32)
    wait[(64,)](np.ones(1, np.int32), other, 0)
    assert (other == np.arange(1, 65)).all()
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, handler)
"""
    interrupt(tmp_path, body + LAUNCH.format(launch="wait[(3,)](flag, out, 0)"))


def test_a_launch_on_another_thread_goes_on(tmp_path: Path) -> None:
    body = """
def launch():
    wait[(5000,)](flag, out, 0)
    over.set()

over = threading.Event()
threading.Thread(target=launch).start()
say("ready")
try:
    over.wait()
    sys.exit("the launch is over")
except KeyboardInterrupt:
    time.sleep(0.3)
    assert not over.is_set()
    flag[:] = 1
    over.wait()
assert (out == np.arange(1, 5001)).all()
"""
    interrupt(tmp_path, body)


def test_the_child_of_a_fork(tmp_path: Path) -> None:
    """It was forked by another thread than the main one, which is the main one there."""
    body = """
assert right(5000)

def child():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        wait[(3,)](flag, out, 0)
    except KeyboardInterrupt:
        os._exit(7 if right(5000) else 1)
    os._exit(2)

def fork():
    pid = os.fork()
    if not pid:
        child()
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

codes = []
thread = threading.Thread(target=fork)
thread.start()
thread.join()
assert codes == [7], codes
say("ready")
try:
    time.sleep(60)
except KeyboardInterrupt:
    pass
"""
    interrupt(tmp_path, body)


def test_printing(tmp_path: Path) -> None:
    body = """
@weft.jit
def chatter(flag):
    n = 0
    while tl.load(flag) == 0:
        n += 1
        if n % 100 == 0:
            tl.device_print("n", n)

quiet = open(os.devnull, "w")
for _ in range(3):
    chatter[(4,)](np.ones(1, np.int32))
say("ready")
sys.stdout = quiet
try:
    chatter[(4,)](flag)
    sys.exit("the launch was not interrupted")
except KeyboardInterrupt:
    sys.stdout = sys.__stdout__
"""
    interrupt(tmp_path, body)


def test_any_moment(tmp_path: Path) -> None:
    """Alarms at random moments of many launches: none of them leaves something behind."""
    body = """
class Alarm(BaseException):
    pass

def handler(number, frame):
    raise Alarm

signal.signal(signal.SIGALRM, handler)
times = np.random.default_rng(0).uniform(1e-5, 3e-3, 300)
assert right(5000)
caught = 0
for k, after in enumerate(times):
    grid = (1, 2, 5000)[k % 3]
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        while True:
            wait[(grid,)](flag if k % 5 == 0 else np.ones(1, np.int32), out, grid - 1)
    except Alarm:
        caught += 1
    assert right(grid), (k, grid)
assert caught == 300

from weft.backends.cpu import pool
assert not pool._pool._busy.value
say("ready")
try:
    time.sleep(60)
except KeyboardInterrupt:
    pass
"""
    interrupt(tmp_path, body)


@weft.jit
def _plain(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + 1)


@weft.jit
def _short(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros([N], tl.float32)
    for k in range(4):
        total += tl.load(x + i + k)
    tl.store(out + i, total)


@weft.jit
def _long(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros([N], tl.float32)
    for k in range(100):
        total += tl.load(x + i + k)
    tl.store(out + i, total)


@pytest.mark.parametrize(("kernel", "polls"), [(_plain, False), (_short, False), (_long, True)])
def test_only_long_loops_look(kernel: weft.JITFunction, polls: bool) -> None:
    made = kernel.warmup(np.zeros(2048, np.float32), np.zeros(1024, np.float32), N=1024, grid=(1,))
    assert made.metadata.polls is polls
