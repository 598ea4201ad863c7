"""Which loads are copied iterations ahead, and why others are not: the whole text."""

from __future__ import annotations

import re
from typing import Any

import pytest

import weft
import weft.language as tl

from .telling import compiled, told


@weft.jit
def product(a, b, out, K, sa, sb, OTHER: tl.constexpr, BARRIER: tl.constexpr, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    i = tl.arange(0, SIZE)
    k = tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for first in range(0, K, DEPTH):
        left = tl.load(a + i[:, None] * sa + (k + first)[None, :], mask=(k < K - first)[None, :], other=OTHER)
        right = tl.load(b + (k + first)[:, None] * sb + i[None, :])
        total = tl.dot(left, right, total)
        if BARRIER:
            tl.debug_barrier()
    tl.store(out + i[:, None] * SIZE + i[None, :], total)


def made(target: str = "cuda:80", aligned: str = "a b out K sa sb", size: int = 64, **options: Any) -> Any:
    constants = {"OTHER": 0.0, "BARRIER": False, "SIZE": size, "DEPTH": 32}
    constants.update({name: options.pop(name) for name in list(options) if name in constants})
    return compiled(product, target, "*fp16 *fp16 *fp32 i32 i32 i32", constants, aligned, **options)


PIPELINED = (
    "k.py:6:18: pipelined: 3 stages, 24576 bytes of shared memory: 64x32xf16 of line 7 in 3 buffers of 4096 bytes; "
    "32x64xf16 of line 8 in 3 buffers of 4096 bytes"
)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_copied_ahead(target: str) -> None:
    kernel = made(target)
    assert told(kernel, "pipelined") == [PIPELINED] and told(kernel, "not pipelined") == []
    (remark,) = kernel.remarks.of("pipelined").as_dicts()
    assert remark["shared_bytes"] == sum(
        b.bytes for b in kernel.remarks.of(weft.remarks.SharedBuffer) if re.match(r"tile of 3x.*f16", b.purpose)
    )


@pytest.mark.parametrize(
    "asked, reason",
    [
        ({"num_stages": 1}, "the loop: num_stages is 1"),
        ({"target": "cuda:75"}, "the loop: cuda:75 has no asynchronous copies"),
        ({"BARRIER": True}, "the loop: loads may not move over gpu.barrier (gpu.barrier on line 11)"),
    ],
)
def test_of_the_whole_loop(asked: dict[str, Any], reason: str) -> None:
    kernel = made(**asked)
    assert told(kernel, "not pipelined") == [f"k.py:6:18: not pipelined: {reason}"] and not told(kernel, "pipelined")


def test_of_one_load() -> None:
    kernel = made(OTHER=1.0)
    assert told(kernel, "not pipelined") == [
        "k.py:7:16: not pipelined: 64x32xf16: its value where the mask is false is not 0, and a copy can only "
        "write 0 there"
    ]
    kernel = made(aligned="a b out K sb")
    assert told(kernel, "not pipelined") == [
        "k.py:7:16: not pipelined: 64x32xf16: a copy takes 4 bytes or more in a row, and a thread has 2 along "
        "dimension 1: `sa` is not known to be a multiple of 2"
    ]


def test_where_there_is_no_room() -> None:
    """256 x 32 and 32 x 256 in f16 are 16 KiB each: 163 KiB have room for 4 of 5 stages."""
    kernel = made(size=256, num_stages=9, num_warps=8)
    assert told(kernel, "pipelined") == [
        "k.py:6:18: pipelined: 4 stages of 9 asked for, as more do not fit into shared memory, 131072 bytes of shared "
        "memory: 256x32xf16 of line 7 in 4 buffers of 16384 bytes; 32x256xf16 of line 8 in 4 buffers of 16384 bytes"
    ]


@weft.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        total += tl.load(x + first + i)
    tl.store(out + i, total)


def test_loads_of_no_product() -> None:
    kernel = compiled(sums, "cuda:80", "*fp32 *fp32 i32", {"BLOCK": 256}, "x out n")
    assert told(kernel, "not pipelined") == [
        "k.py:6:18: not pipelined: 256xf32: it is no operand of a product, and only those are copied ahead"
    ]
