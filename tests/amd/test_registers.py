"""Registers of kernels with products: what is held across products and loops, and what LLVM is told of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.ir.lane import Block, Builder, LaneProgram, verify
from weft.lower.amd.used_up import use_up_before_products
from weft.machines import machine_of


@weft.jit
def attention(q, k, v, out, scale, n, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, HEAD)
    query = tl.load(q + m[:, None] * HEAD + d[None, :])
    acc, total = tl.zeros((BM, HEAD), tl.float32), tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), -1.0e30, tl.float32)
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        scores = tl.dot(query, tl.load(k + j[None, :] * HEAD + d[:, None])) * scale
        if CAUSAL:
            scores = tl.where(m[:, None] >= j[None, :], scores, -1.0e30)
        new = tl.maximum(top, tl.max(scores, 1))
        p, shrink = tl.exp2(scores - new[:, None]), tl.exp2(top - new)
        value = tl.load(v + j[:, None] * HEAD + d[None, :])
        acc = tl.dot(p.to(value.dtype), value, acc * shrink[:, None])
        total = total * shrink + tl.sum(p, 1)
        top = new
    tl.store(out + m[:, None] * HEAD + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@weft.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left, right = a + m[:, None] * K + k[None, :], b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(left), tl.load(right), acc)
        left += BK
        right += BK * N
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty))


def compiled(kernel: Any, kinds: dict[str, str], constants: dict[str, int], target: str) -> Any:
    facts = {
        (i,): [["tt.divisibility", 16], *([["tt.pointer_range", 32]] if kind[0] == "*" else [])]
        for i, kind in enumerate(kinds.values())
        if kind != "fp32"
    }
    return weft.compile(weft.ASTSource(kernel, kinds, constants, facts), target)


QKV = dict.fromkeys(("q", "k", "v", "out"), "*fp16") | {"scale": "fp32", "n": "i32"}
ABC = dict.fromkeys("abc", "*fp16") | dict.fromkeys("MNK", "i32")


@pytest.mark.parametrize("causal", [0, 1])
def test_attention_spills_nothing(causal: int) -> None:
    """It spilled 16 and 30 registers."""
    k = compiled(attention, QKV, {"HEAD": 64, "BM": 128, "BN": 64, "CAUSAL": causal}, "hip:gfx1201")
    assert k.n_spills == 0
    loop = str(k.asm["lane"]).partition("= for ")[2].partition("yield")[0]
    products = [m.start() for m in re.finditer("isa=wmma", loop)]
    added = [m.start() for m in re.finditer(r"= arith\.addf", loop)]
    assert products[0] < min(added) < max(added) < products[len(products) // 2], "the sum of weights before products"
    assert loop.count("{isa=slice}") >= 8


@pytest.mark.parametrize(("target", "tile", "most"), [("gfx1201", (128, 128, 64), 240), ("gfx1100", (64, 64, 32), 96)])
def test_a_few_registers_less_let_one_more_wave_fit(target: str, tile: tuple[int, int, int], most: int) -> None:
    k = compiled(product, ABC, dict(zip(("BM", "BN", "BK"), tile, strict=True)), f"hip:{target}")
    assert k.n_regs <= most and k.n_spills == 0
    store = str(k.asm["lane"]).rpartition("yield")[2]
    of_lanes = re.findall(r"= linear .*lane=\([^)]*[1-9]", store)
    assert "isa=held" in store and len(of_lanes) >= 1


def test_what_an_operation_needs_moves_with_it() -> None:
    """A sum stands behind a product, and so does what it takes beside the values that are held for it."""
    program = LaneProgram("kernel", machine_of("hip:gfx1201"), (), Block(), 1)
    b = Builder(program.body)
    zero = b.constant("f32", 0.0)
    weights = b.op("math.exp2", [b.rename(zero, [0] * 8)], "f32")
    half = b.op("arith.truncf", [weights], "f16")
    total = b.rename(zero, [0] * 8)
    isa = "wmma.f32.16x16x16.f16.v8f32.v8f16.transposed"
    first = b.instruction(isa, [half, half, total], [("f32", 8)]).result
    late = b.constant("f32", 2.0)  # could stand before the first product, of which the sum knows nothing
    second = b.instruction(isa, [half, half, first], [("f32", 8)]).result
    even, odd = b.rename(weights, [0, 2, 4, 6]), b.rename(weights, [1, 3, 5, 7])
    added = b.op("arith.addf", [b.op("arith.addf", [even, odd], "f32"), late], "f32")
    b.add("keep", [added, second])
    use_up_before_products(program)
    verify(program)
    order = [op.name for op in program.body.ops]
    assert order.index("instruction") > max(i for i, name in enumerate(order) if name == "arith.addf")
