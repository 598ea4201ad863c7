"""Registers: what ptxas does not have to spill."""

from __future__ import annotations

import pytest

import weft
import weft.language as tl
from weft.backends.nvidia.ptxas import assemble

from .assembling import needs_ptxas


@weft.jit
def attention(q, k, v, out, scale, n, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, HEAD)
    query = tl.load(q + m[:, None] * HEAD + d[None, :])
    acc = tl.zeros((BM, HEAD), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), -1.0e30, tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        j = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + j[None, :] * HEAD + d[:, None])) * scale
        scores = tl.where(m[:, None] >= j[None, :], scores, -1.0e30)
        new = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        value = tl.load(v + j[:, None] * HEAD + d[None, :])
        acc = tl.dot(p.to(value.dtype), value, acc * shrink[:, None])
        total = total * shrink + tl.sum(p, 1)
        top = new
    tl.store(out + m[:, None] * HEAD + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@needs_ptxas
@pytest.mark.parametrize(("element", "head", "columns", "warps"), [("fp16", 64, 64, 4), ("bf16", 128, 64, 8)], ids=str)
@pytest.mark.parametrize("aligned", [True, False])
def test_attention_spills_nothing(element: str, head: int, columns: int, warps: int, aligned: bool) -> None:
    """Also of arrays of which nothing is known: each element then has an address of its own."""
    signature = {**dict.fromkeys(("q", "k", "v", "out"), f"*{element}"), "scale": "fp32", "n": "i32"}
    constants = {"HEAD": head, "BM": 128, "BN": columns}
    facts = {(i,): [["tt.divisibility", 16]] for i in (0, 1, 2, 3, 5)} if aligned else {}
    source = weft.ASTSource(attention, {**signature, **dict.fromkeys(constants, "constexpr")}, constants, facts)
    kernel = weft.compile(source, target="cuda:90", options={"num_warps": warps})
    assert assemble(kernel.asm["ptx"], "sm_90a").spilled_bytes == 0
