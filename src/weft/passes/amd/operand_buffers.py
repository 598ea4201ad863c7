"""Operands of products in shared memory: the layouts in which a tile is needed, and its loads from a buffer.

%x = ttg.convert_layout %a                          %x = ttg.local_load %buffer
%t = tt.trans %a                        becomes     %t = ttg.memdesc_trans %buffer
%y = ttg.convert_layout %t                          %y = ttg.local_load %t
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from weft.ir import Builder
from weft.ir.gpu import MemDescType, layout_of, memdesc, ttg
from weft.layouts import LinearLayout, SharedLinearLayout, SwizzledSharedLayout, infer

from ..buffered_tiles import is_transposition
from ..removal import remove

Memory = SharedLinearLayout | SwizzledSharedLayout


def wanted_layouts(value: SSAValue) -> Iterator[LinearLayout]:
    """The layouts that a tile is converted to, as it is or transposed."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, ttg.ConvertLayoutOp):
            yield layout_of(op.result.type)
        elif is_transposition(op):
            yield from (infer.trans_result(layout, (1, 0)) for layout in wanted_layouts(op.results[0]))


def read_buffer(value: SSAValue, buffer: SSAValue) -> None:
    """Let those that use a tile read the buffer that it is in, in the layout that they want."""
    for op in list(dict.fromkeys(use.operation for use in value.uses)):
        near = Builder.before(op)
        if isinstance(op, ttg.ConvertLayoutOp):
            op.result.replace_all_uses_with(near.create(ttg.LocalLoadOp, (buffer,), (op.result.type,)).result)
            remove(op)
        elif is_transposition(op):
            memory = _transposed(buffer.type)
            view = near.create(ttg.MemDescTransOp, (buffer,), (memory,), {"order": op.properties["order"]}).result
            read_buffer(op.results[0], view)
            remove(op)
    if value.first_use is not None:
        maker = value.owner
        assert isinstance(maker, Operation)
        tile = Builder.before(maker).create(ttg.LocalLoadOp, (buffer,), (value.type,)).result
        value.replace_all_uses_with(tile)


def _transposed(memory: object) -> MemDescType:
    """The type of the same memory with rows and columns changed."""
    assert isinstance(memory, MemDescType)
    layout = memory.data.layout.named
    if isinstance(layout, SharedLinearLayout):
        turned: Memory = SharedLinearLayout([list(reversed(basis)) for basis in layout.offset_bases])
    else:
        assert isinstance(layout, SwizzledSharedLayout)
        turned = SwizzledSharedLayout(layout.vec, layout.per_phase, layout.max_phase, list(reversed(layout.order)))
    return memdesc(memory.shape[::-1], memory.element_type, turned)
