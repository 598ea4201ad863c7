"""A kernel is loaded wherever memory is free: its parts need not lie near what the process has mapped before.

The process of these tests maps four gigabytes, then whatever is free above them but for one hole of a few pages. The
kernel's instructions fit into the hole and its constants do not, so that they would be too far away for an offset of 32
bits. PyTorch with CUDA leaves such holes by chance.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, sys
import numpy as np
import weft, weft.language as tl

@weft.jit
def kernel(x, y, BLOCK: tl.constexpr, TIMES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for _ in tl.static_range(TIMES):
        v = tl.sin(v) * 0.5 + tl.exp(-v)
    tl.store(y + i, v)

def run(times):
    y = np.zeros_like(x)
    kernel[(1,)](x, y, BLOCK=256, TIMES=times)
    expected = x
    for _ in range(times):
        expected = np.sin(expected) * np.float32(0.5) + np.exp(-expected)
    np.testing.assert_allclose(y, expected, rtol=1e-4)

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
libc.mmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
PRIVATE_UNNAMED_WITHOUT_RESERVE = 0x4022

def mapped(size):
    return libc.mmap(0, size, 0, PRIVATE_UNNAMED_WITHOUT_RESERVE, -1, 0)

x = np.linspace(0, 1, 256, dtype=np.float32)
run(1)
far, size, above = mapped(4 << 30), 1 << 34, []
while size >= 4096:
    address = mapped(size)
    if far < address < 1 << 48:
        above.append((size, address))
        continue
    if address < far:
        libc.munmap(address, size)
    size //= 2
pages = int(sys.argv[1])
hole = next(address for size, address in above if size >= 4096 * (pages + 2))
libc.munmap(hole + 4096, 4096 * pages)
for times in (2, 3, 4):
    run(times)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
@pytest.mark.parametrize("pages", [2, 3])
def test_parts_of_a_kernel_do_not_lie_far_apart(tmp_path: Path, pages: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(program), str(pages)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
