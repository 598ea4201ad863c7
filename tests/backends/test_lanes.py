"""Which bits of a tile are lanes: whole vectors for each array, whichever way round a kernel is written."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def transpose_reads(out, x, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.load(x + j * N + i))


@weft.jit
def transpose_writes(out, x, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + j * N + i, tl.load(x + i * N + j))


@pytest.mark.parametrize("kernel", [transpose_reads, transpose_writes], ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("bits", [128, 256])
def test_a_transposing_copy_reads_and_writes_whole_vectors(kernel: weft.JITFunction, bits: int) -> None:
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    out = np.zeros_like(x)
    made = kernel[(1,)](out, x, 32, vector_bits=bits)
    assert np.array_equal(out, x.T)
    vector = f"<{bits // 32} x float>"
    text = made.asm["llir"]
    assert re.search(f"load {vector}", text) and re.search(f"store {vector}", text)
    assert not re.search(r"(load|store) float|scatter|gather", text)
