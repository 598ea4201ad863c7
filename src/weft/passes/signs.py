"""Which integers are never negative: so that a check against zero can be dropped.

    %pid = tt.get_program_id x : i32               never negative
    %at  = arith.muli %pid, %c128                  nor this: products and sums are taken not to overflow
    %k   (counter of `scf.for` from 0, or carried from 0 and only ever added to)

A sum or product that does overflow is an offset outside of any tensor, and its element a program's own mistake.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from weft.ir import dense_values, int_value, is_int, tt

__all__ = ["Signs"]

_DEPTH = 40

_BOTH = (arith.AddiOp, arith.MuliOp, arith.DivSIOp, arith.MaxUIOp, arith.MinSIOp, arith.OrIOp, arith.XOrIOp)
_FIRST = (
    arith.ShRSIOp,
    arith.ExtSIOp,
    arith.RemSIOp,
    arith.IndexCastOp,
    tt.SplatOp,
    tt.UnsplatOp,
    tt.BroadcastOp,
    tt.ExpandDimsOp,
    tt.ReshapeOp,
    tt.TransOp,
)
_ALWAYS = (tt.GetProgramIdOp, tt.GetNumProgramsOp, arith.ExtUIOp, tt.HistogramOp)


class Signs:
    """Answers, kept."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, bool] = {}
        self._trail: list[SSAValue] = []

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
        if isinstance(op, _BOTH):
            return self.non_negative(op.operands[0], depth) and self.non_negative(op.operands[1], depth)
        if isinstance(op, arith.AndIOp | arith.MaxSIOp):
            return self.non_negative(op.operands[0], depth) or self.non_negative(op.operands[1], depth)
        if isinstance(op, arith.SelectOp):
            return self.non_negative(op.operands[1], depth) and self.non_negative(op.operands[2], depth)
        if isinstance(op, _FIRST):
            return self.non_negative(op.operands[0], depth)
        return False

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
