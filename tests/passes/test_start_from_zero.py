"""Products by wgmma that are added to nothing."""

from __future__ import annotations

import pytest

from weft.ir import parse_module, print_module, verify
from weft.ir.gpu.ttng import WarpGroupDotOp
from weft.passes.start_from_zero import start_from_zero

LAYOUTS = """
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
"""


def text_of(total: str, more: str = "", types: str = "") -> str:
    return f"""{LAYOUTS}
module attributes {{"ttg.num-warps" = 4 : i32}} {{
  tt.func public @f(%x: f32, %c: i1) {{
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x16xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #shared1, #smem, mutable>
    {total}
    %d = ttng.warp_group_dot %a, %b, %t{more} : !ttg.memdesc<64x16xf16, #shared, #smem, mutable>
      * !ttg.memdesc<16x64xf16, #shared1, #smem, mutable> -> tensor<64x64xf32, #mma>
    tt.return
  }}
}}"""


@pytest.mark.parametrize(
    ("total", "more", "says_so"),
    [
        ("%t = arith.constant dense<0.0> : tensor<64x64xf32, #mma>", "", True),
        ("%t = arith.constant dense<-0.0> : tensor<64x64xf32, #mma>", "", False),
        ("%t = arith.constant dense<1.0> : tensor<64x64xf32, #mma>", "", False),
        ("%t = tt.splat %x : f32 -> tensor<64x64xf32, #mma>", "", False),
        ("%t = arith.constant dense<0.0> : tensor<64x64xf32, #mma>", ", %c", False),  # it says something already
    ],
)
def test_products(total: str, more: str, says_so: bool) -> None:
    module = parse_module(text_of(total, more))
    before = print_module(module)
    start_from_zero(module)
    verify(module, "layout")
    assert (print_module(module) != before) == says_so
    (op,) = (op for op in module.walk() if isinstance(op, WarpGroupDotOp))
    if says_so:
        assert op.useC is not None
        assert "arith.constant false" in print_module(module)
