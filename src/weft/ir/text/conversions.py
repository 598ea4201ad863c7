"""Which operation makes a value of one type of a value of another: the way out where types do not agree.

>>> from .types import read_type
>>> conversion(read_type("i32"), read_type("tensor<64xi32>"))
'tt.splat'
>>> conversion(read_type("tensor<64xi32>"), read_type("tensor<64xf32>"))
'arith.sitofp'
>>> conversion(read_type("tensor<64xi32>"), read_type("tensor<3xf16>"))
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from ..types import PtrType, bit_width, element_of, is_float, is_int, is_tensor, numel_of, shape_of


def conversion(source: Attribute, target: Attribute) -> str | None:
    """The name of one operation that does it; None where it takes several, or cannot be done."""
    a, b = element_of(source), element_of(target)
    same_shape = is_tensor(source) == is_tensor(target) and shape_of(source) == shape_of(target)
    if a == b:
        return "ttg.convert_layout" if same_shape else _shape(source, target)
    if not same_shape:
        return None
    if isinstance(a, PtrType):
        return "tt.load" if a.pointee == b else "tt.bitcast" if isinstance(b, PtrType) else "tt.ptr_to_int"
    if isinstance(b, PtrType):
        return "tt.int_to_ptr" if is_int(a) and bit_width(a) == 64 else None
    return _element(a, b)


def _shape(source: Attribute, target: Attribute) -> str | None:
    if not is_tensor(source):
        return "tt.splat"
    old, new = shape_of(source), shape_of(target)
    if not is_tensor(target):
        return "tt.unsplat" if numel_of(source) == 1 else None
    if len(old) == len(new) and all(x in (1, y) for x, y in zip(old, new, strict=True)):
        return "tt.broadcast"
    if numel_of(source) == numel_of(target):
        return "tt.expand_dims" if len(new) == len(old) + 1 and 1 in new else "tt.reshape"
    return None


def _element(a: Attribute, b: Attribute) -> str | None:
    whole = [is_int(x) or isinstance(x, IndexType) for x in (a, b)]
    if not all(w or is_float(x) for w, x in zip(whole, (a, b), strict=True)):
        return None
    if isinstance(a, IndexType) or isinstance(b, IndexType):
        return "arith.index_cast" if all(whole) else None
    if whole[0] != whole[1]:
        return "arith.sitofp" if whole[0] else "arith.fptosi"
    widths = bit_width(a), bit_width(b)
    if whole[0]:
        return "arith.extsi" if widths[0] < widths[1] else "arith.trunci"
    if min(widths) < 16 or widths[0] == widths[1]:
        return "tt.fp_to_fp"
    return "arith.extf" if widths[0] < widths[1] else "arith.truncf"
