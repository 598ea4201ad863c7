"""The types of tile IR, made once each.

Element types are MLIR's own (`i1`, `i32`, `f16`, `bf16`, `f8E4M3FN`, ...); integers carry no sign, the operations do.
Two types are Triton's: a pointer and a tensor descriptor.

>>> str(ptr_of(f32))
'!tt.ptr<f32>'
>>> str(tensor_of((128, 64), f16))
'tensor<128x64xf16>'
>>> tensor_of((128, 64), f16) is tensor_of((128, 64), f16)
True

Making an xDSL type costs microseconds, and a kernel names the same few types thousands of times: use the functions
here (`int_type`, `tensor_of`, `ptr_of`, `tensordesc_of`), which keep what they made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import prod

from xdsl.dialects import builtin
from xdsl.ir import Attribute, BuiltinAttribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.printer import Printer

from .irdl_files import keep_to_packages

keep_to_packages()


AliasOf = Callable[[str, str], str]
"""Gives a text that is long and comes often a short name, `#blocked`; its arguments are the text and a stem."""


class _Text(BuiltinAttribute):
    """What `str` gives of a type or an encoding is what Triton writes, also where it stands inside of another type."""

    def text(self, alias: AliasOf | None = None) -> str:
        """As Triton writes it."""
        raise NotImplementedError

    def print_builtin(self, printer: Printer) -> None:
        """Write the text."""
        printer.print_string(self.text())


class Encoding(_Text):
    """What the `encoding` of a tile's type says of where its elements lie; `weft.ir.gpu` has the only kind."""

    def tensor(self, element: Attribute) -> builtin.TensorType[Attribute]:
        """The tile of the same shape that lies the same way."""
        raise NotImplementedError


class Laid(_Text):
    """A type other than a tile's that says how something lies in memory; `weft.ir.gpu` has them."""

    def problem(self) -> str | None:
        """Why this is not a type of the layout IR; None where it is."""
        raise NotImplementedError


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute):
    """A pointer to elements of global memory, `!tt.ptr<f32>`, or to a block of a tensor, `!tt.ptr<tensor<8x8xf16>>`.

    Address space 1 (global memory) is not written; another is, as in `!tt.ptr<f16, 3>`.
    """

    name = "tt.ptr"

    pointee: Attribute
    address_space: builtin.IntAttr

    def __init__(self, pointee: Attribute, address_space: int | builtin.IntAttr = 1):
        space = builtin.IntAttr(address_space) if isinstance(address_space, int) else address_space
        super().__init__(pointee, space)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)
            if self.address_space.data != 1:
                printer.print_string(f", {self.address_space.data}")


@irdl_attr_definition
class TensorDescType(ParametrizedAttribute, TypeAttribute):
    """A descriptor of a tensor in memory that is accessed a block at a time, `!tt.tensordesc<tensor<64x64xf16>>`.

    With `images` the block is a matrix of pixels and channels, whatever the dimensions of the tensor are:
    `!ttng.tensordesc_im2col<tensor<64x64xf16, #shared>>`.
    """

    name = "tt.tensordesc"

    block_type: builtin.TensorType[Attribute]
    images: builtin.IntAttr

    def __init__(self, block_type: builtin.TensorType[Attribute], images: bool | builtin.IntAttr = False):
        super().__init__(block_type, builtin.IntAttr(int(images)) if isinstance(images, bool) else images)

    @property
    def of_images(self) -> bool:
        """Whether its copies are of pixels and channels."""
        return bool(self.images.data)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.block_type)


@cache
def int_type(width: int) -> builtin.IntegerType:
    """The signless integer type of `width` bits."""
    return builtin.IntegerType(width)


@cache
def signed_int_type(width: int, signed: bool) -> builtin.IntegerType:
    """`si32` or `ui32`: only the block of a tensor descriptor has such elements, for its minimum and maximum."""
    return builtin.IntegerType(width, builtin.Signedness.SIGNED if signed else builtin.Signedness.UNSIGNED)


def signless(type: Attribute) -> Attribute:
    """The type without the sign of its integers."""
    element = element_of(type)
    if isinstance(element, builtin.IntegerType) and element.signedness.data != builtin.Signedness.SIGNLESS:
        return like(type, int_type(element.width.data))
    return type


