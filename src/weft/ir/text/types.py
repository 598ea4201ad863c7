"""Types of tile IR as text, both ways.

    tensor<128x64x!tt.ptr<f16>>    !tt.tensordesc<tensor<64x64xf16>>    !tt.ptr<tensor<8x8xf16>>    i32    index

Each distinct text is read once and kept, and each distinct type is written once and kept.
"""

from __future__ import annotations

import re
from functools import lru_cache

from xdsl.dialects.builtin import FunctionType, IndexType, IntegerType, NoneType, Signedness, TensorType, TupleType
from xdsl.ir import Attribute

from .. import types

MAX_RANK = 32
_INT = re.compile(r"([su]?)i([1-9][0-9]{0,7})", re.ASCII)
_DIMS = re.compile(r"(?:[0-9]{1,18}x)+", re.ASCII)


_SIGNS = {Signedness.SIGNLESS: "", Signedness.SIGNED: "s", Signedness.UNSIGNED: "u"}


TYPES = (
    f"types are i1, i8, i16, i32, i64, {', '.join(types.FLOAT_BY_NAME)}, index, tensor<16x32xf32>, !tt.ptr<f32>, "
    "!tt.tensordesc<tensor<16x32xf32>>"
)


class BadType(ValueError):
    """The text is not a type; the message says why, `hint` what would be one."""

    def __init__(self, message: str, hint: str | None = None):
        super().__init__(message)
        self.hint = hint or TYPES


def _split_space(body: str) -> tuple[str, int]:
    """The pointee and the address space of what stands between the brackets of a pointer type."""
    depth = 0
    for i, char in enumerate(body):
        if char == "<":
            depth += 1
        elif char == ">":
            depth -= 1
        elif char == "," and depth == 0:
            space = body[i + 1 :].strip()
            if not space.isascii() or not space.isdigit() or len(space) > 9:
                raise BadType(f"'{space}' is not an address space", "it is 1, global memory, and may be left out")
            return body[:i], int(space)
    return body, 1


def _inside(text: str, prefix: str) -> str:
    if not text.endswith(">"):
        raise BadType(f"'{text}' has no closing '>'")
    return text[len(prefix) : -1].strip()


@lru_cache(maxsize=8192)
def read_type(text: str) -> Attribute:
    """The type that a text stands for. Raises `BadType` where it is none."""
    text = text.strip()
    match = _INT.fullmatch(text)
    if match:
        width = int(match[2])
        if width > 16384:
            raise BadType(f"an integer of {width} bits is too wide")
        return types.signed_int_type(width, match[1] == "s") if match[1] else types.int_type(width)
    if text in types.FLOAT_BY_NAME:
        return types.FLOAT_BY_NAME[text]
    if text == "index":
        return types.index
    if text == "none":
        return NoneType()
    if text.startswith("!tt.ptr<"):
        pointee, space = _split_space(_inside(text, "!tt.ptr<"))
        return types.ptr_of(read_type(pointee), space)
    if text.startswith("!tt.tensordesc<"):
        block = read_type(_inside(text, "!tt.tensordesc<"))
        if not isinstance(block, TensorType):
            raise BadType(f"a tensor descriptor describes a tensor, not {type_text(block)}")
        return types.TensorDescType(block)
    if text.startswith("tensor<"):
        return _read_tensor(_inside(text, "tensor<"))
    raise BadType(f"unknown type '{text[:80]}'")


def _read_tensor(body: str) -> Attribute:
    dims = _DIMS.match(body)
    shape = tuple(int(d) for d in dims.group()[:-1].split("x")) if dims else ()
    if len(shape) > MAX_RANK:
        raise BadType(f"a tensor of {len(shape)} dimensions has too many (at most {MAX_RANK})")
    rest = body[dims.end() :] if dims else body
    if rest.startswith(("?", "*")):
        raise BadType("a tile has a static shape", "write its sizes as numbers, tensor<16x32xf32>; masks do the rest")
    if "," in rest and "<" not in rest.split(",")[0]:
        raise BadType("an encoding belongs to Triton's GPU dialects, not to tile IR", "drop what is after the comma")
    element = read_type(rest)
    if isinstance(element, TensorType | types.TensorDescType | NoneType):
        raise BadType(f"{type_text(element)} cannot be the element of a tensor")
    return types.tensor_of(shape, element)


def type_text(type: Attribute, alias: types.AliasOf | None = None) -> str:
    """A type as MLIR and Triton write it; layouts in it are written in full, or as `alias` names them."""
    # Types that differ only in the names of their layouts are equal, so what holds layouts is not looked up by value.
    if isinstance(type, TensorType):
        encoding = type.encoding
        if isinstance(encoding, types.Encoding):
            dims = "".join([f"{d.data}x" for d in type.shape.data])
            return f"tensor<{dims}{type_text(type.element_type)}, {encoding.text(alias)}>"
    elif isinstance(type, types.TensorDescType):
        name = "!ttng.tensordesc_im2col" if type.of_images else "!tt.tensordesc"
        return f"{name}<{type_text(type.block_type, alias)}>"
    elif isinstance(type, types.Laid):
        return type.text(alias)
    elif isinstance(type, FunctionType):
        return function_text([*type.inputs.data], [*type.outputs.data], alias)
    return _plain_text(type)


@lru_cache(maxsize=8192)
def _plain_text(type: Attribute) -> str:
    """A type without layouts."""
    if isinstance(type, IntegerType):
        return f"{_SIGNS[type.signedness.data]}i{type.width.data}"
    if isinstance(type, IndexType):
        return "index"
    if isinstance(type, TensorType):
        dims = "".join(f"{d.data}x" for d in type.shape.data)
        return f"tensor<{dims}{type_text(type.element_type)}>"
    if isinstance(type, types.PtrType):
        space = type.address_space.data
        return f"!tt.ptr<{type_text(type.pointee)}{'' if space == 1 else f', {space}'}>"
    if isinstance(type, TupleType):
        return f"tuple<{', '.join(map(type_text, type.types.data))}>"
    if isinstance(type, NoneType):
        return "none"
    return str(type)


def function_text(inputs: list[Attribute], outputs: list[Attribute], alias: types.AliasOf | None = None) -> str:
    """A functional type, `(i32, f32) -> f32`; a lone result stands without brackets."""
    left = ", ".join([type_text(t, alias) for t in inputs])
    right = ", ".join([type_text(t, alias) for t in outputs])
    return f"({left}) -> {right if len(outputs) == 1 else f'({right})'}"
