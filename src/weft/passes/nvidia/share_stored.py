"""Store a tile that several products read in shared memory once, transposed or not.

    %1 = tt.trans %a
    %m = ttg.local_alloc %1                           %m = ttg.local_alloc %1
    ... ttng.warp_group_dot %x, %m, ...       becomes    ... ttng.warp_group_dot %x, %m, ...
    %n = ttg.local_alloc %a                           %n = ttg.memdesc_trans %m
    ... ttng.warp_group_dot %y, %n, ...               ... ttng.warp_group_dot %y, %n, ...

So it is where the tile lies in memory as the second product wants it too, as rows of 16-bit elements always do. A fence
that was there for the second store alone goes with it. The tile is in memory for longer: a kernel whose tiles could
not all be there at once stays as it is. Loads that are copied ahead have memory already (pipeline_loads.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.base.remarks import NO_REMARKS, RemarkCollector, StoredOnce
from weft.ir import Builder, bit_width, element_of, i32, ints_of, shape_of, site_of, span_of, tile_text, tt, walk
from weft.ir.gpu import MemDescType
from weft.ir.gpu.ttg import ConvertLayoutOp, LocalAllocOp, MemDescTransOp
from weft.ir.nvidia.ttng import FenceAsyncSharedOp
from weft.layouts import NVMMASharedLayout
from weft.machines import Machine

from ..removal import remove
from .join_products import buffer_bytes

Stored = dict[SSAValue, list[tuple[SSAValue, bool]]]
"""For each tile, the memory that holds it, and whether transposed."""
UNSTORED = ("arith.", "math.", "tt.", "ttg.memdesc_", "ttg.convert_layout", "ttng.warp_group_dot")
"""Operations that put nothing in memory that wgmma reads."""


def share_stored(module: ModuleOp, machine: Machine, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rewrite a module of layout IR for a machine."""
    repeated: list[_Again] = []
    for function in module.body.block.ops:
        if function.name == "tt.func":
            for block in function.regions[0].blocks:
                _find(block, {}, repeated)
    if not repeated or _all_bytes(module) - sum(buffer_bytes(x.op) for x in repeated) > machine.shared_bytes:
        return
    for x in repeated:
        if remarks and isinstance(x.memory.owner, Operation):
            where = (site_of(x.memory.owner),)
            remarks.add(StoredOnce(span_of(x.op), tile_text(x.op.operands[0].type), "it is in shared memory", where))
        _read_other(x)


@dataclass(frozen=True)
class _Again:
    """A store of what is in memory already."""

    op: LocalAllocOp
    memory: SSAValue
    transposed: bool
    """Whether the memory is to be seen transposed."""


def _all_bytes(module: ModuleOp) -> int:
    """The bytes of all tiles in shared memory, plus those of the largest layout conversion."""
    total = largest = 0
    for op in walk(module):
        if isinstance(op, LocalAllocOp):
            total += buffer_bytes(op)
        elif isinstance(op, ConvertLayoutOp | tt.ReduceOp | tt.ScanOp):
            sizes = [prod(shape_of(x.type)) * max(8, bit_width(element_of(x.type))) // 8 for x in op.operands]
            largest = max(largest, sum(sizes))
    return total + largest


def _find(block: Block, around: Stored, repeated: list[_Again]) -> None:
    """The stores of a block and of what is inside; `around` is what is stored when it begins."""
    stored: Stored = {tile: list(memories) for tile, memories in around.items()}
    for op in block.ops:
        if isinstance(op, LocalAllocOp) and op.src is not None:
            tile, transposed = _tile(op.src)
            buffers = stored.setdefault(tile, [])
            other = next((x for x in buffers if _lies_so(op.result.type, *x, transposed)), None)
            if other is None:
                buffers.append((op.result, transposed))
            else:
                repeated.append(_Again(op, other[0], other[1] != transposed))
        for region in op.regions:
            for inner in region.blocks:
                _find(inner, stored, repeated)


def _read_other(again: _Again) -> None:
    """Who would read the memory reads the other."""
    op, memory = again.op, again.memory
    if again.transposed:
        order = DenseArrayBase.from_list(i32, [1, 0])
        memory = Builder.before(op).create(MemDescTransOp, (memory,), (op.result.type,), {"order": order}).result
    op.result.replace_all_uses_with(memory)
    following = op.next_op
    remove(op)
    _drop_fence(following)


def _tile(value: SSAValue) -> tuple[SSAValue, bool]:
    """What a tile is, perhaps transposed: (the tile, whether it is)."""
    transposed = False
    while isinstance(value.owner, tt.TransOp) and ints_of(value.owner.properties["order"]) == (1, 0):
        value, transposed = value.owner.operands[0], not transposed
    return value, transposed


def _lies_so(wanted: Attribute, memory: SSAValue, is_transposed: bool, transposed: bool) -> bool:
    """Whether memory holds a tile as it is wanted."""
    type = memory.type
    assert isinstance(type, MemDescType) and isinstance(wanted, MemDescType)
    if is_transposed == transposed:
        return type == wanted
    return _turned(wanted.data.layout.named) == type.data.layout.named


def _turned(layout: object) -> NVMMASharedLayout | None:
    """The same memory with rows and columns changed; None where a layout has no swizzle, or is of another kind."""
    if not isinstance(layout, NVMMASharedLayout) or not layout.swizzle_byte_width:
        return None
    blocks = [basis[::-1] for basis in layout.cga_layout]
    width, bits = layout.swizzle_byte_width, layout.element_bitwidth
    return NVMMASharedLayout(width, bits, 2, not layout.transposed, cga_layout=blocks)


def _drop_fence(op: Operation | None) -> None:
    """The fence after a store that is gone, unless it is there for another one too."""
    while op is not None and not isinstance(op, FenceAsyncSharedOp):
        if not _stores_nothing(op):
            return
        op = op.next_op
    before = op.prev_op if op is not None else None
    while before is not None and _stores_nothing(before) and not isinstance(before, FenceAsyncSharedOp):
        before = before.prev_op
    if op is not None and isinstance(before, FenceAsyncSharedOp):
        remove(op)


def _stores_nothing(op: Operation) -> bool:
    return (op.name.startswith(UNSTORED) and not op.regions) or op.name == "tt.reduce"
