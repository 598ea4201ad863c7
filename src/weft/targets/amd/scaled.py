"""Products of f8, f6 and f4, of which each operand has its own kind: MFMA of gfx950, plain and with scales of blocks,
and WMMA of gfx1250 with scales.

    mfma.f32.16x16x128.f8f6f4.f8E4M3FN.f8E5M2             A of one kind of fp8, B of another
    mfma.scale.f32.16x16x128.f8f6f4.f8E4M3FN.e2m1         the same with a scale for 32 elements along k each
    wmma.scale.f32.16x16x128.f8f6f4.e2m1.e2m1

In LLVM those of gfx950 are one intrinsic, with the kinds as numbers; without scales where these are 0. A lane has 16
bytes in a row along k, and 16 more behind those of all lanes, until it has its share; of e2m1, two are in a byte. Of f6
(e2m3 and e3m2) it has 32 in a row, which are 6 words. A scale is an exponent of 8 bits. On gfx950 it is the lowest byte
of a word: lane l has that of row l % M, or column, and of block l / M of 32 elements along k, whichever lanes have
these. On gfx1250 a word has those of four blocks, and lanes 0 to 15 are read. No processor was there to confirm it: it
is as AMD's examples for HIP load them, and as Triton 3.6.0 lays them out.

The language has no elements of 6 bits: their entries say what the instruction does, and nothing asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from weft.layouts import (
    AMDMFMALayout,
    AMDWMMALayout,
    DistributedLayout,
    DotOperandLayout,
    LinearLayout,
    mfma_scale_layout,
    wmma_scale_layout,
)
from weft.machines.amd import ROWS

from ..instruction import Array, Instruction, Operand
from ..meaning import from_matrix, round_to, to_matrix
from .mfma import FP8, layout_of
from .products import GFX11, GFX950, GFX1250, Arguments, Shape, by_transposition, constant, entries, tile_of, vector
from .wmma import layout_of as wmma_layout_of

KINDS = {"f8E4M3FN": 0, "f8E5M2": 1, "e2m3": 2, "e3m2": 3, "e2m1": 4}
"""Numbers of the kinds of elements."""
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
F6 = {"e2m3": (3, 1), "e3m2": (2, 3)}
"""Bits of the mantissa and the bias of elements of 6 bits, which have neither infinities nor NaN."""
BLOCK = 32
"""Elements along k that share a scale."""
BYTES = 16
"""What a lane has in a row along k, in bytes."""
SHAPES = ((32, 32, 64), (16, 16, 128))


def _intrinsic(shape: Sequence[int], words: Sequence[int]) -> str:
    m, n, k = shape
    return f"mfma.scale.f32.{m}x{n}x{k}.f8f6f4.v{words[0]}i32.v{words[1]}i32"


def _unscaled(operand: str, total: str, kind: Mapping[str, int], rows: str, columns: str) -> Arguments:
    """Of the intrinsic without scales."""
    numbers = constant(kind[rows], kind[columns], 0, 0, 0, 0)
    return ((operand, rows), (operand, columns), (total, "c"), *numbers)


def _plain() -> Iterator[Instruction]:
    """Products of fp8 of each kind, without scales."""
    kinds = FP8[GFX950].values()
    for left in kinds:
        for right in kinds:
            for shape in SHAPES:
                m, n, k = shape
                operand, total = vector(k * m // 64, left), vector(m * n // 64, "f32")

                kind = {"a": KINDS[left], "b": KINDS[right]}
                for entry in entries(
                    _intrinsic(shape, (8, 8)), shape, (left, right), "f32", GFX950, GFX11, m * n * k / 1024,
                    k_width=BYTES,
                    named=by_transposition(partial(layout_of, 32, shape)),
                    machine=next(row for row in ROWS if row.generation == GFX950),
                    described=f"AMDMFMALayout(4, [{m}, {n}, {k}], {{transposed}}, warps_per_cta)",
                    arguments=partial(_unscaled, operand, total, kind),
                    returns=total,
                ):  # fmt: skip
                    name = f"mfma.f32.{m}x{n}x{k}.f8f6f4.{left}.{right}"
                    name += ".transposed" if entry.params["transposed"] else ""
                    yield Instruction(**{**entry.__dict__, "name": name})


# -- layouts -------------------------------------------------------------------------------------------------------


def operand_layout(index: int, kind: str, result: DistributedLayout) -> DotOperandLayout:
    """The layout of an operand of a product with scales, by that of its result; e2m1 in bytes, two in each."""
    if isinstance(result, AMDWMMALayout) and kind == "e2m1":  # which Triton counts in bytes too
        warps, tiles = result.warps_per_cta, result.tiles_per_warp
        result = AMDWMMALayout(result.version, result.transposed, warps, [16, 16, 64], tiles)
    return DotOperandLayout(index, result, BYTES)


def scale_layout(operand: DotOperandLayout, shape: Sequence[int]) -> DistributedLayout:
    """The layout of an operand's scales, [M, K / 32] or [N, K / 32]."""
    of_mfma = isinstance(operand.parent, AMDMFMALayout)
    return mfma_scale_layout(operand, shape) if of_mfma else wmma_scale_layout(operand, shape)


