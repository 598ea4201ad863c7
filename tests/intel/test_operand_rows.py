"""Tiles whose operands come through shared memory: a thread holds rows, and words are taken as they are read."""

from __future__ import annotations

import pytest

import weft
import weft.language as tl

from .ocloc import matmul

OPTIONS = {"imported_products": True, "num_warps": 8}


def compiled(elem: str, BM: int, BN: int, BK: int, total: tl.dtype) -> weft.CompiledKernel:
    types = {**dict.fromkeys(("a", "b"), f"*{elem}"), "c": "*fp32" if total == tl.float32 else "*i32"}
    types |= dict.fromkeys(("M", "N", "K", "stride_a", "stride_b", "stride_c"), "i32")
    attributes = {(i,): [["tt.divisibility", 16]] for i in range(9)}
    source = weft.ASTSource(matmul, types, {"BM": BM, "BN": BN, "BK": BK, "SUM": total}, attributes)
    return weft.compile(source, "xpu:pvc", OPTIONS)


def test_a_thread_holds_eight_rows() -> None:
    text = compiled("fp16", 128, 128, 64, tl.float32).asm["ttgir"]
    assert text.count("sizePerThread = [8, 8]") == 2  # of both operands


def test_where_a_tile_has_fewer_a_thread_holds_those() -> None:
    text = compiled("fp16", 64, 64, 32, tl.float32).asm["ttgir"]
    assert text.count("sizePerThread = [2, 8]") == 2


@pytest.mark.parametrize("elem", ["fp16", "bf16", "i8"])
def test_words_are_not_packed(elem: str) -> None:
    """What the product reads is stored so that no element is taken out of its word."""
    llir = compiled(elem, 128, 128, 64, tl.int32 if elem == "i8" else tl.float32).asm["llir"]
    loop = llir.partition("\nbody")[2].partition("\ndone")[0]
    after = loop.rpartition("ControlBarrier")[2]
    assert "mad_k" in after and "insertelement <2 x half>" not in after and "insertelement <4 x i8>" not in after


@weft.jit
def seen(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    x, y = tl.load(a + at), tl.load(b + at)
    tl.store(c + i, tl.sum(x, 1))
    tl.store(c + N + at, tl.dot(x, y))


def test_a_tile_that_something_else_sees_stays_as_it_is() -> None:
    source = weft.ASTSource(seen, {"a": "*fp16", "b": "*fp16", "c": "*fp32"}, {"N": 128})
    text = weft.compile(source, "xpu:pvc", OPTIONS).asm["ttgir"]
    assert "tt.reduce" in text and "sizePerThread = [8, 8]" not in text
