"""WMMA: a wave of 32 lanes multiplies two matrices that lie in its registers, 16 x K by K x 16 (RDNA and gfx1250).

On gfx11 both halves of a wave hold the same operands, each lane a whole row of A or column of B; from gfx12 on they are
spread over all lanes, `k_width` consecutive elements of k in each, and again as often as it takes.

    wmma.f32.16x16x16.f16.v8f32.v16f16    gfx11: lanes 0 and 16 have row 0 of A
    wmma.f32.16x16x16.f16.v8f32.v8f16     gfx12: lane 0 has k = 0 to 7 of row 0, lane 16 k = 8 to 15

Cycles are those of a SIMD; gfx1250's are not known, and are taken to be as many for each product as on gfx950.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from weft.layouts import AMDWMMALayout
from weft.machines import Machine
from weft.machines.amd import ROWS

from ..instruction import Instruction
from .mfma import FP8
from .products import GFX11, GFX12, GFX950, GFX1250, Arguments, Shape, by_transposition, constant, entries, vector

OCP = FP8[GFX950]


class _Row(NamedTuple):
    name: str
    """Of the intrinsic, but for wmma and the type of the sums."""
    depth: int
    elems: tuple[str, str]
    accumulator: str
    k_width: int
    rate: int
    """Products in a cycle."""
    operand: str
    """LLVM's type of A and B."""
    kinds: str = "{a} {b} c"
    """What the arguments are: operands, and constants with their types."""


_PLAIN, _SIGNED = "{a} {b} c", "i1:{s} {a} i1:{t} {b} c"


def _fp8(depth: int, k_width: int, rate: int, operand: str, kinds: str) -> Iterator[_Row]:
    """Products of both kinds of fp8 with each other."""
    count = operand[1:].partition(" ")[0]
    for left in OCP:
        for right in OCP:
            name = f"16x16x{depth}.{{left}}.{{right}}.v8f32.v{count}i32"
            yield _Row(name, depth, (OCP[left], OCP[right]), "f32", k_width, rate, operand, kinds)


_AFTER = " i1:0 i1:0"
"""At the end of gfx1250's: operands that are not to be kept for the next product."""
_ROWS: dict[tuple[int, int], list[_Row]] = {
    (GFX11, GFX12): [
        _Row("16x16x16.f16.v8f32.v16f16", 16, ("f16", "f16"), "f32", 16, 128, "<16 x half>"),
        _Row("16x16x16.bf16.v8f32.v16i16", 16, ("bf16", "bf16"), "f32", 16, 128, "<16 x i16>"),
        _Row("16x16x16.iu8.v8i32.v4i32", 16, ("i8", "i8"), "i32", 16, 128, "<4 x i32>", _SIGNED + " i1:0"),
    ],
    (GFX12, GFX1250): [
        _Row("16x16x16.f16.v8f32.v8f16", 16, ("f16", "f16"), "f32", 8, 256, "<8 x half>"),
        _Row("16x16x16.bf16.v8f32.v8i16", 16, ("bf16", "bf16"), "f32", 8, 256, "<8 x i16>"),
        _Row("16x16x16.f16.v8f16.v8f16", 16, ("f16", "f16"), "f16", 8, 256, "<8 x half>", _PLAIN + " i1:0"),
        _Row("16x16x16.iu8.v8i32.v2i32", 16, ("i8", "i8"), "i32", 8, 512, "<2 x i32>", _SIGNED + " i1:0"),
        *_fp8(16, 8, 512, "<2 x i32>", _PLAIN),
    ],
    (GFX1250, 0): [
        _Row("16x16x4.f32.v8f32.v2f32", 4, ("f32", "f32"), "f32", 2, 32, "<2 x float>",
             "i1:0 {a} i1:0 {b} i16:0 c" + _AFTER),
        _Row("16x16x32.f16.v8f32.v16f16", 32, ("f16", "f16"), "f32", 8, 512, "<16 x half>",
             "i1:0 {a} i1:0 {b} i16:0 c" + _AFTER),
        _Row("16x16x32.bf16.v8f32.v16bf16", 32, ("bf16", "bf16"), "f32", 8, 512, "<16 x bfloat>",
             "i1:0 {a} i1:0 {b} i16:0 c" + _AFTER),
        _Row("16x16x32.f16.v8f16.v16f16", 32, ("f16", "f16"), "f16", 8, 512, "<16 x half>",
             "i1:0 {a} i1:0 {b} i16:0 c" + _AFTER),
        _Row("16x16x64.iu8.v8i32.v8i32", 64, ("i8", "i8"), "i32", 16, 1024, "<8 x i32>", _SIGNED + _AFTER),
        *_fp8(64, 16, 1024, "<8 x i32>", "{a} {b} i16:0 c" + _AFTER),
        *_fp8(128, 16, 1024, "<16 x i32>", "{a} {b} i16:0 c" + _AFTER),
    ],
}  # fmt: skip
VERSIONS = {GFX11: 1, GFX12: 2, GFX1250: 3}
"""The version of a layout, by the first generation that has it."""


def layout_of(shape: Shape, transposed: bool, warps: Sequence[int], machine: Machine) -> AMDWMMALayout:
    """The layout of a result that so many warps along each dimension make of an instruction."""
    version = max(v for since, v in VERSIONS.items() if since <= machine.generation)
    return AMDWMMALayout(version, transposed, list(warps), list(shape))


def _argument(text: str, row: _Row, total: str) -> tuple[str, str | int]:
    kind, _, number = text.partition(":")
    if number:
        return constant(int(number), type=kind)[0]
    return (total if text == "c" else row.operand), text


def _made(row: _Row, since: int, until: int, signed: tuple[bool, bool]) -> Iterator[Instruction]:
    shape, total = (16, 16, row.depth), vector(8, row.accumulator)
    is_bytes = row.elems[0] == "i8"
    kinds = tuple("s8" if s else "u8" for s in signed) if is_bytes else row.elems
    fp8 = {elem: name for name, elem in OCP.items()}
    names = [fp8.get(elem, "") for elem in row.elems]

    def arguments(rows: str, columns: str) -> Arguments:
        sign = dict(zip("ab", map(int, signed), strict=True))
        text = row.kinds.format(a=rows, b=columns, s=sign[rows], t=sign[columns])
        return tuple(_argument(x, row, total) for x in text.split())

    made = entries(
        f"wmma.{row.accumulator}.{row.name.format(left=names[0], right=names[1])}",
        shape, row.elems, row.accumulator, since, until, 256 * row.depth / row.rate,
        k_width=row.k_width,
        named=by_transposition(partial(layout_of, shape)),
        machine=next(x for x in ROWS if x.generation == since),
        described=f"AMDWMMALayout({VERSIONS[since]}, {{transposed}}, warps_per_cta, [16, 16, {row.depth}])",
        arguments=arguments,
        returns=total,
        types=(kinds[0], kinds[1]),
        suffix="." + ".".join(kinds) if is_bytes and not all(signed) else "",
    )  # fmt: skip
    for entry in made:
        if entry.params["transposed"] and names[0] != names[1]:  # the kinds change places with the operands
            text = f"llvm.amdgcn.wmma.{row.accumulator}.{row.name.format(left=names[1], right=names[0])}"
            entry = Instruction(**{**entry.__dict__, "text": text})
        yield entry


def wmma_instructions() -> Iterator[Instruction]:
    """All entries of WMMA, but for those with scales."""
    for (since, until), rows in _ROWS.items():
        for row in rows:
            for left in (True, False):
                for right in (True, False):
                    if row.elems[0] == "i8" or (left and right):
                        yield from _made(row, since, until, (left, right))
