"""What bounds the tests of tests/gpu, without a GPU: a process that takes too long is ended, and says where it was."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from children import TESTS, environment
from gpu.bounds import bounded

SCRIPT = """
import threading
from gpu.bounds import bounded

def waiting():
    threading.Event().wait(60)

with bounded("tests/gpu/test_a.py::test_b", 0.5):
    waiting()
"""


def test_a_test_that_takes_too_long_ends_its_process(tmp_path: Path) -> None:
    env = environment(TESTS, TMPDIR=tmp_path, TEMP=tmp_path)
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, timeout=50, check=False)
    assert done.returncode == 1 and time.monotonic() - start < 40
    (said,) = tmp_path.glob("weft-endless-*.txt")
    text = said.read_text("utf-8")
    assert text.startswith("tests/gpu/test_a.py::test_b may take 0.5 s\nTimeout") and "in waiting" in text


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_left_of_a_test_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    try:
        with bounded("a test", 0.2):
            assert len(list(tmp_path.iterdir())) == 1
            if fails:
                raise ValueError
    except ValueError:
        pass
    time.sleep(0.4)  # the watchdog is no more there
    assert list(tmp_path.iterdir()) == []
