"""What layout IR must be, beside what tile IR must be: the rules of layouts and of `ttg` and `ttng`.

Every tile has a layout. Operations that work element by element want one layout for all their tiles; those that change
a shape want of their result what `weft.layouts.infer` makes of their source. Layouts are compared as maps, and where
only the number of registers with copies differs they agree. A layout is for the threads that the program has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from weft import layouts
from weft.base import LayoutError

from .. import tt
from ..attrs import int_value, ints_of
from ..check.control import ENDS
from ..check.rules import dims, fail, layout_rule, rule, show
from ..check.structure import KINDS, LAID_STAGES, STAGES
from ..elementwise import CLASSES
from ..types import element_of, is_tensor, shape_of
from . import ttg
from .encoding import LayoutAttr, encoding_of, linear_encoding

# -- comparing -----------------------------------------------------------------------------------------------------


def agree(a: layouts.LinearLayout, b: layouts.LinearLayout) -> bool:
    """Are the elements in the same places, apart from registers that hold copies?"""
    return a == b or a.remove_zero_bases("register") == b.remove_zero_bases("register")


def same_layout(a: Attribute, b: Attribute) -> bool:
    """Do tiles of these types, of one shape, lie in the same places? A layout that is yet to be inferred fits all."""
    x, y = encoding_of(a), encoding_of(b)
    if x is None or y is None:
        return x is y
    if x.linear is None or y.linear is None:
        return x.linear is y.linear and x == y
    return x == y or agree(x.linear, y.linear)


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "%x"


def _differ(op: Operation, subject: str, value: SSAValue, wanted: str) -> NoReturn:
    """`value` lies wrongly; say how it should."""
    convert = f"ttg.convert_layout {_name(value)} : {show(value)} -> {wanted}"
    fail(op, f"{subject}\n    found     {show(value)}\n    expected  {wanted}", f"convert it: {convert}")


def _wanted(value: SSAValue, layout: layouts.LinearLayout) -> str:
    """The type of a value in another layout; the layout as its bases where it has no name."""
    dimensions = "x".join(map(str, shape_of(value.type)))
    try:
        text = linear_encoding(layout.remove_zero_bases("register")).text()
    except LayoutError:
        text = f"#ttg.linear<{layout.bases}>"
    return f"tensor<{dimensions}x{show(element_of(value.type))}, {text}>"


def _linear(value: SSAValue) -> layouts.LinearLayout | None:
    """The layout of a tile; None for a scalar, and for a layout that is to be inferred."""
    encoding = encoding_of(value.type)
    return None if encoding is None else encoding.linear


# -- element by element --------------------------------------------------------------------------------------------

ELEMENTWISE: tuple[type[Operation], ...] = (
    *CLASSES.values(), math.IPowIOp, math.FPowIOp, arith.AddUIExtendedOp,
    tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp,
    tt.AtomicLoadOp, tt.AtomicStoreOp, tt.MapElementwiseOp,
    tt.ElementwiseInlineAsmOp, tt.ScanOp, ttg.AsyncCopyGlobalToLocalOp,
)  # fmt: skip


def _one_layout(op: Operation, values: Sequence[SSAValue], subject: str) -> None:
    tiles = [v for v in values if is_tensor(v.type)]
    for other in tiles[1:]:
        if shape_of(other.type) == shape_of(tiles[0].type) and not same_layout(tiles[0].type, other.type):
            encoding = encoding_of(tiles[0].type)
            wanted = show(encoding.tensor(element_of(other.type))) if encoding is not None else show(tiles[0])
            _differ(op, f"{subject} must lie in one layout", other, wanted)


@layout_rule(*ELEMENTWISE)
def _elementwise(op: Operation) -> None:
    _one_layout(op, (*op.operands, *op.results), "operands and results")


@layout_rule(tt.ReduceOp)
def _reduce(op: Operation) -> None:
    _one_layout(op, op.operands, "operands")
    axis = int_value(op.properties["axis"])
    for value, result in zip(op.operands, op.results, strict=False):
        if is_tensor(result.type):
            _follows(op, value, result, lambda layout: layouts.reduce_result(layout, axis))


@layout_rule(tt.GatherOp)
def _gather(op: tt.GatherOp) -> None:
    _one_layout(op, (op.indices, op.result), "indices and result")


@layout_rule(tt.HistogramOp)
def _histogram(op: tt.HistogramOp) -> None:
    _one_layout(op, op.operands, "values and mask")


@layout_rule(tt.CatOp)
def _cat(op: tt.CatOp) -> None:
    _one_layout(op, op.operands, "operands")


@layout_rule(tt.DotOp, tt.DotScaledOp)
def _dot(op: tt.DotOp | tt.DotScaledOp) -> None:
    _one_layout(op, (op.c, op.d), "accumulator and result")
    accumulator = _linear(op.c)
    for index, value in enumerate((op.a, op.b)):
        encoding = encoding_of(value.type)
        if encoding is None or accumulator is None or not isinstance(encoding.named, layouts.DotOperandLayout):
            continue
        named = encoding.named
        if named.operand_index != index:
            fail(
                op,
                f"operand {index} has the layout of operand {named.operand_index} of a product:\n    {show(value)}",
                f"its layout is #ttg.dot_op<{{opIdx = {index}, ...}}>",
            )
        if not agree(named.parent.to_linear(shape_of(op.c.type)), accumulator):
            fail(
                op,
                f"operand {index} is for another accumulator than this one\n    operand      {show(value)}\n"
                f"    accumulator  {show(op.c)}",
                "convert the operand to #ttg.dot_op with the accumulator's layout as its parent",
            )


# -- shapes --------------------------------------------------------------------------------------------------------


def _disagreeing(
    op: Operation, given: SSAValue, value: SSAValue, infer: Callable[[layouts.LinearLayout], layouts.LinearLayout]
) -> layouts.LinearLayout | None:
    """The layout that one value has because of another's, where it has a different one."""
    given_layout, layout = _linear(given), _linear(value)
    if given_layout is None or layout is None:
        return None
    try:
        wanted = infer(given_layout)
    except LayoutError as error:
        fail(op, f"{error.message}\n    {show(given)}", error.hint)
    return None if agree(wanted, layout) else wanted


