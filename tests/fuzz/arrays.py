"""What a random kernel is launched on: arrays filled from its seed, some of which share memory, between guards.

blocks(program)              what lies in memory, and which arrays are which parts of it
memories(program, guarded)   the same in the host's memory; guarded: between pages that may not be touched
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from .elements import DTYPES, Array, is_float
from .program import Array1D, Program

PAGE = mmap.PAGESIZE


class Guarded:
    """Memory between two pages that may not be touched."""

    def __init__(self, size: int, at_end: bool) -> None:
        room = -(-max(1, size) // PAGE) * PAGE
        self.map = mmap.mmap(-1, room + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        libc = ctypes.CDLL(None)
        for page in (start, start + PAGE + room):
            if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
                raise OSError("mprotect")
        self.offset = PAGE + (room - size if at_end else 0)
        self.size = size

    def array(self, dtype: np.dtype[Any]) -> Array:
        return np.frombuffer(self.map, dtype, self.size // dtype.itemsize, self.offset)


@dataclass
class Block:
    """A piece of memory: what it holds at first, whether a guard follows at once, and the arrays that lie in it."""

    values: Array
    tight: bool
    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each array where it begins and how many elements it has."""


def contents(rng: np.random.Generator, array: Array1D, n: int, rough: bool = False) -> Array:
    """`n` elements of an array at the launch; floats are whole numbers unless `rough`."""
    if array.elem == "i1":
        return rng.integers(0, 2, n).astype(bool)
    if array.special:
        return anything(rng, array.elem, n)
    lo, hi = array.lo, array.hi
    if array.kind in ("out", "atomic") or is_float(array.elem):
        lo, hi = max(lo, -8), min(hi, 8)
    values = rng.integers(lo, hi, n, endpoint=True, dtype=np.int64)
    if is_float(array.elem):
        if rough:
            return np.clip(values + rng.uniform(-0.5, 0.5, n), lo, hi).astype(DTYPES[array.elem])
        return values.astype(np.float32).astype(DTYPES[array.elem])
    if array.kind in ("in", "inout"):
        values = np.where(rng.random(n) < 0.5, rng.choice(whole_corners(array.lo, array.hi), n), values)
    return values.astype(DTYPES[array.elem])


def whole_corners(lo: int, hi: int) -> Array:
    """The least and the greatest whole numbers of a range, those around zero, and those around powers of two."""
    powers = [sign * (1 << n) + d for n in (7, 8, 15, 16, 31, 32) for sign in (-1, 1) for d in (-1, 0, 1)]
    every = (lo, lo + 1, hi - 1, hi, -1, 0, 1, *powers)
    return np.array(sorted({v for v in every if lo <= v <= hi}), np.int64)


def anything(rng: np.random.Generator, elem: str, n: int) -> Array:
    """Floats of all kinds: any bits, NaNs of any payload, corners of the type, numbers and what is near to them."""
    dtype = DTYPES[elem]
    info = ml_dtypes.finfo(dtype)
    e, tiny, least, most = (float(v) for v in (info.eps, info.tiny, info.smallest_subnormal, info.max))
    corners = [
        np.nan,
        np.inf,
        0.0,
        1.0,
        1 + e,
        1 - e / 2,
        1 + 2 * e,
        least,
        3 * least,
        tiny,
        tiny - least,
        most,
        most / 2,
    ]
    any_bits = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(f"u{dtype.itemsize}")
    infinity = np.array([np.inf], dtype).view(any_bits.dtype)
    numbers = (
        rng.choice([*corners, *(-c for c in corners)], n),
        rng.integers(-9, 9, n) / 8,
        np.ldexp(rng.uniform(-2, 2, n), rng.integers(-20, 20, n)),
        rng.integers(-40, 40, n) * 2048.5,
    )
    with np.errstate(all="ignore"):
        rounded = [values.astype(dtype).view(any_bits.dtype) for values in numbers]
    kinds = (any_bits, any_bits | infinity | 1, *rounded)
    return np.choose(rng.integers(0, len(kinds), n), kinds).view(dtype)


def blocks(program: Program, rough: bool = False) -> list[Block]:
    """The memory of a launch, filled from the seed."""
    rng = np.random.default_rng(program.seed)
    shared = {b: (a, k) for a, b, k in program.overlaps}
    result: list[Block] = []
    by_name = {a.name: a for a in program.arrays}
    for array in program.arrays:
        n = program.elements(array)
        values = contents(rng, array, n, rough)
        if array.name in shared or any(array.name == a for a, _ in shared.values()):
            continue
        result.append(Block(values, array.tight, {array.name: (0, n)}))
    for b, (a, k) in shared.items():
        both = np.random.default_rng(program.seed + 1)
        first = by_name[a]
        m, n = program.elements(first), program.elements(by_name[b])
        whole = Array1D("", first.elem, "inout", first.lo, first.hi, special=first.special)
        values = contents(both, whole, max(m, k + n), rough)
        result.append(Block(values, first.tight, {a: (0, m), b: (k, n)}))
    return result


def memories(program: Program, guarded: bool) -> tuple[dict[str, Array], list[Any]]:
    """The arrays of a launch in the host's memory; and what keeps them alive."""
    result: dict[str, Array] = {}
    owners: list[Any] = []
    for block in blocks(program):
        base = _placed(block, owners) if guarded else block.values
        owners.append(base)
        for name, (start, n) in block.parts.items():
            result[name] = base[start : start + n]
    return result, owners


def _placed(block: Block, owners: list[Any]) -> Array:
    memory = Guarded(block.values.nbytes, block.tight)
    owners.append(memory)
    placed = memory.array(block.values.dtype)
    placed[:] = block.values
    return placed
