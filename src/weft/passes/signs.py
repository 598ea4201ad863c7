"""Which integers are never negative: so that a check against zero can be dropped.

    %pid = tt.get_program_id x : i32               never negative
    %at  = arith.extsi %pid to i64, + 0, 1, .. 7   nor this: a sum of two such cannot reach 64 bits
    %k   (the counter of `scf.for` from 0 up)      nor this
    %n   = arith.muli %pid, %c128 : i32            may wrap around, so it may be

The last is where offsets of blocks come from. `Signs(wrapping=False)` takes sums and products not to wrap; it is used
for such offsets alone, which wrap only in tensors of more than 2^31 rows.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from weft.ir import bit_width, dense_values, int_value, is_int, tt
from weft.ops.table import ROWS

__all__ = ["Signs"]

_DEPTH = 40

_SHAPES = (tt.SplatOp, tt.UnsplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp)
_ALWAYS = (tt.GetProgramIdOp, tt.GetNumProgramsOp, tt.HistogramOp)
_SAME_VALUE = (*_SHAPES, arith.ExtSIOp)


class Signs:
    """Answers, kept."""

    def __init__(self, wrapping: bool = True) -> None:
        self.wrapping = wrapping
        self._known: dict[SSAValue, bool] = {}
        self._trail: list[SSAValue] = []
        self._width: dict[SSAValue, int] = {}

    def non_negative(self, value: SSAValue, depth: int = 0) -> bool:
        """Is the integer (are all integers of the tile) known to be at least zero, read as signed?"""
        known = self._known.get(value)
        if known is not None:
            return known
        if depth > _DEPTH or not is_int(value.type):
            return False
        # What is carried around a loop is assumed not to be negative until that is refuted; whatever was concluded
        # from an assumption that fails is forgotten.
        mark = len(self._trail)
        self._known[value] = True
        self._trail.append(value)
        if self._ask(value, depth + 1):
            return True
        while len(self._trail) > mark:
            self._known.pop(self._trail.pop(), None)
        self._known[value] = False
        return False

    def _ask(self, value: SSAValue, depth: int) -> bool:
        if isinstance(value, BlockArgument):
            return self._argument(value, depth)
        op = value.owner
        if isinstance(op, Block):
            return False
        if isinstance(op, arith.ConstantOp):
            attr = op.value
            if isinstance(attr, IntegerAttr):
                return attr.value.data >= 0
            return isinstance(attr, DenseIntOrFPElementsAttr) and min(dense_values(attr), default=0) >= 0
        if isinstance(op, tt.MakeRangeOp):
            return int_value(op.properties["start"]) >= 0
        if isinstance(op, _ALWAYS):
            return True
        if isinstance(op, arith.AddiOp | arith.MuliOp):
            if self.wrapping and self._bits(value, 0) >= bit_width(value.type):
                return False
            return self.non_negative(op.operands[0], depth) and self.non_negative(op.operands[1], depth)
        if isinstance(op, arith.SelectOp):
            return self.non_negative(op.operands[1], depth) and self.non_negative(op.operands[2], depth)
        if isinstance(op, _SHAPES):
            return self.non_negative(op.operands[0], depth)
        row = ROWS.get(op.name)
        if row is None or not row.sign or row.sign == "always":
            return row is not None and bool(row.sign)
        enough = any if row.sign == "either" else all
        return enough(self.non_negative(x, depth) for x in op.operands[: 1 if row.sign == "first" else 2])

    def _argument(self, value: BlockArgument, depth: int) -> bool:
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp):
            return False
        if value.index == 0:
            return self.non_negative(loop.operands[0], depth) and self.non_negative(loop.operands[2], depth)
        end = value.block.last_op
        if end is None or len(end.operands) < value.index:
            return False
        first = loop.operands[2 + value.index]
        return self.non_negative(first, depth) and self.non_negative(end.operands[value.index - 1], depth)

    def _bits(self, value: SSAValue, depth: int) -> int:
        """How many bits hold the value, if it is not negative; sums and products are taken not to wrap."""
        known = self._width.get(value)
        if known is None:
            known = self._width[value] = self._ask_bits(value, depth)
        return known

    def _ask_bits(self, value: SSAValue, depth: int) -> int:
        most = bit_width(value.type) - 1
        op = value.owner
        if depth > _DEPTH or isinstance(op, Block):
            return most
        if isinstance(op, arith.ConstantOp):
            attr = op.value
            values = [attr.value.data] if isinstance(attr, IntegerAttr) else [0]
            if isinstance(attr, DenseIntOrFPElementsAttr):
                values = [int(v) for v in dense_values(attr)]
            return max(v.bit_length() for v in values)
        if isinstance(op, tt.MakeRangeOp):
            return (int_value(op.properties["end"]) - 1).bit_length()
        if isinstance(op, _SAME_VALUE):
            return self._bits(op.operands[0], depth + 1)
        if isinstance(op, arith.ExtUIOp):
            return bit_width(op.operands[0].type)
        if isinstance(op, arith.AddiOp):
            return max(self._bits(op.operands[0], depth + 1), self._bits(op.operands[1], depth + 1)) + 1
        if isinstance(op, arith.MuliOp):
            return self._bits(op.operands[0], depth + 1) + self._bits(op.operands[1], depth + 1)
        return most
