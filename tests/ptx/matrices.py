"""Matrices in the registers of a warp: ldmatrix, stmatrix, mma.

Where the elements are is in PTX ISA, "Warp Level Matrix Instructions", in the figures of each shape: with g = lane / 4
and t = lane % 4, a register of A holds row g (or g + 8), B column g, C row g and columns 2t, 2t + 1. Products are
summed in float64 and rounded once; the tensor cores keep fewer bits on the way.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from weft.sim.nvidia.ptx_values import BYTES, FLOATS

from .memory import locate
from .state import WARP, Array, Operand, State, Statement, Unknown, means, parts_of

ELEMENTS: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": FLOATS["bf16"],
    "tf32": np.dtype(np.float32),
    "e4m3": BYTES["e4m3x2"],
    "e5m2": BYTES["e5m2x2"],
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "f64": np.dtype(np.float64),
}
RESULTS: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "s32": np.dtype(np.int32),
    "f64": np.dtype(np.float64),
}
LANE = np.arange(WARP)
G, T = LANE // 4, LANE % 4


@means("ldmatrix", "stmatrix")
def _matrix(s: State, i: Statement) -> None:
    """8 x 8 elements of 16 bits each: lane 8k + r has the address of row r of matrix k; `.trans` transposes them."""
    if i.name[-1] != "b16" or "m8n8" not in i.name:
        raise Unknown(str(i))
    load = i.name[0] == "ldmatrix"
    registers, address = i.operands if load else (i.operands[1], i.operands[0])
    count = len(parts_of(registers))
    space, addresses, threads = locate(s, address, ("shared",))
    lanes = threads % WARP < 8 * count
    rows, owners = addresses[lanes], threads[lanes]
    shape = (len(owners) // (8 * count), count, 8, 8)
    if load:
        tiles = np.ascontiguousarray(space.read(rows, 16, owners)).view(np.uint16).reshape(shape)
        tiles = tiles.swapaxes(2, 3) if "trans" in i.name else tiles
        packed = np.ascontiguousarray(tiles).view(np.uint32).reshape(-1, count, WARP)
        for k, register in enumerate(parts_of(registers)):
            word = np.zeros(s.threads, np.uint32)
            word[threads] = packed[:, k].reshape(-1)
            s.write(register, word)
        return
    held = np.stack([s.full(register, "b32")[threads].reshape(-1, WARP) for register in parts_of(registers)], 1)
    tiles = np.ascontiguousarray(held).view(np.uint16).reshape(shape)
    tiles = np.ascontiguousarray(tiles.swapaxes(2, 3) if "trans" in i.name else tiles)
    space.write(rows, tiles.view(np.uint8).reshape(-1, 16), owners)


def _elements(s: State, register: Operand, type: str, warp: slice) -> Array:
    """The elements that each lane's register holds: [32, how many]."""
    if type == "f64":
        return s.full(register, "b64")[warp].view(np.float64).reshape(WARP, 1)
    bits = s.full(register, "b32")[warp]
    if type == "tf32":
        bits = bits & np.uint32(0xFFFFE000)  # the lower bits are not looked at
    dtype: np.dtype[Any] = ELEMENTS[type] if type in ELEMENTS else RESULTS[type]
    return np.asarray(np.ascontiguousarray(bits).view(dtype).reshape(WARP, -1))


def _places_c(k: int, per: int) -> tuple[Array, Array]:
    """Row and column of each element that register k of C holds: [32, how many]."""
    first = k * per
    elements = np.arange(first, first + per)
    return G[:, None] + 8 * (elements // 2), 2 * T[:, None] + elements % 2


@means("mma")
def _mma(s: State, i: Statement) -> None:
    shape = next((m for part in i.name if (m := re.match(r"m(\d+)n8k(\d+)$", part))), None)
    types = [part for part in i.name if part in ELEMENTS or part in RESULTS]
    strange = {"sp", "kind", "block_scale", "xor", "popc"} & set(i.name)
    if shape is None or len(types) != 4 or strange or "row" not in i.name or "col" not in i.name:
        raise Unknown(str(i))
    d_type, a_type, b_type, c_type = types
    if a_type not in ELEMENTS or (int(shape[1]) != 16 and a_type != "f64"):
        raise Unknown(str(i))
    rows, depth = int(shape[1]), int(shape[2])
    d, a, b, c = (parts_of(operand) for operand in i.operands)
    results = [s.every(0) for _ in d]
    for warp in s.warps():
        product = _left(s, a, a_type, warp, rows, depth) @ _right(s, b, b_type, warp, depth)
        sums = product + _third(s, c, c_type, warp, rows)
        if "satfinite" in i.name:  # of integers
            sums = sums.clip(-(1 << 31), (1 << 31) - 1)
        for number, result in enumerate(results):
            per = 2 if d_type == "f16" else 1
            values = np.ascontiguousarray(sums[_places_c(number, per)].astype(RESULTS[d_type]))
            result[warp] = values.view("u8" if d_type == "f64" else "u4")[:, 0]
    for register, result in zip(d, results, strict=True):
        s.write(register, result)


def _wide(type: str) -> np.dtype[Any]:
    return np.dtype(np.int64 if type in ("s8", "u8", "s32") else np.float64)


def _left(s: State, registers: tuple[Operand, ...], type: str, warp: slice, m: int, k: int) -> Array:
    """A: [m, k]. Registers go down the rows by eights first, then along the columns."""
    a = np.zeros((m, k), _wide(type))
    down = m // 8
    for number, register in enumerate(registers):
        values = _elements(s, register, type, warp)
        per = values.shape[1]
        columns = number // down * 4 * per + T[:, None] * per + np.arange(per)
        a[G[:, None] + 8 * (number % down), columns] = values.astype(a.dtype)
    return a


def _right(s: State, registers: tuple[Operand, ...], type: str, warp: slice, k: int) -> Array:
    """B: [k, 8]."""
    b = np.zeros((k, 8), _wide(type))
    for number, register in enumerate(registers):
        values = _elements(s, register, type, warp)
        per = values.shape[1]
        b[number * 4 * per + T[:, None] * per + np.arange(per), G[:, None]] = values.astype(b.dtype)
    return b


def _third(s: State, registers: tuple[Operand, ...], type: str, warp: slice, m: int) -> Array:
    """C: [m, 8]."""
    c = np.zeros((m, 8), _wide(type))
    for number, register in enumerate(registers):
        values = _elements(s, register, type, warp)
        c[_places_c(number, values.shape[1])] = values.astype(c.dtype)
    return c
