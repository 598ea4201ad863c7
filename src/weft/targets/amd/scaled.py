"""MFMA of gfx950 on f8, f6 and f4, of which each operand has its own kind: plain, and with scales of blocks.

    mfma.f32.16x16x128.f8f6f4.f8E4M3FN.f8E5M2             A of one kind of fp8, B of another
    mfma.scale.f32.16x16x128.f8f6f4.f8E4M3FN.e2m1         the same with a scale for 32 elements along k each

In LLVM both are one intrinsic, with the kinds as numbers; without scales where these are 0. A lane has 16 bytes in a
row along k, and 16 more behind those of all lanes; of e2m1, which are two in a byte, 16 bytes. A scale is an exponent
of 8 bits, in the lowest byte of a word: lane l has that of row l % M, or column, and of block l / M of 32 elements
along k, whichever lanes have these. No processor was there to confirm it: it is as AMD's examples for HIP load them.

f6 (e2m3, e3m2) have no entries: the language has no such elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from weft.layouts import AMDMFMALayout, DotOperandLayout, LinearLayout
from weft.machines.amd import ROWS

from ..instruction import Array, Instruction, Operand
from ..meaning import from_matrix, round_to, to_matrix
from .mfma import FP8, layout_of
from .products import GFX11, GFX950, Arguments, by_transposition, constant, entries, tile_of, vector

KINDS = {"f8E4M3FN": 0, "f8E5M2": 1, "e2m1": 4}
"""Numbers of the kinds of elements; f6 are 2 and 3."""
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
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


def scale_layout(size: int, blocks: int, along: str, other: str) -> LinearLayout:
    """Which scale each lane has: of a row or column, and of a block along k."""
    first, second = [1 << i for i in range(size.bit_length() - 1)], [1 << i for i in range(blocks.bit_length() - 1)]
    places = [(x, 0) for x in first] + [(0, x) for x in second]
    sizes = {other: size, along: blocks}
    if other > along:
        places, sizes = [(y, x) for x, y in places], {along: blocks, other: size}
    return LinearLayout.from_bases({"register": [], "lane": places}, sizes)


def _values(x: Array, kind: str, axis: int) -> Array:
    """A matrix of operands as numbers; two of e2m1 in each byte, the lower half first."""
    if kind != "e2m1":
        return x.astype(np.float64)
    bits = x.view(np.uint8)
    return np.stack([E2M1[bits & 15], E2M1[bits >> 4]], axis=axis + 1).reshape(
        *(size * (2 if i == axis else 1) for i, size in enumerate(x.shape))
    )


def _factors(x: Array, axis: int) -> Array:
    """Scales by exponent, for each element along k; 255 is no number."""
    exponent = (x & 255).astype(np.int64)
    factor = np.where(exponent == 255, np.nan, np.exp2(exponent.astype(np.float64) - 127))
    return np.repeat(factor, BLOCK, axis=axis)


def _meaning(layouts: Sequence[LinearLayout], kinds: tuple[str, str]) -> Callable[..., tuple[Array, ...]]:
    a, b, c, scale_a, scale_b = layouts

    def run(x: Array, y: Array, z: Array, s: Array, t: Array) -> tuple[Array, ...]:
        left = _values(to_matrix(x, a), kinds[0], 2) * _factors(to_matrix(s, scale_a), 2)
        right = _values(to_matrix(y, b), kinds[1], 1) * _factors(to_matrix(t, scale_b), 1)
        return (from_matrix(round_to(to_matrix(z, c).astype(np.float64) + left @ right, "f32"), c),)

    return run


def _scaled() -> Iterator[Instruction]:
    """Products with scales; those of the operand that has none are 127, which is 1."""
    machine = next(row for row in ROWS if row.generation == GFX950)
    for kinds in ((left, right) for left in KINDS for right in KINDS):
        for shape in SHAPES:
            for transposed in (True, False):
                result = layout_of(32, shape, transposed, [1, 1], machine)
                yield _with_scales(shape, kinds, transposed, result)


def _with_scales(
    shape: tuple[int, int, int], kinds: tuple[str, str], transposed: bool, result: AMDMFMALayout
) -> Instruction:
    m, n, k = shape
    bytes_along = [k // 2 if kind == "e2m1" else k for kind in kinds]
    total = tile_of(result, (m, n))
    a = tile_of(DotOperandLayout(0, result, BYTES), (m, bytes_along[0]))
    b = tile_of(DotOperandLayout(1, result, BYTES), (bytes_along[1], n))
    scale_a, scale_b = scale_layout(m, k // BLOCK, "dim1", "dim0"), scale_layout(n, k // BLOCK, "dim0", "dim1")
    elems = ["i8" if kind == "e2m1" else kind for kind in kinds]
    counts = [x.in_dims["register"] for x in (a, b, total)]
    operands = (
        Operand("a", elems[0], counts[0], "r", a),
        Operand("b", elems[1], counts[1], "r", b),
        Operand("c", "f32", counts[2], "r", total),
        Operand("scale_a", "i32", 1, "r", scale_a),
        Operand("scale_b", "i32", 1, "r", scale_b),
    )
    order = ("b", "a") if transposed else ("a", "b")
    words = {"a": counts[0] // 4, "b": counts[1] // 4}
    numbers = {"a": KINDS[kinds[0]], "b": KINDS[kinds[1]]}
    rows, columns = order
    arguments: Arguments = (
        (f"<{words[rows]} x i32>", rows), (f"<{words[columns]} x i32>", columns), (vector(counts[2], "f32"), "c"),
        *constant(numbers[rows], numbers[columns]),
        *constant(0), ("i32", f"scale_{rows}"), *constant(0), ("i32", f"scale_{columns}"),
    )  # fmt: skip
    return Instruction(
        f"mfma.scale.f32.{m}x{n}x{k}.f8f6f4.{kinds[0]}.{kinds[1]}{'.transposed' if transposed else ''}",
        GFX950,
        f"llvm.amdgcn.{_intrinsic(shape, (words[rows], words[columns]))}",
        operands,
        (Operand("d", "f32", counts[2], "r", total),),
        _meaning((a, b, total, scale_a, scale_b), kinds),
        m * n * k / (2048 if set(kinds) == {"e2m1"} else 1024),
        until=GFX11,
        params={
            "shape": shape,
            "accumulator": "f32",
            "types": kinds,
            "scaled": True,
            "k_width": BYTES,
            "transposed": transposed,
            "arguments": arguments,
            "returns": vector(counts[2], "f32"),
        },
    )


def scaled_instructions() -> Iterator[Instruction]:
    """All entries of this file."""
    yield from _plain()
    yield from _scaled()
