"""Tests of performance that need no GPU: what keeps to its limits passes, what does not is told with its line."""

from __future__ import annotations

import re

import pytest

import weft
import weft.language as tl
from weft import gluon, like
from weft.explain import Explanation
from weft.gluon import language as gl
from weft.testing import expect

from .kernels import softmax, transpose


def of_transpose(stride: int) -> Explanation:
    x = like((4096, stride), "fp16")
    return transpose.explain(x, x, stride, SIZE=64, grid=(64, 64), target="cuda:90")


def test_limits_that_hold() -> None:
    x = like((4096, 1024), "fp32")
    e = softmax.explain(x, x, 1024, 1000, BLOCK=1024, grid=(4096,), target="cuda:90")
    expect(e, access_bytes=16, conversions=0, bank_conflicts=0, shared_bytes=32, blocks=16)


def test_a_limit_of_what_is_not_known_does_not_hold() -> None:
    """Rather than passing where nothing was looked at."""
    x = like((64, 1024), "fp32")
    e = softmax.explain(x, x, 1024, 1000, BLOCK=1024, grid=(64,), target="cpu")
    for name in ("access_bytes", "blocks", "registers", "shared_bytes", "spills", "time_us"):
        with pytest.raises(AssertionError, match="cpu"):
            expect(e, **{name: 1})


def test_the_whole_message() -> None:
    with pytest.raises(AssertionError) as caught:
        expect(of_transpose(4097), access_bytes=16, conversions=0)
    text = re.sub(r"\S*kernels\.py", "kernels.py", str(caught.value))
    assert text.splitlines() == [
        "transpose for cuda:90 does not keep to its limits:",
        "  kernels.py:25:12: load of 64x64xf16, 2 bytes at a time of at most 16: `stride` is not known to be a "
        "multiple of 8; expected 16 bytes or more",
        "     25 |     tile = tl.load(x + i * stride + j)",
        "        |            ^",
        "  kernels.py:26:5: store of 64x64xf16, 2 bytes at a time of at most 16: `stride` is not known to be a "
        "multiple of 8; expected 16 bytes or more",
        "     26 |     tl.store(out + j * stride + i, tile)",
        "        |     ^",
        "  kernels.py:25:12: conversion of 64x64xf16 of tt.load on line 25, wanted otherwise by tt.store on line 26: "
        "by shared, 137 cycles, 8192 bytes of shared memory; not shuffles (not possible: elements go from one warp to "
        "another); expected 0 conversions, not 1",
        "     25 |     tile = tl.load(x + i * stride + j)",
        "        |            ^",
    ]


@gluon.jit
def turned(x, out, PHASES: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    columns: gl.constexpr = gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1])
    i = gl.arange(0, 32, gl.SliceLayout(1, rows))[:, None]
    j = gl.arange(0, 32, gl.SliceLayout(0, rows))[None, :]
    memory = gl.allocate_shared_memory(gl.float32, [32, 32], gl.SwizzledSharedLayout(1, 1, PHASES, [1, 0]))
    memory.store(gl.load(x + i * 32 + j))
    value = memory.load(columns)
    m = gl.arange(0, 32, gl.SliceLayout(1, columns))[:, None]
    n = gl.arange(0, 32, gl.SliceLayout(0, columns))[None, :]
    gl.store(out + m + n * 32, value)


def test_bank_conflicts() -> None:
    x = like((32, 32), "fp32")
    expect(turned.explain(x, x, 32, grid=(1,), target="cuda:80"), bank_conflicts=0)
    with pytest.raises(AssertionError, match=r"992 wavefronts are lost to bank conflicts; expected 0 at most"):
        expect(turned.explain(x, x, 1, grid=(1,), target="cuda:80"), bank_conflicts=0)


def test_a_limit_that_is_none() -> None:
    with pytest.raises(TypeError, match="access_bytes is a number, got '16'"):
        expect(of_transpose(4112), access_bytes="16")
    with pytest.raises(TypeError, match="there is no limit 'acess_bytes'; did you mean access_bytes\\? there are "):
        expect(of_transpose(4112), acess_bytes=16)
    with pytest.raises(TypeError, match="there is no limit 'speed'; there are access_bytes, "):
        expect(of_transpose(4096), speed=1)


@weft.jit
def many(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.sort(tl.load(x + i)))


def test_registers_and_shared_memory() -> None:
    x = like(1024, "fp32")
    e = many.explain(x, x, N=1024, grid=(1,), target="cuda:80", num_warps=1)
    with pytest.raises(AssertionError, match=r"registers of a thread"):
        expect(e, registers=8)
