"""Products by wgmma that are added to nothing."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith

import weft
import weft.language as tl
from weft.ir import parse_module, print_module, verify
from weft.ir.nvidia.ttng import WarpGroupDotOp
from weft.passes.nvidia.start_from_zero import start_from_zero

LAYOUTS = """
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
"""


def text_of(total: str, more: str = "", following: int = 0) -> str:
    products = "".join(
        f"""
    %d{i + 1} = ttng.warp_group_dot %a, %b, %d{i} : !ttg.memdesc<64x16xf16, #shared, #smem, mutable>
      * !ttg.memdesc<16x64xf16, #shared1, #smem, mutable> -> tensor<64x64xf32, #mma>"""
        for i in range(following)
    )
    return f"""{LAYOUTS}
module attributes {{"ttg.num-warps" = 4 : i32}} {{
  tt.func public @f(%x: f32, %c: i1) {{
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x16xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared1, #smem, mutable>
    {total}
    %d0 = ttng.warp_group_dot %a, %b, %t{more} : !ttg.memdesc<64x16xf16, #shared, #smem, mutable>
      * !ttg.memdesc<16x64xf16, #shared1, #smem, mutable> -> tensor<64x64xf32, #mma>{products}
    tt.return
  }}
}}"""


@pytest.mark.parametrize(
    ("total", "more", "says_so", "added"),
    [
        ("%t = arith.constant dense<0.0> : tensor<64x64xf32, #mma>", "", True, False),
        ("%t = arith.constant dense<-0.0> : tensor<64x64xf32, #mma>", "", True, True),
        ("%t = arith.constant dense<1.0> : tensor<64x64xf32, #mma>", "", True, True),
        ("%t = tt.splat %x : f32 -> tensor<64x64xf32, #mma>", "", True, True),
        ("%t = tt.splat %x : f32 -> tensor<64x64xf32, #mma>", ", %c", False, False),
        ("%t = arith.constant dense<0.0> : tensor<64x64xf32, #mma>", ", %c", False, False),  # it says something already
    ],
)
def test_products(total: str, more: str, says_so: bool, added: bool) -> None:
    module = parse_module(text_of(total, more))
    before = print_module(module)
    start_from_zero(module)
    verify(module, "layout")
    assert (print_module(module) != before) == says_so
    (op,) = (op for op in module.walk() if isinstance(op, WarpGroupDotOp))
    if says_so:
        assert op.useC is not None
        assert "arith.constant false" in print_module(module)
    assert [use.operation.name for use in op.d.uses] == ["arith.addf"] * added


def test_what_is_added_comes_after_products_that_go_on() -> None:
    module = parse_module(text_of("%t = tt.splat %x : f32 -> tensor<64x64xf32, #mma>", following=2))
    start_from_zero(module)
    verify(module, "layout")
    names = [op.name for op in module.walk() if isinstance(op, WarpGroupDotOp | arith.AddfOp)]
    assert names == ["ttng.warp_group_dot"] * 3 + ["arith.addf"]


@weft.jit
def biased(A, B, ROW, COLUMN, OUT, iterations, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for i in range(iterations):
        a = tl.load(A + m[:, None] * iterations * K + (i * K + k)[None, :])
        b = tl.load(B + (i * K + k)[:, None] * N + n[None, :])
        row = tl.broadcast_to(tl.load(ROW + i * N + n)[None, :], (M, N))
        s = tl.dot(a, b, tl.dot(a, b, row))
        t = tl.dot(a, b) + tl.load(COLUMN + m)[:, None]
        acc += tl.maximum(s, t) + tl.dot(a, b, tl.full((M, N), i, tl.float32))
    tl.store(OUT + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("stages", [1, 3])
def test_rows_columns_and_numbers_are_added(stages: int) -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(-2, 3, (64, 96)).astype(np.float16), random.integers(-2, 3, (96, 32)).astype(np.float16)
    row, column = random.integers(-9, 9, (3, 32)).astype(np.float32), random.integers(-9, 9, 64).astype(np.float32)
    out, expected = np.zeros((64, 32), np.float32), np.zeros((64, 32), np.float32)
    for i in range(3):
        product = a[:, i * 32 : i * 32 + 32].astype(np.float32) @ b[i * 32 : i * 32 + 32].astype(np.float32)
        expected += np.maximum(2 * product + row[i], product + column[:, None]) + product + i
    biased[(1,)](a, b, row, column, out, 3, M=64, N=32, K=32, num_stages=stages, target="sim:cuda:90")
    np.testing.assert_array_equal(out, expected)
