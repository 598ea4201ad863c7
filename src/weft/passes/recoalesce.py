"""Tiles of one dimension whose threads hold more than 16 bytes in a row are laid out in runs of 16 bytes.

    %i = tt.make_range ... : tensor<4096xi32, #ttg.blocked<{sizePerThread = [16], ...}>>
    ...
    %v = tt.load %p : tensor<4096x!tt.ptr<f32>, ...>
becomes the same in
    #ttg.blocked<{sizePerThread = [4], ...}>

so that the lanes of a warp, each with the 16 bytes that an access can take, are side by side: with runs of 64 bytes
each access would leave gaps of 48 between lanes, and be served in four times as many parts.

Done where nothing sees the layout: all tiles of that layout are made, combined element by element, loaded and stored.
Which thread computes an element is then no part of what the kernel means. Not done here: tiles of more dimensions,
whose ranges are slices of a layout, and tiles that reductions, conversions or shared memory see.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from weft.analysis import AxisFacts
from weft.ir import bit_width, element_of, is_tensor, pointee_of
from weft.ir.gpu import LayoutAttr, encoding_for, encoding_of
from weft.layouts import BlockedLayout

__all__ = ["recoalesce"]

RUN_BYTES = 16
ELEMENTWISE = (
    *("tt.make_range", "tt.splat", "tt.addptr", "tt.load", "tt.store", "tt.bitcast", "tt.fp_to_fp", "tt.clampf"),
    *("tt.int_to_ptr", "tt.ptr_to_int", "tt.mulhiui", "tt.precise_sqrt", "tt.precise_divf"),
)
CONTROL = ("scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition")


def recoalesce(module: ModuleOp) -> None:
    """Lay out anew what can be, in each function of a module of layout IR."""
    for function in module.body.block.ops:
        if function.name == "tt.func":
            for layout in dict.fromkeys(e for v in _values(function) if (e := encoding_of(v.type)) is not None):
                found = _better(function, layout)
                if found is not None:
                    _replace(function, layout, found)


def _values(root: Operation) -> Iterator[SSAValue]:
    for op in root.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _better(function: Operation, layout: LayoutAttr) -> LayoutAttr | None:
    """The layout that tiles of a layout should have instead; None where it is good, or something sees it."""
    named = layout.named
    if not isinstance(named, BlockedLayout) or named.rank != 1 or named.cga_layout:
        return None
    facts, widest, run = AxisFacts(), 0, 0
    for op in function.walk():
        tiles = [v for v in (*op.operands, *op.results) if is_tensor(v.type)]
        if not any(encoding_of(v.type) == layout for v in tiles):
            continue
        if op.name not in CONTROL and not _is_blind(op, tiles, layout):
            return None
        if op.name in ("tt.load", "tt.store"):
            pointer = op.operands[0]
            bits = bit_width(pointee_of(element_of(pointer.type)))
            if bits > widest:
                widest, run = bits, 0
            if bits == widest:
                run = max(run, facts.of(pointer).contiguity[0])
    each = RUN_BYTES * 8 // max(8, widest)
    if not widest or named.size_per_thread[0] <= each or run <= each:
        return None
    return encoding_for(
        BlockedLayout([each], list(named.threads_per_warp), list(named.warps_per_cta), [0]), layout.data.shape
    )


def _is_blind(op: Operation, tiles: list[SSAValue], layout: LayoutAttr) -> bool:
    """Whether an operation does the same whoever has which element."""
    if op.name not in ELEMENTWISE and not op.name.startswith(("arith.", "math.")):
        return False
    return all(encoding_of(v.type) == layout for v in tiles)


def _replace(function: Operation, old: LayoutAttr, new: LayoutAttr) -> None:
    for value in _values(function):
        if encoding_of(value.type) == old:
            value._type = new.tensor(element_of(value.type))
            op = value.owner
            number = op.properties.get("value") if isinstance(op, Operation) else None
            if isinstance(op, Operation) and isinstance(number, DenseIntOrFPElementsAttr):
                op.properties["value"] = DenseIntOrFPElementsAttr(value.type, number.data)  # type: ignore[arg-type]
