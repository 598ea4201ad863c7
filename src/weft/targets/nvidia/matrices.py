"""ldmatrix and stmatrix: a warp moves 8x8 matrices of 16-bit elements between shared memory and fragments.

Lane i gives the address of row i % 8 of matrix i / 8, 16 bytes that must be aligned to 16. The matrices are stacked:
row r of matrix j is row 8 j + r of the operand's layout. `trans` gives lane l what is in column l / 4 of each matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from weft.layouts import LinearLayout

from ..instruction import Array, Instruction, Memory, Operand
from ..meaning import from_matrix, to_matrix


def matrix_layout(matrices: int, trans: bool) -> LinearLayout:
    """The fragment of 1, 2 or 4 stacked matrices."""

    def at(across: int, along: int) -> tuple[int, int]:
        return (along, across) if trans else (across, along)

    registers = [at(0, 1), *((8 << i, 0) for i in range(matrices.bit_length() - 1))]
    lanes = [at(0, 2), at(0, 4), at(1, 0), at(2, 0), at(4, 0)]
    return LinearLayout.from_bases({"register": registers, "lane": lanes}, {"dim0": 8 * matrices, "dim1": 8})


def _active(address: Array, rows: int) -> Array:
    return np.broadcast_to(np.arange(address.shape[1]) < rows, address.shape[:2])


def _load(layout: LinearLayout) -> Callable[..., tuple[Array, ...]]:
    rows = layout.out_dims["dim0"]

    def run(memory: Memory, address: Array) -> tuple[Array, ...]:
        rows_read = memory.read("shared", address[:, :, 0], 16, _active(address, rows))
        return (from_matrix(np.ascontiguousarray(rows_read[:, :rows]).view(np.int16), layout),)

    return run


def _store(layout: LinearLayout) -> Callable[..., tuple[Array, ...]]:
    rows = layout.out_dims["dim0"]

    def run(memory: Memory, address: Array, value: Array) -> tuple[Array, ...]:
        matrix = np.ascontiguousarray(to_matrix(value, layout)).view(np.uint8)
        data = np.zeros((*address.shape[:2], 16), np.uint8)
        data[:, :rows] = matrix
        memory.write("shared", address[:, :, 0], data, _active(address, rows))
        return ()

    return run


def matrix_instructions() -> Iterator[Instruction]:
    """All entries of ldmatrix and stmatrix."""
    for trans in (False, True):
        for count in (1, 2, 4):
            layout = matrix_layout(count, trans)
            address = Operand("address", "i32", 1, "r")
            suffix = ".trans" if trans else ""
            params = {"matrices": count, "trans": trans}
            yield Instruction(
                name=f"ldmatrix{suffix}.x{count}",
                since=75,
                text=f"ldmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 <d*>, [<address>];",
                operands=(address,),
                results=(Operand("d", "i16", 2 * count, "r", layout),),
                semantics=_load(layout),
                cost=float(count),
                touches="shared",
                width=16,
                params=params,
            )
            yield Instruction(
                name=f"stmatrix{suffix}.x{count}",
                since=90,
                text=f"stmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 [<address>], <value*>;",
                operands=(address, Operand("value", "i16", 2 * count, "r", layout)),
                semantics=_store(layout),
                cost=float(count),
                touches="shared",
                width=16,
                stores=True,
                version="7.8",
                params=params,
            )
