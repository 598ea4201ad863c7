"""Stores leave L1 to loads where shared memory leaves too little of it; nobody else's stores are changed."""

from __future__ import annotations

from typing import Any

import pytest

import weft
import weft.language as tl
from weft.compiler import ASTSource


@weft.jit
def transposed(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + j[:, None] * n + i[None, :], tl.trans(tl.load(x + i[:, None] * n + j[None, :])))


@weft.jit
def transposed_with_hint(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.trans(tl.load(x + i[:, None] * n + j[None, :]))
    tl.store(out + j[:, None] * n + i[None, :], value, cache_modifier=".cs")


@weft.jit
def transposed_in_a_loop(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        tl.store(out + j[:, None] * n + i[None, :], tl.trans(tl.load(x + i[:, None] * n + j[None, :])))


@weft.jit
def copied(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * n + j[None, :], tl.load(x + i[:, None] * n + j[None, :]))


def stores(kernel: Any, block: int, pointer: str = "*fp32", target: str = "cuda:90") -> set[str]:
    """How the kernel stores."""
    aligned = {(k,): [["tt.divisibility", 16]] for k in range(3)}
    source = ASTSource(kernel, {"x": pointer, "out": pointer, "n": "i32"}, {"BLOCK": block}, aligned)
    ptx = weft.compile(source, target, {"num_warps": 8}).asm["ptx"]
    return {word for line in ptx.splitlines() for word in line.split() if word.startswith("st.global")}


def test_where_one_blocks_loads_do_not_fit_beside_shared_memory() -> None:
    assert stores(transposed, 128) == {"st.global.L1::no_allocate.v4.b32"}


@pytest.mark.parametrize(
    ("kernel", "block", "pointer", "target", "expected"),
    [
        (transposed, 64, "*fp32", "cuda:90", "st.global.v4.b32"),
        (transposed, 128, "*fp16", "cuda:90", "st.global.v4.b32"),
        (transposed, 128, "*fp32", "cuda:80", "st.global.v4.b32"),
        (transposed_with_hint, 128, "*fp32", "cuda:90", "st.global.cs.v4.b32"),
        (transposed_in_a_loop, 128, "*fp32", "cuda:90", "st.global.v4.b32"),
        (copied, 128, "*fp32", "cuda:90", "st.global.v4.b32"),
    ],
)
def test_nobody_else(kernel: Any, block: int, pointer: str, target: str, expected: str) -> None:
    """Smaller tiles, other GPUs, whoever says what it wants of the caches, loops, and who shares no memory."""
    assert stores(kernel, block, pointer, target) == {expected}