def _tile_of_f6(index: int, size: int, depth: int) -> LinearLayout:
    """Of elements, which lie in words as they come."""
    bits = [[1 << i for i in range((n - 1).bit_length())] for n in (BLOCK, size, depth // BLOCK)]
    registers, lanes = [(0, x) for x in bits[0]], [(x, 0) for x in bits[1]] + [(0, BLOCK * x) for x in bits[2]]
    if index:
        registers, lanes = [(k, x) for x, k in registers], [(k, x) for x, k in lanes]
    sizes = {"dim0": depth, "dim1": size} if index else {"dim0": size, "dim1": depth}
    return LinearLayout.from_bases({"register": registers, "lane": lanes}, sizes)


# -- meaning -------------------------------------------------------------------------------------------------------


def _values(x: Array, kind: str, layout: LinearLayout, axis: int) -> Array:
    """A matrix of an operand as numbers; two of e2m1 in each byte along `axis`, the lower half first."""
    if kind in F6:
        return to_matrix(_of_six_bits(x, *F6[kind]), layout)
    matrix = to_matrix(x, layout)
    if kind != "e2m1":
        return matrix.astype(np.float64)
    bits = matrix.view(np.uint8)
    return np.stack([E2M1[bits & 15], E2M1[bits >> 4]], axis=axis + 1).reshape(
        *(size * (2 if i == axis else 1) for i, size in enumerate(matrix.shape))
    )


def _of_six_bits(words: Array, mantissa: int, bias: int) -> Array:
    """[warp, lane, 6 words] as [warp, lane, 32 elements]."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    codes = bits.reshape(*words.shape[:2], -1, 6).astype(np.int64) @ (1 << np.arange(6))
    exponent, fraction = codes >> mantissa & (1 << 5 - mantissa) - 1, codes & (1 << mantissa) - 1
    normal = exponent > 0
    magnitude = (fraction + (normal << mantissa)) * np.exp2(np.where(normal, exponent, 1) - bias - mantissa)
    values: Array = np.where(codes >> 5, -magnitude, magnitude)
    return values


def _factors(x: Array, layout: LinearLayout) -> Array:
    """Scales by exponent, [row or column, k]; 255 is no number."""
    exponent = to_matrix(x, layout).view(np.uint8).astype(np.int64)
    factor = np.where(exponent == 255, np.nan, np.exp2(exponent.astype(np.float64) - 127))
    return np.repeat(factor, BLOCK, axis=2)


def _meaning(layouts: Sequence[LinearLayout], kinds: tuple[str, str]) -> Callable[..., tuple[Array, ...]]:
    a, b, c, scale_a, scale_b = layouts

    def run(x: Array, y: Array, z: Array, s: Array, t: Array) -> tuple[Array, ...]:
        left = _values(x, kinds[0], a, 2) * _factors(s, scale_a)
        right = _values(y, kinds[1], b, 1) * _factors(t, scale_b).swapaxes(1, 2)
        return (from_matrix(round_to(to_matrix(z, c).astype(np.float64) + left @ right, "f32"), c),)

    return run


# -- entries with scales -------------------------------------------------------------------------------------------


def _mfma_arguments(types: Mapping[str, str], kinds: Mapping[str, int], total: str, *order: str) -> Arguments:
    rows, columns = order
    return (
        *((types[x], x) for x in order), (total, "c"), *constant(kinds[rows], kinds[columns]),
        *constant(0), ("i32", f"scale_{rows}"), *constant(0), ("i32", f"scale_{columns}"),
    )  # fmt: skip


def _wmma_arguments(types: Mapping[str, str], kinds: Mapping[str, int], total: str, *order: str) -> Arguments:
    """Scales of lanes 0 to 15, as exponents; operands that are not to be kept for the next product."""
    rows, columns = order
    return (
        *constant(kinds[rows]), (types[rows], rows), *constant(kinds[columns]), (types[columns], columns),
        *constant(0, type="i16"), (total, "c"),
        *constant(0, 0), ("i32", f"scale_{rows}"), *constant(0, 0), ("i32", f"scale_{columns}"),
        *constant(0, 0, type="i1"),
    )  # fmt: skip


def _side(
    index: int, kind: str, size: int, depth: int, result: DistributedLayout
) -> tuple[Operand, LinearLayout, Operand, LinearLayout]:
    """An operand and its scales, each with the layout of its tile."""
    letter, layout = "ab"[index], operand_layout(index, kind, result)
    if kind in F6:
        operand, tile = Operand(letter, "i32", 6, "r"), _tile_of_f6(index, size, depth)
    else:
        along = depth // 2 if kind == "e2m1" else depth
        tile = tile_of(layout, (along, size) if index else (size, along))
        operand = Operand(letter, "i8" if kind == "e2m1" else kind, tile.in_dims["register"], "r", tile)
    blocks = size, depth // BLOCK
    scales = tile_of(scale_layout(layout, blocks), blocks)
    return operand, tile, Operand(f"scale_{letter}", "i8", scales.in_dims["register"], "r", scales), scales


def _with_scales(shape: Shape, kinds: tuple[str, str], transposed: bool, since: int, until: int) -> Instruction:
    """One entry; the scales of an operand that has none are 127, which is 1."""
    m, n, k = shape
    is_mfma = since == GFX950
    named = partial(layout_of, 32, shape, transposed) if is_mfma else partial(wmma_layout_of, shape, transposed)
    result = named([1, 1], next(row for row in ROWS if row.generation == since))
    total, returns = tile_of(result, (m, n)), vector(m * n // (64 if is_mfma else 32), "f32")
    (a, tile_a, scale_a, scales_a), (b, tile_b, scale_b, scales_b) = (
        _side(index, kind, size, k, result) for index, (kind, size) in enumerate(zip(kinds, (m, n), strict=True))
    )
    order = (b, a) if transposed else (a, b)
    words = [o.words for o in order]
    types = {o.name: f"<{o.words} x i32>" for o in order}
    numbers = dict(zip("ab", (KINDS[kind] for kind in kinds), strict=True))
    family, intrinsic, arguments = "mfma", _intrinsic(shape, words), _mfma_arguments
    if not is_mfma:
        family, arguments = "wmma", _wmma_arguments
        intrinsic = f"wmma.scale.f32.{m}x{n}x{k}.f8f6f4.v8f32.v{words[0]}i32.v{words[1]}i32"
    sums = Operand("c", "f32", total.in_dims["register"], "r", total)
    return Instruction(
        f"{family}.scale.f32.{m}x{n}x{k}.f8f6f4.{kinds[0]}.{kinds[1]}{'.transposed' if transposed else ''}",
        since,
        f"llvm.amdgcn.{intrinsic}",
        (a, b, sums, scale_a, scale_b),
        (replace(sums, name="d"),),
        _meaning((tile_a, tile_b, total, scales_a, scales_b), kinds),
        m * n * k / (2048 if set(kinds) == {"e2m1"} else 1024),
        until=until,
        params={
            "shape": shape,
            "accumulator": "f32",
            "types": kinds,
            "scaled": True,
            "k_width": BYTES,
            "transposed": transposed,
            "named": named,
            "arguments": arguments(types, numbers, returns, *types),
            "returns": returns,
        },
    )


def scaled_instructions() -> Iterator[Instruction]:
    """All entries of this file."""
    yield from _plain()
    for transposed in (True, False):
        for left in KINDS:
            for right in KINDS:
                is_f6 = left in F6 or right in F6
                for shape in SHAPES if not (is_f6 and transposed) else ():
                    yield _with_scales(shape, (left, right), transposed, GFX950, GFX11)
                if not is_f6:
                    yield _with_scales((16, 16, 128), (left, right), transposed, GFX1250, 0)
