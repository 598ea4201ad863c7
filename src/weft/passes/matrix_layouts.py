"""Layouts of the operands and the result of a product, derived from the machine's matrix instructions.

The first instruction whose tile divides the product determines them: its own tile is repeated over warps and registers.

    a machine of 16 lanes, 8 x 16 x 16 of f16 (a lane has a column of the result), 32 x 32 x 32, two warps along rows
    result   registers: 8 rows, then 16 rows further, 16 columns further    lane: column    warp: 8 rows further
    left     registers: 8 rows, then 16 rows further, 16 further along k    lane: k         warp: 8 rows further
    right    registers: 16 along k, then 16 columns, 16 further along k     lane: column    warp: nothing

If the language has a name for such layouts (NVIDIA's fragments), the instruction supplies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.layouts import DistributedLayout, DotOperandLayout, LinearLayout
from weft.machines import Machine
from weft.targets.instruction import Instruction

from .blocks_of_clusters import Bases, divided

Layout = DistributedLayout | LinearLayout


def matrix_layouts(
    entries: Sequence[Instruction],
    shape: Sequence[int],
    depth: int,
    machine: Machine,
    warps: int,
    chained: bool,
    division: Bases,
    *,
    fed: bool = False,
) -> tuple[Layout, Layout, Layout] | None:
    """Those of the left operand, the right one and the result; None where no instruction that was found fits.

    With `chained`, the result is an operand of another product: warps lie along rows as far as there are any, so that
    it need not move. With `fed`, the left operand is made of another product's result, which gives each lane some
    elements in a row. The shape is a block's part of the product, and `division` says how blocks divide the whole.
    """
    rows, columns = shape[-2:]

    def order(entry: Instruction) -> tuple[bool, int]:
        """First those that leave no warp idle; where results are passed on, those whose warps all lie along rows."""
        return _tiles(entry, shape) < warps, -min(warps, rows // _tile(entry)[0]) if chained else 0

    for entry in sorted(entries, key=order):
        m, n = _tile(entry)
        # Of instructions whose layouts are the same, a shorter one does the rest.
        least = entry.shape[2] if "k_width" in entry.params else min(x.shape[2] for x in entries)
        if rows >= m and columns >= n and depth >= least:
            parts = _warps_along(shape, m, n, warps, chained)
            if "named" in entry.params:
                result: DistributedLayout = divided(entry.params["named"](parts, machine), division)
                width = entry.params.get("k_width", max(1, 32 // entry.operands[0].bits))
                if not isinstance(width, tuple):  # of both operands
                    width = (min(width, entry.params.get("run", width)) if fed else width,) * 2
                return DotOperandLayout(0, result, width[0]), DotOperandLayout(1, result, width[1]), result
            if len(shape) == 2 and depth >= entry.shape[2] and not division:
                left, right, total = (x.layout for x in entry.operands[:3])
                return (
                    _repeated(left, (rows, depth), (parts[0], -parts[1])),
                    _repeated(right, (depth, columns), (-parts[0], parts[1])),
                    _repeated(total, (rows, columns), (parts[0], parts[1])),
                )
    return None


def _tile(entry: Instruction) -> tuple[int, int]:
    """The rows and columns that a product has at least."""
    m, n = entry.params.get("tile", entry.shape[:2])
    return m, n


def _tiles(entry: Instruction, shape: Sequence[int]) -> int:
    """How many of an instruction's tiles a product has."""
    m, n = _tile(entry)
    return prod(shape[:-2]) * (shape[-2] // m) * (shape[-1] // n)


def _warps_along(shape: Sequence[int], m: int, n: int, warps: int, chained: bool) -> list[int]:
    """How many warps lie along each dimension of a result that is made of tiles of m x n."""
    rows, columns = shape[-2:]
    parts = [1] * len(shape)
    if len(shape) == 3:
        parts[0] = min(shape[0], warps)
    left = warps // prod(parts)
    while left > 1:
        taller = rows // (m * parts[-2]) >= columns // (m * parts[-1])  # what a warp has is nearly square
        along_rows = ((chained or taller) and parts[-2] < rows // m) or parts[-1] >= columns // n
        parts[-2 if along_rows else -1] *= 2
        left //= 2
    return parts


def _repeated(tile: LinearLayout | None, shape: tuple[int, int], warps: tuple[int, int]) -> LinearLayout:
    """An instruction's tile, by so many warps along each dimension, and by registers over the rest of the shape.

    Warps of a negative number share what they have along that dimension.
    """
    assert tile is not None
    tile = tile.transpose_outs(["dim0", "dim1"])
    sizes = list(tile.out_dims.values())
    by_warp: list[tuple[int, int]] = []
    for dim in (1, 0):
        for _ in range(abs(warps[dim]).bit_length() - 1):
            step = sizes[dim] if warps[dim] > 0 and sizes[dim] < shape[dim] else 0
            by_warp.append((step, 0) if dim == 0 else (0, step))
            sizes[dim] <<= step > 0
    registers = list(tile.bases["register"])
    for dim in (1, 0):
        while sizes[dim] < shape[dim]:
            registers.append((sizes[dim], 0) if dim == 0 else (0, sizes[dim]))
            sizes[dim] *= 2
    lanes = list(tile.bases["lane"])
    bases: dict[str, list[tuple[int, ...]]] = {"register": registers, "lane": lanes, "warp": [*by_warp], "block": []}
    return LinearLayout.from_bases(bases, dict(zip(("dim0", "dim1"), shape, strict=True)))
