"""Element types, pointers and tiles: the types of tensors.

>>> float16.primitive_bitwidth, float16.fp_mantissa_width, str(float16)
(16, 10, 'fp16')
>>> block_type(float32, [4, 8]).shape
(4, 8)

Integers have a sign here and none in the IR; `int1` counts as unsigned. Types are compared by value and know their IR
type (`to_ir`), which they keep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Self

from weft import ir
from weft.base import hinted
from weft.ops import ELEMENTS

from .constants import constexpr, unwrap_shape
from .protocol import base_type

__all__ = [
    "block_type",
    "dtype",
    "pointer_type",
    "void",
    # scalars
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "float8e4b15",
    "float8e4b8",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

TRITON_MAX_TENSOR_NUMEL = 1048576
"""The most elements that a tile may have."""

# name -> (bits, bits of the mantissa, bias of the exponent, name of the IR type)
_FLOATS: dict[str, tuple[int, int, int, str]] = {
    "fp8e4b15": (8, 3, 15, "i8"),
    **{e.language: (e.bits, e.mantissa, e.bias, e.name) for e in ELEMENTS.values() if e.is_float and e.language},
}


def _is_named(name: str) -> Callable[[dtype], bool]:
    """A method of element types: is it this one?"""
    return lambda self: self.name == name


class _OnePerName(base_type):
    """What `dtype` is made by; a class of its own, so that Python shows the parameters of `dtype.__init__`."""

    _of_name: ClassVar[dict[str, dtype]] = {}

    def __new__(cls, name: Any = None, *rest: Any, **named: Any) -> Self:
        """One `dtype` for each name, since kernels ask `x.dtype is tl.float32`; each pointer and block is its own."""
        known = cls._of_name.get(str(name.value if isinstance(name, constexpr) else name)) if cls is dtype else None
        return super().__new__(cls) if known is None else known  # type: ignore[return-value]


class dtype(_OnePerName):
    """An element type, known by its name (`fp32`, `int8`, `uint64`, `fp8e4nv`, ...).

    >>> tl.float16.primitive_bitwidth, tl.float16.is_floating(), str(tl.int32)
    (16, True, 'int32')
    """

    SINT_TYPES: ClassVar[list[str]] = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: ClassVar[list[str]] = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES: ClassVar[list[str]] = list(_FLOATS)
    STANDARD_FP_TYPES: ClassVar[list[str]] = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES: ClassVar[list[str]] = ["void"]

    package: ClassVar[str] = "weft.language"  # under which `repr` names a type: where the language was imported from

    class SIGNEDNESS(Enum):
        """Whether an integer has a sign."""

        SIGNED = 0
        UNSIGNED = 1

    class KIND(Enum):
        """The rank of a type in promotion with Python scalars."""

        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    name: str
    primitive_bitwidth: int
    itemsize: int
    int_bitwidth: int
    int_signedness: SIGNEDNESS
    fp_mantissa_width: int
    exponent_bias: int

    def __init__(self, name: Any) -> None:
        if hasattr(self, "name"):
            return
        if isinstance(name, constexpr):
            name = name.value
        self._ir: Any = None
        if name in self.SINT_TYPES or name in self.UINT_TYPES:
            signed = name in self.SINT_TYPES
            self.int_signedness = self.SIGNEDNESS.SIGNED if signed else self.SIGNEDNESS.UNSIGNED
            self.int_bitwidth = self.primitive_bitwidth = int(name.removeprefix("uint").removeprefix("int"))
            self.itemsize = self.primitive_bitwidth // 8
        elif name in _FLOATS:
            self.primitive_bitwidth, self.fp_mantissa_width, self.exponent_bias, _ = _FLOATS[name]
            self.itemsize = self.primitive_bitwidth // 8
        elif name != "void":
            names = self.SINT_TYPES + self.UINT_TYPES + self.FP_TYPES + self.OTHER_TYPES
            raise ValueError(f"unknown element type {name!r}: known are {', '.join(names)}")
        self.name = name
        self._of_name[name] = self

    def __getnewargs__(self) -> tuple[str, ...]:
        return (self.name,) if type(self) is dtype else ()

    def __getstate__(self) -> dict[str, Any] | None:
        return None if type(self) is dtype else self.__dict__  # the name says all

    # Questions by name.

    def is_fp8(self) -> bool:
        return "fp8" in self.name

    is_fp8e4nv = _is_named("fp8e4nv")
    is_fp8e4b8 = _is_named("fp8e4b8")
    is_fp8e4b15 = _is_named("fp8e4b15")
    is_fp8e5 = _is_named("fp8e5")
    is_fp8e5b16 = _is_named("fp8e5b16")
    is_fp16 = _is_named("fp16")
    is_bf16 = _is_named("bf16")
    is_fp32 = _is_named("fp32")
    is_fp64 = _is_named("fp64")
    is_int1 = _is_named("int1")
    is_int8 = _is_named("int8")
    is_int16 = _is_named("int16")
    is_int32 = _is_named("int32")
    is_int64 = _is_named("int64")
    is_uint8 = _is_named("uint8")
    is_uint16 = _is_named("uint16")
    is_uint32 = _is_named("uint32")
    is_uint64 = _is_named("uint64")
    is_void = _is_named("void")

    def is_floating(self) -> bool:
        return self.name in _FLOATS

    def is_standard_floating(self) -> bool:
        return self.name in self.STANDARD_FP_TYPES

    def is_int_signed(self) -> bool:
        return self.name in self.SINT_TYPES

    def is_int_unsigned(self) -> bool:
        return self.name in self.UINT_TYPES

    def is_int(self) -> bool:
        return self.name in self.SINT_TYPES or self.name in self.UINT_TYPES

    def is_bool(self) -> bool:
        return self.is_int1()

    @staticmethod
    def is_dtype(type_str: str) -> bool:
        """Is this the name of an element type?"""
        return type_str in dtype.SINT_TYPES + dtype.UINT_TYPES + dtype.FP_TYPES + dtype.OTHER_TYPES

    def is_block(self) -> bool:
        return False

    def is_ptr(self) -> bool:
        return False

    def is_const(self) -> bool:
        return False

    def kind(self) -> KIND:
        """Boolean, integral or floating: the order in which Python scalars give way."""
        if self.is_bool():
            return dtype.KIND.BOOLEAN
        if self.is_int():
            return dtype.KIND.INTEGRAL
        if self.is_floating():
            return dtype.KIND.FLOATING
        raise TypeError(f"{self} is neither a boolean, an integer nor a float")

    def get_int_max_value(self) -> int:
        """The largest value of an integer type."""
        return int(2 ** (self.int_bitwidth - (1 if self.is_int_signed() else 0)) - 1)

    def get_int_min_value(self) -> int:
        """The smallest value of an integer type."""
        return int(-(2 ** (self.int_bitwidth - 1))) if self.is_int_signed() else 0

    @property
    def scalar(self) -> dtype:
        """The element type of a tile; a scalar type is its own."""
        return self

    def with_element_ty(self, element_ty: dtype) -> dtype:
        """The type of the same shape over other elements: for a scalar, `element_ty`."""
        return element_ty

    # As a key, as text, as IR.

    def __eq__(self, other: object) -> bool:
        if isinstance(other, constexpr):
            other = other.value
        return self is other or (type(other) is dtype and self.name == other.name)

    def __hash__(self) -> int:
        return hash((self.name,))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{dtype.package}.{self.codegen_name()}"

    def codegen_name(self) -> str:
        """The name under which this module exports the type (`float32` for `fp32`)."""
        if self.name.startswith("fp"):
            return "float" + self.name[2:]
        return "bfloat" + self.name[2:] if self.name.startswith("bf") else self.name

    @property
    def cache_key_part(self) -> str:
        return self.name

    def mangle(self) -> str:
        if self.is_int():
            return ("i" if self.is_int_signed() else "u") + str(self.int_bitwidth)
        return "V" if self.is_void() else self.name

    def to_ir(self, builder: Any = None) -> Any:
        """The type in the IR."""
        if self._ir is None:
            if self.name in _FLOATS:
                self._ir = getattr(ir, _FLOATS[self.name][3])
            elif self.is_int():
                self._ir = ir.int_type(self.int_bitwidth)
            else:
                raise TypeError(f"{self} is not the type of a value")
        return self._ir

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        out.append(self.to_ir(builder))

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        return _tensor_class[0](handles[cursor], self), cursor + 1


_tensor_class: list[Any] = []
"""The class `tensor`, put here by its module: a type must be able to make its values."""


class pointer_type(dtype):
    """A pointer to elements of memory; `const` ones cannot be stored through.

    Blocks of one-bit elements are blocks of the bytes that hold them, in which `of_bool` tells that each is 0 or 1.

    >>> tl.pointer_type(tl.float32)
    pointer<fp32>
    """

    primitive_bitwidth = 64
    itemsize = 8

    def __init__(self, element_ty: Any, address_space: Any = 1, const: Any = False, of_bool: bool = False) -> None:
        if isinstance(element_ty, constexpr):
            element_ty = element_ty.value
        if not isinstance(element_ty, dtype):
            raise TypeError(f"element_ty has type `{type(element_ty).__name__}`; expected `dtype`.")
        self.element_ty = element_ty
        self.address_space: int = address_space.value if isinstance(address_space, constexpr) else address_space
        if isinstance(self.address_space, bool) or not isinstance(self.address_space, int):
            kind = type(self.address_space).__name__
            raise TypeError(f"address_space has type `{kind}`; expected `int`.")
        self.const: bool = const.value if isinstance(const, constexpr) else const
        self.of_bool = of_bool
        self.name = f"{'const_' if self.const else ''}pointer<{element_ty}>"
        self._ir = None

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def is_fp8(self) -> bool:
        return False

    def to_ir(self, builder: Any = None) -> Any:
        if self._ir is None:
            self._ir = ir.ptr_of(self.element_ty.to_ir(builder), self.address_space)
        return self._ir

    def __eq__(self, other: object) -> bool:
        if isinstance(other, constexpr):
            other = other.value
        return self is other or (
            isinstance(other, pointer_type)
            and self.element_ty == other.element_ty
            and self.address_space == other.address_space
            and self.const == other.const
            and self.of_bool == other.of_bool
        )

    def __hash__(self) -> int:
        return hash((self.name, self.address_space))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def mangle(self) -> str:
        return ("PB" if self.of_bool else "P") + self.element_ty.mangle()


def check_shape(shape: Sequence[Any]) -> int:
    """Refuse what is no shape of a tile (powers of two, not too many elements); returns the number of elements."""
    numel = 1
    for position, size in enumerate(shape):
        if type(size) is not int:
            raise TypeError(f"Shape element {position} must have type `constexpr[int]`, got `{_describe(size)}`")
        if size <= 0 or size & (size - 1):
            raise hinted(ValueError(f"Shape element {position} must be a power of 2"), _nearest(size))
        numel *= size
    if numel > TRITON_MAX_TENSOR_NUMEL:
        raise _too_large(numel)
    return numel


def _describe(value: Any) -> str:
    value = value.value if isinstance(value, constexpr) else value
    return (
        f"constexpr[{type(value).__name__}]"
        if isinstance(value, (bool, float, str, type(None)))
        else (str(getattr(value, "type", type(value).__name__)))
    )


def _nearest(size: int) -> str:
    """Where a size is no power of two: which ones are near."""
    if size <= 0:
        return f"it is {size}"
    below = 1 << (size.bit_length() - 1)
    return f"it is {size}; the nearest are {below} and {2 * below}"


def _too_large(numel: int) -> ValueError:
    """The error for a tile of too many elements; its note becomes the hint of a compilation error."""
    return hinted(
        ValueError(f"numel ({numel}) exceeds triton maximum tensor numel ({TRITON_MAX_TENSOR_NUMEL})"),
        "use a smaller block, and a loop or more programs over it",
    )


class block_type(dtype):
    """A tile: an element type and a static shape.

    >>> tl.block_type(tl.float32, [2, 4]).numel
    8
    """

    def __init__(self, element_ty: dtype, shape: Any) -> None:
        self.element_ty = element_ty
        dims = unwrap_shape(shape)
        if not isinstance(dims, (list, tuple)):
            raise TypeError(f"shape has type `{type(shape).__name__}`; expected a list")
        if not dims:
            raise TypeError("0d block_type is forbidden")
        self.shape = tuple(dims)
        self.numel = check_shape(self.shape)
        self._ir = None
        self._name: str | None = None
        self._const_shape: Any = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """The text of the type, `<['4', '8'], fp32>`."""
        if self._name is None:
            self._name = f"<{[str(s) for s in self.shape]}, {self.element_ty}>"
        return self._name

    def is_block(self) -> bool:
        return True

    def is_fp8(self) -> bool:
        return self.element_ty.is_fp8()

    def is_floating(self) -> bool:
        return False

    def get_block_shapes(self) -> tuple[int, ...]:
        return self.shape

    def with_element_ty(self, scalar_ty: dtype) -> block_type:
        return block_of(scalar_ty, self.shape)

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take together."""
        return self.numel * (self.element_ty.primitive_bitwidth // 8)

    def to_ir(self, builder: Any = None) -> Any:
        if self._ir is None:
            self._ir = ir.tensor_of(self.shape, self.element_ty.to_ir(builder))
        return self._ir

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, block_type) and self.element_ty == other.element_ty and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.element_ty, self.shape))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def mangle(self) -> str:
        return f"{self.element_ty.mangle()}S{'_'.join(map(str, self.shape))}S"


