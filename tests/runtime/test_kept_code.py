"""The native code of launches is made by the first process of a cache, and only loaded by those that follow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from children import SOURCE, environment
from weft.runtime import prepared

SCRIPT = """
import sys
import numpy as np
import weft
import weft.language as tl
from weft.runtime import prepared

@weft.jit
def add(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
ways = []
for _ in range(prepared.AFTER):
    out[:] = 0
    add[(4,)](x, out, 100, BLOCK=32)
    assert (out == x + 1).all()
    ways.append(type(add._host).__name__)
print(ways.index("builtin_function_or_method") + 1, "weft.backends.cpu.native_code" in sys.modules)
"""


def run(path: Path, cache: Path, **variables: str) -> str:
    env = {**environment(SOURCE), "WEFT_CACHE_DIR": str(cache), **variables}
    done = subprocess.run([sys.executable, str(path)], env=env, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not prepared.supported(), reason="launches are not prepared on this Python")
def test_only_the_first_process_makes_it(tmp_path: Path) -> None:
    script, cache = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(SCRIPT, encoding="utf-8")
    cache.mkdir(mode=0o700)
    made, kept = f"{prepared.AFTER} True", f"{prepared.AFTER} False"
    assert run(script, cache) == made
    assert run(script, cache) == kept, "addresses are those of the process"
    for file in cache.rglob("*.weft"):  # what is damaged is made anew
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    env = {**environment(SOURCE), "WEFT_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, str(script)], env=env, timeout=120, capture_output=True, text=True)
    assert done.stdout.strip() == made
    assert "is damaged and is made anew" in done.stderr
    assert run(script, cache) == kept
