"""A whole script that launches one kernel: `cpu.py` starts new processes of it, with an empty and with a full cache."""

import numpy as np

import weft
import weft.language as tl


@weft.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


x = np.arange(1000, dtype=np.float32)
out = np.empty_like(x)
add[(weft.cdiv(x.size, 256),)](x, x, out, x.size, BLOCK=256)
if not (out == 2 * x).all():
    raise SystemExit("the sums are wrong")
