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

from weft.analysis import AxisFacts
from weft.ir import (
    BarrierOp,
    Builder,
    CheckOp,
    bit_width,
    element_of,
    find,
    i64,
    int_type,
    is_float,
    is_int,
    is_tensor,
    like,
    numel_of,
    shape_of,
    str_attr,
    tt,
    type_text,
)


def check_stores(root: Operation, *, barriers: bool = False) -> None:
    """Look at what tiles have stored; with `barriers`, the threads of a program wait for each other before."""
    facts = AxisFacts()
    for op in find(root, tt.StoreOp):
        pointers, value = op.operands[:2]
        if is_tensor(pointers.type) and numel_of(pointers.type) > 1 and not _differ(facts, pointers):
            _check(op, value, barriers)


def _differ(facts: AxisFacts, pointers: SSAValue) -> bool:
    """Whether the addresses are known to follow each other in one row."""
    sizes = [n for n in shape_of(pointers.type) if n > 1]
    return len(sizes) == 1 and max(facts.of(pointers).contiguity) == sizes[0]


def _check(op: tt.StoreOp, value: SSAValue, barriers: bool) -> None:
    element = element_of(value.type)
    if bit_width(element) < 8 or not (is_int(element) or is_float(element)):
        return
    b = Builder.after(op)
    if barriers:
        b.create(BarrierOp)
    stored = b.load(op.operands[0], op.mask, volatile=True)
    bits = [_bits(b, x) for x in (value, stored)]
    same = b.cmpi("eq", *bits)
    if op.mask is not None:
        off = b.binary(arith.XOrIOp, op.mask, b.constant(1, op.mask.type))
        same = b.binary(arith.OrIOp, same, off)
    told = [x if bit_width(x.type) == 64 else b.cast(arith.ExtSIOp, x, i64) for x in bits]
    properties: dict[str, Attribute] = {
        "what": str_attr("stored"),
        "message": str_attr("two places of a tile store different values to one address"),
        "type": str_attr(type_text(element)),
    }
    b.create(CheckOp, (same, *told), (), properties)


def _bits(b: Builder, value: SSAValue) -> SSAValue:
    if is_int(value.type):
        return value
    return b.create(tt.BitcastOp, (value,), (like(value.type, int_type(bit_width(value.type))),)).results[0]
