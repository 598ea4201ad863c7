"""Which registers of a fragment an instruction gives as one vector, so that a loop carries them as one.

    %a = phi <16 x float> [ %zero, %entry ], [ %d, %body ]
    %d = call <16 x float> @llvm.amdgcn.mfma...(<4 x half> %x, <4 x half> %y, <16 x float> %a, ...)

An accumulator is sixteen registers in a row that a product adds to in place. Carried as sixteen values, each of them
could be anywhere, and LLVM copies them to where the next product wants them.
"""

from __future__ import annotations

from weft.ir.lane import ELEMENT_BITS, LaneOp, Value

WHOLE = 32
"""Bits of the smallest element that is a register."""


def together(value: Value) -> int:
    """How many neighbouring registers are one instruction's result, in its order; 1 where not all of them are."""
    if ELEMENT_BITS[value.elem] < WHOLE or value.op is None:
        return 1
    made = _maker(value, 0)
    if made is None:
        return 1
    size = made[0].results[0].count
    if size < 2 or made[1] or value.count % size:
        return 1
    for first in range(0, value.count, size):
        maker = _maker(value, first)
        if maker is None or maker[1] % size or maker[0].results[0].count % size:
            return 1
        if any(_maker(value, first + i) != (maker[0], maker[1] + i) for i in range(1, size)):
            return 1
    return size


def _maker(value: Value, register: int) -> tuple[LaneOp, int] | None:
    """The instruction that a register comes from, and which of its result's it is; None where it is computed."""
    while value.op is not None:
        op = value.op
        if op.name == "rename":
            register, value = op.attrs["table"][register], op.operands[0]
        elif op.name == "join":
            for part in op.operands:
                if register < part.count:
                    break
                register -= part.count
            value = part
        else:
            return (op, register) if op.name == "instruction" and len(op.results) == 1 else None
    return None
