"""Inline assembly of every kind of operand, several elements at a time, several results: ptxas takes what comes out."""

from __future__ import annotations

from typing import Any

import pytest

import weft
import weft.language as tl
from weft.backends.nvidia.ptxas import assemble
from weft.base import CompilationError

from .assembling import TARGETS, needs_ptxas

TYPES = {
    "i8": tl.int8, "i16": tl.int16, "i32": tl.int32, "i64": tl.int64, "u8": tl.uint8, "u32": tl.uint32, "i1": tl.int1,
    "fp8e5": tl.float8e5, "fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64,
}  # fmt: skip

CASES: dict[str, tuple[str, str, str, str, int]] = {
    # name: text, constraints, results, operands, elements at a time
    "words": ("add.s32 $0, $1, 1;", "=r,r", "i32", "i32", 1),
    "unsigned words": ("add.u32 $0, $1, 7;", "=r,r", "u32", "u32", 1),
    "two results": ("{ add.s32 $0, $2, 1; sub.s32 $1, $2, 1; }", "=r,=r,r", "i32 i32", "i32", 1),
    "results of two types": ("{ mov.b32 $0, $2; cvt.rn.f32.s32 $1, $2; }", "=r,=f,r", "i32 fp32", "i32", 1),
    "floats": ("add.f32 $0, $1, $2;", "=f,f,f", "fp32", "fp32 fp32", 1),
    "floats as words": ("mov.b32 $0, $1;", "=r,r", "fp32", "fp32", 1),
    "doubles": ("add.f64 $0, $1, $2;", "=d,d,d", "fp64", "fp64 fp64", 1),
    "64 bits": ("add.s64 $0, $1, $2;", "=l,l,l", "i64", "i64 i64", 1),
    "16 bits": ("add.s16 $0, $1, $2;", "=h,h,h", "i16", "i16 i16", 1),
    "halves": ("add.f16 $0, $1, $2;", "=h,h,h", "fp16", "fp16 fp16", 1),
    "8 bits": ("cvt.s32.s8 $0, $1;", "=r,r", "i32", "i8", 1),
    "to 8 bits": ("cvt.rzi.s32.f32 $0, $1;", "=r,f", "i8", "fp32", 1),
    "bools": ("add.s32 $0, $1, 0;", "=r,r", "i32", "i1", 1),
    "a tie": ("add.s32 $0, $0, $2;", "=r,0,r", "i32", "i32 i32", 1),
    "no operands": ("mov.u32 $0, %laneid;", "=r", "i32", "", 1),
    "a clobber": ("mov.u32 $0, $1;", "=r,r,~{memory}", "i32", "i32", 1),
    "a register of its own": (
        "{ .reg .pred p; setp.gt.s32 p, $1, 0; selp.b32 $0, 1, 2, p; }", "=r,r", "i32", "i32", 1,
    ),
    "four of 8 bits": ("vadd4.s32.s32.s32 $0, $1, $2, $3;", "=r,r,r,r", "i8", "i8 i8 i8", 4),
    "four of fp8": ("not.b32 $0, $1;", "=r,r", "fp8e5", "fp8e5", 4),
    "two of 16 bits": ("not.b32 $0, $1;", "=r,r", "i16", "i16", 2),
    "two halves": ("add.rn.f16x2 $0, $1, $2;", "=r,r,r", "fp16", "fp16 fp16", 2),
    "two bfloats": ("fma.rn.bf16x2 $0, $1, $2, $2;", "=r,r,r", "bf16", "bf16 bf16", 2),
    "two words": ("{ add.s32 $0, $2, 1; add.s32 $1, $3, 1; }", "=r,=r,r,r", "i32", "i32", 2),
    "two floats": ("{ add.f32 $0, $2, $2; add.f32 $1, $3, $3; }", "=f,=f,f,f", "fp32", "fp32", 2),
    "two of 64 bits": ("{ add.s64 $0, $2, $2; add.s64 $1, $3, $3; }", "=l,=l,l,l", "i64", "i64", 2),
    "four of 8 bits become wider": ("{ mov.b32 $0, $2; mov.b32 $1, $2; }", "=r,=r,r", "fp16", "i8", 4),
    "two of 8 bits become wider": ("prmt.b32 $0, $1, 0, 0x4140;", "=r,r", "bf16", "u8", 2),
    "results and operands of other widths": (
        "{ mov.b32 $0, $8; mov.b32 $1, $8; mov.b32 $2, $8; mov.b32 $3, $8; "
        "mov.b32 $4, $9; mov.b32 $5, $10; mov.b32 $6, $11; mov.b32 $7, $12; }",
        "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r", "i32 fp32", "u8 fp32", 4,
    ),
}  # fmt: skip


@weft.jit
def assembled(
    x0, x1, x2, y0, y1, N: tl.constexpr, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr, TO: tl.constexpr,
    COUNT: tl.constexpr, PACK: tl.constexpr, PURE: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, N)
    given = ()
    if COUNT > 0:
        given = (tl.load(x0 + i),)
    if COUNT > 1:
        given = (tl.load(x0 + i), tl.load(x1 + i))
    if COUNT > 2:
        given = (tl.load(x0 + i), tl.load(x1 + i), tl.load(x2 + i))
    found = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, given, dtype=TO, is_pure=PURE, pack=PACK)
    if isinstance(found, tl.tuple):
        tl.store(y0 + i, found[0])
        tl.store(y1 + i, found[1])
    else:
        tl.store(y0 + i, found)


def kernel_of(name: str, target: str, pure: bool = True) -> Any:
    text, constraints, results, operands, pack = CASES[name]
    to, given = results.split(), operands.split()
    pointers = [*(given + ["i32"] * 3)[:3], *(to * 2)[:2]]
    types = tuple(TYPES[x] for x in to)
    constants = {
        "N": 512, "TEXT": text, "CONSTRAINTS": constraints, "TO": types if len(types) > 1 else types[0],
        "COUNT": len(given), "PACK": pack, "PURE": pure,
    }  # fmt: skip
    signature = dict(zip(("x0", "x1", "x2", "y0", "y1"), (f"*{x}" for x in pointers), strict=True))
    return weft.compile(
        weft.ASTSource(assembled, {**signature, **dict.fromkeys(constants, "constexpr")}, constants), target=target
    )


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_machine_code(name: str, target: str) -> None:
    for pure in (True, False):
        kernel = kernel_of(name, target, pure)
        assert "// begin inline asm" in kernel.asm["ptx"]
        assert assemble(kernel.asm["ptx"], kernel.metadata.arch).image


@needs_ptxas
def test_what_ptxas_refuses_is_said_to_the_user() -> None:
    CASES["nonsense"] = ("frobnicate $0, $1;", "=r,r", "i32", "i32", 1)
    try:
        kernel = kernel_of("nonsense", "cuda:80")
        with pytest.raises(CompilationError, match="the assembler refuses assembled, which has inline assembly"):
            kernel.assemble()
    finally:
        del CASES["nonsense"]
