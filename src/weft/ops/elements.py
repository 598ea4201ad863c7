"""The element types: what is known of each, once, under every name it has.

    >>> ELEMENTS["f8E4M3FN"].language, ELEMENTS["f8E4M3FN"].largest
    ('fp8e4nv', 448.0)
    >>> BY_LANGUAGE["u16"].name, BY_LANGUAGE["fp32"].bits
    ('i16', 32)

An element has the name that MLIR gives it; integers have no sign, the operations do. Every other table of element types
in this package is made from this one: bits in registers, NumPy's types (`ops.dtypes`, apart because a launch out of the
cache should not load ml_dtypes), LLVM's types, the names in a kernel's signature, the formats of small floats. PTX's
names, which no other target has, stand in `targets/nvidia`.
"""

from __future__ import annotations

from typing import NamedTuple


class Element(NamedTuple):
    """One element type."""

    name: str
    bits: int
    """In a register; an i1 takes a byte in memory."""
    numpy: str
    """The name of the type of NumPy or of ml_dtypes."""
    llvm: str
    """The type of a register; eight-bit floats are kept as their bits."""
    language: str
    """The name in a signature; empty for a type that no parameter has."""
    mantissa: int = 0
    """Bits of a float's mantissa that are stored; 0 for an integer."""
    bias: int = 0
    """Of a float's exponent."""
    specials: str = ""
    """How a float writes infinity and NaN: "ieee", "fn" (no infinity, one NaN of each sign), "fnuz" (no infinity, one
    NaN in place of the negative zero)."""

    @property
    def is_float(self) -> bool:
        """Whether it is a float."""
        return bool(self.specials)

    @property
    def is_small(self) -> bool:
        """Whether it is a float of eight bits, which is computed in single precision everywhere."""
        return self.bits == 8 and bool(self.specials)

    @property
    def bytes(self) -> int:
        """The size in memory."""
        return max(1, self.bits // 8)

    @property
    def exponent(self) -> int:
        """Bits of a float's exponent."""
        return self.bits - 1 - self.mantissa

    @property
    def largest(self) -> float:
        """The largest finite float: the topmost exponent is for infinities and NaN, or only its topmost mantissa is."""
        top = (1 << self.exponent) - (2 if self.specials == "ieee" else 1)
        step = 2.0 ** -(self.mantissa - (self.specials == "fn"))
        return (2.0 - step) * 2.0 ** (top - self.bias)


ELEMENTS: dict[str, Element] = {
    e.name: e
    for e in (
        Element("i1", 1, "bool", "i1", "i1"),
        *(Element(f"i{n}", n, f"int{n}", f"i{n}", f"i{n}") for n in (8, 16, 32, 64)),
        Element("f8E4M3FN", 8, "float8_e4m3fn", "i8", "fp8e4nv", 3, 7, "fn"),
        Element("f8E4M3FNUZ", 8, "float8_e4m3fnuz", "i8", "fp8e4b8", 3, 8, "fnuz"),
        Element("f8E5M2", 8, "float8_e5m2", "i8", "fp8e5", 2, 15, "ieee"),
        Element("f8E5M2FNUZ", 8, "float8_e5m2fnuz", "i8", "fp8e5b16", 2, 16, "fnuz"),
        Element("f8E4M3B11FNUZ", 8, "float8_e4m3b11fnuz", "i8", "", 3, 11, "fnuz"),
        Element("f16", 16, "float16", "half", "fp16", 10, 15, "ieee"),
        Element("bf16", 16, "bfloat16", "bfloat", "bf16", 7, 127, "ieee"),
        Element("f32", 32, "float32", "float", "fp32", 23, 127, "ieee"),
        Element("f64", 64, "float64", "double", "fp64", 52, 1023, "ieee"),
    )
}

BY_LANGUAGE: dict[str, Element] = {
    **{e.language: e for e in ELEMENTS.values() if e.language},
    **{f"u{n}": ELEMENTS[f"i{n}"] for n in (1, 8, 16, 32, 64)},
    "fp8e4b15": ELEMENTS["i8"],  # known by its bits alone
}
"""By the name in a signature; several may be kept as one."""