def _follows(
    op: Operation, source: SSAValue, result: SSAValue, infer: Callable[[layouts.LinearLayout], layouts.LinearLayout]
) -> None:
    """The result lies as the source makes it."""
    wanted = _disagreeing(op, source, result, infer)
    if wanted is not None:
        move = f"ttg.convert_layout of the result: {_wanted(result, wanted)} -> {show(result)}"
        fail(
            op,
            f"the result has another layout than the source\n    source    {show(source)}\n"
            f"    result    {show(result)}\n    expected  {_wanted(result, wanted)}",
            f"give the result that layout and convert it: {move}",
        )


def _comes_from(
    op: Operation, source: SSAValue, result: SSAValue, infer: Callable[[layouts.LinearLayout], layouts.LinearLayout]
) -> None:
    """The source lies as the result wants it."""
    wanted = _disagreeing(op, result, source, infer)
    if wanted is not None:
        _differ(op, f"for the result {show(result)} the source lies wrongly", source, _wanted(source, wanted))


@layout_rule(tt.ExpandDimsOp)
def _expand_dims(op: tt.ExpandDimsOp) -> None:
    axis = int_value(op.properties["axis"])
    _comes_from(op, op.src, op.result, lambda layout: layouts.expand_dims_source(layout, axis))


@layout_rule(tt.BroadcastOp)
def _broadcast(op: tt.BroadcastOp) -> None:
    shape = shape_of(op.src.type)
    _comes_from(op, op.src, op.result, lambda layout: layouts.broadcast_source(layout, shape))


@layout_rule(tt.TransOp)
def _trans(op: tt.TransOp) -> None:
    order = ints_of(op.properties["order"])
    _follows(op, op.src, op.result, lambda layout: layouts.trans_result(layout, order))


@layout_rule(tt.ReshapeOp)
def _reshape(op: tt.ReshapeOp) -> None:
    if "allow_reorder" not in op.properties:  # otherwise any elements may be where they like
        shape = shape_of(op.result.type)
        _follows(op, op.src, op.result, lambda layout: layouts.reshape_result(layout, shape))


@layout_rule(tt.JoinOp)
def _join(op: tt.JoinOp) -> None:
    _one_layout(op, op.operands, "operands")
    _comes_from(op, op.lhs, op.result, layouts.join_source)


@layout_rule(tt.SplitOp)
def _split(op: Operation) -> None:
    for result in op.results:
        _follows(op, op.operands[0], result, layouts.split_result)


