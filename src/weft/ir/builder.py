"""Makes operations: at a place in a block, with a location, fast.

>>> from xdsl.dialects import arith
>>> from xdsl.ir import Block
>>> from weft.ir import Builder, i32, span_of, tt
>>> block = Block(arg_types=(i32,))
>>> b = Builder.at_end(block)
>>> with b.span(Span("k.py", 3, 4)):
...     pid = b.create(tt.GetProgramIdOp, (), (i32,), {"axis": i32_attr(0)}).result
...     total = b.create(arith.AddiOp, (pid, block.args[0]), (i32,)).result
>>> span_of(total.owner)
Span(file='k.py', line=3, col=4, end_line=None, end_col=None)

Only the builder makes operations, so that every one has a location. `create` checks nothing: `weft.ir.verify` does.
Properties that have a default (`overflowFlags`, `fastmath`, `cache`, ...) may be left out; absent means the default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.base import Span

from . import tt
from .attrs import enum_attr, float_attr, i32_array, i32_attr, int_attr, segments, splat_attr
from .locations import UNKNOWN_LOC, loc_of, span_of_loc
from .types import element_of, i1, i32, i64, like, shape_of, tensor_of

__all__ = ["Builder", "access_hints", "pointee_of"]

Op = TypeVar("Op", bound=Operation)

_NOTHING: Mapping[str, Attribute] = {}
_CMPI = {name: i for i, name in enumerate(arith.CMPI_COMPARISON_OPERATIONS)}
_CMPF = {name: i for i, name in enumerate(arith.CMPF_COMPARISON_OPERATIONS)}


class Builder:
    """An insertion point and a current location."""

    __slots__ = ("anchor", "block", "loc")

    def __init__(self, block: Block | None = None, anchor: Operation | None = None, loc: Attribute = UNKNOWN_LOC):
        self.block = block
        """The block that operations go into."""
        self.anchor = anchor
        """The operation that new ones go before; None for the end of the block."""
        self.loc = loc
        """The location given to new operations."""

    # -- places ------------------------------------------------------------------------------------------------

    @classmethod
    def at_end(cls, block: Block, loc: Attribute = UNKNOWN_LOC) -> Builder:
        """A builder that appends to `block`."""
        return cls(block, None, loc)

    @classmethod
    def at_start(cls, block: Block, loc: Attribute = UNKNOWN_LOC) -> Builder:
        """A builder that inserts at the beginning of `block`, one operation after the other."""
        return cls(block, block.first_op, loc)

    @classmethod
    def before(cls, op: Operation) -> Builder:
        """A builder that inserts before `op`, with the location of `op`."""
        return cls(op.parent, op, op.location)

    @classmethod
    def after(cls, op: Operation) -> Builder:
        """A builder that inserts after `op`, with the location of `op`."""
        return cls(op.parent, op.next_op, op.location)

    def move_to_end(self, block: Block) -> None:
        """Go on at the end of `block`."""
        self.block, self.anchor = block, None

    @staticmethod
    def new_block(types: Sequence[Attribute]) -> Block:
        """A block with arguments of these types, in no region yet."""
        return Block(arg_types=types)

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """Go on at the end of `block`, and come back."""
        saved = self.block, self.anchor
        self.block, self.anchor = block, None
        try:
            yield block
        finally:
            self.block, self.anchor = saved

    @contextmanager
    def span(self, span: Span | None) -> Iterator[None]:
        """Give new operations this location, and come back."""
        saved = self.loc
        self.loc = loc_of(span)
        try:
            yield
        finally:
            self.loc = saved

    def current_span(self) -> Span | None:
        """The span that new operations get."""
        return span_of_loc(self.loc)

    # -- making ------------------------------------------------------------------------------------------------

    def create(
        self,
        op_class: type[Op],
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = _NOTHING,
        attributes: Mapping[str, Attribute] = _NOTHING,
        regions: Sequence[Region] = (),
        successors: Sequence[Block] = (),
    ) -> Op:
        """Make an operation at the insertion point."""
        op = op_class.create(
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=attributes,
            location=self.loc,  # type: ignore[arg-type]
            successors=successors,
            regions=regions,
        )
        self.insert(op)
        return op

    def insert(self, op: Operation) -> None:
        """Put an operation that has no place yet at the insertion point."""
        block, anchor = self.block, self.anchor
        if block is None:
            raise ValueError("the builder has no insertion point")
        if anchor is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, anchor)

    def value(
        self,
        op_class: type[Operation],
        operands: Sequence[SSAValue],
        result_type: Attribute,
        properties: Mapping[str, Attribute] = _NOTHING,
    ) -> SSAValue:
        """Make an operation with one result, and give that result."""
        return self.create(op_class, operands, (result_type,), properties).results[0]

    # -- constants ---------------------------------------------------------------------------------------------

    def constant(self, value: int | float | bool, type: Attribute) -> SSAValue:
        """A constant of a scalar type, or the tile of one value for a tile type. Integers wrap to the type's width."""
        attr: Attribute
        if isinstance(type, TensorType):
            attr = splat_attr(type, value)
        elif isinstance(type, IntegerType):
            attr = int_attr(type.get_normalized_value(int(value)) if value not in (0, 1) else int(value), type)
        elif isinstance(type, IndexType):
            attr = int_attr(int(value), type)
        else:
            attr = float_attr(float(value), type)
        return self.create(arith.ConstantOp, (), (type,), {"value": attr}).results[0]

    # -- arithmetic --------------------------------------------------------------------------------------------

    def unary(self, op_class: type[Operation], x: SSAValue) -> SSAValue:
        """An operation whose result has its operand's type."""
        return self.create(op_class, (x,), (x.type,)).results[0]

    def binary(self, op_class: type[Operation], x: SSAValue, y: SSAValue) -> SSAValue:
        """An operation whose result has the type of both operands."""
        return self.create(op_class, (x, y), (x.type,)).results[0]

    def cast(self, op_class: type[Operation], x: SSAValue, element: Attribute) -> SSAValue:
        """A conversion of `x`, a scalar or a tile, to another element type."""
        return self.create(op_class, (x,), (like(x.type, element),)).results[0]

    def cmpi(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """An integer comparison: `eq ne slt sle sgt sge ult ule ugt uge`."""
        attr = int_attr(_CMPI[predicate], i64)
        return self.create(arith.CmpiOp, (x, y), (like(x.type, i1),), {"predicate": attr}).results[0]

    def cmpf(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """A float comparison: `oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno` (o: false on NaN, u: true)."""
        attr = int_attr(_CMPF[predicate], i64)
        return self.create(arith.CmpfOp, (x, y), (like(x.type, i1),), {"predicate": attr}).results[0]

    def select(self, condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x` where the condition holds, else `y`."""
        return self.create(arith.SelectOp, (condition, x, y), (x.type,)).results[0]

    # -- tiles -------------------------------------------------------------------------------------------------

    def make_range(self, start: int, end: int) -> SSAValue:
        """The integers from `start` up to `end`."""
        properties = {"start": i32_attr(start), "end": i32_attr(end)}
        return self.create(tt.MakeRangeOp, (), (tensor_of((end - start,), i32),), properties).results[0]

    def splat(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A tile of one scalar."""
        return self.create(tt.SplatOp, (x,), (tensor_of(shape, x.type),)).results[0]

    def broadcast(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A tile with its dimensions of size 1 repeated; `x` itself where there is nothing to do."""
        if shape_of(x.type) == tuple(shape):
            return x
        return self.create(tt.BroadcastOp, (x,), (tensor_of(shape, element_of(x.type)),)).results[0]

    def expand_dims(self, x: SSAValue, axis: int) -> SSAValue:
        """A tile with one more dimension, of size 1."""
        shape = list(shape_of(x.type))
        shape.insert(axis, 1)
        result = tensor_of(shape, element_of(x.type))
        return self.create(tt.ExpandDimsOp, (x,), (result,), {"axis": i32_attr(axis)}).results[0]

    def addptr(self, ptr: SSAValue, offset: SSAValue) -> SSAValue:
        """A pointer, or a tile of them, moved by elements."""
        return self.create(tt.AddPtrOp, (ptr, offset), (ptr.type,)).results[0]

    # -- memory ------------------------------------------------------------------------------------------------

    def load(
        self,
        ptr: SSAValue,
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
        *,
        boundary_check: Sequence[int] = (),
        padding: tt.PaddingOption | None = None,
        cache: tt.CacheModifier = tt.CacheModifier.NONE,
        evict: tt.EvictionPolicy = tt.EvictionPolicy.NORMAL,
        volatile: bool = False,
    ) -> SSAValue:
        """`tt.load`; the result has the pointee's type, in the pointer's shape."""
        operands = [v for v in (ptr, mask, other) if v is not None]
        properties: dict[str, Attribute] = {
            "operandSegmentSizes": segments(1, int(mask is not None), int(other is not None))
        }
        if boundary_check:
            properties["boundaryCheck"] = i32_array(boundary_check)
        if padding is not None:
            properties["padding"] = enum_attr(padding)
        properties |= access_hints(cache, evict)
        if volatile:
            properties["isVolatile"] = int_attr(1, i1)
        return self.create(tt.LoadOp, operands, (pointee_of(ptr.type),), properties).results[0]

    def store(
        self,
        ptr: SSAValue,
        value: SSAValue,
        mask: SSAValue | None = None,
        *,
        boundary_check: Sequence[int] = (),
        cache: tt.CacheModifier = tt.CacheModifier.NONE,
        evict: tt.EvictionPolicy = tt.EvictionPolicy.NORMAL,
    ) -> tt.StoreOp:
        """`tt.store`."""
        operands = (ptr, value) if mask is None else (ptr, value, mask)
        properties: dict[str, Attribute] = {}
        if boundary_check:
            properties["boundaryCheck"] = i32_array(boundary_check)
        properties |= access_hints(cache, evict)
        return self.create(tt.StoreOp, operands, (), properties)

    def dot_scaled(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        a_scale: SSAValue | None,
        b_scale: SSAValue | None,
        a_type: tt.ScaleDotElemType,
        b_type: tt.ScaleDotElemType,
        *,
        fast_math: bool = False,
        lhs_k_pack: bool = True,
        rhs_k_pack: bool = True,
    ) -> SSAValue:
        """`tt.dot_scaled`."""
        operands = [v for v in (a, b, c, a_scale, b_scale) if v is not None]
        properties: dict[str, Attribute] = {
            "operandSegmentSizes": segments(1, 1, 1, int(a_scale is not None), int(b_scale is not None)),
            "a_elem_type": enum_attr(a_type),
            "b_elem_type": enum_attr(b_type),
            "fastMath": int_attr(int(fast_math), i1),
            "lhs_k_pack": int_attr(int(lhs_k_pack), i1),
            "rhs_k_pack": int_attr(int(rhs_k_pack), i1),
        }
        return self.create(tt.DotScaledOp, operands, (c.type,), properties).results[0]

    # -- control flow ------------------------------------------------------------------------------------------

    def if_(self, condition: SSAValue, result_types: Sequence[Attribute]) -> scf.IfOp:
        """An `scf.if` whose branches are still empty."""
        return self.create(scf.IfOp, (condition,), result_types, {}, {}, (Region(Block()), Region(Block())))

    def while_(self, init: Sequence[SSAValue], result_types: Sequence[Attribute]) -> scf.WhileOp:
        """An `scf.while` whose two regions, given the carried values, are still empty."""
        regions = (Region(Block(arg_types=[v.type for v in init])), Region(Block(arg_types=result_types)))
        return self.create(scf.WhileOp, init, result_types, {}, {}, regions)

    def yield_(self, values: Sequence[SSAValue] = ()) -> scf.YieldOp:
        """The end of a branch or a loop body."""
        return self.create(scf.YieldOp, values)


def access_hints(cache: tt.CacheModifier, evict: tt.EvictionPolicy) -> dict[str, Attribute]:
    """The properties of an access that say how it goes through the caches."""
    hints = {"cache": (cache, tt.CacheModifier.NONE), "evict": (evict, tt.EvictionPolicy.NORMAL)}
    return {name: enum_attr(hint) for name, (hint, usual) in hints.items() if hint != usual}


def pointee_of(type: Attribute) -> Attribute:
    """What a load through this pointer type yields: the pointee, in the pointer's shape."""
    element = element_of(type)
    if not isinstance(element, tt.PtrType):
        raise ValueError(f"{type} is not a pointer")
    return like(type, element.pointee)
