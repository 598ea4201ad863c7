"""Between which numbers the integers of tile IR lie, and what divides them: so that checks against zero can be dropped.

    %pid = tt.get_program_id x : i32               0 to 2147483647
    %at  = arith.extsi %pid to i64, + 0, 1, .. 7   0 to 2147483654, which fits
    %k   (the counter of `scf.for` from 0 to %n)   0 to 2147483646
    %k   (from 0 to 1024 by 512)                   0 to 512
    %n   = arith.muli %pid, %c128 : i32            may wrap around, so it may be any multiple of 128

The last is where offsets of blocks come from. `IntegerBounds(wrapping=False)` takes sums and products not to wrap; it
is used for such offsets alone, which wrap only in tensors of more than 2^31 rows. What an operation makes of its
operands stands in the table of operations (`ops/bounds.py`); here is how values hang together: shapes, loops.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from weft.ir import bit_width, dense_values, int_value, is_int, tt
from weft.ops.bounds import Bounds, any_of, fitted, two_part
from weft.ops.table import bounds_of

__all__ = ["IntegerBounds"]

_DEPTH = 40

_SHAPES = (tt.SplatOp, tt.UnsplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp)
_COUNTS = (tt.GetProgramIdOp, tt.GetNumProgramsOp, tt.HistogramOp)


class IntegerBounds:
    """Answers, kept."""

    def __init__(self, wrapping: bool = True) -> None:
        self.wrapping = wrapping
        self._bounds: dict[SSAValue, Bounds] = {}
        self._trail: list[SSAValue] = []

    def of(self, value: SSAValue, depth: int = 0) -> Bounds:
        """What is known of an integer, or of all integers of a tile, read as signed."""
        bounds = self._bounds.get(value)
        if bounds is not None:
            return bounds
        if depth > _DEPTH or not is_int(value.type):
            return any_of(64)
        computed = self._argument(value, depth) if isinstance(value, BlockArgument) else self._result(value, depth + 1)
        return self._keep(value, computed)

    def _keep(self, value: SSAValue, bounds: Bounds) -> Bounds:
        self._bounds[value] = bounds
        self._trail.append(value)
        return bounds

    def _result(self, value: SSAValue, depth: int) -> Bounds:
        op, bits = value.owner, bit_width(value.type)
        assert not isinstance(op, Block)
        if isinstance(op, arith.ConstantOp):
            attr = op.value
            numbers = [attr.value.data] if isinstance(attr, IntegerAttr) else []
            if isinstance(attr, DenseIntOrFPElementsAttr):
                numbers = [int(v) for v in dense_values(attr)]
            exact = Bounds(min(numbers), max(numbers), min(map(two_part, numbers))) if numbers else any_of(bits)
            return fitted(exact, bits)
        if isinstance(op, tt.MakeRangeOp):
            return Bounds(int_value(op.properties["start"]), int_value(op.properties["end"]) - 1)
        if isinstance(op, _COUNTS):
            return Bounds(0, any_of(bits).high)
        if isinstance(op, _SHAPES):
            return self.of(op.operands[0], depth)
        operands = [self.of(x, depth) for x in op.operands]
        source = bit_width(op.operands[0].type) if op.operands and is_int(op.operands[0].type) else 0
        return bounds_of(op.name, operands, bits, source, self.wrapping)

    def _argument(self, value: BlockArgument, depth: int) -> Bounds:
        loop, every = value.block.parent_op(), any_of(bit_width(value.type))
        if not isinstance(loop, scf.ForOp):
            return every
        if value.index == 0:
            first, end, step = (self.of(x, depth + 1) for x in loop.operands[:3])
            multiple = min(first.multiple, step.multiple)
            last_count = (end.high - 1) // multiple * multiple
            return Bounds(first.low, max(first.low, last_count), multiple) if step.low >= 0 else every
        last = value.block.last_op
        if last is None or self.of(loop.operands[2 + value.index], depth + 1).low < 0:
            return every
        # What is carried around a loop is assumed not to be negative until that is refuted; whatever was concluded
        # from an assumption that fails is forgotten.
        mark = len(self._trail)
        assumed = self._keep(value, Bounds(0, every.high))
        if self.of(last.operands[value.index - 1], depth + 1).low >= 0:
            return assumed
        while len(self._trail) > mark:
            self._bounds.pop(self._trail.pop(), None)
        return every
