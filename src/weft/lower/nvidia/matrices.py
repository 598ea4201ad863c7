"""Matrices in shared memory as wgmma reads them: found by comparing the buffer's layout with each mode's.

A descriptor says an address, two distances and a swizzle; what it then reads is a linear map from the matrix to bytes
(`weft.targets.nvidia.canonical`). A tile of a buffer can be an operand if that map, for some distances, is the buffer's
own on every basis vector. The tile at (row, k) of the same buffer is the same matrix at another address, because the
layout is linear; where a swizzle moves that address, so does the hardware, which swizzles what it has added up.

>>> from weft.layouts import NVMMASharedLayout
>>> place = places(NVMMASharedLayout(128, 16, 2).to_linear([64, 64]), 2)
>>> matrix_of(place[0], place[1], 64, 16, 16)
Matrix(swizzle=128, trans=False, leading=16, stride=1024)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.layouts import LinearLayout, f2
from weft.targets.nvidia import canonical

Columns = Sequence[int]


@dataclass(frozen=True)
class Matrix:
    """What the descriptors of a buffer's tiles have in common; distances are bytes."""

    swizzle: int
    trans: bool
    leading: int
    stride: int


def places(memory: LinearLayout, width: int) -> list[list[int]]:
    """For each dimension of a buffer the bytes at which coordinates 1, 2, 4, ... lie, of what one block has of it."""
    inverse = of_block(memory).pseudoinvert()
    low = memory.in_dims["offset"] - 1
    return [[(x & low) * width for x in inverse.in_columns(d)] for d in memory.out_dims]


def of_block(memory: LinearLayout) -> LinearLayout:
    """A buffer as the first block of a cluster has it, and as large: only offsets."""
    bases = memory.bases["offset"]
    reached = [0] * len(memory.out_dims)
    for basis in bases:
        reached = [x | y for x, y in zip(reached, basis, strict=True)]
    sizes = {d: 1 << x.bit_length() for d, x in zip(memory.out_dims, reached, strict=True)}
    return LinearLayout.from_bases({"offset": bases}, sizes)


def matrix_of(rows: Columns, depth: Columns, m: int, k: int, bits: int) -> Matrix | None:
    """The matrix of m rows (along M or N) and k columns, by the places of coordinates; None where it is none."""
    row_bits, k_bits = (m - 1).bit_length(), (k - 1).bit_length()
    if len(rows) < row_bits or len(depth) < k_bits:
        return None
    want = list(rows[:row_bits]), list(depth[:k_bits])
    for swizzle in (128, 64, 32, 16):
        for trans in (False, True) if bits == 16 else (False,):
            leading, stride = _distances(want, bits // 8, swizzle, trans)
            if leading % 16 or stride % 16 or not 0 <= max(leading, stride) < 1 << 18:
                continue
            if (*map(list, canonical(m, k, bits, leading, stride, swizzle, trans)),) == want:
                return Matrix(swizzle, trans, leading, stride)
    return None


def _distances(want: tuple[list[int], list[int]], size: int, swizzle: int, trans: bool) -> tuple[int, int]:
    """The only distances that the layout could have: where its first bits beyond a chunk, or beyond 8 lines, lie."""
    inside, lines = want if trans else want[::-1]
    beyond = (swizzle // size).bit_length() - 1
    far = inside[beyond] if beyond < len(inside) else 16
    near = lines[3] if len(lines) > 3 else 16
    if trans and swizzle == 16:
        return near, far
    return (far, near)


def start(matrix: Matrix, place: int) -> int:
    """The bytes from the buffer's beginning that the descriptor's address names, for a tile whose origin lies there."""
    return place ^ (place >> 3 & (matrix.swizzle // 16 - 1) << 4)


def origin(rows: Columns, depth: Columns, row: int, k: int) -> int:
    """Where the element (row, k) of a buffer lies."""
    return f2.multiply(rows, row) ^ f2.multiply(depth, k)
