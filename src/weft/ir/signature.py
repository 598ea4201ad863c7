"""The type strings of a kernel's parameters, as Triton writes them in a signature.

>>> from weft.ir.types import f32, i32, ptr_of, tensordesc_of
>>> type_string(ptr_of(f32)), type_string(i32), type_string(tensordesc_of((16, 32), f32))
('*fp32', 'i32', 'tensordesc<fp32[16, 32]>')
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, NameLoc, Signedness
from xdsl.ir import Attribute

from weft.ops import ELEMENTS

from .tt import FuncOp
from .types import PtrType, TensorDescType, i32, i64, shape_of


def type_string(type: Attribute) -> str:
    """A parameter's type as a signature writes it; integers without a sign count as signed."""
    if isinstance(type, PtrType):
        return "*" + type_string(type.pointee)
    if isinstance(type, TensorDescType):
        block = type.block_type
        return f"tensordesc<{type_string(block.element_type)}{[*shape_of(block)]}>"
    if isinstance(type, IntegerType):
        return f"{'u' if type.signedness.data == Signedness.UNSIGNED else 'i'}{type.width.data}"
    element = ELEMENTS.get(type.name)
    return element.language if element is not None else type.name


def flattened_descriptor(function: FuncOp, index: int) -> int:
    """How many arguments after the descriptor at `index` are its own shape and strides.

    Triton (and Weft's frontend) passes a descriptor followed by its shape as `i32` and its strides as `i64`. They are
    known by their types, and by their names where both have one.
    """
    args = function.entry.args
    type = args[index].type
    if not isinstance(type, TensorDescType):
        return 0
    rank = len(shape_of(type.block_type))
    following = args[index + 1 : index + 1 + 2 * rank]
    if [a.type for a in following] != [i32] * rank + [i64] * rank:
        return 0
    place = args[index].location
    for argument in following:
        other = argument.location
        if isinstance(place, NameLoc) and isinstance(other, NameLoc) and place.desc != other.desc:
            return 0
    return 2 * rank


def signature_of(function: FuncOp) -> list[str]:
    """The types of a kernel's parameters, a descriptor counting as one."""
    signature: list[str] = []
    index = 0
    while index < len(function.entry.args):
        signature.append(type_string(function.entry.args[index].type))
        index += 1 + flattened_descriptor(function, index)
    return signature
