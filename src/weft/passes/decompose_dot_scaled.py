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

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from weft.base import Unsupported
from weft.base.remarks import NO_REMARKS, ProductSplit, RemarkCollector
from weft.ir import (
    Builder,
    bf16,
    bit_width,
    element_of,
    enum_attr,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    find,
    i16,
    i32,
    i32_array,
    int_value,
    is_float,
    shape_of,
    span_of,
    tensor_of,
    tile_text,
    tt,
    type_text,
)

from .removal import remove

_LEAST_E8M0 = 0x40
"""2^-127 as the bits of a bf16; in f16 it is 0, as all below 2^-25."""
_E2M1 = tt.ScaleDotElemType.E2M1
_KNOWN = (
    tt.ScaleDotElemType.E4M3,
    tt.ScaleDotElemType.E5M2,
    tt.ScaleDotElemType.E2M1,
    tt.ScaleDotElemType.BF16,
    tt.ScaleDotElemType.FP16,
)


def decompose_dot_scaled(root: Operation, *, denormals: bool = True, remarks: RemarkCollector = NO_REMARKS) -> bool:
    """Rewrite every scaled product inside `root`. Gives whether there was any.

    Without `denormals`, products of bf16 may take denormal operands for zero (as `vdpbf16ps` of x86 does). An e8m0
    scale makes such operands, so they are widened to f32 after they were rounded.
    """
    products = find(root, tt.DotScaledOp)
    for op in products:
        _rewrite(op, denormals, remarks)
    return bool(products)


def _rewrite(op: tt.DotScaledOp, denormals: bool, remarks: RemarkCollector) -> None:
    kinds = [tt.ScaleDotElemType(int_value(op.properties[n])) for n in ("a_elem_type", "b_elem_type")]
    for kind in kinds:
        if kind not in _KNOWN:
            raise Unsupported(f"tt.dot_scaled with operands in {kind.name.lower()}", "cpu", span_of(op))
    b = Builder.before(op)
    element = f16 if tt.ScaleDotElemType.FP16 in kinds else bf16
    rank = len(shape_of(op.a.type))
    exact = not int_value(op.properties["fastMath"])
    sides = []
    for value, scale, kind, pack, k_axis in (
        (op.a, op.a_scale, kinds[0], "lhs_k_pack", rank - 1),
        (op.b, op.b_scale, kinds[1], "rhs_k_pack", rank - 2),
    ):
        if kind == _E2M1:
            packed = op.properties.get(pack)
            other = rank - 1 if k_axis == rank - 2 else rank - 2
            wide = _unpack(b, value, element, k_axis if packed is None or int_value(packed) else other)
        else:
            wide = _upcast(b, _typed(b, value, kind), element)
        sides.append(wide if scale is None else _scaled(b, wide, scale, k_axis, exact))
    exponents = [s for s in (op.a_scale, op.b_scale) if s is not None and not is_float(s.type)]
    if exponents and element == bf16 and not denormals:
        sides = [b.cast(arith.ExtFOp, side, f32) for side in sides]
    names, multiplied = " and ".join(kind.name.lower() for kind in kinds), type_text(element_of(sides[0].type))
    why = f"operands in {names} are widened, scaled, and multiplied as {multiplied}: no scaled instruction is used"
    remarks.add(ProductSplit(span_of(op), tile_text(op.d.type), why))
    properties = {"inputPrecision": enum_attr(tt.InputPrecision.IEEE)}
    result = b.create(tt.DotOp, (*sides, op.c), (op.d.type,), properties).d
    result.name_hint = op.d.name_hint
    op.d.replace_all_uses_with(result)
    remove(op)


def _upcast(b: Builder, value: SSAValue, element: Attribute) -> SSAValue:
    """An fp8 or 16-bit float tile in the 16-bit type of the product."""
    source = element_of(value.type)
    if source == element:
        return value
    if bit_width(source) == 8:
        return b.cast(tt.FpToFpOp, value, element)
    return b.cast(arith.TruncFOp, b.cast(arith.ExtFOp, value, f32), element)


def _typed(b: Builder, value: SSAValue, kind: tt.ScaleDotElemType) -> SSAValue:
    """An operand that is given as bytes, as the fp8 that they are."""
    if is_float(value.type):
        return value
    return b.cast(tt.BitcastOp, value, f8E4M3FN if kind == tt.ScaleDotElemType.E4M3 else f8E5M2)


