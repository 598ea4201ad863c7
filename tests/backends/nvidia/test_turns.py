"""Warps of a program that copies a tile take turns; no other program's do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.compiler import ASTSource, CompiledKernel


@weft.jit
def copied(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@weft.jit
def copied_whole(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)


@weft.jit
def added(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(out + i))


@weft.jit
def mapped(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i)))


@weft.jit
def repeated(x, out, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i))


def compiled(
    kernel: Any, block: int, warps: int = 4, target: str = "cuda:90", pointer: str = "*fp32"
) -> CompiledKernel:
    aligned = {(k,): [["tt.divisibility", 16]] for k in range(3)}
    source = ASTSource(kernel, {"x": pointer, "out": pointer, "n": "i32"}, {"BLOCK": block}, aligned)
    return weft.compile(source, target, {"num_warps": warps})


def turns(kernel: CompiledKernel) -> tuple[int, int, int]:
    """(blocks at a time, warps that wait, warps that hand on)."""
    ptx = kernel.asm["ptx"]
    return kernel.metadata.most_blocks, len(re.findall(r"barrier.cta.sync", ptx)), len(re.findall(r"cta.arrive", ptx))


@pytest.mark.parametrize("kernel", [copied, copied_whole])
@pytest.mark.parametrize(
    ("block", "warps", "pointer", "expected"),
    [
        (4096, 4, "*fp32", (4, 3, 3)),
        (2048, 4, "*fp32", (8, 3, 3)),
        (8192, 4, "*fp16", (4, 3, 3)),
        (2048, 2, "*fp32", (8, 1, 1)),
        (2048, 1, "*fp32", (0, 0, 0)),
        (4096, 8, "*fp32", (0, 0, 0)),
        (1024, 4, "*fp32", (0, 0, 0)),
        (8192, 4, "*fp32", (0, 0, 0)),
        (4096, 4, "*fp64", (0, 0, 0)),
    ],
)
def test_copies(
    kernel: Callable[..., None], block: int, warps: int, pointer: str, expected: tuple[int, int, int]
) -> None:
    assert turns(compiled(kernel, block, warps, pointer=pointer)) == expected


@pytest.mark.parametrize("kernel", [added, mapped, repeated])
def test_others(kernel: Callable[..., None]) -> None:
    assert turns(compiled(kernel, 4096)) == (0, 0, 0)


def test_other_architectures() -> None:
    assert turns(compiled(copied, 4096, target="cuda:80")) == (0, 0, 0)


def test_the_half_is_waited_for() -> None:
    """The warp that hands on uses the last register of the first half of its loads, in front of the second half."""
    lines = compiled(copied, 4096).asm["ptx"].splitlines()
    loads = [i for i, line in enumerate(lines) if "ld.global.v4" in line]
    hand = next(i for i, line in enumerate(lines) if "barrier.cta.arrive" in line)
    last = re.search(r"(%r\d+)\}", lines[loads[3]])
    assert last is not None and len(loads) == 8
    assert loads[3] < hand < loads[4]
    assert f"and.b32 z, z, {last[1]};" in lines[hand]
