"""MFMA: a wave of 64 lanes multiplies two small matrices that lie in its registers (CDNA).

A row of the table is two intrinsics. K is spread over 64 / M lanes, so that a lane has K M / 64 consecutive elements
of it, `k_width`.

    mfma.f32.32x32x8f16      A is 32 x 8: lanes 0 to 31 have row 0 to 31 of k = 0 to 3, lanes 32 to 63 of k = 4 to 7

Cycles are those of a SIMD, of gfx942 where it has the instruction; those of f16, bf16 and int8 take twice as many on
gfx90a.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from weft.layouts import AMDMFMALayout
from weft.machines import Machine
from weft.machines.amd import ROWS

from ..instruction import BITS, Instruction
from .products import GFX9A, GFX11, GFX942, GFX950, Arguments, Shape, by_transposition, constant, entries, vector

VERSIONS = {GFX9A: 2, GFX942: 3, GFX950: 4}
"""The version of a layout, by generation."""


class _Row(NamedTuple):
    name: str
    """Of the intrinsic, but for mfma and the type of the sums: {} is M x N."""
    depths: tuple[int, int]
    """K of 32 x 32 and of 16 x 16; 0 for none."""
    elem: str
    accumulator: str
    since: int
    until: int
    rate: int
    """Products in a cycle."""
    argument: str = ""
    """LLVM's type of an operand, where it is not a vector of its elements."""
    type: str = ""


_ROWS = (
    _Row("32x32x8f16 16x16x16f16", (8, 16), "f16", "f32", GFX9A, GFX11, 256),
    _Row("32x32x8bf16.1k 16x16x16bf16.1k", (8, 16), "bf16", "f32", GFX9A, GFX11, 256, "<4 x i16>"),
    _Row("32x32x2f32 16x16x4f32", (2, 4), "f32", "f32", GFX9A, GFX11, 32),
    _Row("- 16x16x4f64", (0, 4), "f64", "f64", GFX9A, GFX11, 32),
    _Row("32x32x8i8 16x16x16i8", (8, 16), "i8", "i32", GFX9A, GFX942, 256, "i32"),
    _Row("32x32x16.i8 16x16x32.i8", (16, 32), "i8", "i32", GFX942, GFX11, 512, "i64"),
    _Row("32x32x4.xf32 16x16x8.xf32", (4, 8), "f32", "f32", GFX942, GFX950, 128, "<2 x float>", "tf32"),
    _Row("32x32x16.f16 16x16x32.f16", (16, 32), "f16", "f32", GFX950, GFX11, 512),
    _Row("32x32x16.bf16 16x16x32.bf16", (16, 32), "bf16", "f32", GFX950, GFX11, 512),
    _Row("32x32x32.i8 16x16x64.i8", (32, 64), "i8", "i32", GFX950, GFX11, 1024),
)
FP8 = {
    GFX942: {"fp8": "f8E4M3FNUZ", "bf8": "f8E5M2FNUZ"},
    GFX950: {"fp8": "f8E4M3FN", "bf8": "f8E5M2"},
}
"""What the two kinds are, by the first generation that takes them for it."""


def layout_of(bits: int, shape: Shape, transposed: bool, warps: Sequence[int], machine: Machine) -> AMDMFMALayout:
    """The layout of a result that so many warps along each dimension make of an instruction."""
    version = max(v for since, v in VERSIONS.items() if since <= machine.generation)
    return AMDMFMALayout(version, list(shape), transposed, list(warps), bits if bits == 64 else None)


def _made(
    name: str,
    shape: Shape,
    elems: tuple[str, str],
    accumulator: str,
    since: int,
    until: int,
    rate: float,
    argument: str,
    types: tuple[str, str] | None = None,
    suffix: str = "",
) -> Iterator[Instruction]:
    m, n, k = shape
    width, count = k * m // 64, m * n // 64
    operand = argument or vector(width, elems[0])
    total = vector(count, accumulator)

    def arguments(rows: str, columns: str) -> Arguments:
        """The operands, and no broadcast (cbsz, abid), no permutation of B (blgp)."""
        return ((operand, rows), (operand, columns), (total, "c"), *constant(0, 0, 0))

    yield from entries(
        f"mfma.{accumulator}.{name}", shape, elems, accumulator, since, until, m * n * k / rate,
        k_width=width,
        named=by_transposition(partial(layout_of, BITS[accumulator], shape)),
        machine=next(row for row in ROWS if row.generation == since),
        described=f"AMDMFMALayout(version, [{m}, {n}, {k}], {{transposed}}, warps_per_cta)",
        arguments=arguments,
        returns=total,
        types=types,
        suffix=suffix,
    )  # fmt: skip


def mfma_instructions() -> Iterator[Instruction]:
    """All entries of MFMA, but for those with scales."""
    for row in _ROWS:
        for size, name, k in zip((32, 16), row.name.split(), row.depths, strict=True):
            types = (row.type, row.type) if row.type else None
            if k:
                yield from _made(
                    name, (size, size, k), (row.elem, row.elem), row.accumulator, row.since, row.until, row.rate,
                    row.argument, types,
                )  # fmt: skip
    for since, until, suffix in ((GFX942, GFX950, ".fnuz"), (GFX950, GFX11, "")):
        kinds = FP8[since]
        for left in kinds:
            for right in kinds:
                elems = kinds[left], kinds[right]
                for size, k in ((32, 16), (16, 32)):
                    name = f"{size}x{size}x{k}.{left}.{right}"
                    # Where the operands change places, so do their kinds, which are in the name.
                    for entry in _made(name, (size, size, k), elems, "f32", since, until, 512, "i64", suffix=suffix):
                        yield entry if left == right or not entry.params["transposed"] else _renamed(entry, left, right)


def _renamed(entry: Instruction, left: str, right: str) -> Instruction:
    """The intrinsic of a transposed product of two kinds of fp8 takes them the other way round."""
    text = entry.text.replace(f".{left}.{right}", f".{right}.{left}")
    return Instruction(**{**entry.__dict__, "text": text})