def _shift(b: Builder, op_class: type[Operation], value: SSAValue, count: int) -> SSAValue:
    return b.binary(op_class, value, b.constant(count, value.type))


def _unpack(b: Builder, packed: SSAValue, element: Attribute, axis: int) -> SSAValue:
    """The e2m1 numbers packed in pairs along `axis`, the low four bits first."""
    wide = b.cast(arith.ExtUIOp, packed, i16)
    low = b.binary(arith.AndIOp, wide, b.constant(15, wide.type))
    high = _shift(b, arith.ShRUIOp, wide, 4)
    halves = [_e2m1(b, half, element) for half in (low, high)]
    shape = shape_of(packed.type)
    pairs = b.create(tt.JoinOp, halves, (tensor_of((*shape, 2), element),)).result
    if axis != len(shape) - 1:
        order = [*range(axis + 1), len(shape), *range(axis + 1, len(shape))]
        moved = tensor_of([(*shape, 2)[i] for i in order], element)
        pairs = b.create(tt.TransOp, (pairs,), (moved,), {"order": i32_array(order)}).result
    full = tensor_of([n * 2 if i == axis else n for i, n in enumerate(shape)], element)
    return b.create(tt.ReshapeOp, (pairs,), (full,)).result


def _e2m1(b: Builder, code: SSAValue, element: Attribute) -> SSAValue:
    """Four bits (sign, two of exponent, one of mantissa) as a 16-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6."""
    mantissa, bias = (10, 15) if element == f16 else (7, 127)
    type = code.type
    half = b.constant((bias - 1) << mantissa, type)
    magnitude = b.binary(arith.AndIOp, code, b.constant(7, type))
    sign = _shift(b, arith.ShLIOp, b.binary(arith.AndIOp, code, b.constant(8, type)), 12)
    normal = b.binary(arith.AddiOp, _shift(b, arith.ShLIOp, magnitude, mantissa - 1), half)
    one = b.constant(1, type)
    small = b.select(b.cmpi("eq", magnitude, one), half, b.constant(0, type))
    bits = b.select(b.cmpi("ugt", magnitude, one), normal, small)
    return b.cast(tt.BitcastOp, b.binary(arith.OrIOp, bits, sign), element)


def _scaled(b: Builder, value: SSAValue, scale: SSAValue, k_axis: int, exact: bool) -> SSAValue:
    """The operand times its scales, each along a block of `k_axis`."""
    element = element_of(value.type)
    shape = shape_of(value.type)
    if is_float(scale.type):
        factor = _upcast(b, scale, element)
    elif element == bf16:
        bits = _shift(b, arith.ShLIOp, b.cast(arith.ExtUIOp, scale, i16), 7)
        none = b.cmpi("eq", scale, b.constant(0, scale.type))  # 2^-127 has no exponent field of its own
        factor = b.cast(tt.BitcastOp, b.select(none, b.constant(_LEAST_E8M0, bits.type), bits), bf16)
    else:
        bits = _shift(b, arith.ShLIOp, b.cast(arith.ExtUIOp, scale, i32), 23)
        factor = b.cast(arith.TruncFOp, b.cast(tt.BitcastOp, bits, f32), element)
    if exact and not is_float(scale.type):  # of the scales, of which there are fewer than products
        wrong = b.cmpi("eq", scale, b.constant(-1, scale.type))
        factor = b.select(wrong, b.constant(float("nan"), factor.type), factor)
    return b.binary(arith.MulfOp, value, _repeat(b, factor, shape, k_axis))


def _repeat(b: Builder, scale: SSAValue, shape: Sequence[int], k_axis: int) -> SSAValue:
    """A tile with one element for each block of K (its last dimension) as one for each element of `shape`."""
    element = element_of(scale.type)
    old = shape_of(scale.type)
    block = shape[k_axis] // old[-1]
    tile = b.expand_dims(scale, len(old))
    tile = b.broadcast(tile, (*old, block))
    tile = b.create(tt.ReshapeOp, (tile,), (tensor_of((*old[:-1], old[-1] * block), element),)).result
    if k_axis == len(shape) - 1:
        return tile
    rank = len(shape)
    order = [*range(rank - 2), rank - 1, rank - 2]
    return b.create(tt.TransOp, (tile,), (tensor_of(shape, element),), {"order": i32_array(order)}).result
