"""Facts about a host processor: what it is called, how wide its vectors are, how large its caches.

A value, not a query: `weft.backends.cpu.driver.host_cpu()` fills one in for the machine this runs on, a test or a
cross compilation writes one down.  Code generation asks nothing else: there is no second description.

>>> zen4 = CPU("znver4", "x86_64-unknown-linux-gnu", ("avx2", "avx512bf16", "avx512f", "avx512vl", "fma"))
>>> zen4.vector_bytes, zen4.has("fma"), zen4.arch
(64, True, 'x86_64')
>>> sorted(zen4.masked_bits), sorted(CPU("apple-m1", "arm64-apple-macosx").masked_bits)
([32, 64], [])
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """An instruction that multiplies and adds several elements of the summed dimension at once.

    It adds to rows x columns of the accumulator the products of rows x depth and depth x columns elements. Words of 32
    bits hold as many neighbours along the depth as fit.
    """

    name: str
    feature: str
    """What LLVM calls the part of the instruction set that it belongs to."""
    elements: str
    """Of both operands, as they are packed."""
    accumulator: str
    rows: int
    columns: int
    depth: int
    multiplies: str
    """The elements that a kernel's operands have."""
    pair: int
    """Elements of a word."""

    @property
    def arch(self) -> str:
        """The family of processors that may have it."""
        return "aarch64" if self.feature == DOTPROD else "x86_64"

    @property
    def in_tiles(self) -> bool:
        """Whether its operands are tiles, registers of up to 16 rows of 64 bytes, rather than vectors."""
        return self.rows > 1


NEON, DOTPROD = "neon", "dotprod"
"""What every processor of AArch64 has, 32 vectors of 128 bits; and products of quadruples of 8-bit integers."""
PRODUCTS = (
    Product("tdpbf16ps", "amx-bf16", "bf16", "f32", 16, 16, 32, "bf16", 2),
    Product("tdpbssd", "amx-int8", "i8", "i32", 16, 16, 64, "i8", 4),
    Product("vdpbf16ps", "avx512bf16", "bf16", "f32", 1, 16, 2, "bf16", 2),
    Product("vpdpwssd", "avx512vnni", "i16", "i32", 1, 16, 2, "i8", 2),
    Product("sdot", DOTPROD, "i8", "i32", 1, 4, 4, "i8", 4),
)
"""Those that are known, the fastest of a kind first."""


_WIDE = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512fp16", "amx-tile")
FEATURES = {
    family: tuple(dict.fromkeys([*names, *(product.feature for product in PRODUCTS if product.arch == family)]))
    for family, names in {
        "x86_64": ("sse4.2", "avx", "avx2", "bmi2", "fma", "f16c", *_WIDE),
        "aarch64": (NEON,),
    }.items()
}
"""By the family of processors, the features that are asked for when code is made, or run elsewhere; "cx16" is one more,
which LLVM tells in another way.
"""


def family_of(triple: str) -> str:
    """The family of the instruction set of a system, by LLVM's name of it.

    >>> family_of("arm64-apple-macosx11.0.0")
    'aarch64'
    """
    family = triple.split("-", 1)[0]
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(family, family)


@dataclass(frozen=True)
class CPU:
    """A processor; `features` are LLVM's names of what it has."""

    name: str
    triple: str
    features: tuple[str, ...] = ()
    feature_string: str = ""
    cores: int = 1
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 8 << 20
    memory_bytes: int = 0
    """The memory that a process may have; 0 where that is not known."""

    def has(self, feature: str) -> bool:
        """Does it have an LLVM feature such as "avx512f" or "neon"?"""
        return feature in self.every_feature

    @property
    def every_feature(self) -> frozenset[str]:
        """Its features, with what all processors of its family have."""
        return frozenset((*self.features, NEON) if self.arch == "aarch64" else self.features)

    @property
    def arch(self) -> str:
        """The family of the instruction set: x86_64, aarch64, ..."""
        return family_of(self.triple)

    @property
    def is_x86(self) -> bool:
        """Is it of the x86 family, of 32 or 64 bits?"""
        return self.arch in ("x86_64", "i686", "i386")

    @property
    def converts_half(self) -> bool:
        """Whether converting to and from half precision are instructions."""
        return self.has("f16c") if self.is_x86 else self.arch == "aarch64"

    @property
    def vector_bytes(self) -> int:
        """The width of its vector registers."""
        if self.arch == "x86_64":
            return 64 if self.has("avx512f") else 32 if self.has("avx") else 16
        return 16

    @property
    def multiplies_and_adds(self) -> bool:
        """Whether a multiplication and an addition with one rounding are an instruction."""
        return not self.is_x86 or self.has("fma") or self.has("avx512f")

    @property
    def vector_registers(self) -> int:
        """How many of them there are."""
        if self.arch == "x86_64":
            return 32 if self.has("avx512f") else 16
        return 32

    @property
    def masked_bits(self) -> frozenset[int]:
        """The sizes of elements of which a vector is loaded or stored under a mask by one instruction."""
        if self.arch != "x86_64" or not any(map(self.has, ("avx", "avx2", "avx512f"))):
            return frozenset()
        return frozenset((8, 16, 32, 64) if self.has("avx512bw") and self.has("avx512vl") else (32, 64))

    @property
    def branches_at_masks(self) -> bool:
        """Whether a vector is stored as any other where its mask has all lanes, and not at all where it has none: a
        masked store of AVX and AVX2 takes a Zen 3 twelve cycles, and AVX-512's one.
        """
        return self.is_x86 and not self.has("avx512vl")

    def fingerprint(self) -> str:
        """What generated code may depend on, for cache keys: name and every feature, on or off."""
        return f"{self.triple}/{self.name}/{self.feature_string or ','.join(self.features)}"