@lru_cache(maxsize=4096)
def block_of(element_ty: dtype, shape: tuple[int, ...]) -> block_type:
    """The tile type of a shape that is known to be right, made once (`block_type` checks and makes anew)."""
    block = block_type.__new__(block_type)
    block.element_ty, block.shape, block.numel = element_ty, shape, prod(shape)
    block._ir = block._name = block._const_shape = None
    if block.numel > TRITON_MAX_TENSOR_NUMEL:
        raise _too_large(block.numel)
    return block


class slice_type(dtype):
    """The type of a slice in an index."""

    def __init__(self) -> None:
        self.name = "slice_type"
        self._ir = None


class const:
    """Annotation of a pointer parameter that the kernel only reads through.

    >>> @weft.jit
    ... def copy(source: tl.const, out):
    ...     tl.store(out, tl.load(source))
    >>> memory = np.zeros(1)
    >>> evaluate("copy(x, out_array)", x=np.ones(1), out_array=memory, copy=copy)
    >>> memory
    array([1.])
    """


void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e5 = dtype("fp8e5")
float8e5b16 = dtype("fp8e5b16")
float8e4nv = dtype("fp8e4nv")
float8e4b8 = dtype("fp8e4b8")
float8e4b15 = dtype("fp8e4b15")
float16 = dtype("fp16")
bfloat16 = dtype("bf16")
float32 = dtype("fp32")
float64 = dtype("fp64")
pi32_t = pointer_type(int32)

_INTS = {(t.int_bitwidth, t.is_int_signed()): t for t in (int8, int16, int32, int64, uint8, uint16, uint32, uint64)}
_INTS[1, False] = int1


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of this width and sign (a single bit has no sign)."""
    bitwidth = bitwidth.value if isinstance(bitwidth, constexpr) else bitwidth
    type = _INTS.get((bitwidth, bool(signed) and bitwidth != 1))
    if type is None:
        raise ValueError(f"Unsupported bitwidth {bitwidth} and signedness {signed}")
    return type
