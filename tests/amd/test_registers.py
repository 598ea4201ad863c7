"""Registers of kernels with products: what is held across products and loops, and what LLVM is told of it."""

from __future__ import annotations

import re
from functools import reduce
from operator import add, xor
from typing import Any

import pytest

import weft
import weft.language as tl
from weft.backends.amd import facts_of, linked, object_code, processor_of
from weft.backends.amd.local_size import in_object, in_text
from weft.backends.amd.machine import NOTHING
from weft.base import CompilerCrash
from weft.ir.lane import Allocation, Block, Builder, LaneProgram, Value, verify
from weft.lower.amd.near_addresses import compute_near_addresses
from weft.lower.amd.used_up import use_up_before_products
from weft.machines import machine_of

from .container import problems


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


def compiled(
    kernel: Any, kinds: dict[str, str], constants: dict[str, int], target: str, options: dict[str, int] | None = None
) -> Any:
    facts = {
        (i,): [["tt.divisibility", 16], *([["tt.pointer_range", 32]] if kind[0] == "*" else [])]
        for i, kind in enumerate(kinds.values())
        if kind != "fp32"
    }
    return weft.compile(weft.ASTSource(kernel, kinds, constants, facts), target, options)


QKV = dict.fromkeys(("q", "k", "v", "out"), "*fp16") | {"scale": "fp32", "n": "i32"}
TILE = {"BM": 64, "BN": 128, "BK": 64}
ABC = dict.fromkeys("abc", "*fp16") | dict.fromkeys("MNK", "i32")


@pytest.mark.parametrize("causal", [0, pytest.param(1, marks=pytest.mark.slow)])
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


@pytest.mark.parametrize(
    ("target", "tile", "warps", "most"),
    [("gfx1201", (64, 128, 64), 4, 144), ("gfx1100", (64, 128, 64), 4, 168), ("gfx1201", (128, 64, 32), 2, 216)],
)
def test_llvm_does_not_see_lds_where_registers_are_few(
    target: str, tile: tuple[int, int, int], warps: int, most: int
) -> None:
    """They took 162, 198 and 234: a wave less fitted. The code object says how much LDS there is, as others do."""
    constants = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    k = compiled(product, ABC, constants, f"hip:{target}", {"num_warps": warps})
    assert k.n_regs <= most and k.n_spills == 0
    assert "external addrspace(3) global [0 x i8]" in k.asm["llir"]
    size = k.metadata.shared
    assert size == k.metadata.taken["shared"] >= 2 * (tile[0] + tile[1]) * tile[2]
    assert problems(k.asm["hsaco"], target) == []
    assert re.findall(r"group_segment_fixed_size:? (\d+)", k.asm["amdgcn"]) == [str(size)] * 2


@pytest.mark.slow
def test_addresses_that_differ_by_an_exclusive_or_are_held_as_one() -> None:
    """It spilled 79 registers, eight addresses of each store among them."""
    k = compiled(attention, QKV, {"HEAD": 64, "BM": 128, "BN": 64, "CAUSAL": 1}, "hip:gfx1100")
    assert k.n_spills <= 67
    loop = str(k.asm["lane"]).partition("= for ")[2].partition("yield")[0]
    assert loop.count("{isa=held.narrow}") == 3
    assert "isa=held.narrow" not in str(compiled(product, ABC, TILE, "hip:gfx942").asm["lane"]), "CDNA has registers"


def test_addresses_in_loops_are_those_from_before() -> None:
    """Each register of an address, for each thread, by the simulator's own meaning of the operations."""
    program = LaneProgram("kernel", machine_of("hip:gfx1201"), (), Block(), 2)
    program.shared.append(Allocation(1 << 14, offset=512))
    b = Builder(program.body)
    place = b.add("shared", (), [("i32", 1)], {"allocation": 0}).result
    lanes, registers = (16, 32, 64, 144, 288), (0, 16, 32, 48, 1024, 1040, 1056, 1072)
    address = b.op("arith.addi", [b.linear(registers, lanes, (576,)), place], "i32")
    body = Block((Value("i32", 1),))
    loop = Builder(body)
    half = loop.rename(loop.constant("f16", 1.0), [0] * 8)
    isa = "wmma.f32.16x16x16.f16.v8f32.v8f16.transposed"
    loop.instruction(isa, [half, half, loop.rename(loop.constant("f32", 0.0), [0] * 8)], [("f32", 8)])
    loop.store("shared", address, loop.rename(half, [0] * 64), vector=8)
    one, few = b.constant("i32", 1), b.constant("i32", 2)
    loop.add("yield", ())
    b.add("for", [b.constant("i32", 0), few, one], (), {}, (body,))
    compute_near_addresses(program)
    verify(program)
    (store,) = [op for op in body.ops if op.name == "store"]
    assert store.operands[0] is not address
    for thread in range(64):
        bits = [base for i, base in enumerate((*lanes, 576)) if thread >> i & 1]
        linear = reduce(xor, bits, 0)
        assert evaluated(store.operands[0], linear) == [(linear ^ r) + 512 for r in registers]


def evaluated(value: Value, linear: int) -> list[int]:
    """The registers of an address, where a thread's own part of it is `linear`."""
    op = value.op
    assert op is not None
    operands = [evaluated(x, linear) for x in op.operands]
    if op.name == "linear":
        return [r ^ (linear if any(op.attrs["lane"]) else 0) for r in op.attrs["registers"]]
    if op.name == "shared":
        return [512]
    if op.name == "instruction":
        assert op.attrs["isa"] == "held.narrow"
        return operands[0]
    if op.name == "rename":
        return [operands[0][r] for r in op.attrs["table"]]
    by = {"arith.xori": xor, "arith.addi": add}[op.name]
    return [by(x[i % len(x)], y[i % len(y)]) for x, y in [operands] for i in range(value.count)]


def test_a_note_that_says_something_else_is_a_crash() -> None:
    for text in ("nothing\n", ".amdhsa_group_segment_fixed_size 0\n"):
        with pytest.raises(CompilerCrash, match="names the bytes of LDS"):
            in_text(text, 64)
    processor = processor_of(machine_of("hip:gfx1201"))
    data = in_object(object_code(NOTHING, processor), 1024)
    assert facts_of(data).shared == 1024 and facts_of(linked(data)).shared == 1024
    with pytest.raises(CompilerCrash, match="does not say"):
        in_object(data, 64)


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


@weft.jit
def weighted(q, k, m, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    keys, acc = tl.load(k + i[:, None] * B + i[None, :]), tl.zeros((B, B), tl.float32)
    for start in range(0, n, B):
        j = start + i
        scores = tl.dot(keys, tl.load(q + j[None, :] * B + i[:, None]))
        weights = tl.exp2(scores - tl.load(m + j)[None, :])
        acc += tl.dot(weights.to(tl.float16), tl.load(q + j[:, None] * B + i[None, :]))
    tl.store(out + i[:, None] * B + i[None, :], acc)


@pytest.mark.parametrize("target", ["hip:gfx1100", "hip:gfx942"])
def test_a_row_that_is_computed_with_between_products(target: str) -> None:
    """It was taken for an operand on gfx11, as it is converted to another layout, and compiling crashed."""
    kinds = {"q": "*fp16", "k": "*fp16", "m": "*fp32", "out": "*fp32", "n": "i32"}
    assert compiled(weighted, kinds, {"B": 32}, target).n_spills == 0
