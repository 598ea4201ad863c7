"""A tile that several products read is stored once, transposed or not; results, races and fences in the simulator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from weft.base.remarks import RemarkCollector
from weft.ir import parse_module
from weft.ir.gpu.ttg import LocalAllocOp, MemDescTransOp
from weft.ir.nvidia.ttng import FenceAsyncSharedOp
from weft.lower import lower
from weft.machines import Machine, machine_of
from weft.passes import nvidia, tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline
from weft.passes.nvidia.share_stored import share_stored
from weft.sim import Options, run

from .two_arrays import TILES

pytestmark = pytest.mark.usefixtures("copies_by_threads")
KERNEL = """
module {
  tt.func public @both(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                       %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    TILES
    %k = tt.load %xp : tensor<64x64x!tt.ptr<f16>>
    %step = arith.constant dense<4096> : tensor<64x64xi32>
    %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %yp)
        -> (tensor<64x64xf32>, tensor<64x64x!tt.ptr<f16>>) : i32 {
      %q = tt.load %p : tensor<64x64x!tt.ptr<f16>>
      FIRST
      %w = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
      SECOND
      %next = tt.addptr %p, %step : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      scf.yield %d, %next : tensor<64x64xf32>, tensor<64x64x!tt.ptr<f16>>
    }
    %os = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %op = tt.addptr %os, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %op, %sum#0 : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
""".replace("    TILES\n", TILES)
TRANSPOSE = "%qt = tt.trans %q {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>\n"
DOT = "= tt.dot %{}, %{}, %{} : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>"
TRANSPOSED = TRANSPOSE + "%s " + DOT.format("k", "qt", "zero")
STRAIGHT = "%s " + DOT.format("k", "q", "zero")
WAYS = {
    "transposed first": (TRANSPOSED, "%d " + DOT.format("w", "q", "acc")),
    "transposed last": (STRAIGHT, TRANSPOSE + "%d " + DOT.format("w", "qt", "acc")),
    "never transposed": (STRAIGHT, "%d " + DOT.format("w", "q", "acc")),
}


def laid_out(way: str, stages: int = 1) -> ModuleOp:
    first, second = WAYS[way]
    module = tile_pipeline(parse_module(KERNEL.replace("FIRST", first).replace("SECOND", second)))
    gpu_pipeline(module, machine_of("cuda:90"), stages=stages)
    return module


@pytest.mark.parametrize("way", WAYS)
def test_stored_once(way: str) -> None:
    """The tile that stays and the one of the iteration, each with the fence before its product; it was one more of
    each.
    """
    ops = list(laid_out(way).walk())
    assert len([op for op in ops if isinstance(op, LocalAllocOp)]) == 2
    assert len([op for op in ops if isinstance(op, MemDescTransOp)]) == (way != "never transposed")
    assert len([op for op in ops if isinstance(op, FenceAsyncSharedOp)]) == 2


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("way", WAYS)
def test_results(way: str, stages: int) -> None:
    random = np.random.default_rng(3)
    x = (random.standard_normal((64, 64)) / 8).astype(np.float16)
    y = (random.standard_normal((3, 64, 64)) / 8).astype(np.float16)
    out = np.zeros((64, 64), np.float32)
    report = run(lower(laid_out(way, stages)), (1,), {"x": x, "y": y, "out": out, "n": 3}, Options())
    assert not report.errors
    want = np.zeros((64, 64), np.float32)
    for tile in y.astype(np.float32):
        first, second = (tile.T if "qt" in text else tile for text in WAYS[way])
        want += (x.astype(np.float32) @ first).astype(np.float16).astype(np.float32) @ second
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("limit", "stores"), [(32 << 10, 2), ((32 << 10) - 1, 3)])
def test_only_where_all_tiles_have_room(limit: int, stores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tiles of 8 KiB, and one of 16 that is moved before it is stored to global memory; not the one that goes."""

    def with_less(module: ModuleOp, machine: Machine, remarks: RemarkCollector) -> None:
        share_stored(module, replace(machine, shared_bytes=limit), remarks)

    monkeypatch.setattr(nvidia, "share_stored", with_less)
    assert len([op for op in laid_out("transposed first").walk() if isinstance(op, LocalAllocOp)]) == stores
