"""Products by wgmma: what ptxas has to see of their operands."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.nvidia.ptxas import assemble, find_tool


@weft.jit
def scores(A, B, C, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The sum of products, each of which begins with nothing."""
    m, c, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for i in range(n):
        a = tl.load(A + i * M * K + m[:, None] * K + k[None, :])
        b = tl.load(B + i * N * K + c[None, :] * K + k[:, None])
        total += tl.maximum(tl.dot(a, b), 0.0)
    tl.store(C + m[:, None] * N + c[None, :], total)


def ptx_of(warps: int) -> str:
    """For tiles of 128 by 64 by 64: of four warps, each has 32 rows in two instructions."""
    a, b, c = np.zeros((4, 128, 64), np.float16), np.zeros((4, 64, 64), np.float16), np.zeros((128, 64), np.float32)
    made = scores.warmup(a, b, c, 4, M=128, N=64, K=64, grid=(1,), target="cuda:90", num_warps=warps)
    return str(made.asm["ptx"])


def test_whether_a_product_adds_is_a_number() -> None:
    """A register with a zero was the accumulator's as well, and ptxas waited for one product to begin the next."""
    flags = re.findall(r"setp\.ne\.b32 p, (\S+), 0; wgmma", ptx_of(4))
    assert sorted(flags) == ["0"] * 2 + ["1"] * 6


@pytest.mark.skipif(find_tool() is None, reason="there is no ptxas on this machine")
@pytest.mark.parametrize("warps", [4, 8])
def test_ptxas_does_not_wait_in_between(warps: int) -> None:
    assert "serialized" not in assemble(ptx_of(warps), "sm_90a").log


@weft.jit
def attended(Q, K, V, BIAS, OUT, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    m, c, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    q = tl.load(Q + m[:, None] * D + d[None, :])
    total, top = tl.zeros((M, D), tl.float32), tl.full((M,), -1e9, tl.float32)
    for i in range(0, n, N):
        k = tl.load(K + (i + c)[None, :] * D + d[:, None])
        scores = tl.dot(q, k) + tl.load(BIAS + i + c)[None, :]
        before, top = top, tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - top[:, None])
        v = tl.load(V + (i + c)[:, None] * D + d[None, :])
        total = tl.dot(p.to(v.dtype), v, total * tl.exp2(before - top)[:, None])
    tl.store(OUT + m[:, None] * D + d[None, :], total)


@pytest.mark.skipif(find_tool() is None, reason="there is no ptxas on this machine")
def test_ptxas_does_not_wait_for_the_turn_before_where_a_row_is_added() -> None:
    q, k = np.zeros((64, 64), np.float16), np.zeros((256, 64), np.float16)
    bias, out = np.zeros(256, np.float32), np.zeros((64, 64), np.float32)
    made = attended.warmup(q, k, k, bias, out, 256, M=64, N=64, D=64, grid=(1,), target="cuda:90")
    assert "injected" not in assemble(made.asm["ptx"], "sm_90a").log


def test_the_warp_is_known_to_be_the_same_in_all_lanes() -> None:
    """Where groups of four warps have rows of their own, their number comes from one lane, once."""
    assert [ptx_of(warps).count("shfl.sync.idx") for warps in (4, 8)] == [0, 1]
