"""Annotated Gluon kernels, which both type checkers accept."""

from __future__ import annotations

import numpy as np
import weft
from weft import gluon
from weft.gluon import language as gl


@gluon.jit
def copy(x: gl.pointer, y: gl.pointer, n: gl.Scalar, BLOCK: gl.constexpr, layout: gl.constexpr) -> None:
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    v = gl.load(x + i, mask=i < n)
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    buffer = gl.allocate_shared_memory(gl.float32, [BLOCK], shared)
    buffer.store(v)
    w = buffer.load(layout)
    gl.store(y + i, gl.convert_layout(w, layout), mask=i < n)
    gl.static_assert(BLOCK > 2)


x = np.ones(256, np.float32)
y = np.zeros(256, np.float32)
with weft.target("sim:cuda:80"):
    copy[(2,)](x, y, 256, BLOCK=128, layout=gl.BlockedLayout([1], [32], [4], [0]), num_warps=4)
    copy.warmup(x, y, 256, 128, gl.BlockedLayout([1], [32], [4], [0]), grid=(1,))
copy[(2,)](x, y, 256, 128, layout=gl.BlockedLayout([1], [32], [4], [0]), num_warps=4, maxnreg=64)
