"""Carry a column, a row or one element instead of a tile whose elements are equal along a dimension.

    %w = scf.for ... iter_args(%a = dense<1.0>) -> (tensor<1x2048xf32>) {    how many elements were counted so far
      %b = arith.addf %a, dense<1.0>
      %c = arith.select (tt.broadcast %row_is_there), %b, %a
      scf.yield %c
    }
becomes
    %w0 = scf.for ... iter_args(%n = dense<1.0>) -> (tensor<1x1xf32>) {
      %a = tt.broadcast %n : tensor<1x2048xf32>
      ...
      %m = arith.addf %n, dense<1.0>
      %o = arith.select %row_is_there, %m, %n
      scf.yield %o
    }
    %w = tt.broadcast %w0

so that a thread has one register for it, and computes what depends on it alone once: a Welford reduction divides by the
same weight for all elements of a row. What is computed of broadcast tiles in the body is seen to be the same by LLVM.

Integers and pointers that move by the same amount everywhere are carried as one scalar before (scalarize_carried).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.ir import Builder, element_of, find, int_value, is_tensor, shape_of, tensor_of, tt
from weft.ops.table import ELEMENTWISE

from .fold import constant_of

DEEPEST = 32
"""Operations behind each other that are looked through."""

Dims = frozenset[int]


def narrow_carried(module: ModuleOp) -> None:
    """Rewrite the loops of the module."""
    for loop in find(module, scf.ForOp):
        for index in range(len(loop.iter_args)):
            _narrow(loop, index)


def _narrow(loop: scf.ForOp, index: int) -> None:
    """Carry a value of a loop without the dimensions along which all elements are equal, if it has any."""
    carried, end = loop.body.block.args[1 + index], loop.body.block.last_op
    if not is_tensor(carried.type) or end is None:
        return
    initial, shape = loop.iter_args[index], shape_of(carried.type)
    equal, before = _equal_dims(initial, carried, _all(shape)), None
    while equal != before and (wide := _wide(shape, equal)):
        before, equal = equal, equal & _equal_dims(end.operands[index], carried, equal)
    if not wide:
        return
    outside, inside = Builder.before(loop), Builder.before(end)
    loop.operands[3 + index] = _without(outside, initial, wide, {})
    first = loop.body.block.first_op
    assert first is not None
    narrow = Rewriter.replace_value_with_new_type(carried, loop.operands[3 + index].type)
    tile = Builder.before(first).broadcast(narrow, shape)
    narrow.replace_uses_with_if(tile, lambda use: use.operation is not tile.owner)
    end.operands[index] = _without(inside, end.operands[index], wide, {tile: narrow})
    result = Rewriter.replace_value_with_new_type(loop.results[index], narrow.type)
    if result.first_use is not None:
        after = Builder.after(loop).broadcast(result, shape)
        result.replace_uses_with_if(after, lambda use: use.operation is not after.owner)


def _all(shape: tuple[int, ...]) -> Dims:
    return frozenset(range(len(shape)))


def _wide(shape: tuple[int, ...], dims: Dims) -> Dims:
    """Those of some dimensions along which there is more than one element."""
    return frozenset(d for d in dims if shape[d] > 1)


def _equal_dims(value: SSAValue, carried: BlockArgument, assumed: Dims, depth: int = 0) -> Dims:
    """The dimensions along which all elements of a tile are equal, if those of the carried tile are along `assumed`."""
    if value is carried:
        return assumed
    shape, op = shape_of(value.type), value.owner
    if not is_tensor(value.type):
        return frozenset(range(len(shape_of(carried.type))))
    single = frozenset(d for d, size in enumerate(shape) if size == 1)
    if not isinstance(op, Operation) or depth > DEEPEST:
        return single
    if isinstance(op, tt.SplatOp) or constant_of(value) is not None:
        return _all(shape)
    if isinstance(op, tt.BroadcastOp):
        return single | _equal_dims(op.operands[0], carried, assumed, depth + 1)
    if isinstance(op, tt.ExpandDimsOp):
        axis = int_value(op.properties["axis"])
        inner = _equal_dims(op.operands[0], carried, assumed, depth + 1)
        return single | {d + (d >= axis) for d in inner}
    if op.name in ELEMENTWISE:
        equal = _all(shape)
        for x in op.operands:
            equal &= _equal_dims(x, carried, assumed, depth + 1)
        return single | equal
    return single


def _without(b: Builder, value: SSAValue, dims: Dims, known: dict[SSAValue, SSAValue]) -> SSAValue:
    """A tile with one element along some dimensions, along which all of `value` are equal."""
    if value in known or not is_tensor(value.type):
        return known.get(value, value)
    shape = shape_of(value.type)
    dims = _wide(shape, dims)
    if not dims:
        return value
    op, number = value.owner, constant_of(value)
    assert isinstance(op, Operation)
    left = tuple(1 if d in dims else size for d, size in enumerate(shape))
    narrow = tensor_of(left, element_of(value.type))
    if number is not None:
        made = b.constant(number, narrow)
    elif isinstance(op, tt.BroadcastOp):
        made = b.broadcast(_without(b, op.operands[0], dims, known), left)
    elif isinstance(op, tt.ExpandDimsOp):
        axis = int_value(op.properties["axis"])
        inner = frozenset(d - (d > axis) for d in dims)
        made = b.expand_dims(_without(b, op.operands[0], inner, known), axis)
    elif isinstance(op, tt.SplatOp):
        made = b.splat(op.operands[0], left)
    else:
        operands = [_without(b, x, dims, known) for x in op.operands]
        made = b.create(type(op), operands, (narrow,), op.properties).results[0]
    known[value] = made
    return made
