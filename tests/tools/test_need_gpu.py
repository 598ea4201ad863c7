"""Without a GPU, `make gpu-test` and its like say why not, and fail, before anything is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_where_there_is_no_gpu_it_says_why() -> None:
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    command = [sys.executable, str(ROOT / "tools" / "need_gpu.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=hidden, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no GPU: ") and "hint: " in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["gpu-test", "gpu-bench", "gpu-fuzz", "gpu-sanitize"])
def test_everything_for_gpus_asks_first(name: str) -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    wanted = re.search(rf"^{name}: (.*)$", rules, flags=re.MULTILINE)
    assert wanted is not None and wanted[1].split()[0] == "gpu"
    assert re.search(r"^gpu: .*\n\t.*tools/need_gpu\.py$", rules, flags=re.MULTILINE)
