"""Addresses of AMD's accesses: a uniform pointer of 64 bits, and an offset of 32 bits in each lane.

    %a = tt.addptr splat(%p), %i {amdg.narrow}      %p + %i * size, a product that fits into signed 32 bits
becomes
    %low = %p - BIAS                                once, in scalar registers
    %d = %i * size + BIAS                           32 bits, unsigned
    %a = %low + extui %d

The hardware adds an unsigned offset, so the pointer is moved down by as much as the offsets are moved up. The largest
offsets of 32 bits are left free: they stand for places that a mask leaves out (`backends/amd/addresses.py`).
"""

from __future__ import annotations

from xdsl.ir import Operation

from weft.ir import tt
from weft.ir.amd.amdg import BIAS, NARROW
from weft.ir.lane import Value

from ..context import Context
from ..shapes import add_pointer, pointee_bytes


def lower_addptr(c: Context, op: Operation) -> None:
    """As everywhere, but for distances that are known to be narrow."""
    maker = op.operands[0].owner
    if NARROW not in op.attributes or not isinstance(maker, tt.SplatOp):
        add_pointer(c, op)
        return
    base: Value = c[maker.operands[0]]
    distance = c[op.operands[1]]
    size = pointee_bytes(op.operands[0].type)
    if size != 1:
        distance = c.build.op("arith.muli", [distance, c.number(size, "i32")], "i32")
    moved = c.build.op("arith.addi", [distance, c.number(BIAS, "i32")], "i32")
    bias = c.build.op("arith.shli", [c.number(BIAS >> 16, "i64"), c.number(16, "i64")], "i64")
    low = c.build.op("arith.subi", [base, bias], "i64")  # no constant, which would be added to the whole address
    c[op.results[0]] = c.build.op("arith.addi", [low, c.build.op("arith.extui", [moved], "i64")], "i64")
