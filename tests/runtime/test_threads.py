"""Threads that nobody waits for: how many there are, what is cancelled, and what happens when Python ends."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

from weft.runtime.threads import Threads


def test_as_many_at_once_as_there_may_be() -> None:
    threads = Threads(3, "test")
    together = threading.Barrier(4, timeout=30)
    futures = [threads.submit(together.wait) for _ in range(3)]
    together.wait()
    wait(futures)
    names = {f.result() for f in [threads.submit(lambda: threading.current_thread().name) for _ in range(20)]}
    assert names <= {"test_0", "test_1", "test_2"}
    with pytest.raises(ZeroDivisionError):
        threads.submit(divmod, 1, 0).result()
    threads.shutdown()
    assert not [t for t in threading.enumerate() if t.name.startswith("test_")]
    with pytest.raises(RuntimeError, match="it was shut down"):
        threads.submit(int)


def test_what_waits_can_be_cancelled() -> None:
    threads, go = Threads(1, "test"), threading.Event()
    first, second, third = (threads.submit(go.wait, 30) for _ in range(3))
    assert second.cancel()
    threads.shutdown(wait=False, cancel_futures=True)
    go.set()
    assert first.result() and third.cancelled()


def test_an_executor_that_nobody_has_ends_its_threads() -> None:
    threads = Threads(1, "forgotten")
    threads.submit(int).result()
    del threads
    gc.collect()
    for thread in [t for t in threading.enumerate() if t.name.startswith("forgotten")]:
        thread.join(10)
        assert not thread.is_alive()


def test_the_caller_does_it_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: Any) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert Threads(2, "test").submit(threading.get_ident).result() == threading.get_ident()


PROGRAM = """
import atexit, threading, time
import numpy as np
import weft, weft.language as tl
from weft.runtime.workers import default_pool

@weft.jit
def filled(out, N: tl.constexpr):
    tl.store(out, N)

def at_the_end():
    out = np.zeros(1, np.int32)
    filled[(1,)](out, N=7)
    print(out[0], flush=True)

atexit.register(at_the_end)  # it is called after the pool is shut down, which registers itself later
weft.knobs.compilation.isolate = weft.knobs.compilation.always_compile = True
weft.knobs.compilation.workers = 2
default_pool().submit(int).result()
threading.Thread(target=lambda: default_pool().submit(time.sleep, 300).result(), daemon=True).start()
time.sleep(0.2)
"""


def test_a_program_ends_while_workers_are_at_work_and_may_compile_until_then(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    begin = time.monotonic()
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=250)
    assert (done.stdout, done.stderr, done.returncode) == ("7\n", "", 0)
    assert time.monotonic() - begin < 200
