"""Keep the tiles that products read in shared memory, and replace uses of their registers by loads from there.

%a = tt.load %p                                         %m: the buffer that holds the tile
%0 = tt.trans %a                                        %0 = ttg.memdesc_trans %m
%1 = ttg.local_alloc %0                      becomes    the memory itself
%2 = ttg.convert_layout %a                              %2 = ttg.local_load %m

A conversion stays if it is cheaper to load the tile in its old layout and convert it: no instruction loads the bytes of
a column together from rows, so these are combined in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Attribute, Operation, SSAValue

from weft.base import each_once
from weft.ir import Builder, bit_width, element_of, ints_of, shape_of, tt
from weft.ir.gpu import MemDescType, layout_of, memdesc
from weft.ir.gpu.products import SharedProductOp
from weft.ir.gpu.ttg import ConvertLayoutOp, LocalAllocOp, LocalLoadOp, MemDescTransOp
from weft.layouts import BlockedLayout, LinearLayout, NVMMASharedLayout, SharedLayout, SwizzledSharedLayout
from weft.layouts.plan import Machine, plan_conversion, plan_local_access
from weft.ops.table import ELEMENTWISE

from .removal import remove
from .store_operands import is_single, memory_for

PASSED_ON = (
    *("tt.trans", "ttg.convert_layout", "ttg.local_alloc", "ttg.memdesc_trans"),
    *("tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.join", "tt.split"),
)


def is_multiplied(value: SSAValue) -> bool:
    """Whether a tile is an operand of a product, perhaps after element-wise operations."""
    todo = [value]
    for x in each_once(todo):
        for use in x.uses:
            op = use.operation
            is_scaled = isinstance(op, tt.DotScaledOp) and use.index != 2
            if is_scaled or (isinstance(op, tt.DotOp | SharedProductOp) and use.index < 2):
                return True
            if op.name in PASSED_ON or op.name in ELEMENTWISE:
                todo += op.results
    return False


def flipped(layout: object) -> NVMMASharedLayout | None:
    """The same memory with rows and columns changed; None without a swizzle, where `transposed` means nothing."""
    if not isinstance(layout, NVMMASharedLayout) or not layout.swizzle_byte_width:
        return None
    swapped = [basis[::-1] for basis in layout.cga_layout]
    return NVMMASharedLayout(
        layout.swizzle_byte_width, layout.element_bitwidth, 2, not layout.transposed, cga_layout=swapped
    )


def buffer_layout(value: SSAValue, layout: object, machine: Machine) -> NVMMASharedLayout | SwizzledSharedLayout | None:
    """How a tile that is loaded in a layout is to lie in shared memory; None where copies cannot make it lie so.

    Rows and columns, which are spread over a tile that is made of another one, lie as they are. So do bytes that a
    product wants transposed: they are read from there, and stored the other way round. A tile whose columns are
    contiguous, but of less than 32 bytes, has no such layout: without a swizzle rows lie one after the other, and an
    asynchronous copy would have single elements.
    """
    shape, bits = list(shape_of(value.type)), bit_width(element_of(value.type))
    if is_thin(shape):
        several = layout_of(value.type).in_dims["block"] > 1
        return None if several else SwizzledSharedLayout(1, 1, 1, list(reversed(range(len(shape)))))
    if not isinstance(layout, BlockedLayout) or len(shape) != 2:
        return None
    transposed = layout.order[0] == 0
    single = _multiplied_alone(value)
    if single is not None:
        return memory_for(shape, bits, [layout_of(value.type)], single, machine, layout.order)
    wanted = _asked_for(value)
    if wanted is not None and wanted.transposed == transposed and wanted.cga_layout == layout.cga_layout:
        return wanted
    if wanted is not None and (bits != 8 or wanted.cga_layout != layout.cga_layout):
        return None
    shared = NVMMASharedLayout.get_default_for(shape, bits, transposed=transposed, cga_layout=layout.cga_layout)
    return None if transposed and not shared.swizzle_byte_width else shared


def _multiplied_alone(value: SSAValue) -> LinearLayout | None:
    """The layout in which a product by single multiplications takes a tile, if nothing else does."""
    users = [use.operation for use in value.uses]
    if len(users) == 1 and isinstance(users[0], ConvertLayoutOp) and is_single(users[0].result.type):
        return layout_of(users[0].result.type)
    return None


def is_thin(shape: Sequence[int]) -> bool:
    """Whether a tile is a row, a column, or has one dimension."""
    return prod(shape) == max(shape)


def _asked_for(value: SSAValue) -> NVMMASharedLayout | None:
    """The layout in which a product wants a tile in shared memory, if one does."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, LocalAllocOp):
            assert isinstance(op.result.type, MemDescType)
            named = op.result.type.data.layout.named
            return named if isinstance(named, NVMMASharedLayout) else None
        if is_transposition(op):
            return flipped(_asked_for(op.results[0]))
    return None


def is_product_operand(value: SSAValue) -> bool:
    """Whether a product reads a tile, perhaps transposed, from memory as it is."""
    return _asked_for(value) is not None


def is_transposition(op: Operation) -> bool:
    """Whether an operation exchanges the two dimensions of a tile."""
    return isinstance(op, tt.TransOp) and ints_of(op.properties["order"]) == (1, 0)


def is_converted(op: ConvertLayoutOp, memory: SharedLayout, machine: Machine) -> bool:
    """Whether a conversion of a tile stays when the tile is in memory: what it makes costs more to load from there."""
    if is_single(op.result.type):
        return False  # it is read a few elements at a time
    shape, bits = shape_of(op.src.type), max(8, bit_width(element_of(op.src.type)))
    before, after = layout_of(op.src.type), layout_of(op.result.type)
    loads = [plan_local_access(layout, memory, shape, bits, machine).cycles for layout in (before, after)]
    return loads[1] > loads[0] + plan_conversion(before, after, shape, bits, machine).cost.cycles


def read_instead(load: Operation, memory: SSAValue, machine: Machine) -> None:
    """Let those that use a loaded tile read a buffer that holds it; the load is dropped."""
    _read(load.results[0], memory, machine)
    remove(load)


def _read(value: SSAValue, memory: SSAValue, machine: Machine) -> None:
    """What uses a tile reads memory; in the place of the operation that made the tile."""
    maker = value.owner
    assert isinstance(maker, Operation)
    b = Builder.before(maker)
    type = memory.type
    assert isinstance(type, MemDescType)
    named = type.data.layout.named
    for op in list(dict.fromkeys(use.operation for use in value.uses)):
        if isinstance(op, LocalAllocOp) and op.parent is maker.parent and _lies_so(op.result.type, type):
            op.result.replace_all_uses_with(memory)
            remove(op)
        elif isinstance(op, ConvertLayoutOp):
            if isinstance(named, SharedLayout) and is_converted(op, named, machine):
                continue
            near = Builder.before(op)
            op.result.replace_all_uses_with(near.create(LocalLoadOp, (memory,), (op.result.type,)).result)
            remove(op)
        elif is_transposition(op) and (other := flipped(named)) is not None:
            near = Builder.before(op)
            transposed = memdesc(type.shape[::-1], type.element_type, other)
            order = {"order": op.properties["order"]}
            _read(op.results[0], near.create(MemDescTransOp, (memory,), (transposed,), order).result, machine)
            remove(op)
    if value.first_use is not None:
        value.replace_all_uses_with(b.create(LocalLoadOp, (memory,), (value.type,)).result)


def _lies_so(wanted: Attribute, memory: MemDescType) -> bool:
    return isinstance(wanted, MemDescType) and wanted.data.layout == memory.data.layout
