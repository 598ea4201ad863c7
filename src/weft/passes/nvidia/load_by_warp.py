"""Have each warp of a specialized loop load rows of numbers for itself.

    %m = tt.load %pointers : tensor<64x!tt.ptr<f32>, #blocked>
    %row = ttg.convert_layout %m : tensor<64xf32, #blocked> -> tensor<64xf32, #slice>
becomes
    %m = tt.load %others : tensor<64x!tt.ptr<f32>, #warp>
    %row = ttg.convert_layout %m : tensor<64xf32, #warp> -> tensor<64xf32, #slice>

in which each warp has the whole row, and its lanes exchange elements by shuffles. An exchange between warps would go
through shared memory, with barriers that keep warp groups in step, which should drift apart. In addition, a lane holds
few elements while it waits for a product.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from weft.ir import Builder, bit_width, element_of, is_tensor, shape_of, tt
from weft.ir.gpu import LayoutAttr, encoding_for, encoding_of, layout_of
from weft.ir.gpu.ttg import ConvertLayoutOp
from weft.layouts import DistributedLinearLayout
from weft.layouts.plan import plan_conversion
from weft.machines import Machine

from ..effects import shareable
from ..removal import remove

MOST_REGISTERS = 8
"""Registers of a thread that such a row may take."""


def load_by_warp(loop: scf.ForOp, machine: Machine) -> None:
    """Rewrite the conversions of a loop's body."""
    for op in [x for x in loop.body.block.ops if isinstance(x, ConvertLayoutOp)]:
        load = op.src.owner
        if not isinstance(load, tt.LoadOp) or load.parent is not op.parent or not _waits(op, machine):
            continue
        layout = _of_warp(op)
        if layout is None or not all(_can_be(x, layout) for x in load.operands):
            continue
        b = Builder.before(load)
        new = load.clone({x: _in(b, x, layout) for x in load.operands})
        new.results[0]._type = layout.tensor(element_of(op.result.type))
        new.location = load.location
        b.insert(new)
        new.results[0].name_hint = load.results[0].name_hint
        op.operands[0] = new.results[0]
        if load.results[0].first_use is None:
            remove(load)


def _waits(op: ConvertLayoutOp, machine: Machine) -> bool:
    """Whether a conversion of a row has warps wait for each other."""
    shape, before, after = list(shape_of(op.result.type)), layout_of(op.src.type), layout_of(op.result.type)
    if len(shape) > 1 or before.in_dims["block"] > 1:
        return False
    plan = plan_conversion(before, after, shape, max(8, bit_width(element_of(op.result.type))), machine)
    return plan.scope == "block"


def _of_warp(op: ConvertLayoutOp) -> LayoutAttr | None:
    """The layout in which each warp has a whole row, as many elements in each lane; None for a row that is too long."""
    (size,), old = shape_of(op.src.type), layout_of(op.src.type)
    lanes, warps = old.in_dims["lane"], old.in_dims["warp"]
    each = max(1, size // lanes)
    if each > MOST_REGISTERS:
        return None

    def bases(first: int, count: int) -> list[list[int]]:
        """The bases of `count` threads with `first` elements each; threads for which none are left have copies."""
        return [[first << i if first << i < size else 0] for i in range(count.bit_length() - 1)]

    own, of_lanes = bases(1, each), bases(each, lanes)
    return encoding_for(DistributedLinearLayout(own, of_lanes, [[0]] * (warps.bit_length() - 1), [], [size]), (size,))


def _can_be(value: SSAValue, layout: LayoutAttr) -> bool:
    """Whether a tile can be computed in another layout, of numbers."""
    if not is_tensor(value.type) or encoding_of(value.type) == layout:
        return True
    op = value.owner
    if not isinstance(op, Operation) or not shareable(op) or op.regions or len(op.results) != 1:
        return False
    if op.name not in ("tt.make_range", "tt.splat", "tt.addptr") and not op.name.startswith("arith."):
        return False
    return all(_can_be(x, layout) for x in op.operands)


def _in(b: Builder, value: SSAValue, layout: LayoutAttr) -> SSAValue:
    """A tile of `_can_be`, in that layout."""
    if not is_tensor(value.type) or encoding_of(value.type) == layout:
        return value
    assert isinstance(value, OpResult)
    op = value.op
    new = op.clone({x: _in(b, x, layout) for x in op.operands})
    type: Attribute = layout.tensor(element_of(value.type))
    new.results[0]._type = type
    number = new.properties.get("value")
    if isinstance(number, DenseIntOrFPElementsAttr):
        new.properties["value"] = DenseIntOrFPElementsAttr(type, number.data)  # type: ignore[arg-type]
    new.location = op.location
    b.insert(new)
    new.results[0].name_hint = value.name_hint
    return new.results[0]
