"""What a scaled product multiplies, as AMD's instructions have it.

    tt.dot_scaled %a scale %sa, %b, %c lhs = e4m3 rhs = e2m1        ("f8E4M3FN", "e2m1"), each with scales of i8
"""

from __future__ import annotations

from .. import tt
from ..attrs import int_value
from ..types import element_of, i8, shape_of

BLOCK = 32
"""Elements along K that share a scale."""
ONE = 127
"""The scale that changes nothing: 2^(127 - 127)."""
_KINDS = {
    tt.ScaleDotElemType.E4M3: "f8E4M3FN",
    tt.ScaleDotElemType.E5M2: "f8E5M2",
    tt.ScaleDotElemType.E2M1: "e2m1",
}


def kinds_of(op: tt.DotScaledOp) -> tuple[str, str] | None:
    """The kinds of both operands, where instructions may multiply them with scales as they are: of 8 bits, or e2m1 in
    pairs along K, with exponents for scales, one for 32 elements."""
    left, right = (_KINDS.get(tt.ScaleDotElemType(int_value(x))) for x in (op.a_elem_type, op.b_elem_type))
    if left is None or right is None or len(shape_of(op.c.type)) != 2:
        return None
    if any(pack is not None and not int_value(pack) for pack in (op.lhs_k_pack, op.rhs_k_pack)):
        return None
    for scale in (op.a_scale, op.b_scale):
        if scale is not None and (element_of(scale.type) != i8 or shape_of(scale.type)[-1] * BLOCK != depth_of(op)):
            return None
    return left, right


def depth_of(op: tt.DotScaledOp) -> int:
    """How many products are summed."""
    packed = int_value(op.a_elem_type) == tt.ScaleDotElemType.E2M1
    return shape_of(op.a.type)[-1] * (2 if packed else 1)
