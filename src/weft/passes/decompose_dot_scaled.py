"""Replace block-scaled products by ordinary ones on upcast operands.

    %d = tt.dot_scaled %a scale %sa, %b, %c lhs = e2m1 rhs = e4m3 {fastMath = false}
         : tensor<64x32xi8>, tensor<64x2xi8> * tensor<64x64xf8E4M3FN> -> tensor<64x64xf32>
becomes
    %x = (the 64x64 numbers packed in %a, as bf16) * (2^(%sa - 127), NaN where %sa is 255, each for 32 numbers of a row)
    %y = tt.fp_to_fp %b : tensor<64x64xf8E4M3FN> -> tensor<64x64xbf16>
    %d = tt.dot %x, %y, %c : tensor<64x64xbf16> * tensor<64x64xbf16> -> tensor<64x64xf32>

As Triton does where the hardware has no scaled product: the operands become bf16, or fp16 if one of them is fp16. A
scale of type i8 is an exponent (e8m0): its 0 is 2^-127, a denormal number in bf16, and its 255 NaN, or with `fastMath`
infinity. A scale that is itself an fp8 (one for 16 numbers) is that number. The scale of the right operand has its rows
along N.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from weft import ir
from weft.base import Unsupported
from weft.base.remarks import NO_REMARKS, ProductSplit, RemarkCollector

from .removal import remove

_LEAST_E8M0 = 0x40
"""2^-127 as the bits of a bf16; in f16 it is 0, as all below 2^-25."""
_E2M1 = ir.tt.ScaleDotElemType.E2M1
_KNOWN = (
    ir.tt.ScaleDotElemType.E4M3,
    ir.tt.ScaleDotElemType.E5M2,
    ir.tt.ScaleDotElemType.E2M1,
    ir.tt.ScaleDotElemType.BF16,
    ir.tt.ScaleDotElemType.FP16,
)


def decompose_dot_scaled(
    root: Operation,
    *,
    denormals: bool = True,
    remarks: RemarkCollector = NO_REMARKS,
    kept: Callable[[ir.tt.DotScaledOp], bool] = lambda op: False,
) -> bool:
    """Rewrite every scaled product inside `root`, but for those that an instruction does: `kept`. Gives whether there
    was any.

    Without `denormals`, products of bf16 may take denormal operands for zero (as `vdpbf16ps` of x86 does). An e8m0
    scale makes such operands, so they are widened to f32 after they were rounded.
    """
    products = [op for op in ir.find(root, ir.tt.DotScaledOp) if not kept(op)]
    for op in products:
        _rewrite(op, denormals, remarks)
    return bool(products)


def _rewrite(op: ir.tt.DotScaledOp, denormals: bool, remarks: RemarkCollector) -> None:
    kinds = [ir.tt.ScaleDotElemType(ir.int_value(op.properties[n])) for n in ("a_elem_type", "b_elem_type")]
    for kind in kinds:
        if kind not in _KNOWN:
            raise Unsupported(f"tt.dot_scaled with operands in {kind.name.lower()}", "cpu", ir.span_of(op))
    b = ir.Builder.before(op)
    element = ir.f16 if ir.tt.ScaleDotElemType.FP16 in kinds else ir.bf16
    rank = len(ir.shape_of(op.a.type))
    exact = not ir.int_value(op.properties["fastMath"])
    sides = []
    for value, scale, kind, pack, k_axis in (
        (op.a, op.a_scale, kinds[0], "lhs_k_pack", rank - 1),
        (op.b, op.b_scale, kinds[1], "rhs_k_pack", rank - 2),
    ):
        if kind == _E2M1:
            packed = op.properties.get(pack)
            other = rank - 1 if k_axis == rank - 2 else rank - 2
            wide = _unpack(b, value, element, k_axis if packed is None or ir.int_value(packed) else other)
        else:
            wide = _upcast(b, _typed(b, value, kind), element)
        sides.append(wide if scale is None else _scaled(b, wide, scale, k_axis, exact))
    exponents = [s for s in (op.a_scale, op.b_scale) if s is not None and not ir.is_float(s.type)]
    if exponents and element == ir.bf16 and not denormals:
        sides = [b.cast(arith.ExtFOp, side, ir.f32) for side in sides]
    names, multiplied = " and ".join(kind.name.lower() for kind in kinds), ir.type_text(ir.element_of(sides[0].type))
    why = f"operands in {names} are widened, scaled, and multiplied as {multiplied}: no scaled instruction is used"
    remarks.add(ProductSplit(ir.span_of(op), ir.tile_text(op.d.type), why))
    properties = {"inputPrecision": ir.enum_attr(ir.tt.InputPrecision.IEEE)}
    result = b.create(ir.tt.DotOp, (*sides, op.c), (op.d.type,), properties).d
    result.name_hint = op.d.name_hint
    op.d.replace_all_uses_with(result)
    remove(op)


def _upcast(b: ir.Builder, value: SSAValue, element: Attribute) -> SSAValue:
    """An fp8 or 16-bit float tile in the 16-bit type of the product."""
    source = ir.element_of(value.type)
    if source == element:
        return value
    if ir.bit_width(source) == 8:
        return b.cast(ir.tt.FpToFpOp, value, element)
    return b.cast(arith.TruncFOp, b.cast(arith.ExtFOp, value, ir.f32), element)


def _typed(b: ir.Builder, value: SSAValue, kind: ir.tt.ScaleDotElemType) -> SSAValue:
    """An operand that is given as bytes, as the fp8 that they are."""
    if ir.is_float(value.type):
        return value
    return b.cast(ir.tt.BitcastOp, value, ir.f8E4M3FN if kind == ir.tt.ScaleDotElemType.E4M3 else ir.f8E5M2)


def _shift(b: ir.Builder, op_class: type[Operation], value: SSAValue, count: int) -> SSAValue:
    return b.binary(op_class, value, b.constant(count, value.type))


def _unpack(b: ir.Builder, packed: SSAValue, element: Attribute, axis: int) -> SSAValue:
    """The e2m1 numbers packed in pairs along `axis`, the low four bits first."""
    wide = b.cast(arith.ExtUIOp, packed, ir.i16)
    low = b.binary(arith.AndIOp, wide, b.constant(15, wide.type))
    high = _shift(b, arith.ShRUIOp, wide, 4)
    halves = [_e2m1(b, half, element) for half in (low, high)]
    shape = ir.shape_of(packed.type)
    pairs = b.create(ir.tt.JoinOp, halves, (ir.tensor_of((*shape, 2), element),)).result
    if axis != len(shape) - 1:
        order = [*range(axis + 1), len(shape), *range(axis + 1, len(shape))]
        moved = ir.tensor_of([(*shape, 2)[i] for i in order], element)
        pairs = b.create(ir.tt.TransOp, (pairs,), (moved,), {"order": ir.i32_array(order)}).result
    full = ir.tensor_of([n * 2 if i == axis else n for i, n in enumerate(shape)], element)
    return b.create(ir.tt.ReshapeOp, (pairs,), (full,)).result


def _e2m1(b: ir.Builder, code: SSAValue, element: Attribute) -> SSAValue:
    """Four bits (sign, two of exponent, one of mantissa) as a 16-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6."""
    mantissa, bias = (10, 15) if element == ir.f16 else (7, 127)
    type = code.type
    half = b.constant((bias - 1) << mantissa, type)
    magnitude = b.binary(arith.AndIOp, code, b.constant(7, type))
    sign = _shift(b, arith.ShLIOp, b.binary(arith.AndIOp, code, b.constant(8, type)), 12)
    normal = b.binary(arith.AddiOp, _shift(b, arith.ShLIOp, magnitude, mantissa - 1), half)
    one = b.constant(1, type)
    small = b.select(b.cmpi("eq", magnitude, one), half, b.constant(0, type))
    bits = b.select(b.cmpi("ugt", magnitude, one), normal, small)
    return b.cast(ir.tt.BitcastOp, b.binary(arith.OrIOp, bits, sign), element)


def _scaled(b: ir.Builder, value: SSAValue, scale: SSAValue, k_axis: int, exact: bool) -> SSAValue:
    """The operand times its scales, each along a block of `k_axis`."""
    element = ir.element_of(value.type)
    shape = ir.shape_of(value.type)
    if ir.is_float(scale.type):
        factor = _upcast(b, scale, element)
    elif element == ir.bf16:
        bits = _shift(b, arith.ShLIOp, b.cast(arith.ExtUIOp, scale, ir.i16), 7)
        none = b.cmpi("eq", scale, b.constant(0, scale.type))  # 2^-127 has no exponent field of its own
        factor = b.cast(ir.tt.BitcastOp, b.select(none, b.constant(_LEAST_E8M0, bits.type), bits), ir.bf16)
    else:
        bits = _shift(b, arith.ShLIOp, b.cast(arith.ExtUIOp, scale, ir.i32), 23)
        factor = b.cast(arith.TruncFOp, b.cast(ir.tt.BitcastOp, bits, ir.f32), element)
    if exact and not ir.is_float(scale.type):  # of the scales, of which there are fewer than products
        wrong = b.cmpi("eq", scale, b.constant(-1, scale.type))
        factor = b.select(wrong, b.constant(float("nan"), factor.type), factor)
    return b.binary(arith.MulfOp, value, _repeat(b, factor, shape, k_axis))


def _repeat(b: ir.Builder, scale: SSAValue, shape: Sequence[int], k_axis: int) -> SSAValue:
    """A tile with one element for each block of K (its last dimension) as one for each element of `shape`."""
    element = ir.element_of(scale.type)
    old = ir.shape_of(scale.type)
    block = shape[k_axis] // old[-1]
    tile = b.expand_dims(scale, len(old))
    tile = b.broadcast(tile, (*old, block))
    tile = b.create(ir.tt.ReshapeOp, (tile,), (ir.tensor_of((*old[:-1], old[-1] * block), element),)).result
    if k_axis == len(shape) - 1:
        return tile
    rank = len(shape)
    order = [*range(rank - 2), rank - 1, rank - 2]
    return b.create(ir.tt.TransOp, (tile,), (ir.tensor_of(shape, element),), {"order": ir.i32_array(order)}).result
