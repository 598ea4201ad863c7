"""Small integers become floats by operations on bits: the instruction that converts takes as long as four of those."""

from __future__ import annotations

import re
from typing import Any

import pytest

import weft
import weft.language as tl


@weft.jit
def converted(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@weft.jit
def nibbles(x, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    tl.store(out + i, (tl.load(x + i) >> 4 & 15).to(out.dtype.element_ty))


def conversions(kernel: Any, source: str, result: str) -> list[str]:
    """The conversions of integers that the PTX has."""
    signature = {"x": f"*{source}", "out": f"*{result}", "BLOCK": "constexpr"}
    attributes = {(i,): [["tt.divisibility", 16]] for i in (0, 1)}
    made = weft.compile(
        weft.ASTSource(kernel, signature, {"BLOCK": 1024}, attributes),
        target=weft.compiler.GPUTarget("cuda", 90, 32),
        options={"num_warps": 4},
    )
    return re.findall(r"cvt\.rn\.\w+\.[su]\d+", made.asm["ptx"])


@pytest.mark.parametrize("result", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("source", ["i8", "u8"])
def test_bytes(source: str, result: str) -> None:
    assert not conversions(converted, source, result)


@pytest.mark.parametrize("result", ["fp16", "bf16", "fp32"])
def test_what_is_known_to_be_small(result: str) -> None:
    assert not conversions(nibbles, "i32", result)


def test_what_may_be_large() -> None:
    assert len(conversions(converted, "i32", "fp32")) == 8
