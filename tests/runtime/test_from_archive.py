"""Weft imported from a zip archive: kernels compile, run, and are found in the cache again."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import weft
from children import environment

SCRIPT = """
import numpy as np, weft, weft.language as tl

@weft.jit
def double(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * 2 + tl.extra.libdevice.j0(i * 0.0) - 1)  # its table is a file of the package

x = np.ones(16, np.float32)
kernel = double.warmup(x, N=16, grid=(1,))
double[(1,)](x, N=16)
print(weft.__file__, kernel.from_cache, x.sum())
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "weft.zip"
    root = Path(weft.__file__).parent
    with zipfile.ZipFile(path, "w") as file:
        for source in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".txt")):
            file.write(source, Path("weft") / source.relative_to(root))
    return path


def test_weft_runs_from_an_archive(archive: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = environment(archive, WEFT_CACHE_DIR=tmp_path / "cache")
    runs = []
    for changed in (False, False, True):
        if changed:  # another version of Weft under the same name: nothing of the old one is used
            os.utime(archive, (1, 1))
        done = subprocess.run(
            [sys.executable, "-W", "error", str(script)], env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        place, from_cache, total = done.stdout.split()
        assert place.startswith(str(archive))
        assert total == "32.0"
        runs.append(from_cache)
    assert runs == ["False", "True", "False"]
