"""By which instruction each product is computed, and why not by another: the whole text."""

from __future__ import annotations

from typing import Any

import pytest

import weft
import weft.language as tl

from .telling import compiled, told


@weft.jit
def product(a, b, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, COLUMNS)[None, :]
    left = tl.load(a + i * DEPTH + tl.arange(0, DEPTH)[None, :])
    right = tl.load(b + tl.arange(0, DEPTH)[:, None] * COLUMNS + j)
    total = tl.dot(left, right, input_precision=PRECISION)
    tl.store(out + i * COLUMNS + j, total)


def made(target: str, kind: str, size: tuple[int, int, int], precision: str | None = None, **options: Any) -> Any:
    constants = {**dict(zip(("ROWS", "COLUMNS", "DEPTH"), size, strict=True)), "PRECISION": precision}
    total = {"i8": "i32", "fp64": "fp64"}.get(kind, "fp32")
    return compiled(product, target, f"*{kind} *{kind} *{total}", constants, "a b out", **options)


# rows * columns * depth of the product, over those of the instruction, over warps
BY_INSTRUCTION = [
    ("cuda:75", "fp16", (64, 64, 32), "f16 times f16 summed in f32: 32 mma.sync.m16n8k8.f32.f16.f16.f32"),
    ("cuda:80", "fp16", (64, 64, 32), "f16 times f16 summed in f32: 16 mma.sync.m16n8k16.f32.f16.f16.f32"),
    ("cuda:90", "fp16", (128, 64, 32), "f16 times f16 summed in f32: 4 wgmma.m64n64k16.f32.f16.f16.tb"),
    ("cuda:90", "fp32", (64, 64, 32), "f32 times f32 summed in f32: 4 wgmma.m64n64k8.f32.tf32.tf32"),
]


@pytest.mark.parametrize("target, kind, size, text", BY_INSTRUCTION)
def test_by_an_instruction(target: str, kind: str, size: tuple[int, int, int], text: str) -> None:
    kernel = made(target, kind, size)
    assert told(kernel, "product") == [f"k.py:7:13: product: {'x'.join(map(str, size))}, {text} of each warp"]
    name, count = text.split()[-1], int(text.split()[-2])
    assert kernel.asm["lane"].count(f"{{isa={name}}}") == count
    assert told(kernel, "instruction declined") == []


def test_lanes_multiply_what_no_instruction_has() -> None:
    ieee = made("cuda:80", "fp32", (32, 32, 16), "ieee")
    assert told(ieee, "product") == [
        "k.py:7:13: product: 32x32x16, f32 times f32 summed in f32: 128 multiplications and additions of each lane, no "
        "matrix instruction: f32 is multiplied in full precision, as input_precision asks"
    ]
    assert ieee.asm["ptx"].count("fma.rn.f32 ") == 128
    types = made("cuda:75", "bf16", (32, 32, 16))
    assert told(types, "product")[0].endswith(": cuda:75 has none for bf16 times bf16 summed in f32")
    small = made("cuda:80", "fp16", (2, 16, 16))
    assert told(small, "product")[0].endswith(": the smallest is 16x8x8, the product 2x16x16")


def test_why_not_by_several_warps_together() -> None:
    """On sm_90, whose other instructions are slower."""
    few = made("cuda:90", "fp16", (64, 64, 32), num_warps=2)
    assert told(few, "instruction declined") == [
        "k.py:7:13: instruction declined: not wgmma: it is for 4 warps together, and num_warps is 2"
    ]
    assert "mma.sync.m16n8k16" in told(few, "product")[0]
    low = made("cuda:90", "fp16", (32, 64, 32))
    assert told(low, "instruction declined") == [
        "k.py:7:13: instruction declined: not wgmma: its rows are 64, its columns 8 to 256 and its depth 16, the "
        "product is 32x64x32"
    ]
    doubles = made("cuda:90", "fp64", (64, 64, 32))
    assert told(doubles, "instruction declined") == [
        "k.py:7:13: instruction declined: not wgmma: it has no f64 times f64 summed in f64"
    ]


@weft.jit
def added(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i, tl.load(x + i))
    tl.store(x + i, tl.abs(tl.load(out + i).to(tl.int16)).to(tl.bfloat16))


def test_what_ptx_has_no_instruction_for_or_ptxas_no_right_one() -> None:
    lines = told(compiled(added, "cuda:80", "*bf16 *bf16", {"BLOCK": 128}, "x out"), "instruction declined")
    assert lines == [
        "instruction declined: not the usual PTX (absolute value of 16 bits, sign-extended): ptxas assembles it "
        "wrongly, and other instructions stand in its place",
        "k.py:4:5: instruction declined: not an atomic instruction: cuda:80 has none for fadd of bf16: each element is "
        "compared and swapped until it holds",
    ]
    assert told(compiled(added, "cuda:90", "*bf16 *bf16", {"BLOCK": 128}, "x out"), "instruction declined") == lines[:1]
