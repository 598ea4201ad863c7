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

so that a thread has one register for it, and computes once what depends on it alone: a Welford reduction divides by the
same weight for all elements of a row. LLVM sees that operations on broadcast tiles in the body compute equal elements.

Integers and pointers that move by the same amount everywhere have been replaced by one scalar (scalarize_carried).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
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
    equal, before = _equal_dims(initial, {}), None
    while equal != before and (wide := _wide(shape, equal)):
        before, equal = equal, equal & _equal_dims(end.operands[index], {carried: equal})
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
    """The dimensions, of those given, along which there is more than one element."""
    return frozenset(d for d in dims if shape[d] > 1)


def _equal_dims(value: SSAValue, known: dict[SSAValue, Dims], depth: int = 0) -> Dims:
    """The dimensions along which all elements of a tile are equal, where they are so of what is known."""
    dims = known.get(value)
    if dims is None:
        shape = shape_of(value.type)
        single = frozenset(d for d, size in enumerate(shape) if size == 1)
        dims = known[value] = single | (_of_operation(value, known, depth) if depth <= DEEPEST else frozenset())
    return dims


def _of_operation(value: SSAValue, known: dict[SSAValue, Dims], depth: int) -> Dims:
    """The same, as the operation that computes a tile has it."""
    op, every = value.owner, _all(shape_of(value.type))
    if not isinstance(op, Operation):
        return frozenset()
    if isinstance(op, tt.SplatOp) or constant_of(value) is not None:
        return every
    if isinstance(op, tt.BroadcastOp):
        return _equal_dims(op.operands[0], known, depth + 1)
    if isinstance(op, tt.ExpandDimsOp):
        axis = int_value(op.properties["axis"])
        return frozenset(d + (d >= axis) for d in _equal_dims(op.operands[0], known, depth + 1))
    if op.name not in ELEMENTWISE:
        return frozenset()
    of_operands = (_equal_dims(x, known, depth + 1) for x in op.operands if is_tensor(x.type))
    return every.intersection(*of_operands)


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
