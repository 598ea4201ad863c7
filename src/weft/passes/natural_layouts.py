"""The layout in which an operation on shapes returns its result without moving data.

A transposition of [8, 1] elements of a thread gives [1, 8], a reduction along an axis the operand's layout without it:
each thread keeps its elements, and only the names of the elements change (theorem 9.3 of Zhou et al., Linear Layouts).

    reduce    the operand's layout without the axis
    trans     its dimensions in another order
    reshape   the same bits of the places, divided otherwise among the dimensions
    join      a new last dimension, along registers, or along lanes that held copies
    split     half of the registers
    views     a new dimension, along which a thread has copies
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from weft.ir import int_value, ints_of, is_tensor, shape_of
from weft.layouts import DistributedLayout, LinearLayout, SliceLayout, infer

from .tile_groups import MOVED_VIEWS, VIEWS

AnyLayout = DistributedLayout | LinearLayout

SHAPES = ("tt.reduce", "tt.trans", "tt.reshape", "tt.join", "tt.split")
"""Operations that give their result in a layout that follows from the operand's."""


def linear_of(layout: AnyLayout, shape: Sequence[int]) -> LinearLayout:
    """The linear layout of a tile."""
    return layout if isinstance(layout, LinearLayout) else layout.to_linear(list(shape))


def natural_result(op: Operation, layout: AnyLayout) -> AnyLayout:
    """The layout in which an operation on shapes gives its result, if its operand has a layout."""
    linear = linear_of(layout, list(shape_of(op.operands[0].type)))
    if op.name == "tt.reduce":
        axis = int_value(op.properties["axis"])
        return infer.reduce_result(linear, axis) if isinstance(layout, LinearLayout) else SliceLayout(axis, layout)
    if op.name == "tt.trans":
        return infer.trans_result(linear, ints_of(op.properties["order"]))
    if op.name == "tt.reshape":
        return infer.reshape_result(linear, list(shape_of(op.results[0].type)))
    if op.name == "tt.expand_dims":
        return infer.expand_dims_result(linear, int_value(op.properties["axis"]))
    if op.name == "tt.broadcast":
        return infer.broadcast_result(linear, list(shape_of(op.results[0].type)))
    return infer.join_result(linear) if op.name == "tt.join" else infer.split_result(linear)


def joined_layout(source: LinearLayout) -> LinearLayout:
    """Where two tiles side by side are to lie: lanes or warps that held copies tell them apart, if there are any.

    So a compare-and-exchange of neighbours (two reductions of pairs, joined) gives its result where its operand was.
    """
    bases = {d: [(*basis, 0) for basis in columns] for d, columns in source.bases.items()}
    for dim in ("lane", "warp"):
        for i, basis in enumerate(bases[dim]):
            if not any(basis):
                bases[dim][i] = (*basis[:-1], 1)
                sizes = {f"dim{d}": s for d, s in enumerate((*source.out_dims.values(), 2))}
                return LinearLayout.from_bases(bases, sizes, require_surjective=False)
    return infer.join_result(source)


def source_layout(op: Operation, operand: SSAValue, layout: AnyLayout) -> AnyLayout:
    """The layout that an operand has to have for a result in a layout: its own, but for views."""
    if op.name not in (*VIEWS, *MOVED_VIEWS) or not is_tensor(operand.type):
        return layout
    shape = list(shape_of(operand.type))
    if op.name in MOVED_VIEWS:
        linear = linear_of(layout, list(shape_of(op.results[0].type)))
        if op.name == "tt.reshape":
            return infer.reshape_result(linear, shape)
        order = list(ints_of(op.properties["order"]))
        return infer.trans_result(linear, [order.index(d) for d in range(len(order))])
    if op.name == "tt.expand_dims":
        axis = int_value(op.properties["axis"])
        if not isinstance(layout, LinearLayout):
            return SliceLayout(axis, layout)
        return infer.expand_dims_source(layout, axis)
    return infer.broadcast_source(layout, shape) if isinstance(layout, LinearLayout) else layout
