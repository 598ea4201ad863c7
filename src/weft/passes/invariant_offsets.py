"""Offsets that a loop does not change are added to addresses before those that it changes.

    scf.for %k ... {
      %0 = tt.addptr %base, %columns      made of %k
      %1 = tt.addptr %0, %rows            not made of %k
becomes
    scf.for %k ... {
      %0 = tt.addptr %base, %rows         the same in all iterations: computed once, before the loop
      %1 = tt.addptr %0, %columns

Kernels write the sums of their addresses in any order. If a convolution adds channels, then rows, then columns of its
input, the loop over channels computes all three for each element: an iteration of 128 x 64 x 32 has 470 instructions,
and 375 this way. An address is the same in any order of its offsets, because each is widened to 64 bits by itself.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.ir import find, tt

from .affine import is_outside
from .removal import remove

MADE_OF_OPERANDS = ("tt.addptr", "tt.broadcast", "tt.expand_dims", "tt.splat", "tt.make_range", "tt.trans")


def add_invariants_first(root: Operation) -> None:
    """Rewrite the sums of addresses in all loops inside `root`; inner loops go first."""
    for loop in reversed(find(root, scf.ForOp)):
        _Sums(loop).rewrite()


class _Sums:
    """The sums in one loop."""

    def __init__(self, loop: scf.ForOp) -> None:
        self.loop = loop
        self._varies: dict[SSAValue, bool] = {}

    def rewrite(self) -> None:
        for op in list(self.loop.body.block.ops):
            if isinstance(op, tt.AddPtrOp):
                self._sink(op)

    def _sink(self, op: tt.AddPtrOp) -> None:
        """Exchange an offset that does not change with those before it that do."""
        before = op.ptr.owner
        while (
            isinstance(before, tt.AddPtrOp)
            and before.parent is self.loop.body.block
            and before.result.has_one_use()
            and self.varies(before.offset)
            and not self.varies(op.offset)
        ):
            first, second = op.offset, before.offset
            self._varies.pop(before.result, None)
            moved = type(before).create(
                operands=[before.ptr, first], result_types=[before.result.type], location=op.location
            )
            self.loop.body.block.insert_op_before(moved, op)
            op.operands = [moved.results[0], second]
            remove(before)
            assert isinstance(moved, tt.AddPtrOp)
            op, before = moved, moved.ptr.owner

    def varies(self, value: SSAValue) -> bool:
        """Whether an iteration may compute another value than the one before."""
        found = self._varies.get(value)
        if found is None:
            found = self._varies[value] = self._is_new(value)
        return found

    def _is_new(self, value: SSAValue) -> bool:
        if is_outside(value, self.loop):
            return False
        op = value.owner
        if isinstance(value, BlockArgument) or not isinstance(op, Operation) or op.regions:
            return True
        is_pure = op.name in MADE_OF_OPERANDS or op.name.startswith(("arith.", "math."))
        return not is_pure or any(map(self.varies, op.operands))
