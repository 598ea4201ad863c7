"""Give each thread eight rows of a tile that products read through shared memory, if the tile has as many.

    %a = tt.load %p : tensor<128x64x!tt.ptr<f16>, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 8], ...}>>
    %l = ttg.convert_layout %a : ... -> tensor<128x64xf16, #ttg.dot_op<...>>
becomes the same with sizePerThread = [8, 8]

DPAS takes eight rows of a column of its left operand from a lane, and as many of its right one for each register of
words. If the loading thread has these rows, it stores them side by side, and the 16 bytes that a lane reads are the
words that the instruction takes. If eight warps have these rows, a lane reads as many bytes, but they are elements of
several instructions: their words are packed afterwards, and all stay in registers until the last of those instructions.
Half of the code of a product was such packing, and tiles spilled that would fit into registers.

Each access reads as much memory as before: as many lanes are side by side in a row, and others in later rows.

This is done to layouts of two dimensions, rows outermost, that the compiler chose. It is not done if an operation other
than an elementwise one, a load, store, broadcast or conversion depends on the layout.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from weft.ir import find, is_tensor, tt, walk
from weft.ir.gpu import LayoutAttr, encoding_for, encoding_of
from weft.layouts import BlockedLayout, DistributedLayout, DotOperandLayout, IntelDPASLayout, Layout, SliceLayout
from weft.ops.table import ELEMENTWISE

from ..recoalesce import CONTROL, layouts_of, replace_layouts

ROWS = 8
SEES_NOTHING = ELEMENTWISE | {
    *("arith.constant", "tt.make_range", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.load", "tt.store"),
    *("ttg.convert_layout", *CONTROL),
}


def hold_rows(module: ModuleOp) -> None:
    """Change the layouts of what such loads are made of, in each function of a module of layout IR."""
    for function in find(module, tt.FuncOp):
        instead: dict[LayoutAttr, LayoutAttr] = {}
        for layout in dict.fromkeys(named for load in find(function, tt.LoadOp) if (named := _of_operand(load))):
            rows = _rows(function, layout)
            if rows > layout.size_per_thread[0]:
                longer = replace(layout, size_per_thread=[rows, layout.size_per_thread[1]])
                instead |= _instead(function, layout, longer)
        if instead:
            replace_layouts(function, instead)


def _of_operand(load: tt.LoadOp) -> BlockedLayout | None:
    """The layout of a tile which is loaded for products alone."""
    result = load.results[0]
    attr = encoding_of(result.type) if is_tensor(result.type) else None
    if attr is None or not isinstance(attr.named, BlockedLayout) or tuple(attr.named.order) != (1, 0):
        return None
    takers = [use.operation for use in result.uses]
    return attr.named if takers and all(_is_operand(op) for op in takers) else None


def _is_operand(op: Operation) -> bool:
    """Whether it converts to the layout of an operand of DPAS."""
    attr = encoding_of(op.results[0].type) if op.name == "ttg.convert_layout" else None
    named = None if attr is None else attr.named
    return isinstance(named, DotOperandLayout) and isinstance(named.parent, IntelDPASLayout)


def _rows(function: Operation, layout: BlockedLayout) -> int:
    """How many rows in a row a thread can have in all tiles of a layout that are loaded or stored; 0 where some
    operation sees the layout."""
    rows = ROWS
    for op in walk(function):
        tiles = [v for v in (*op.operands, *op.results) if is_tensor(v.type) and _is_of(encoding_of(v.type), layout)]
        if tiles and op.name not in SEES_NOTHING:
            return 0
        if tiles and op.name in ("tt.load", "tt.store"):
            attr = encoding_of(tiles[0].type)
            assert attr is not None
            if len(attr.data.shape) == 2:
                rows = min(rows, attr.data.shape[0] // (layout.threads_per_warp[0] * layout.warps_per_cta[0]))
    return rows


def _is_of(attr: LayoutAttr | None, layout: BlockedLayout) -> bool:
    """Whether a tile has a layout or is a part of one that has."""
    named = None if attr is None else attr.named
    while isinstance(named, SliceLayout):
        named = named.parent
    return named == layout


def _instead(function: Operation, old: BlockedLayout, new: BlockedLayout) -> dict[LayoutAttr, LayoutAttr]:
    """What stands in the place of a layout and of its parts."""

    def changed(named: Layout | None) -> DistributedLayout:
        return SliceLayout(named.dim, changed(named.parent)) if isinstance(named, SliceLayout) else new

    layouts = [attr for attr in layouts_of(function) if _is_of(attr, old)]
    return {attr: encoding_for(changed(attr.named), attr.data.shape) for attr in layouts}
