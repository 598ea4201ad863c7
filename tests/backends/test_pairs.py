"""Two words that are stored as a vector, the first of which is then loaded and used as an index: Note [Pairs] in
`backends/llvm/emit.py`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compiler import host_cpu

pytestmark = pytest.mark.skipif(not host_cpu().is_x86, reason="the fault is that of x86's instruction selection")


@weft.jit
def in_a_loop(x, out):
    i = tl.arange(0, 2)
    for _ in range(1):
        tl.store(x + i, (tl.load(x + i) & 7) | 8)
        for k in range(2):
            tl.store(out + tl.load(x + k), 1)


@weft.jit
def counted(x, out):
    places = (tl.load(x + tl.arange(0, 2)) & 7) | 8
    tl.store(out + tl.arange(0, 16), tl.histogram(places, 16))


@weft.jit
def after_another(x, out):
    i = tl.arange(0, 2)
    tl.store(x + i, tl.minimum(tl.load(x + i).to(tl.uint32, bitcast=True), 13).to(tl.int32))
    for k in range(1):
        tl.store(out + i, 0)
        tl.store(out + tl.load(x + k), 1)
        tl.store(out + tl.load(x + k + 1), 1)


@weft.jit
def as_floats(x, out):
    i = tl.arange(0, 2)
    for _ in range(1):
        words = (tl.load(x + i) & 7) | 8
        tl.store(x.to(tl.pointer_type(tl.float32)) + i, words.to(tl.float32, bitcast=True))
        for k in range(2):
            tl.store(out + tl.load(x + k), 1)


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("kernel", [in_a_loop, counted, after_another, as_floats])
def test_an_index_that_was_stored_beside_another(kernel: Any, cpu: str) -> None:
    x, out = np.array([11, 13], np.int32), np.zeros(16, np.int32)
    compiled = kernel.warmup(x, out, grid=(1,), cpu=cpu)
    assert not re.search("store <2 x (i32|float)>", compiled.asm["llir"])  # else what follows may end the process
    kernel[(1,)](x, out, cpu=cpu)
    assert np.flatnonzero(out).tolist() == [11, 13]


def test_elsewhere_they_are_one_store() -> None:
    x = np.zeros(2, np.int32)
    assert "store <2 x i32>" in in_a_loop.warmup(x, x, grid=(1,), cpu="neoverse-v1").asm["llir"]
