"""Bytes in registers: words are permuted, never taken apart and put together byte by byte."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.gluon import language as gl


@gluon.jit
def there_and_back(out, n, rows: gl.constexpr, columns: gl.constexpr, first: gl.constexpr, second: gl.constexpr):
    a = gl.arange(0, rows, layout=gl.SliceLayout(1, first))
    b = gl.arange(0, columns, layout=gl.SliceLayout(0, first))
    place = a[:, None] * columns + b[None, :]
    value = gl.load(out + place)
    for _ in range(n):
        value = gl.convert_layout(gl.convert_layout(value, second), first)
    gl.store(out + place, value)


def counted(shape: tuple[int, int], first: gl.BlockedLayout, second: gl.BlockedLayout) -> Counter[str]:
    """How many instructions of each kind the PTX for sm_90 has."""
    constants = {"rows": shape[0], "columns": shape[1], "first": first, "second": second}
    signature = {"out": "*i8", "n": "i32", **dict.fromkeys(constants, "constexpr")}
    source = weft.ASTSource(there_and_back, signature, constants, {(0,): [["tt.divisibility", 16]]})
    ptx = weft.compile(source, target="cuda:90", options={"num_warps": 4}).asm["ptx"]
    return Counter(m[1] for m in re.finditer(r"^\s+(?:@!?%\w+ )?([a-z][\w.:]*)\s", ptx, re.M))


def test_bytes_transposed() -> None:
    """128 x 128 bytes there and back: 32 words of a lane, three permutations and a shuffle for two and a bit."""
    rows = gl.BlockedLayout([1, 16], [4, 8], [4, 1], [1, 0])
    columns = gl.BlockedLayout([16, 1], [8, 4], [1, 4], [0, 1])
    found = counted((128, 128), rows, columns)
    assert found["prmt.b32"] == 2 * 2 * 48
    assert found["shfl.sync.bfly.b32"] == 2 * 2 * 16
    assert not any(".b8" in name for name in found)
    for matrix, plain in (("stmatrix", "st.shared.v4.b32"), ("ldmatrix", "ld.shared.v4.b32")):  # 16 bytes of each lane
        assert found[f"{matrix}.sync.aligned.m8n8.x4.shared.b16"] + found[plain] == 2 * 8


@pytest.mark.parametrize("order", [0, 1])
def test_bytes_packed(order: int) -> None:
    """64 bytes of a lane: four words from four others take eight permutations, two for each; before and after the loop
    bytes are loaded and stored one by one, three or four for each."""
    line = gl.BlockedLayout([1, 1], [1, 32], [1, 4], [1, 0])
    packed = gl.BlockedLayout([1, 16], [1, 32], [1, 4], [1, 0])
    found = counted((1, 8192), *((line, packed) if order == 0 else (packed, line)))
    words = 64 // 4
    assert found["prmt.b32"] <= 2 * words * 2 + (7 * words if order == 0 else 0)
    assert not any(name.startswith(("ld.shared.v2.b8", "ld.shared.b8")) for name in found)


@weft.jit
def product(x, y, out, n, N: tl.constexpr):
    i = tl.arange(0, N) * 3
    tl.store(out + i, tl.load(x + i, mask=i < n) * tl.load(y + i, mask=i < n), mask=i < n)


def test_single_bytes_are_loaded_into_words() -> None:
    """Their upper bytes do not matter for a product: nothing extends signs, and nothing cuts what is stored."""
    types = {"x": "*i8", "y": "*i8", "out": "*i8", "n": "i32", "N": "constexpr"}
    ptx = weft.compile(weft.ASTSource(product, types, {"N": 512}), target="cuda:90").asm["ptx"]
    assert len(re.findall(r"ld\.global\.b8 %r\d+", ptx)) == 8
    assert len(re.findall(r"st\.global\.b8 \[.*\], %r\d+", ptx)) == 4
    assert not re.search(r"cvt\.[su]\d+\.[su]8|and\.b|%rs", ptx)
