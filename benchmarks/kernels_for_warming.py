"""A kernel that is compiled before compile times are taken, so that what loads lazily is loaded."""

from __future__ import annotations

import weft
import weft.language as tl


@weft.jit
def warming(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    for _ in range(3):
        x = tl.exp(x) + tl.sum(x, axis=0)
    tl.store(x_ptr + offsets, x)