@rule(ttg.Fp4ToFpOp)
def _fp4_to_fp(op: ttg.Fp4ToFpOp) -> None:
    shape, axis = list(shape_of(op.src.type)), int_value(op.properties["axis"])
    if not 0 <= axis < len(shape):
        fail(op, f"axis {axis} is not one of the {len(shape)} dimensions of {show(op.src)}")
    shape[axis] *= 2
    if list(shape_of(op.result.type)) != shape:
        fail(op, f"{show(op.src)} unpacked along axis {axis} has the shape {dims(shape)}, not {show(op.result)}")
    order = [*range(axis + 1), len(shape), *range(axis + 1, len(shape))]
    _follows(
        op,
        op.src,
        op.result,
        lambda a: layouts.reshape_result(layouts.trans_result(layouts.join_result(a), order), shape),
    )


@rule(ttg.ConvertLayoutOp, ttg.SetAutoLayoutOp)
def _convert(op: ttg.ConvertLayoutOp) -> None:
    if shape_of(op.src.type) != shape_of(op.result.type) or element_of(op.src.type) != element_of(op.result.type):
        fail(op, f"changes the layout only, not {show(op.src)} to {show(op.result)}")
    if not is_tensor(op.src.type):
        fail(op, f"expected a tile, got {show(op.src)}")


# -- the stages ----------------------------------------------------------------------------------------------------


def threads_at(op: Operation) -> tuple[int, int, int]:
    """Lanes of a warp, warps and blocks at an operation; 0 where the module does not say."""
    warps = 0
    current: Operation | None = op
    while current is not None and not isinstance(current, ModuleOp):
        parent = current.parent_op()
        if isinstance(parent, ttg.WarpSpecializePartitionsOp) and not warps:
            region = current.parent_region()
            outer = parent.parent_op()
            numbers = outer.properties.get("partitionNumWarps") if outer is not None else None
            if isinstance(numbers, DenseArrayBase) and region is not None:
                warps = ints_of(numbers)[parent.regions.index(region)]
        current = parent
    attributes = current.attributes if current is not None else {}

    def said(name: str) -> int:
        attribute = attributes.get(name)
        return int(attribute.value.data) if isinstance(attribute, IntegerAttr) else 0

    return said("ttg.threads-per-warp"), warps or said("ttg.num-warps"), said("ttg.num-ctas")


def _fits(op: Operation, value: SSAValue, encoding: LayoutAttr) -> None:
    """The layout is for the threads that there are."""
    linear = encoding.linear
    if linear is None:
        return
    sizes = linear.in_dims
    for dim, count in zip(("lane", "warp", "block"), threads_at(op), strict=True):
        if count and dim in sizes and sizes[dim] != count:
            kind = {"lane": "threads in a warp", "warp": "warps", "block": "blocks in a cluster"}[dim]
            name = {"lane": "threads-per-warp", "warp": "num-warps", "block": "num-ctas"}[dim]
            fail(
                op,
                f"{show(value)} is laid out for {sizes[dim]} {kind}, and here are {count}",
                f'write "ttg.{name}" = {sizes[dim]} : i32 in the module\'s attributes, or a layout for {count} {kind}',
            )


def _laid(op: Operation) -> None:
    """Stage `layout`: every layout is known, and for the threads that there are."""
    for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
        encoding = encoding_of(value.type)
        if encoding is not None:
            if isinstance(encoding.named, layouts.AutoLayout | layouts.CoalescedLayout):
                fail(
                    op,
                    f"the layout of {show(value)} is not known yet",
                    "such layouts are inferred when a Gluon kernel is compiled; in text give one, #ttg.blocked<{...}>",
                )
            _fits(op, value, encoding)


ENDS.update(
    {
        ttg.WarpSpecializeOp: (ttg.WarpYieldOp, ttg.WarpSpecializePartitionsOp),
        ttg.WarpSpecializePartitionsOp: (ttg.WarpReturnOp,),
        ttg.MaskOp: (ttg.MaskReturnOp,),
    }
)
KINDS.update(
    {
        **dict.fromkeys(("num", "pendings", "count", "size", "nbytes", "alignment", "contiguity"), IntegerAttr),
        **dict.fromkeys(("bCluster", "isAsync", "maxStage", "stage", "relaxed"), IntegerAttr),
        **dict.fromkeys(("offsets", "partitionNumWarps", "requestedRegisters", "actualRegisters"), DenseArrayBase),
    }
)
STAGES["layout"] = _laid
STAGES["gluon"] = None
LAID_STAGES.update(("layout", "gluon"))
