"""Operands of products by wgmma that a loop carries are stored as the threads that hold them store them best."""

from __future__ import annotations

import pytest

from weft.ir import parse_module
from weft.ir.gpu import MemDescType, layout_of
from weft.ir.gpu.ttg import LocalAllocOp
from weft.layouts import NVMMASharedLayout
from weft.layouts.plan import plan_local_access
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline

from .two_arrays import TILES

KERNEL = """
module {
  tt.func public @carried(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                          %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    TILES
    %q = tt.load %xp : tensor<64x64x!tt.ptr<f16>>
    %first = tt.load %yp : tensor<64x64x!tt.ptr<f16>>
    %step = arith.constant dense<4096> : tensor<64x64xi32>
    %sum:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %k = %first, %p = %yp)
        -> (tensor<64x64xf32>, tensor<64x64xf16>, tensor<64x64x!tt.ptr<f16>>) : i32 {
      USED
      %d = tt.dot %q, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      %more = arith.cmpi sgt, %i, %c1 : i32
      %ahead = tt.addptr %p, %step : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %next = scf.if %more -> (tensor<64x64xf16>) {
        %loaded = tt.load %ahead : tensor<64x64x!tt.ptr<f16>>
        scf.yield %loaded : tensor<64x64xf16>
      } else {
        scf.yield %k : tensor<64x64xf16>
      }
      scf.yield %d, %next, %ahead : tensor<64x64xf32>, tensor<64x64xf16>, tensor<64x64x!tt.ptr<f16>>
    }
    %os = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %op = tt.addptr %os, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %op, %sum#0 : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
""".replace("    TILES\n", TILES)
TRANSPOSED = "%b = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>"
STRAIGHT = "%b = arith.addf %k, %k : tensor<64x64xf16>"


@pytest.mark.parametrize("used", [TRANSPOSED, STRAIGHT], ids=["transposed", "straight"])
def test_sixteen_bytes_at_a_time(used: str) -> None:
    """A tile that was loaded with contiguous rows lies so in memory, whether it is transposed before the product or
    not.
    """
    module = tile_pipeline(parse_module(KERNEL.replace("USED", used)))
    gpu_pipeline(module, machine_of("cuda:90"), stages=1)
    stored = [op for op in module.walk() if isinstance(op, LocalAllocOp) and op.src is not None]
    assert len(stored) == 2
    for op in stored:
        assert op.src is not None and isinstance(op.result.type, MemDescType)
        layout = op.result.type.data.layout.named
        assert isinstance(layout, NVMMASharedLayout)
        access = plan_local_access(layout_of(op.src.type), layout, [64, 64], 16, "cuda:90", store=True).access
        assert (1 << access.vector) * 16 == 128
        assert access.wavefronts == access.ideal
