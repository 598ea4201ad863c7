"""What is known of a value outside of partitions is known of it inside, and of what the first one gives."""

from __future__ import annotations

import numpy as np

import weft
import weft.gluon.language as gl
from weft import gluon
from weft.gluon.language.nvidia.ampere import async_copy

LAYOUT = gl.constexpr(gl.BlockedLayout([8], [32], [4], [0]))


@gluon.jit
def first(x, y):
    i = gl.arange(0, 1024, LAYOUT)
    gl.store(y + i, gl.load(x + i))
    return y + 1024


@gluon.jit
def second(x, y):
    i = gl.arange(0, 1024, LAYOUT)
    gl.store(y + 2048 + i, gl.load(x + i))


@gluon.jit
def third(x, y):
    i = gl.arange(0, 1024, LAYOUT)
    memory = gl.allocate_shared_memory(gl.float16, [1024], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_copy_global_to_shared(memory, x + i)
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.store(y + 3072 + i, memory.load(LAYOUT))


@gluon.jit
def partitions(x, y):
    rest = gl.warp_specialize([(first, (x, y)), (second, (x, y)), (third, (x, y))], [4, 4], [24, 24])
    i = gl.arange(0, 1024, LAYOUT)
    gl.store(rest + i, gl.load(x + i))


def test_alignment_of_arguments() -> None:
    """All accesses are of 16 bytes, 8 halves; a copy of 2 bytes there would not be."""
    x, y = np.arange(1024).astype(np.float16), np.zeros(4096, np.float16)
    with weft.target("sim:cuda:90"):
        report = partitions[(1,)](x, y)
    np.testing.assert_array_equal(y, np.tile(x, 4))
    widths = {kind for kind in report.kinds if kind.startswith(("load.global", "store.global"))}
    assert widths == {"load.global.128", "store.global.128"}
