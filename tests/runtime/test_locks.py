"""A child of a fork launches kernels, whatever locks other threads had."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from children import SOURCE, environment

SCRIPT = """
    import os, signal, threading
    import numpy as np
    import weft
    import weft.language as tl
    from weft.base import locks

    @weft.jit
    def add(x, out, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

    def launched(n):
        x, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        add[(weft.cdiv(n, 256),)](x, out, n, B=256)
        assert (out == x + 1).all()

    launched(10_000)
    held, forked = threading.Event(), threading.Event()

    def hold():
        every = list(locks._locks)
        for lock in every:
            lock.acquire()
        held.set()
        forked.wait()
        for lock in every:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        launched(10_001)  # one that is compiled anew
        os._exit(0)
    forked.set()
    thread.join()
    status = os.waitpid(child, 0)[1]
    launched(10_002)
    print("child", os.waitstatus_to_exitcode(status), "locks", len(locks._locks))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_finds_locks_free_that_other_threads_had(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run([sys.executable, script], env=environment(), capture_output=True, text=True, timeout=120)
    said = re.fullmatch(r"child (-?\d+) locks (\d+)\n", done.stdout)
    assert said, done.stderr
    assert said[1] == "0" and int(said[2]) > 10


def test_every_lock_is_renewed_in_a_child() -> None:
    bare = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(Path(SOURCE).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"threading\.R?Lock\(\)", line) and "renewed(" not in line
    ]
    # a process of its own, and what is made anew as a whole
    assert [place.partition(":")[0] for place in bare] == ["weft/backends/cpu/watch.py", "weft/runtime/worker.py"]
