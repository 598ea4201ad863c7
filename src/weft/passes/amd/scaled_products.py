"""Prepare scaled products that a matrix instruction computes: their layouts, and the scales that operands lack.

    %d = tt.dot_scaled %a scale %sa, %b, %c lhs = e4m3 rhs = e2m1        on gfx950
becomes
    %one = arith.constant dense<127> : tensor<64x4xi8>
    %d = tt.dot_scaled %a scale %sa, %b scale %one, %c lhs = e4m3 rhs = e2m1

and becomes `tt.dot` if both operands are fp8 and neither has scales. Operands have the layouts of other products, with
16 contiguous bytes along K in each lane, and scales have the order in which the instruction reads them, as in Triton
3.6.0. `decompose_dot_scaled` replaces products that no instruction computes: one operand of 16 bits, e2m1 in pairs
along the other dimension, scales that are fp8 themselves or of 16 elements, products smaller than the instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from weft.ir import Builder, enum_attr, find, i8, segments, shape_of, tensor_of, tt
from weft.ir.amd.scaled import BLOCK, ONE, depth_of, kinds_of
from weft.layouts import DistributedLayout
from weft.machines import Machine
from weft.targets.amd import operand_layout, scale_layout, scaled_products

from ..matrix_layouts import Layout, matrix_layouts
from ..removal import remove
from .asked import asked_instructions


def scaled_layouts(op: tt.DotScaledOp, machine: Machine, warps: int, chained: bool) -> Sequence[Layout] | None:
    """The layouts of all operands; None where no instruction does it."""
    kinds = kinds_of(op)
    if kinds is None:
        return None
    shape = shape_of(op.c.type)
    entries = asked_instructions(op, scaled_products(machine, *kinds), machine, True)  # kpack is not for them
    laid = matrix_layouts(entries, shape, depth_of(op), machine, warps, chained, ())
    if laid is None or not isinstance(laid[2], DistributedLayout):
        return None
    sides = [operand_layout(index, kind, laid[2]) for index, kind in enumerate(kinds)]
    scales = zip(sides, (op.a_scale, op.b_scale), strict=True)
    return [*sides, laid[2], *(scale_layout(side, shape_of(x.type)) for side, x in scales if x is not None)]


def complete_scaled_products(module: ModuleOp) -> None:
    """Give operands without scales such ones as change nothing, or make a product without scales of it."""
    for op in find(module, tt.DotScaledOp):
        b, none = Builder.before(op), op.a_scale is None and op.b_scale is None
        if none and "e2m1" not in (kinds_of(op) or ("e2m1",)):
            precision = {"inputPrecision": enum_attr(tt.InputPrecision.IEEE)}
            result = b.create(tt.DotOp, (op.a, op.b, op.c), (op.d.type,), precision).d
        elif op.a_scale is None or op.b_scale is None:
            scales = [x or _ones(b, op, index) for index, x in enumerate((op.a_scale, op.b_scale))]
            properties = {**op.properties, "operandSegmentSizes": segments(1, 1, 1, 1, 1)}
            result = b.create(tt.DotScaledOp, (op.a, op.b, op.c, *scales), (op.d.type,), properties).d
        else:
            continue
        result.name_hint = op.d.name_hint
        op.d.replace_all_uses_with(result)
        remove(op)


def _ones(b: Builder, op: tt.DotScaledOp, index: int) -> SSAValue:
    return b.constant(ONE, tensor_of((shape_of(op.c.type)[index], depth_of(op) // BLOCK), i8))