i1, i8, i16, i32, i64 = (int_type(w) for w in (1, 8, 16, 32, 64))
index = builtin.IndexType()
f16, bf16, f32, f64 = builtin.Float16Type(), builtin.BFloat16Type(), builtin.Float32Type(), builtin.Float64Type()
f8E5M2, f8E4M3FN = builtin.Float8E5M2Type(), builtin.Float8E4M3FNType()
f8E4M3FNUZ, f8E5M2FNUZ = builtin.Float8E4M3FNUZType(), builtin.Float8E5M2FNUZType()

_FLOAT_TYPES = (f16, bf16, f32, f64, f8E5M2, f8E4M3FN, f8E4M3FNUZ, f8E5M2FNUZ)
"""Every float element type of the language; `fp8e4b15` is an `i8` whose meaning only its casts know, as in Triton."""

FLOAT_BY_NAME: dict[str, Attribute] = {t.name: t for t in _FLOAT_TYPES}

_FLOAT_CLASSES = frozenset(type(t) for t in _FLOAT_TYPES)
_INT_CLASSES = frozenset((builtin.IntegerType, builtin.IndexType))
_FLOAT_WIDTH: dict[type[Attribute], int] = {
    type(t): (8 if t.name.startswith("f8") else t.bitwidth) for t in _FLOAT_TYPES
}


@lru_cache(maxsize=4096)
def _tensor(shape: tuple[int, ...], element: Attribute) -> builtin.TensorType[Attribute]:
    return builtin.TensorType(element, shape)


def tensor_of(shape: Sequence[int], element: Attribute) -> builtin.TensorType[Attribute]:
    """The type of a tile of this shape and element type."""
    return _tensor(tuple(shape), element)


@lru_cache(maxsize=1024)
def ptr_of(pointee: Attribute, address_space: int = 1) -> PtrType:
    """The type of a pointer to `pointee`, an element type or (a block pointer) a tensor type."""
    return PtrType(pointee, address_space)


@lru_cache(maxsize=1024)
def _tensordesc(block: builtin.TensorType[Attribute]) -> TensorDescType:
    return TensorDescType(block)


def tensordesc_of(shape: Sequence[int], element: Attribute) -> TensorDescType:
    """The type of a descriptor whose block has this shape and element type."""
    return _tensordesc(tensor_of(shape, element))


def like(type: Attribute, element: Attribute) -> Attribute:
    """`element`, in a tile of the same shape (and layout) as `type` where that is a tile."""
    if not isinstance(type, builtin.TensorType):
        return element
    encoding = type.encoding
    return encoding.tensor(element) if isinstance(encoding, Encoding) else _tensor(type.get_shape(), element)


@lru_cache(maxsize=256)
def function_type(inputs: tuple[Attribute, ...], outputs: tuple[Attribute, ...]) -> builtin.FunctionType:
    """The type of a function of these inputs and outputs."""
    return builtin.FunctionType.from_lists(inputs, outputs)


def is_tensor(type: Attribute) -> bool:
    """Is this the type of a tile?"""
    return (
        type.__class__ is builtin.TensorType
    )  # whose class nobody derives from; `isinstance` asks an abstract class slowly


def shape_of(type: Attribute) -> tuple[int, ...]:
    """The shape of a tile type; `()` for a scalar."""
    return tuple([d.data for d in type.shape.data]) if type.__class__ is builtin.TensorType else ()


def element_of(type: Attribute) -> Attribute:
    """The element type of a tile type; a scalar type is its own."""
    element: Attribute = type.element_type if type.__class__ is builtin.TensorType else type
    return element


def numel_of(type: Attribute) -> int:
    """The number of elements of a tile type; 1 for a scalar."""
    return prod(shape_of(type))


def is_float(type: Attribute) -> bool:
    """Is the element type a float?"""
    return element_of(type).__class__ in _FLOAT_CLASSES


def is_int(type: Attribute) -> bool:
    """Is the element type an integer (`i1` and `index` count)?"""
    return element_of(type).__class__ in _INT_CLASSES


def is_pointer(type: Attribute) -> bool:
    """Is the element type a pointer?"""
    return element_of(type).__class__ is PtrType


def bit_width(type: Attribute) -> int:
    """Bits of one element; a pointer and an `index` count 64."""
    element = element_of(type)
    if isinstance(element, builtin.IntegerType):
        return int(element.width.data)
    width = _FLOAT_WIDTH.get(element.__class__)
    if width is not None:
        return width
    if isinstance(element, PtrType | builtin.IndexType):
        return 64
    raise ValueError(f"a value of type {type} has no width in bits")
