"""Reduce elements to their maximum or minimum before they are widened.

    %x = arith.extf %h : tensor<1024xbf16> to tensor<1024xf32>
    %m = tt.reduce max %x : f32
becomes
    %n = tt.reduce max %h : bf16
    %m = arith.extf %n : bf16 to f32

Widening is exact and keeps the order, NaN included. One instruction compares two pairs of halves in words from Ampere
on, so that eight elements take five instructions: in f32 they take seven, after eight that widen them. `tl.max` itself
widens its operand, as Triton's does.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from weft.ir import Builder, bf16, element_of, f16, find, like, tt

EXTREMES = (arith.MaxnumfOp, arith.MinnumfOp, arith.MaximumfOp, arith.MinimumfOp)


def narrow_extremes(root: Operation) -> None:
    """Rewrite the reductions inside `root` that find an extreme of widened halves."""
    for op in find(root, tt.ReduceOp):
        widened, combine = op.operands[0].owner, op.combineOp.block.first_op
        if len(op.operands) > 1 or not isinstance(widened, arith.ExtFOp) or not isinstance(combine, EXTREMES):
            continue
        arguments = op.combineOp.block.args
        if element_of(widened.input.type) in (f16, bf16) and {*combine.operands} == {*arguments}:
            _narrow(op, widened, combine)


def _narrow(op: tt.ReduceOp, widened: arith.ExtFOp, combine: Operation) -> None:
    """Reduce what is widened, and widen the result."""
    element, wide = element_of(widened.input.type), op.results[0].type
    op.operands[0] = widened.input
    for value in (*op.combineOp.block.args, combine.results[0]):
        Rewriter.replace_value_with_new_type(value, element)
    result = Rewriter.replace_value_with_new_type(op.results[0], like(wide, element))
    extended = Builder.after(op).create(arith.ExtFOp, (result,), (wide,))
    result.replace_uses_with_if(extended.result, lambda use: use.operation is not extended)
