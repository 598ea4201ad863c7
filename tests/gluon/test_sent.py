"""Tiles sent to the shared memory of a cluster by st.async, counted at the mbarriers of the blocks that get them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import weft
from backends.nvidia.assembling import needs_ptxas
from weft import gluon
from weft.base import CompilationError
from weft.gluon import language as gl
from weft.gluon.language.nvidia import hopper
from weft.gluon.language.nvidia.hopper import mbarrier
from weft.sim import DeadlockError, RaceError, options

from .test_picked_across import SHAPE, cga, offsets


@gluon.jit
def send(
    x: Any, out: Any, rows: gl.constexpr, memory: gl.constexpr, expected: gl.constexpr, waits: gl.constexpr
) -> None:
    shape: gl.constexpr = (16, 32)
    at = offsets(shape, rows)
    held = gl.allocate_shared_memory(x.dtype.element_ty, shape, memory)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, held.nbytes_per_cta + expected)
    hopper.async_store(held, gl.load(x + at), bar)
    if waits:
        mbarrier.wait(bar, phase=0, deps=[held])
    gl.barrier(cluster=True)  # now what has come to the other blocks is there too
    gl.store(out + at, held.load(rows))
    gl.barrier(cluster=True)
    mbarrier.invalidate(bar)


def drawn(seed: int) -> tuple[Any, ...]:
    chosen = random.Random(seed)
    dtype = chosen.choice([np.int32, np.float32, np.float16, np.int8, np.float64, np.int64])
    blocks, each = chosen.choice([2, 4]), max(1, 4 // np.dtype(dtype).itemsize) * chosen.choice([1, 2])
    rows = gl.BlockedLayout([1, each], [4, 8], [2, 1], [1, 0], cga_layout=cga(chosen, blocks))
    memory = gl.SwizzledSharedLayout(max(4, each), 1, 4, [1, 0], cga(chosen, blocks))
    return np.random.default_rng(seed).integers(0, 99, SHAPE).astype(dtype), blocks, rows, memory


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.thinned(2)
def test_sent(seed: int) -> None:
    x, blocks, rows, memory = drawn(seed)
    out = np.zeros_like(x)
    with weft.target("sim:cuda:90"), options(copies=("earliest", "latest")[seed % 2]):
        send[(1,)](x, out, rows, memory, 0, True, num_warps=2, num_ctas=blocks)
    assert (out == x).all()


@needs_ptxas
@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_ptxas_takes_it(seed: int) -> None:
    x, blocks, rows, memory = drawn(seed)
    compiled = send.warmup(
        x, np.zeros_like(x), rows, memory, 0, True, num_warps=2, num_ctas=blocks, grid=(1,), target="cuda:90"
    )
    assert "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes" in compiled.asm["ptx"]
    assert compiled.asm["cubin"]


def test_what_goes_wrong_is_told() -> None:
    x, blocks, rows, memory = drawn(0)
    out = np.zeros_like(x)
    with weft.target("sim:cuda:90"):
        with pytest.raises(RaceError):
            send[(1,)](x, out, rows, memory, 0, False, num_warps=2, num_ctas=blocks)
        with pytest.raises(DeadlockError, match="bytes were announced"):
            send[(1,)](x, out, rows, memory, 16, True, num_warps=2, num_ctas=blocks)
        alone = gl.BlockedLayout([1, 4], [4, 8], [2, 1], [1, 0])
        with pytest.raises(CompilationError, match="an asynchronous store in a kernel of one block each"):
            send[(1,)](x, out, alone, gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), 0, True, num_warps=2)
        narrow = gl.BlockedLayout([1, 1], [4, 8], [2, 1], [1, 0], cga_layout=[[0, 0]])
        bytes_ = x.astype(np.int8)
        with pytest.raises(CompilationError, match=r"sends words of 4 bytes, and a thread holds 1 element\(s\) of 1"):
            send[(1,)](
                bytes_, np.zeros_like(bytes_), narrow, gl.SwizzledSharedLayout(1, 1, 1, [1, 0], [[0, 0]]), 0, True,
                num_warps=2, num_ctas=2,
            )  # fmt: skip
