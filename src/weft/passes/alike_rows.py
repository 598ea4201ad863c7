"""Load neighbouring rows that are the same once, and repeat them in registers.

    %k = arith.divsi %rows, %c8 : tensor<64x1xi32>
    %p = ... %w + %k * %n + %columns ... : tensor<64x128x!tt.ptr<i32>>
    %v = tt.load %p : tensor<64x128xi32>
becomes
    %k = every eighth of the rows, divided by 8 : tensor<8x1xi32>
    %p = ... %w + %k * %n + %columns ... : tensor<8x128x!tt.ptr<i32>>
    %u = tt.load %p : tensor<8x128xi32>
    %e = tt.expand_dims %u {axis = 1 : i32}
    %b = tt.broadcast %e : tensor<8x8x128xi32>
    %v = tt.reshape %b : tensor<64x128xi32>

Eight weights of 4 bits lie in a word. A kernel loads, for each weight, the word that contains it, and often its group's
scale. Asynchronous copies would put each word into shared memory eight times. So this is done in loops of products, if
addresses and mask can be computed for every eighth row alone.

Quotients that are the same for all elements of a row are computed once (`divide_once`), such as the number of the group
of scales that a block of columns belongs to. Pointers computed from it are then known to be equal.

    %k = arith.divsi %columns, %c128 : tensor<128xi32>
becomes
    %q = arith.divsi (the first column), 128 : tensor<1xi32>
    %k = tt.broadcast %q : tensor<128xi32>
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts
from weft.ir import Builder, find, is_tensor, shape_of, tt

from .effects import shareable
from .removal import remove


def load_rows_once(root: Operation) -> None:
    """Rewrite the loads of loops of products inside `root`."""
    facts = AxisFacts()
    for loop in find(root, scf.ForOp):
        body = list(loop.body.block.ops)
        if not any(isinstance(op, tt.DotOp) for op in body):
            continue
        for op in body:
            if isinstance(op, tt.LoadOp) and is_tensor(op.result.type):
                _load_number_once(op)
                if len(shape_of(op.result.type)) == 2:
                    _load_once(op, facts)


def divide_once(root: Operation) -> None:
    """Rewrite the quotients inside `root` that are the same for all elements of a row."""
    facts = AxisFacts()
    for op in find(root, arith.DivSIOp, arith.DivUIOp, arith.ShRSIOp, arith.ShRUIOp):
        type = op.results[0].type
        if not is_tensor(type) or len(shape_of(type)) != 1 or op.attributes:
            continue
        (size,) = shape_of(type)
        if size > 1 and facts.of(op.results[0]).constancy[0] >= size:
            b = Builder.before(op)
            once = _Fewer(b, size).of(op.results[0], 0)
            if once is not None:
                _replace(op, once, b.broadcast(once, (size,)))


def _replace(op: Operation, once: SSAValue, value: SSAValue) -> None:
    """A value in the place of what an operation gives; `once` is what it is repeated from."""
    once.name_hint = value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    remove(op)


def _is_volatile(op: tt.LoadOp) -> bool:
    volatile = op.properties.get("isVolatile")
    return volatile is not None and bool(ir.int_value(volatile))


def _load_number_once(op: tt.LoadOp) -> None:
    """Load one element where all of a tile lie at the same address."""
    spread = op.ptr.owner
    if not isinstance(spread, tt.BroadcastOp) or op.mask is not None or op.attributes or _is_volatile(op):
        return
    narrow = shape_of(spread.operands[0].type)
    if prod(narrow) == 1:
        b = Builder.before(op)
        type = ir.tensor_of(narrow, ir.element_of(op.result.type))
        once = b.create(tt.LoadOp, (spread.operands[0],), (type,), dict(op.properties))
        once.location = op.location
        _replace(op, once.results[0], b.broadcast(once.results[0], shape_of(op.result.type)))


def _load_once(op: tt.LoadOp, facts: AxisFacts) -> None:
    rows, columns = shape_of(op.result.type)
    alike = min(rows, *(facts.of(x).constancy[0] for x in op.operands if is_tensor(x.type)))
    if alike < 2 or op.attributes or _is_volatile(op):
        return
    b = Builder.before(op)
    fewer = _Fewer(b, alike)
    operands = fewer.all_of(op.operands, 0)
    if operands is None:
        return
    few = rows // alike
    loaded = ir.tensor_of((few, columns), ir.element_of(op.result.type))
    once = b.create(tt.LoadOp, operands, (loaded,), dict(op.properties))
    once.location = op.location
    value: SSAValue = once.results[0]
    if few == 1:
        value = b.broadcast(value, (rows, columns))
    else:
        value = b.broadcast(b.expand_dims(value, 1), (few, alike, columns))
        value = b.create(tt.ReshapeOp, (value,), (op.result.type,)).results[0]
    _replace(op, once.results[0], value)


class _Fewer:
    """Tiles of every so-many-th row of others, computed where `b` is."""

    def __init__(self, b: Builder, alike: int) -> None:
        self.b, self.alike = b, alike
        self._made: dict[tuple[SSAValue, int], SSAValue | None] = {}

    def of(self, value: SSAValue, dim: int) -> SSAValue | None:
        """Every so-many-th element along a dimension; None where it cannot be computed."""
        if not is_tensor(value.type) or shape_of(value.type)[dim] == 1:
            return value
        key = value, dim
        if key not in self._made:
            self._made[key] = self._computed(value, dim)
        return self._made[key]

    def all_of(self, values: Sequence[SSAValue], dim: int) -> list[SSAValue] | None:
        """The same for several values; None if one cannot be computed."""
        found = [self.of(x, dim) for x in values]
        return None if None in found else [x for x in found if x is not None]

    def _computed(self, value: SSAValue, dim: int) -> SSAValue | None:
        op = value.owner
        shape = [n // self.alike if i == dim else n for i, n in enumerate(shape_of(value.type))]
        type = ir.tensor_of(shape, ir.element_of(value.type))
        if isinstance(op, arith.ConstantOp):
            number = ir.splat_value(op.value)
            return None if number is None else self.b.constant(number, type)
        if isinstance(op, tt.MakeRangeOp):
            places = self.b.binary(arith.MuliOp, self.b.make_range(0, shape[0]), self.b.constant(self.alike, type))
            return self.b.binary(arith.AddiOp, places, self.b.constant(ir.int_value(op.properties["start"]), type))
        if isinstance(op, tt.ExpandDimsOp):
            dim -= dim > ir.int_value(op.properties["axis"])
        elif not isinstance(op, tt.SplatOp | tt.BroadcastOp | tt.AddPtrOp) and not _is_elementwise(op):
            return None
        assert isinstance(op, Operation)
        operands = self.all_of(op.operands, dim)
        return (
            None if operands is None else self.b.create(op.__class__, operands, (type,), dict(op.properties)).results[0]
        )


def _is_elementwise(op: object) -> bool:
    return isinstance(op, Operation) and op.name.startswith("arith.") and shareable(op) and len(op.results) == 1
