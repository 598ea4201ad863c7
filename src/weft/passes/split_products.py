"""Replace products that no matrix instruction computes by products that one does.

f32 in several parts of fewer bits each (`tf32x3`, `bf16x3`, `bf16x6`): with a = a0 + a1 the three products

    %small = a1 * b0 + a0 * b1            in the precision of the parts
    %sum   = a0 * b0 + small + c          where small is 0 if it is NaN: infinities have a NaN as their second part

are a * b with nearly all of its bits (Henry, Tang and Heinecke, Leveraging the bfloat16 Artificial Intelligence
Datatype For Higher-Precision Computations, 2019). And fp8, where the target has no instruction for it, in f16, which
holds every number of both kinds exactly:

    %d = tt.dot %a, %b, %c : tensor<32x32xf8E5M2> * tensor<32x32xf8E5M2> -> tensor<32x32xf32>
becomes
    %0 = tt.fp_to_fp %a : tensor<32x32xf8E5M2> -> tensor<32x32xf16>
    ...

Sums in f16, where the target has none, are done in f32 and rounded after each product.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Attribute, Operation, SSAValue

from weft import ir
from weft.base.remarks import NO_REMARKS, ProductSplit, RemarkCollector
from weft.machines import Machine
from weft.targets.table import products

from .removal import remove

PARTS = {ir.tt.InputPrecision.TF32x3: 2, ir.tt.InputPrecision.BF16x3: 2, ir.tt.InputPrecision.BF16x6: 3}


def split_products(root: Operation, machine: Machine, remarks: RemarkCollector = NO_REMARKS) -> bool:
    """Rewrite the products inside `root` that need it on a machine. Gives whether there was any."""
    products = ir.find(root, ir.tt.DotOp)
    changed = False
    for op in products:
        element = ir.element_of(op.a.type)
        precision = ir.int_value(op.inputPrecision) if op.inputPrecision is not None else ir.tt.InputPrecision.IEEE
        if element == f32 and precision in PARTS:
            kind = "tf32" if precision == ir.tt.InputPrecision.TF32x3 else "bf16"
            count = 3 if PARTS[ir.tt.InputPrecision(precision)] == 2 else 6
            why = f"{count} products of {kind} have nearly all bits of f32, as input_precision asks"
            remarks.add(ProductSplit(ir.span_of(op), ir.tile_text(op.d.type), why))
            _in_parts(op, ir.tt.InputPrecision(precision))
            changed = True
        elif ir.element_of(op.d.type) == f16 and _has_instruction(op, machine, f32) > _has_instruction(op, machine):
            why = f"the sums are done in f32, as {machine.name} has no instruction that sums in f16"
            remarks.add(ProductSplit(ir.span_of(op), ir.tile_text(op.d.type), why))
            _in_f32(op)
            changed = True
        elif ir.is_float(op.a.type) and ir.bit_width(element) == 8 and not _has_instruction(op, machine):
            why = f"{ir.type_text(element)} is multiplied as f16, as {machine.name} has no instruction for it"
            remarks.add(ProductSplit(ir.span_of(op), ir.tile_text(op.d.type), why))
            _widened(op)
            changed = True
    return changed


def _has_instruction(op: ir.tt.DotOp, machine: Machine, total: Attribute | None = None) -> bool:
    """Whether the machine multiplies elements of these types, and sums in that of the result, or in another one."""
    types = (ir.element_of(op.a.type), ir.element_of(op.b.type), total or ir.element_of(op.d.type))
    return bool(products(machine, *map(ir.type_text, types)))


def _widened(op: ir.tt.DotOp) -> None:
    b = ir.Builder.before(op)
    sides = [b.cast(ir.tt.FpToFpOp, x, f16) for x in (op.a, op.b)]
    _replace(op, b.create(ir.tt.DotOp, (*sides, op.c), (op.d.type,), dict(op.properties)).d)


def _in_f32(op: ir.tt.DotOp) -> None:
    b = ir.Builder.before(op)
    total = b.cast(arith.ExtFOp, op.c, f32)
    wide = b.create(ir.tt.DotOp, (op.a, op.b, total), (total.type,), dict(op.properties)).d
    _replace(op, b.cast(arith.TruncFOp, wide, f16))


def _replace(op: ir.tt.DotOp, result: SSAValue) -> None:
    result.name_hint = op.d.name_hint
    op.d.replace_all_uses_with(result)
    remove(op)


def _in_parts(op: ir.tt.DotOp, precision: ir.tt.InputPrecision) -> None:
    b = ir.Builder.before(op)
    count = PARTS[precision]
    split = _tf32_parts if precision == ir.tt.InputPrecision.TF32x3 else _bf16_parts
    left, right = split(b, op.a, count), split(b, op.b, count)
    product = ir.tt.InputPrecision.TF32 if precision == ir.tt.InputPrecision.TF32x3 else ir.tt.InputPrecision.IEEE
    properties = {"inputPrecision": ir.enum_attr(product)}
    total = b.constant(0.0, op.d.type)
    pairs = [(i, j) for i in range(count) for j in range(count) if 0 < i + j < count]
    for i, j in sorted(pairs, key=lambda p: -sum(p)):  # the smallest first
        total = b.create(ir.tt.DotOp, (left[i], right[j], total), (op.d.type,), properties).d
    number = b.cmpf("oeq", total, total)
    total = b.select(number, total, b.constant(0.0, op.d.type))
    total = b.create(ir.tt.DotOp, (left[0], right[0], total), (op.d.type,), properties).d
    _replace(op, b.binary(arith.AddfOp, total, op.c))


def _bf16_parts(b: ir.Builder, x: SSAValue, count: int) -> list[SSAValue]:
    """x as a sum of bf16, each the rounded rest."""
    parts: list[SSAValue] = []
    for i in range(count):
        parts.append(b.cast(arith.TruncFOp, x, bf16))
        if i + 1 < count:
            x = b.binary(arith.SubfOp, x, b.cast(arith.ExtFOp, parts[-1], f32))
    return parts


def _tf32_parts(b: ir.Builder, x: SSAValue, count: int) -> Sequence[SSAValue]:
    """x without the bits that an instruction would ignore, and what is left."""
    type: Attribute = ir.like(x.type, ir.i32)
    bits = b.cast(ir.tt.BitcastOp, x, ir.i32)
    high = b.cast(ir.tt.BitcastOp, b.binary(arith.AndIOp, bits, b.constant(-8192, type)), f32)
    return [high, b.binary(arith.SubfOp, x, high)]
