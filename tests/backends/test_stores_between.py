"""Kernels that store between loads: they stay vectors and one pass, whatever arrays might overlap, and are right where
arrays do.
"""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.remarks import LoopNest

Arrays = list[np.ndarray[Any, np.dtype[np.float32]]]
B = 256


@weft.jit
def store_load_store(x, y, a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(a + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
    tl.store(b + i, tl.load(y + i, mask=i < n) * 3, mask=i < n)


@weft.jit
def adam(x, y, a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    gradient = tl.load(x + i, mask=i < n)
    first = 0.5 * tl.load(y + i, mask=i < n) + gradient
    second = 0.25 * tl.load(a + i, mask=i < n) + gradient * gradient
    tl.store(y + i, first, mask=i < n)
    tl.store(a + i, second, mask=i < n)
    tl.store(b + i, tl.load(b + i, mask=i < n) - first * second, mask=i < n)


@weft.jit
def in_place_again(x, y, a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(a + i, tl.load(a + i, mask=i < n) + tl.load(x + i, mask=i < n), mask=i < n)
    tl.store(a + i, tl.load(a + i, mask=i < n) * tl.load(y + i, mask=i < n), mask=i < n)
    tl.store(b + i, tl.load(a + i, mask=i < n) - tl.load(b + i, mask=i < n), mask=i < n)


@weft.jit
def in_a_loop(x, y, a, b, n, B: tl.constexpr):
    if tl.program_id(0) == 0:
        for start in range(0, n, B):
            i = start + tl.arange(0, B)
            tl.store(a + i, tl.load(x + i, mask=i < n) + tl.load(a + i, mask=i < n), mask=i < n)
            tl.store(b + i, tl.load(y + i, mask=i < n) + 1, mask=i < n)


@weft.jit
def carried_by_a_loop(x, y, a, b, n, B: tl.constexpr):
    if tl.program_id(0) == 0:
        total = tl.zeros((B,), tl.float32)
        for start in range(0, n, B):
            i = start + tl.arange(0, B)
            total += tl.load(x + i, mask=i < n, other=0.0)
            tl.store(a + i, total, mask=i < n)
            total += tl.load(y + i, mask=i < n, other=0.0)
            tl.store(b + i, total, mask=i < n)


@weft.jit
def atomic_between(x, y, a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.atomic_add(b + i, value, mask=i < n)
    tl.store(a + i, value * tl.load(y + i, mask=i < n), mask=i < n)


@weft.jit
def total_between(x, y, a, b, n, B: tl.constexpr):
    p = tl.program_id(0)
    i = p * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(b + p, tl.sum(value, 0))
    tl.store(a + i, value * tl.load(y + p), mask=i < n)


@weft.jit
def halves(x, y, a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B // 2)
    tl.store(a + i, tl.load(a + i) * 2 + tl.load(x + i))
    tl.store(a + i + B // 2, tl.load(a + i + B // 2) * 3 - tl.load(y + i))


@weft.jit
def narrowed_between(x, y, a, b, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n)
    tl.store(b.to(tl.pointer_type(tl.int32)) + i, value.to(tl.int32), mask=i < n)
    tl.store(a + i, value + tl.load(y + i, mask=i < n), mask=i < n)


KERNELS = {kernel.fn.__name__: kernel for kernel in (
    store_load_store, adam, in_place_again, in_a_loop, carried_by_a_loop, atomic_between, total_between, halves,
    narrowed_between,
)}  # fmt: skip
N = 3 * B + 100
PLACES: dict[str, tuple[int, int, int, int]] = {
    "apart": (0, 2048, 4096, 6144),
    "a is x": (0, 2048, 0, 6144),
    "a is y": (0, 2048, 2048, 6144),
    "b is a": (0, 2048, 4096, 4096),
    "b is y": (0, 2048, 4096, 2048),
    "all are one": (0, 0, 0, 0),
    "four elements on": (0, 4, 8, 12),
    "four elements back": (12, 8, 4, 0),
    "a tile on": (0, B, 2 * B, 3 * B),
    "half a tile back": (3 * B // 2, B, B // 2, 0),
}
"""Where the arrays begin in one memory; all at multiples of 16 bytes, which is one specialisation less to compile."""


def arrays(places: tuple[int, ...]) -> tuple[np.ndarray[Any, Any], Arrays]:
    memory = np.random.default_rng(0).integers(-8, 9, 8192).astype(np.float32)
    return memory, [memory[at : at + 4 * B] for at in places]


class Pointer:
    """A tile of addresses: an array, and the places in it."""

    def __init__(self, array: Any, places: Any = 0) -> None:
        self.array, self.places = array, places

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.array, self.places + offset)

    def to(self, dtype: Any) -> Pointer:
        """As a pointer to elements of another type."""
        return Pointer(self.array.view(dtype), self.places)


class Tile(np.ndarray[Any, Any]):
    """An array that can be cast as a tile."""

    def to(self, dtype: Any) -> Any:
        """With elements of another type."""
        return self.astype(dtype)


def _load(p: Pointer, mask: Any = True, other: float = 0.0) -> Any:
    mask = np.broadcast_to(mask, np.shape(p.places))
    return np.where(mask, p.array[np.where(mask, p.places, 0)], np.float32(other)).view(Tile)


def _store(p: Pointer, value: Any, mask: Any = True) -> None:
    mask = np.broadcast_to(mask, np.shape(p.places))
    p.array[np.asarray(p.places)[mask]] = np.broadcast_to(value, mask.shape)[mask]


def _atomic_add(p: Pointer, value: Any, mask: Any) -> None:
    np.add.at(p.array, p.places[mask], value[mask])


def in_order(kernel: Any, given: Arrays, n: int) -> None:
    """Run one program of a kernel by NumPy, an operation after the other."""
    language = SimpleNamespace(
        program_id=lambda axis: 0, arange=np.arange, load=_load, store=_store, atomic_add=_atomic_add, constexpr=int,
        zeros=np.zeros, float32=np.float32, int32=np.int32, pointer_type=lambda dtype: dtype,
        sum=lambda value, axis: np.sum(value),
    )  # fmt: skip
    FunctionType(kernel.fn.__code__, {"tl": language, "range": range})(*map(Pointer, given), n, B)


@pytest.mark.parametrize("name", KERNELS)
def test_all_loops_are_of_vectors(name: str) -> None:
    """With the promise that arrays are apart, and without it; with it they are one pass."""
    for apart in (True, False):
        _, given = arrays(PLACES["apart"])
        compiled = weft.jit(KERNELS[name].fn)[(4,)](*given, N, B=B, assume_no_alias=apart)
        nests = [nest for nest in compiled.remarks.of(LoopNest) if nest.shape]
        assert nests and all(nest.lanes * nest.bits >= 128 for nest in nests if not _atomic(nest)), nests
        if apart and name not in ("in_place_again", "carried_by_a_loop", "atomic_between", "total_between"):
            assert len(nests) == 1, nests


def _atomic(nest: LoopNest) -> bool:
    return any("atomic" in site.what for site in nest.does)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", KERNELS)
def test_what_overlaps_is_as_if_done_in_order(name: str, place: str) -> None:
    memory, given = arrays(PLACES[place])
    wanted, copies = arrays(PLACES[place])
    n = N if "loop" in name else B - 21
    in_order(KERNELS[name], copies, n)
    KERNELS[name][(1,)](*given, n, B=B)
    np.testing.assert_array_equal(memory, wanted)
