"""Matrix products by tile registers: AMX.

A tile register holds up to 16 rows of 64 bytes. One instruction adds to a tile of 16x16 sums the product of a tile of
A, 16 rows of 32 bf16 or 64 bytes along K, and one of B, whose rows are 16 words: the elements of a word are neighbours
along K. There are eight of them, so four hold sums, two A and two B; each is loaded once for two instructions:

    sums 0, 1   +=   A 4   x   B 6, B 7        for each step along K: load 4, 6, 7, 5, multiply four times
    sums 2, 3        A 5

A lies by rows as it is; B in panels as wide as the two tiles (`dot.panel_weights`): a load of a tile steps over what is
not in it. Where there is but one row of tiles, it is four tiles wide, and B's take turns in three registers.

How many rows and bytes a register has is set by a configuration, the same for all kernels: 16 rows of 64 bytes. A
worker sets it when it begins and lets go of it when it is done, so that the system need not keep tiles of threads that
do something else. What runs in between and is not ours (a handler of a signal, a print) may do as it likes, so it is
set again after it. The system gives tiles to a process that asks (`host.tiles_are_granted`).
"""

from __future__ import annotations

import struct
from dataclasses import replace

from weft.backends.cpu.operands import Matrix, Operands
from weft.backends.cpu.plans import TILES_OF_SUMS as SUMS, Plan
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I8, I64, PTR, Value as Reg, const, vec

ROW_BYTES, ROWS = 64, 16
AT_ONCE = 16
"""How many products are done in the time of one by vectors, roughly."""
CONFIGURATION = "@weft.tiles"


def configure(f: Function) -> None:
    """Set rows and bytes of all tile registers; they are zero then."""
    if not any(line.startswith(CONFIGURATION) for line in f.module.globals):
        # The palette and where to go on; 16 widths in bytes from byte 16 on; 16 numbers of rows from byte 48 on.
        sizes = struct.pack("<16B16H16B", 1, *[0] * 15, *[ROW_BYTES] * 8, *[0] * 8, *[ROWS] * 8, *[0] * 8)
        text = ", ".join(f"i8 {size}" for size in sizes)
        f.module.globals.append(f"{CONFIGURATION} = internal constant [{len(sizes)} x i8] [{text}], align 64\n")
    f.call_void("llvm.x86.ldtilecfg", [Reg(PTR, CONFIGURATION)])


def release(f: Function) -> None:
    """Let go of the tile registers."""
    f.call_void("llvm.x86.tilerelease", [])


def multiply(f: Function, p: Plan, at: Operands, size: tuple[int, int, int], pieces: Reg, from_zero: bool) -> None:
    """C (m x n) = or += A times B.

    There may be several `pieces` of A, of `size`, one behind the other; a panel of B goes on through them.
    """
    m, n, _ = size
    with (
        f.loop(const(I64, 0), const(I64, n), const(I64, p.panel), at_least_once=True) as column,
        f.loop(const(I64, 0), const(I64, m), const(I64, p.down), at_least_once=True) as row,
    ):
        sums = f.gep(vec("float", 0), at.c, f.add(f.mul(row, const(I64, n)), column))
        left = Matrix(at.a.row(f, row), at.a.stride)
        _block(f, p, Operands(left, replace(at.b, address=at.b.panel(f, column)), sums), size, pieces, from_zero)


def _block(f: Function, p: Plan, at: Operands, size: tuple[int, int, int], pieces: Reg, from_zero: bool) -> None:
    """A block of tiles, at whose first row and column A, B and C begin."""
    by, (m, n, depth) = p.by, size
    assert by is not None
    c_row, b_row, a_piece = n * 4, p.panel * 4, m * depth * 4 // p.pair
    sums = [(i, j, const(I8, i * p.vectors + j)) for i in range(p.rows) for j in range(p.vectors)]
    for i, j, number in sums:
        if from_zero:
            f.call_void("llvm.x86.tilezero", [number])
        else:
            _move(f, "load", number, at.c, i * ROWS * c_row + j * ROW_BYTES, c_row)
    lefts = [const(I8, SUMS + i) for i in range(p.rows)]
    rights = [const(I8, SUMS + p.rows + j % (SUMS - p.rows)) for j in range(p.vectors)]
    rows_of_b = by.depth // by.pair
    steps, one = const(I64, depth // by.depth), const(I64, 1)
    with (
        f.loop(const(I64, 0), pieces, one, at_least_once=True) as piece,
        f.loop(const(I64, 0), steps, one, at_least_once=True) as k,
    ):
        step = f.add(f.mul(piece, steps), k)
        a = f.gep(I8, f.gep(I8, at.a.address, f.mul(piece, const(I64, a_piece))), f.mul(k, const(I64, ROW_BYTES)))
        b = f.gep(I8, at.b.address, f.mul(step, const(I64, rows_of_b * b_row)))
        for i, j, number in sorted(sums, key=lambda s: s[1]):  # by columns: one tile of B after the other
            if j == 0:
                there = f.gep(I8, a, f.mul(at.a.stride, const(I64, i * ROWS)))
                f.call_void("llvm.x86.tileloadd64", [lefts[i], there, at.a.stride])
            if i == 0:
                _move(f, "load", rights[j], b, j * ROW_BYTES, b_row)
            f.call_void(f"llvm.x86.{by.name}", [number, lefts[i], rights[j]])
    for i, j, number in sums:
        _move(f, "store", number, at.c, i * ROWS * c_row + j * ROW_BYTES, c_row)


def _move(f: Function, way: str, number: Reg, base: Reg, offset: int, stride: int) -> None:
    """Load a tile register, or store it."""
    name = {"load": "llvm.x86.tileloadd64", "store": "llvm.x86.tilestored64"}[way]
    f.call_void(name, [number, f.gep(I8, base, const(I64, offset)), const(I64, stride)])
