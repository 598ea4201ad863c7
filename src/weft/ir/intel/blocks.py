"""2D blocks of memory that warps load, store and prefetch by one instruction for many elements.

A surface is `height` rows of `width` bytes, `pitch` bytes from each other; a tile is what lies in it from column `x`
(in elements) and row `y` on. All six are scalars. What of a tile is outside of the surface is 0, and is not stored.
`transposed` tiles have the surface's columns as their rows.

Triton's Intel backend has such operations on block pointers; here the surface is said by its parts.
"""

from __future__ import annotations

from xdsl import irdl
from xdsl.ir import Attribute

from weft.layouts import DotOperandLayout

from ..check.rules import fail, need_tile, rule, show
from ..effects import ReadOp, ReadWriteOp, WriteOp
from ..gpu.encoding import name_of
from ..text import register
from ..text.elements import Form, Rule
from ..text.forms import is_type
from ..types import element_of, i32, ptr_of, shape_of

BITS = (8, 16, 32)


@irdl.irdl_op_definition
class BlockLoadOp(ReadOp):
    """Load a tile:  %v = ttig.block_load %p[%width, %height, %pitch][%x, %y] : tensor<64x32xf16, #ttg.dot_op<...>>"""

    name = "ttig.block_load"
    base = irdl.operand_def()
    width = irdl.operand_def()
    height = irdl.operand_def()
    pitch = irdl.operand_def()
    x = irdl.operand_def()
    y = irdl.operand_def()
    transposed = irdl.opt_prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class BlockStoreOp(WriteOp):
    """Store a tile:  ttig.block_store %v, %p[%width, %height, %pitch][%x, %y] : tensor<64x64xf32, #dpas>"""

    name = "ttig.block_store"
    value = irdl.operand_def()
    base = irdl.operand_def()
    width = irdl.operand_def()
    height = irdl.operand_def()
    pitch = irdl.operand_def()
    x = irdl.operand_def()
    y = irdl.operand_def()


@irdl.irdl_op_definition
class BlockPrefetchOp(ReadWriteOp):
    """Bring rows x columns elements of a surface nearer, of which each warp asks for a part:

    ttig.block_prefetch %p[%width, %height, %pitch][%x, %y] {shape = array<i32: 64, 32>} : !tt.ptr<f16>
    """

    name = "ttig.block_prefetch"
    base = irdl.operand_def()
    width = irdl.operand_def()
    height = irdl.operand_def()
    pitch = irdl.operand_def()
    x = irdl.operand_def()
    y = irdl.operand_def()
    shape = irdl.prop_def()


def is_right(type: Attribute) -> bool:
    """Whether a tile is a right operand of products, of which a word holds neighbouring rows."""
    layout = name_of(type)
    return isinstance(layout, DotOperandLayout) and layout.operand_index == 1


def _pointer(group: str) -> Rule:
    """A pointer to the elements of a tile."""
    return lambda parts: (ptr_of(element_of(parts.type(group))),)


def _form(text: str, base: str) -> Form:
    surface = text.replace("*", "%base[%width, %height, %pitch][%x, %y]")
    i = is_type(i32)
    if base == "base":
        return Form(surface, width=i, height=i, pitch=i, x=i, y=i)
    return Form(surface, base=_pointer(base), width=i, height=i, pitch=i, x=i, y=i)


register(BlockLoadOp, _form("*{} : <result>", "result"))
register(BlockStoreOp, _form("%value, *{} : <value>", "value"))
register(BlockPrefetchOp, _form("*{} : <base>", "base"))


@rule(BlockLoadOp, BlockStoreOp)
def _block(op: BlockLoadOp | BlockStoreOp) -> None:
    tile = op.result if isinstance(op, BlockLoadOp) else op.value
    need_tile(op, tile)
    if len(shape_of(tile.type)) != 2:
        fail(op, f"a block has rows and columns, got {show(tile)}")
    if op.base.type != ptr_of(element_of(tile.type)):
        fail(op, f"through {show(op.base)} nothing comes or goes of {show(tile)}")
