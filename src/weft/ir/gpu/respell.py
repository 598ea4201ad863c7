"""Give tiles the names of layouts that Triton asks for, so that it accepts the text of a module that a pass has made.

    %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xi32, #blocked1> -> tensor<64x1xi32, #blocked>
becomes, where #blocked1 puts 64 elements where that slice of #blocked does,
    %2 = ttg.convert_layout %0 : tensor<64xi32, #blocked1> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %1 = tt.expand_dims %2 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<...>> -> tensor<64x1xi32, #blocked>

Types with layouts are equal here where their maps are; Triton wants the same names too: of the tiles of an operation
that works element by element, of what a loop carries and what branches yield, of operands of products. The conversions
that this adds move nothing. A module that Triton wrote is left as it is.

Not done here: conversions that would move something; the verifier asks for those.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.base import LayoutError
from weft.layouts import DotOperandLayout, Layout, SliceLayout

from .. import tt
from ..attrs import int_value
from ..types import element_of, is_tensor, shape_of
from .check import ELEMENTWISE, same_layout
from .encoding import encoding_for, name_of
from .ttg import ConvertLayoutOp

__all__ = ["respell_layouts"]


def respell_layouts(module: Operation) -> None:
    """Name the layouts of all tiles as Triton wants them."""
    for region in module.regions:
        for block in region.blocks:
            _block(block)


def _block(block: Block) -> None:
    for op in list(block.ops):
        if isinstance(op, scf.ForOp | scf.WhileOp):
            _carried(op)
        for region in op.regions:
            for inner in region.blocks:
                _block(inner)
        _op(op)


def _typed(value: SSAValue, named: Layout) -> Attribute | None:
    """The type of a tile under another name; None where it would not lie the same way."""
    try:
        wanted = encoding_for(named, shape_of(value.type)).tensor(element_of(value.type))
    except LayoutError:
        return None
    return wanted if same_layout(wanted, value.type) else None


def _rename(value: SSAValue, named: Layout | None) -> None:
    """Call the layout of a value otherwise, where it is made."""
    if named is not None and is_tensor(value.type) and name_of(value.type) != named:
        wanted = _typed(value, named)
        if wanted is not None and wanted == value.type:
            value._type = wanted


def _want(op: Operation, index: int, named: Layout | None) -> None:
    """Let an operand have this name, through a conversion that moves nothing."""
    value = op.operands[index]
    if named is None or not is_tensor(value.type) or name_of(value.type) == named:
        return
    wanted = _typed(value, named)
    if wanted is not None and op.parent is not None:
        conversion = ConvertLayoutOp.create(operands=[value], result_types=[wanted])
        conversion.location = op.location
        op.parent.insert_op_before(conversion, op)
        op.operands[index] = conversion.results[0]


def _all_as(op: Operation, first: SSAValue) -> None:
    """Operands and results of one shape get the name of the first tile."""
    named, shape = name_of(first.type), shape_of(first.type)
    for i, value in enumerate(op.operands):
        if shape_of(value.type) == shape:
            _want(op, i, named)
    for result in op.results:
        if shape_of(result.type) == shape:
            _rename(result, named)


def _op(op: Operation) -> None:
    tiles = [v for v in op.operands if is_tensor(v.type)]
    if isinstance(op, ELEMENTWISE) and tiles:
        _all_as(op, tiles[0])
    elif isinstance(op, tt.ExpandDimsOp):
        parent = name_of(op.result.type)
        if parent is not None:
            _want(op, 0, SliceLayout(int_value(op.properties["axis"]), parent))  # type: ignore[arg-type]
    elif isinstance(op, tt.BroadcastOp):
        _want(op, 0, name_of(op.result.type))
    elif isinstance(op, tt.ReduceOp):
        for i in range(1, len(op.operands)):
            _want(op, i, name_of(op.operands[0].type))
        for result in op.results:
            named = name_of(op.operands[0].type)
            if is_tensor(result.type) and named is not None:
                _rename(result, SliceLayout(int_value(op.properties["axis"]), named))  # type: ignore[arg-type]
    elif isinstance(op, tt.GatherOp):
        _rename(op.result, name_of(op.indices.type))
    elif isinstance(op, tt.JoinOp | tt.CatOp):
        _want(op, 1, name_of(op.operands[0].type))
    elif isinstance(op, tt.DotOp):
        _dot(op)
    elif isinstance(op, scf.IfOp):
        _branches(op)


def _dot(op: tt.DotOp) -> None:
    named = name_of(op.c.type)
    for index in (0, 1):
        layout = name_of(op.operands[index].type)
        if named is not None and isinstance(layout, DotOperandLayout) and layout.parent != named:
            _want(op, index, DotOperandLayout(index, named, layout.k_width))  # type: ignore[arg-type]
    _rename(op.d, named)


def _as_types(last: Operation | None, types: Sequence[Attribute], skip: int = 0) -> None:
    """What a block yields gets the names in these types."""
    if last is not None:
        for i, type in enumerate(types):
            if i + skip < len(last.operands):
                _want(last, i + skip, name_of(type))


def _carried(op: scf.ForOp | scf.WhileOp) -> None:
    """What a loop carries is called what it is called before the loop."""
    if isinstance(op, scf.ForOp):
        before = op.operands[3:]
        for value, argument, result in zip(before, op.body.block.args[1:], op.results, strict=True):
            _rename(argument, name_of(value.type))
            _rename(result, name_of(value.type))
        _as_types(op.body.block.last_op, [v.type for v in before])
        return
    for value, argument in zip(op.operands, op.regions[0].block.args, strict=True):
        _rename(argument, name_of(value.type))
    _as_types(op.regions[1].block.last_op, [v.type for v in op.operands])
    _as_types(op.regions[0].block.last_op, [v.type for v in op.results], 1)
    for result, argument in zip(op.results, op.regions[1].block.args, strict=True):
        _rename(argument, name_of(result.type))


def _branches(op: scf.IfOp) -> None:
    """What branches yield is called what the first one calls it."""
    first = op.regions[0].block.last_op
    if first is None or not op.results:
        return
    for value, result in zip(first.operands, op.results, strict=True):
        _rename(result, name_of(value.type))
    if op.regions[1].blocks:
        _as_types(op.regions[1].block.last_op, [v.type for v in first.operands])
