"""Turn sums of products of three-dimensional tiles into matrix products.

    %x = tt.broadcast %a3 : tensor<128x32x1xf32> -> tensor<128x32x64xf32>
    %y = tt.broadcast %b3 : tensor<1x32x64xf32> -> tensor<128x32x64xf32>
    %p = arith.mulf %x, %y
    %s = "tt.reduce"(%p) <{axis = 1}> add
    %d = arith.addf %s, %c
becomes
    %d = tt.dot %a, %b, %c : tensor<128x32xf32> * tensor<32x64xf32> -> tensor<128x64xf32>

Whichever dimension is summed. Triton does this too, and multiplies in tf32; here the precision is that of the text. A
product reads its operands from shared memory and holds the sums alone; the tile of products is larger than them by the
size of what is summed, and where it fits into the registers it still crosses lanes. Sides of less than 16 stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.base.remarks import NO_REMARKS, RemarkCollector, SumAsProduct
from weft.ir import Builder, element_of, f32, find, i32_array, int_value, shape_of, span_of, tensor_of, tile_text, tt

from .removal import remove

LEAST_SIDE = 16
"""What a product of matrices has in each dimension, as in the language."""


def contract_sums(root: Operation, remarks: RemarkCollector = NO_REMARKS) -> bool:
    """Rewrite the sums inside `root` that are products of matrices. Gives whether there was any."""
    changed = False
    for op in find(root, tt.ReduceOp):
        factors = _factors(op)
        if factors is not None:
            why = f"a product of matrices holds its sums alone, and not {tile_text(op.srcs[0].type)} of products"
            remarks.add(SumAsProduct(span_of(op), tile_text(op.result[0].type), why))
            _rewrite(op, *factors)
            changed = True
    return changed


@dataclass(frozen=True)
class _Factor:
    """A tile of two dimensions; `of` tells which of the three of the products they are."""

    value: SSAValue
    of: tuple[int, int]


def _factors(op: tt.ReduceOp) -> tuple[_Factor, _Factor] | None:
    """What is multiplied, if this is a sum of products."""
    if len(op.srcs) != 1 or not _adds(op):
        return None
    product = op.srcs[0].owner
    type = op.srcs[0].type
    if not isinstance(product, arith.MulfOp) or len(shape_of(type)) != 3 or element_of(type) != f32:
        return None
    if min(shape_of(type)) < LEAST_SIDE or len(list(product.result.uses)) != 1:
        return None
    left, right = _factor(product.lhs), _factor(product.rhs)
    axis = int_value(op.axis)
    if left is None or right is None or axis not in left.of or axis not in right.of or left.of == right.of:
        return None
    return left, right


def _adds(op: tt.ReduceOp) -> bool:
    block = op.combineOp.block
    body = list(block.ops)
    added = body[0] if len(body) == 2 and isinstance(body[0], arith.AddfOp) else None
    return (
        added is not None
        and set(added.operands) == set(block.args)
        and tuple(body[1].operands) == (added.result,)
        and len(set(block.args)) == 2
    )


def _factor(value: SSAValue) -> _Factor | None:
    """A tile repeated along one dimension, which it got by `expand_dims`."""
    repeated = value.owner
    if not isinstance(repeated, tt.BroadcastOp):
        return None
    expanded = repeated.src.owner
    if not isinstance(expanded, tt.ExpandDimsOp):
        return None
    axis = int_value(expanded.axis)
    shape, full = list(shape_of(expanded.src.type)), list(shape_of(value.type))
    if full[:axis] + full[axis + 1 :] != shape:
        return None
    rest = [dim for dim in range(3) if dim != axis]
    return _Factor(expanded.src, (rest[0], rest[1]))


def _rewrite(op: tt.ReduceOp, first: _Factor, second: _Factor) -> None:
    axis = int_value(op.axis)
    left, right = sorted((first, second), key=lambda factor: next(dim for dim in factor.of if dim != axis))
    result = op.result[0]
    users = list(result.uses)
    added = users[0].operation if len(users) == 1 else None
    total = added if isinstance(added, arith.AddfOp) and added.parent is op.parent else None
    b = Builder.before(total or op)
    c = next(x for x in total.operands if x is not result) if total is not None else b.constant(0.0, result.type)
    sides = (_with_last(b, left, axis), _with_first(b, right, axis))
    product = b.create(tt.DotOp, (*sides, c), (result.type,), {}).d
    replaced = total.result if total is not None else result
    product.name_hint = replaced.name_hint
    replaced.replace_all_uses_with(product)
    if total is not None:
        remove(total)
    remove(op)


def _with_last(b: Builder, factor: _Factor, axis: int) -> SSAValue:
    return factor.value if factor.of[1] == axis else _transposed(b, factor.value)


def _with_first(b: Builder, factor: _Factor, axis: int) -> SSAValue:
    return factor.value if factor.of[0] == axis else _transposed(b, factor.value)


def _transposed(b: Builder, value: SSAValue) -> SSAValue:
    type = tensor_of(tuple(reversed(shape_of(value.type))), element_of(value.type))
    return b.create(tt.TransOp, (value,), (type,), {"order": i32_array((1, 0))}).result
