"""Why a kernel was compiled again: the argument, its values and classes, the launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import weft
import weft.language as tl


@weft.jit
def scaled(x, out, n, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * by, mask=i < n)


def test_what_changed_and_where() -> None:
    x = np.ones(4096, np.float32)
    assert str(scaled.explain_recompiles()) == "it was not compiled more than once"
    for n in (1000, 1008, 1024, 1000, 1001):
        scaled[(4,)](x, x, n, 2.0, BLOCK=256)
    scaled[(4,)](x, x, 1, 2.0, BLOCK=256)
    scaled[(4,)](x, x.astype(np.float64), 1000, 2.0, BLOCK=512)
    found = scaled.explain_recompiles()
    here, line = Path(__file__).name, test_what_changed_and_where.__code__.co_firstlineno
    assert [str(each).rpartition(here)[2] for each in found] == [
        f":{line + 4}: compiled again: `n` was 1000 (i32, no multiple of a vector) and is 1008 (i32, a multiple of 16)",
        f":{line + 5}: compiled again: `n` was 1000 (i32, no multiple of a vector) and is 1 (the constant 1)",
        f":{line + 6}: compiled again: `out` was ndarray (*fp32 at a multiple of 16) and is ndarray (*fp64 at a "
        "multiple of 16); `BLOCK` was 256 (the constant 256) and is 512 (the constant 512)",
    ]


@weft.jit
def copied(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def test_options_and_targets() -> None:
    x = weft.MockTensor("fp32")
    for target, warps in (("cuda:80", 4), ("cuda:80", 8), ("cuda:90", 8)):
        copied.warmup(x, x, BLOCK=1024, grid=(1,), target=f"sim:{target}", num_warps=warps)
    first, second = copied.explain_recompiles()
    assert [str(change) for change in first.changes] == ["`num_warps` was 4 and is 8"]
    assert [str(change) for change in second.changes] == ["`target` was sim:cuda:80 and is sim:cuda:90"]
