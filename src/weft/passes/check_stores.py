"""Find places of a tile that store different values to one address; only with `debug`, in tile IR.

    tt.store %p, %v, %m
becomes
    tt.store %p, %v, %m
    %w = tt.load %p, %m {isVolatile}                # for GPUs a barrier comes first
    "weft.check"(%w == %v or not %m, %v, %w) <{what = "stored", ...}>

Who reads something else than what it stored has lost to another place, on a CPU to the last, on a GPU to any. Places
that store the same are left alone. Floats are compared as bits.

Not done here: stores of scalars; rows whose addresses follow each other, which differ.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts


def check_stores(root: Operation, *, barriers: bool = False) -> None:
    """Look at what tiles have stored; with `barriers`, the threads of a program wait for each other before."""
    facts = AxisFacts()
    for op in ir.find(root, ir.tt.StoreOp):
        pointers, value = op.operands[:2]
        if ir.is_tensor(pointers.type) and ir.numel_of(pointers.type) > 1 and not _differ(facts, pointers):
            _check(op, value, barriers)


def _differ(facts: AxisFacts, pointers: SSAValue) -> bool:
    """Whether the addresses are known to follow each other in one row."""
    sizes = [n for n in ir.shape_of(pointers.type) if n > 1]
    return len(sizes) == 1 and max(facts.of(pointers).contiguity) == sizes[0]


def _check(op: ir.tt.StoreOp, value: SSAValue, barriers: bool) -> None:
    element = ir.element_of(value.type)
    if ir.bit_width(element) < 8 or not (ir.is_int(element) or ir.is_float(element)):
        return
    b = ir.Builder.after(op)
    if barriers:
        b.create(ir.BarrierOp)
    stored = b.load(op.operands[0], op.mask, volatile=True)
    bits = [_bits(b, x) for x in (value, stored)]
    same = b.cmpi("eq", *bits)
    if op.mask is not None:
        off = b.binary(arith.XOrIOp, op.mask, b.constant(1, op.mask.type))
        same = b.binary(arith.OrIOp, same, off)
    told = [x if ir.bit_width(x.type) == 64 else b.cast(arith.ExtSIOp, x, ir.i64) for x in bits]
    properties: dict[str, Attribute] = {
        "what": ir.str_attr("stored"),
        "message": ir.str_attr("two places of a tile store different values to one address"),
        "type": ir.str_attr(ir.type_text(element)),
    }
    b.create(ir.CheckOp, (same, *told), (), properties)


def _bits(b: ir.Builder, value: SSAValue) -> SSAValue:
    if ir.is_int(value.type):
        return value
    return b.create(ir.tt.BitcastOp, (value,), (ir.like(value.type, ir.int_type(ir.bit_width(value.type))),)).results[0]
