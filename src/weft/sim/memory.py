"""Memory: arrays of the caller as ranges of addresses, and the shared memory of all blocks that run together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.base import LaunchError
from weft.layouts import f2
from weft.machines import DEFAULT, Machine

from .values import Array

FIRST = 0x7000_0000_0000
GAP = 1 << 16
"""Bytes between arrays that belong to none, so that running over the end of one does not hit the next."""
WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
SECTOR, LINE = 32, 128
NONE: Mapping[str, Any] = {}


@dataclass
class Segment:
    """Bytes of one array, or of several that overlap."""

    start: int
    data: Array
    names: tuple[str, ...]

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.start + len(self.data)


def _extent(array: Array) -> tuple[int, int]:
    """The host addresses that the elements of an array lie between."""
    low = high = int(array.__array_interface__["data"][0])
    for size, stride in zip(array.shape, array.strides, strict=True):
        if size == 0:
            return low, low
        if stride < 0:
            low += stride * (size - 1)
        else:
            high += stride * (size - 1)
    return low, high + array.dtype.itemsize


class _Raw:
    """A range of host memory, for NumPy; keeps the array alive that owns it."""

    def __init__(self, owner: Any, address: int, size: int, writeable: bool) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (size,), "data": (address, not writeable),
        }  # fmt: skip


def bytes_at(owner: Any, address: int, size: int) -> Array:
    """Bytes of host memory, to be read, which keep their owner alive."""
    return np.asarray(_Raw(owner, address, size, False))


def _groups(arrays: Mapping[str, Array]) -> list[tuple[int, Array, tuple[str, ...]]]:
    """Where on the host arrays begin, their bytes, and their names: those together that overlap, in their order."""
    groups: list[tuple[int, int, list[str]]] = []
    for low, high, name in sorted((*_extent(a), name) for name, a in arrays.items()):
        if groups and low < groups[-1][1]:
            groups[-1] = (groups[-1][0], max(high, groups[-1][1]), [*groups[-1][2], name])
        else:
            groups.append((low, high, [name]))
    order = {name: i for i, name in enumerate(arrays)}
    found = []
    for low, high, names in sorted(groups, key=lambda g: min(order[n] for n in g[2])):
        owners = [arrays[n] for n in names]
        writeable = any(a.flags.writeable for a in owners)
        data = np.asarray(_Raw(owners, low, high - low, writeable)) if high > low else np.zeros(0, np.uint8)
        found.append((low, data, tuple(sorted(names, key=lambda n: order[n]))))
    return found


class GlobalMemory:
    """The arrays of a launch; `addresses` says where each begins for the program.

    Arrays that overlap on the host overlap here; alignment up to 16 bytes is the host's. Those of `reached` are no
    arguments: they have their addresses on the host, which the program finds in memory.

    >>> memory = GlobalMemory({"x": np.arange(4, dtype=np.int32)})
    >>> memory.read(np.array([memory.addresses["x"] + 8]), 4).view(np.int32)
    array([[2]], dtype=int32)
    """

    def __init__(self, arrays: Mapping[str, Array], reached: Mapping[str, Array] = NONE) -> None:
        self.segments: list[Segment] = []
        self.addresses: dict[str, int] = {}
        at = FIRST
        for low, data, names in _groups(arrays):
            start = at + low % 16
            self.segments.append(Segment(start, data, names))
            for name in names:
                self.addresses[name] = start + int(arrays[name].__array_interface__["data"][0]) - low
            at += (len(data) + GAP + 255) // 256 * 256
        self._end = at
        self.segments += [Segment(low, data, names) for low, data, names in _groups(reached)]
        self.segments.sort(key=lambda s: s.start)
        self._starts = np.array([s.start for s in self.segments], np.int64)

    @classmethod
    def placed(cls, arrays: Mapping[int, Array]) -> GlobalMemory:
        """Bytes at addresses that are given, for who only reads."""
        memory = cls({})
        memory.segments = [Segment(start, data, ()) for start, data in sorted(arrays.items())]
        memory._starts = np.array([s.start for s in memory.segments], np.int64)
        return memory

    def outside(self, address: Array, width: int) -> Array:
        """Which accesses are not wholly inside of one array."""
        if not self.segments:
            return np.ones(address.shape, np.bool_)
        index = np.maximum(np.searchsorted(self._starts, address, side="right") - 1, 0)
        ends = np.array([s.end for s in self.segments], np.int64)
        is_outside: Array = (address < self._starts[index]) | (address + width > ends[index])
        return is_outside

    def is_foreign(self, address: int) -> bool:
        """Whether an address cannot have been computed from an argument's: it was found in memory, or is none."""
        return not FIRST - GAP <= address < self._end

    def _nearest(self, address: int) -> Segment:
        return min(self.segments, key=lambda s: max(s.start - address, address - s.end, 0))

    def nearest(self, address: int) -> str | None:
        """The name of the array that is nearest to an address; None if there is none."""
        return self._nearest(address).names[0] if self.segments else None

    def describe(self, address: int) -> str:
        """An address in words: the array it is nearest to."""
        if not self.segments:
            return "there is no array"
        near = self._nearest(address)
        name = " and ".join(f"`{n}`" for n in near.names)
        if address < near.start:
            return f"{near.start - address} bytes before {name}"
        if address >= near.end:
            distance = f"{address - near.end} bytes after" if address > near.end else "right after"
            return f"{distance} the end of {name}, which has {len(near.data)} bytes"
        return f"byte {address - near.start} of {name}, which has {len(near.data)} bytes"

    def read(self, address: Array, width: int) -> Array:
        """uint8 [n, width] from n addresses, each a multiple of `width` and inside of an array."""
        words = np.zeros(len(address), WORDS[width])
        for segment, where in self._parts(address):
            view = segment.data[: len(segment.data) // width * width].view(WORDS[width])
            offset = address[where] - segment.start
            if segment.start % width == 0:
                words[where] = view[offset // width]
            else:
                words[where] = segment.data[offset[:, None] + np.arange(width)].view(WORDS[width])[:, 0]
        return words.view(np.uint8).reshape(len(address), width)

    def write(self, address: Array, data: Array) -> None:
        """uint8 [n, width] to n addresses; of two at one address the later stays."""
        width = data.shape[1]
        words = np.ascontiguousarray(data).view(WORDS[width])[:, 0]
        for segment, where in self._parts(address):
            if not segment.data.flags.writeable:
                raise LaunchError.read_only(segment.names[0])
            offset = address[where] - segment.start
            if segment.start % width == 0:
                segment.data[: len(segment.data) // width * width].view(WORDS[width])[offset // width] = words[where]
            else:
                segment.data[offset[:, None] + np.arange(width)] = data[where]

    def _parts(self, address: Array) -> list[tuple[Segment, Any]]:
        """The segments that are touched, and which of the addresses each has."""
        if not len(address):
            return []
        first, last = (int(np.searchsorted(self._starts, x, side="right")) - 1 for x in (address.min(), address.max()))
        if first == last:
            return [(self.segments[first], slice(None))]
        index = np.searchsorted(self._starts, address, side="right") - 1
        return [(self.segments[i], np.flatnonzero(index == i)) for i in np.unique(index)]


def lines_of(address: Array, active: Array) -> Array:
    """How many lines of the L1 cache each of the accesses [access, lane] would touch if its first sector began one: so
    accesses that touch as many sectors touch as many lines, wherever they begin."""
    first = np.min(address, axis=1, keepdims=True, where=active, initial=np.iinfo(np.int64).max) // SECTOR * SECTOR
    return sectors_of(address - first, active, LINE)


def sectors_of(address: Array, active: Array, size: int = SECTOR) -> Array:
    """How many sectors of global memory, or parts of another size, each of the accesses [access, lane] touches."""
    sectors = np.where(active, address // size, -1)
    sectors = np.sort(sectors, axis=1)
    new = np.ones(sectors.shape, np.bool_)
    new[:, 1:] = sectors[:, 1:] != sectors[:, :-1]
    return np.asarray(np.count_nonzero(new & (sectors >= 0), axis=1))


def count_wavefronts(
    address: Array, active: Array, width: int, load: bool = True, machine: Machine = DEFAULT
) -> tuple[int, int]:
    """(passes over the banks, passes without conflicts) of accesses [access, lane] of `width` bytes, shared memory."""
    passes, ideal = wavefronts_of(address, active, width, load, machine)
    return int(passes.sum()), int(ideal.sum())


def wavefronts_of(
    address: Array, active: Array, width: int, load: bool = True, machine: Machine = DEFAULT
) -> tuple[Array, Array]:
    """The same of each access.

    Lanes go in phases of at most as many bytes as the banks have. Within one, lanes with one word share it; a bank
    gives one word a pass.
    Two phases of a load are one where lanes in pairs (i and i ^ 1, or i and i ^ 2) want the same: 16 bytes that all
    lanes load were measured to take two passes on an H200, not four.
    """
    words = max(1, width // machine.bank_bytes)
    if load and width == 16 and machine.load_phase and address.shape[1] == machine.lanes:
        order = f2.span(machine.load_phase)
        address, active = address[:, order], active[:, order]
    inside = max(1, min(address.shape[1], machine.banks // words))
    passes, ideal = _passes(address, active, inside, words, machine)
    if words == 1 or not load or 2 * inside > address.shape[1]:
        return _of_each(passes, len(address)), _of_each(ideal, len(address))
    pairs = address.reshape(-1, 2 * inside)
    valid = active.reshape(pairs.shape)
    number = np.arange(2 * inside)
    alike = np.zeros(len(pairs), np.bool_)
    for distance in (1, 2):
        other = number ^ distance
        alike |= (~valid | ~valid[:, other] | (pairs == pairs[:, other])).all(axis=1)
    together, _ = _passes(address, active, 2 * inside, words, machine)
    apart, least = passes.reshape(-1, 2).sum(axis=1), ideal.reshape(-1, 2).sum(axis=1)
    taken = np.where(alike, together, apart)
    return _of_each(taken, len(address)), _of_each(np.minimum(taken, least), len(address))


def _of_each(phases: Array, accesses: int) -> Array:
    """The sums over the phases of each access."""
    return np.asarray(phases.reshape(accesses, -1).sum(axis=1))


def _passes(address: Array, active: Array, inside: int, words: int, machine: Machine) -> tuple[Array, Array]:
    """For each phase of `inside` lanes, passes over the banks, and 1 where any lane is active."""
    wanted = (address[:, :, None] // machine.bank_bytes + np.arange(words)).reshape(
        address.size // inside, inside * words
    )
    valid = np.repeat(active, words, axis=1).reshape(wanted.shape)
    wanted = np.sort(np.where(valid, wanted, -1), axis=1)
    new = wanted >= 0
    new[:, 1:] &= wanted[:, 1:] != wanted[:, :-1]
    phase, column = np.nonzero(new)
    banks = machine.banks
    counts = np.bincount(phase * banks + wanted[phase, column] % banks, minlength=len(wanted) * banks)
    return counts.reshape(-1, banks).max(axis=1), np.asarray(new.any(axis=1), np.int64)
