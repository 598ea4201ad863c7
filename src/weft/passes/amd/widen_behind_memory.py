"""Move operands of 8 bits that a product takes as 16 through shared memory as 8, and widen them afterwards.

    %a = tt.load %p                                     %a = tt.load %p
    %w = tt.fp_to_fp %a : f8E4M3FN -> f16    becomes    %x = ttg.convert_layout %a
    %x = ttg.convert_layout %w                          %w = tt.fp_to_fp %x

Half as many bytes are stored and read, and loaded elements can be stored to shared memory an iteration ahead without
change. Each warp that multiplies an element widens it, which costs three or four instructions for two elements
(`backends/amd/arithmetic.py`). A product of 128 x 128 x 128 by four warps on gfx90a has 448 more of them in an
iteration, and each lane moves 384 bytes less through shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Builder, bit_width, element_of, shape_of, tt
from weft.ir.gpu import laid_tensor, layout_of, ttg

from ..removal import remove

WIDENED = ("f8E4M3FN", "f8E5M2")
"""Whose conversion to f16 takes few instructions on every processor."""


def widen_behind_memory(loads: Sequence[tt.LoadOp]) -> None:
    """Change places of conversions of type and of layout between loads of a loop and its products."""
    for load in loads:
        uses = [use.operation for use in load.result.uses]
        if len(uses) != 1 or not isinstance(uses[0], tt.FpToFpOp) or str(element_of(load.result.type)) not in WIDENED:
            continue
        wide = uses[0]
        moves = [use.operation for use in wide.results[0].uses]
        if bit_width(element_of(wide.results[0].type)) == 16 and all(isinstance(m, ttg.ConvertLayoutOp) for m in moves):
            for move in moves:
                _change_places(load, wide, move)
            remove(wide)


def _change_places(load: tt.LoadOp, wide: tt.FpToFpOp, move: object) -> None:
    assert isinstance(move, ttg.ConvertLayoutOp)
    b = Builder.before(move)
    narrow = laid_tensor(list(shape_of(load.result.type)), element_of(load.result.type), layout_of(move.result.type))
    moved = b.create(ttg.ConvertLayoutOp, (load.result,), (narrow,)).result
    made = b.create(tt.FpToFpOp, (moved,), (move.result.type,), dict(wide.properties)).results[0]
    move.result.replace_all_uses_with(made)
    remove(move)
