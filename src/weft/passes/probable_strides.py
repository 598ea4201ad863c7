"""Which dimension of a tile of addresses probably has the least stride, where no addresses are known to be consecutive.

    n = pid * 128 + tl.arange(0, 128)                                  pixels of a batch of images
    x + (n // WIDTH * ROW + n % WIDTH * 2)[:, None] + c[None, :] * CHANNEL

Nothing is known of WIDTH, so neighbouring pixels may be in two rows. Most are not: their addresses are 2 elements
apart, and lanes that follow them touch fewer sectors than lanes that follow the channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.analysis import AxisFacts
from weft.ir import is_tensor

from .affine import NOTHING, Form, Forms, NotAffine, Sum
from .fold import int_of

CHOSEN: dict[type[Operation], int] = {
    arith.RemSIOp: 0, arith.RemUIOp: 0, arith.AndIOp: 0, arith.MinSIOp: 0, arith.MinUIOp: 0, arith.MaxSIOp: 0,
    arith.MaxUIOp: 0, arith.SelectOp: 1, arith.ExtUIOp: 0, arith.TruncIOp: 0,
}  # fmt: skip
"""The operand by which most of such a tile changes from one element to the next: remainders and what clamps indices."""
QUOTIENTS = (arith.DivSIOp, arith.DivUIOp)
SHIFTS = (arith.ShRSIOp, arith.ShRUIOp)


class _ProbableForms(Forms):
    """Forms of most elements of a tile, whose offsets mean nothing."""

    def _found(self, value: SSAValue) -> Form:
        op = value.owner
        if is_tensor(value.type) and isinstance(op, Operation):
            if (chosen := CHOSEN.get(type(op))) is not None:
                return self.of(op.operands[chosen])
            if isinstance(op, QUOTIENTS):
                return self._divided(op.lhs, int_of(op.rhs))
            if isinstance(op, SHIFTS):
                places = int_of(op.rhs)
                return self._divided(op.lhs, None if places is None else 1 << places)
        return super()._found(value)

    def _divided(self, value: SSAValue, divisor: int | None) -> Form:
        """Steps that are multiples of the divisor remain as steps; with any other, most neighbours are the same."""

        def over(step: Sum) -> Sum:
            if not divisor or any(n % divisor for n in step.terms.values()):
                return NOTHING
            return Sum({m: n // divisor for m, n in step.terms.items()})

        return Form(NOTHING, tuple(map(over, self.of(value).steps)))


def probable_strides(addresses: SSAValue, facts: AxisFacts) -> Sequence[tuple[int, int]]:
    """What orders the dimensions of a tile of addresses by their strides, as far as these are known; empty where they
    are not.

    A stride that is a number comes before one that is an argument. Of two arguments, the one that is known to be
    divided by less comes first: the weights of a convolution with 128 channels and windows of 3 x 3 have strides of
    1,152 and of 9. A dimension along which addresses do not change comes last.
    """
    try:
        steps = _ProbableForms().of(addresses).steps
    except NotAffine:
        return ()
    known = [step.known for step in steps]
    return [
        (2, 0) if number == 0 else (0, abs(number)) if number is not None else (1, step.divisor(facts))
        for step, number in zip(steps, known, strict=True)
    ]
