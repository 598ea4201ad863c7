"""Read operands of products by single multiplications from shared memory, instead of holding them.

    %a = ttg.convert_layout %x : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #ttg.dot_op<{opIdx = 0, ...}>>
    scf.for ... {
      %d = tt.dot %a, ...
becomes
    %m = ttg.local_alloc %x : (tensor<64x64xf32, #blocked>) -> !ttg.memdesc<64x64xf32, #shared, #smem>
    scf.for ... {
      %a = ttg.local_load %m : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #ttg.dot_op<...>>
      %d = tt.dot %a, ...

A lane has whole rows of the left operand and whole columns of the right one: hundreds of registers, where it needs a
few at a time. From memory they are loaded a slice of the summed dimension at a time (lower/sink_loads.py). The memory's
swizzle is the one with the fewest passes over the banks, for those who store and those who load.

Conversions that leave elements in their lanes stay, as do those of loads that may be copied ahead, until
`pipeline_loads` has seen them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from weft.base import LayoutError
from weft.base.remarks import NO_REMARKS, OperandInMemory, RemarkCollector
from weft.ir import Builder, bit_width, element_of, find, shape_of, site_of, span_of, tile_text, tt
from weft.ir.gpu import layout_of, memdesc, name_of
from weft.ir.gpu.ttg import ConvertLayoutOp, LocalAllocOp, LocalLoadOp
from weft.layouts import BlockedLayout, DotOperandLayout, LinearLayout, SwizzledSharedLayout
from weft.layouts.plan import plan_conversion, plan_local_access
from weft.machines import Machine

from .removal import remove

LOOPS = ("scf.for", "scf.while")
LEAST = 32
"""Registers of an operand that is worth a trip."""


def store_operands(module: ModuleOp, machine: Machine, *, loaded: bool, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rewrite the conversions to operands of single multiplications; those of loads in loops only where `loaded`."""
    for op in find(module, ConvertLayoutOp):
        if is_single(op.result.type) and (loaded or not _is_loaded(op.src)):
            _store(op, machine, remarks)


def is_single(type: Attribute) -> bool:
    """Whether a tile is an operand of a product by single multiplications, in one block."""
    named = name_of(type)
    of_lanes = isinstance(named, DotOperandLayout) and isinstance(named.parent, BlockedLayout)
    return of_lanes and layout_of(type).in_dims["block"] == 1


def _is_loaded(value: SSAValue) -> bool:
    """Whether a tile is loaded in a loop as it is, perhaps transposed."""
    op = value.owner
    while isinstance(op, tt.TransOp):
        op = op.operands[0].owner
    if not isinstance(op, tt.LoadOp):
        return False
    parent = op.parent_op()
    while parent is not None and parent.name not in LOOPS:
        parent = parent.parent_op()
    return parent is not None


def _store(op: ConvertLayoutOp, machine: Machine, remarks: RemarkCollector) -> None:
    """Through memory, if any of the products that use the operand is after all in the same place."""
    before, after = layout_of(op.src.type), layout_of(op.result.type)
    shape, element = list(shape_of(op.src.type)), element_of(op.src.type)
    bits = max(8, bit_width(element))
    if after.in_dims["register"] < LEAST or bits not in (8, 16, 32):
        return
    if not plan_conversion(before, after, shape, bits, machine).stages:
        return
    layout = memory_for(shape, bits, [before], after, machine)
    if layout is None or any(not isinstance(use.operation, tt.DotOp) for use in op.result.uses):
        return
    why = f"a lane has {after.in_dims['register']} elements of it, and needs a few at a time"
    users = tuple(dict.fromkeys(site_of(use.operation) for use in op.result.uses))
    remarks.add(OperandInMemory(span_of(op), tile_text(op.src.type), why, users))
    memory = (
        Builder.before(op).create(LocalAllocOp, (op.src,), (memdesc(shape, element, layout, mutable=False),)).result
    )
    for use in list(op.result.uses):
        near = Builder.before(use.operation)
        use.operation.operands[use.index] = near.create(LocalLoadOp, (memory,), (op.result.type,)).result
    remove(op)


def memory_for(
    shape: Sequence[int],
    bits: int,
    stored: Sequence[LinearLayout],
    loaded: LinearLayout,
    machine: Machine,
    order: Sequence[int] | None = None,
) -> SwizzledSharedLayout | None:
    """The cheapest way for a tile to lie in shared memory; `order` where that is given, as for copies."""
    best: tuple[float, SwizzledSharedLayout] | None = None
    for layout in _swizzles(shape, bits, order):
        try:
            cost = plan_local_access(loaded, layout, shape, bits, machine).cycles
            cost += sum(plan_local_access(x, layout, shape, bits, machine, store=True).cycles for x in stored)
        except LayoutError:
            continue
        if best is None or cost < best[0]:
            best = cost, layout
    return best[1] if best is not None else None


def _swizzles(shape: Sequence[int], bits: int, order: Sequence[int] | None) -> Iterator[SwizzledSharedLayout]:
    """Swizzles of 16 bytes along each of the last two dimensions, the simplest first."""
    rank = len(shape)
    plain = list(reversed(range(rank)))
    orders = [list(order)] if order is not None else [plain, [*reversed(plain[:2]), *plain[2:]]]
    for phases, per, way in product((1, 2, 4, 8), (1, 2, 4, 8, 16), orders):
        vector = min(128 // bits, shape[way[0]])
        if (phases > 1 or per == 1) and vector * phases <= shape[way[0]] and per * phases <= shape[way[1]]:
            yield SwizzledSharedLayout(vector, per, phases, way)
