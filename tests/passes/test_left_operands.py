"""Left operands of products by wgmma are read from registers if the iteration around the product makes them anew."""

from __future__ import annotations

import pytest

from weft.ir import is_tensor, parse_module
from weft.ir.nvidia.ttng import WarpGroupDotOp
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline

from .two_arrays import TILES

KERNEL = """
module {
  tt.func public @chain(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                        %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    TILES
    %l = tt.load %xp : tensor<64x64x!tt.ptr<f16>>
    %w = tt.load %yp : tensor<64x64x!tt.ptr<f16>>
    %h = tt.dot %l, %w, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %first = arith.truncf %h : tensor<64x64xf32> to tensor<64x64xf16>
    %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %last = %first)
        -> (tensor<64x64xf32>, tensor<64x64xf16>) : i32 {
      LEFT
      %d = tt.dot %a, %w, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %next = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64xf16>
    }
    %os = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %op = tt.addptr %os, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %op, %sum#0 : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
""".replace("    TILES\n", TILES)


@pytest.mark.parametrize(
    ("left", "in_registers"),
    [("%first, %first", False), ("%first, %last", True), ("%last, %last", True)],
    ids=["made before the loop", "of a part that changes", "carried"],
)
def test_only_what_changes_is_in_registers(left: str, in_registers: bool) -> None:
    """ptxas may overwrite the registers of what was made before the loop (warpgroup_products.py)."""
    made = f"%a = arith.addf {left} : tensor<64x64xf16>"
    module = tile_pipeline(parse_module(KERNEL.replace("LEFT", made)))
    gpu_pipeline(module, machine_of("cuda:90"), stages=1)
    before, inside = (op for op in module.walk() if isinstance(op, WarpGroupDotOp))
    assert not is_tensor(before.a.type) and is_tensor(inside.a.type) == in_registers
