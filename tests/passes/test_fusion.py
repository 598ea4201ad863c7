"""With `enable_fp_fusion=False` every operation of the text rounds by itself, on every target."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

TARGETS = ("cpu", "sim:cuda:80", "sim:cuda:90")
LARGE = 2.0**24
"""From here on 1 is less than half of the last place of a float32, and 32 is not."""


@weft.jit
def product_and_sum(x, c, o, LEFT: tl.constexpr):
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = tl.load(x + i)
    product = tl.dot(a, a)
    tl.store(o + i, tl.load(c + i) + product if LEFT else product + tl.load(c + i))


@weft.jit
def products_of_a_loop(x, c, o):
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    total = tl.load(c + i)
    for _ in range(2):
        a = tl.load(x + i)
        total += tl.dot(a, a)
    tl.store(o + i, total)


@weft.jit
def scaled_product(x, s, c, o):
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = tl.load(x + i)
    scales = tl.load(s + tl.arange(0, 32)[:, None] + tl.arange(0, 1)[None, :])
    tl.store(o + i, tl.dot_scaled(a, scales, "bf16", a, scales, "bf16") + tl.load(c + i))


@weft.jit
def through_block_pointers(x, c, o):
    p = tl.make_block_ptr(x, (32, 32), (32, 1), (0, 0), (32, 32), (1, 0))
    i = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    a = tl.load(p)
    tl.store(o + i, tl.dot(a, a) + tl.load(c + i))


@weft.jit
def summed_rows(x, c, o, N: tl.constexpr):
    total = tl.load(c)
    for step in range(2):
        total += tl.sum(tl.load(x + step * N + tl.arange(0, N)))
    tl.store(o, total)


@weft.jit
def multiplied_and_added(x, y, z, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i) * tl.load(y + i) + tl.load(z + i))


def _run(kernel: Any, target: str, dtype: Any = np.float32, **options: Any) -> float:
    """What a product of ones, 32 of them in each sum, and 2^24 are, less 2^24."""
    x, o = np.ones((32, 32), dtype), np.zeros((32, 32), np.float32)
    kernel[(1,)](x, np.full_like(o, LARGE), o, target=target, **options)
    return float(o[0, 0]) - LARGE


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_product_and_a_sum(target: str, dtype: Any) -> None:
    for left in (False, True):
        assert _run(product_and_sum, target, dtype, LEFT=left, enable_fp_fusion=False) == 32
    if target == "cpu":  # begun with 2^24 each 1 is lost; matrix instructions add several at a time
        assert _run(product_and_sum, target, dtype, LEFT=False) == 0


@pytest.mark.parametrize("target", TARGETS)
def test_what_becomes_a_product_and_a_sum(target: str) -> None:
    import ml_dtypes

    assert _run(products_of_a_loop, target, enable_fp_fusion=False) == 64
    assert _run(through_block_pointers, target, enable_fp_fusion=False) == 32
    x, o = np.ones((32, 32), ml_dtypes.bfloat16), np.zeros((32, 32), np.float32)
    ones = np.full((32, 1), 127, np.uint8)
    scaled_product[(1,)](x, ones, np.full_like(o, LARGE), o, target=target, enable_fp_fusion=False)
    assert (o == LARGE + 32).all()


@pytest.mark.parametrize("target", TARGETS)
def test_sums_of_a_loop_keep_their_order(target: str) -> None:
    n = 1024
    x, o = np.zeros(2 * n, np.float32), np.zeros(1, np.float32)
    x[:n], x[n:] = 1, -1  # 1024 is added to 2^24 and taken away again; by parts nothing is added at all
    start = np.array([2.0**34], np.float32)
    summed_rows[(1,)](x, start, o, n, target=target, enable_fp_fusion=False)
    expected = np.float32(np.float32(start[0] + np.float32(n)) - np.float32(n))
    assert o[0] == expected != start[0]


@pytest.mark.parametrize("target", TARGETS)
def test_a_multiplication_and_a_sum(target: str) -> None:
    x = np.full(64, 1 + 2.0**-12, np.float32)
    z, o = -(x * x), np.empty_like(x)
    multiplied_and_added[(1,)](x, x, z, o, 64, target=target, enable_fp_fusion=False)
    assert (o == 0).all()  # rounded once it is 2^-24


@pytest.mark.parametrize("element", ["fp16", "bf16", "fp32", "fp64"])
@pytest.mark.parametrize("arch", [80, 90])
def test_ptx_forbids_the_assembler_to_contract(element: str, arch: int) -> None:
    types = dict.fromkeys(("x", "y", "z", "o"), f"*{element}") | {"N": "constexpr"}
    source = weft.ASTSource(multiplied_and_added, types, {"N": 128})
    target = weft.compiler.GPUTarget("cuda", arch, 32)
    ptx = weft.compile(source, target=target, options={"enable_fp_fusion": False}).asm["ptx"]
    found = set(re.findall(r"\b((?:add|sub|mul|fma|mad)\.\S*(?:f16|bf16|f32|f64)\S*)", ptx))
    assert found, ptx
    assert all(".rn" in name for name in found), found  # without .rn ptxas may join them
    if not (arch == 80 and element == "bf16"):  # which has no other multiplication than fma by -0.0
        assert not any(name.startswith(("fma", "mad")) for name in found), found
