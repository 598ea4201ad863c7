"""Words of a layout are paid for where a thread has no registers for them."""

from __future__ import annotations

import pytest

from weft.analysis import AxisFacts
from weft.ir import parse_module, walk
from weft.layouts import BlockedLayout, SliceLayout
from weft.machines import machine_of
from weft.passes.layout_prices import Prices
from weft.passes.layout_registers import Registers

MACHINE = machine_of("cuda:90")
TEXT = """
module {
  tt.func public @k(%p: tensor<128x128x!tt.ptr<f32>>, %q: tensor<128x!tt.ptr<f32>>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %row = tt.load %q : tensor<128x!tt.ptr<f32>>
    %a = tt.load %p : tensor<128x128x!tt.ptr<f32>>
    scf.for %i = %c0 to %c6 step %c1 : i32 {
      %b = tt.load %p : tensor<128x128x!tt.ptr<f32>>
      %c = math.exp %b : tensor<128x128xf32>
      %sum = arith.addf %a, %c : tensor<128x128xf32>
      tt.store %p, %sum : tensor<128x128x!tt.ptr<f32>>
      tt.store %q, %row : tensor<128x!tt.ptr<f32>>
    }
    tt.return
  }
}
"""
TILE = BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])
NARROW, WIDE = BlockedLayout([1], [32], [4], [0]), SliceLayout(0, BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0]))


@pytest.mark.parametrize(("warps", "spilled"), [(4, 3), (8, 0)])
def test_what_finds_no_room_is_spilled(warps: int, spilled: int) -> None:
    """By 4 warps two tiles take 256 words of a thread: the three that a row repeats are stored and loaded six times. By
    8 warps there is room."""
    module = parse_module(TEXT, "held.ttir")
    (function,) = module.body.block.ops
    tiles = {x.name_hint: x for op in walk(module) for x in op.results}
    tile = TILE if warps == 4 else BlockedLayout([1, 4], [1, 32], [8, 1], [1, 0])
    ways = {
        x: [NARROW, WIDE] if x is tiles["row"] else [tile]
        for name, x in tiles.items()
        if name in ("row", "a", "b", "c", "sum")
    }
    registers = Registers(ways, Prices(MACHINE, AxisFacts()), warps * 32, lambda x: x, lambda x: x in ways)
    registers.study(function.regions[0].block)
    assert registers.is_short == bool(spilled)
    assert registers.price(tiles["row"], NARROW) == 0
    each = 2 * (MACHINE.access + MACHINE.line)
    assert registers.price(tiles["row"], WIDE) == 6 * spilled * each
