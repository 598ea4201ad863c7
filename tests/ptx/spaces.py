"""Where bytes lie: the arrays of a launch, what a block shares, what a thread has alone, the parameters.

Global addresses are those of the host's memory, so that alignment is what the launch saw, and arrays that overlap do.
An access must lie within one array that was given, and be aligned to its size (PTX ISA, "Addresses as Operands").
"""

from __future__ import annotations

import bisect
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
WINDOWS = {"shared": 1 << 56, "local": 1 << 57, "param": 1 << 58}
"""Where these spaces lie among generic addresses."""

__all__ = ["WINDOWS", "Array", "Copies", "Fault", "Flat", "Global", "Local", "Space", "Unknown"]


class Unknown(Exception):
    """The interpreter does not have an instruction, or a form of one; the message names it."""


class Fault(Exception):
    """The program does what PTX forbids or leaves open: an address, a mask of lanes, a deadlock."""


class Space(Protocol):
    """Bytes at addresses, one address for each of `threads`."""

    def read(self, addresses: Array, size: int, threads: Array) -> Array:
        """`size` bytes from each address: [threads, size]."""

    def write(self, addresses: Array, data: Array, threads: Array) -> None:
        """Bytes to each address, the last thread's where several write to one."""


def aligned(name: str, addresses: Array, size: int) -> None:
    """Fault unless each address is a multiple of the size."""
    wrong = addresses[addresses % np.uint64(size) != 0]
    if len(wrong):
        raise Fault(f"{name} address {int(wrong[0]):#x} is not aligned to {size} bytes")


class Flat:
    """One array of bytes from address 0."""

    def __init__(self, name: str, data: Array, writable: bool = True) -> None:
        self.name, self.data, self.writable = name, data, writable

    def _places(self, addresses: Array, size: int) -> Array:
        aligned(self.name, addresses, size)
        beyond = addresses[addresses > np.uint64(max(0, len(self.data) - size))]
        if len(beyond) or (len(addresses) and size > len(self.data)):
            raise Fault(f"{self.name} address {int(addresses.max())} is outside of {len(self.data)} bytes")
        return addresses.astype(np.int64)[:, None] + np.arange(size)

    def read(self, addresses: Array, size: int, threads: Array) -> Array:
        return np.asarray(self.data[self._places(addresses, size)])

    def write(self, addresses: Array, data: Array, threads: Array) -> None:
        if not self.writable:
            raise Fault(f"a store to {self.name}")
        self.data[self._places(addresses, data.shape[1])] = data


class Local:
    """The same addresses for each thread, and behind them other bytes: [threads, bytes]."""

    def __init__(self, data: Array) -> None:
        self.size = data.shape[1]
        self.flat = data.reshape(-1)

    def _places(self, addresses: Array, size: int, threads: Array) -> Array:
        aligned("local", addresses, size)
        if len(addresses) and int(addresses.max()) + size > self.size:
            raise Fault(f"local address {int(addresses.max())} is outside of {self.size} bytes")
        return np.asarray((threads * self.size + addresses.astype(np.int64))[:, None] + np.arange(size))

    def read(self, addresses: Array, size: int, threads: Array) -> Array:
        return np.asarray(self.flat[self._places(addresses, size, threads)])

    def write(self, addresses: Array, data: Array, threads: Array) -> None:
        self.flat[self._places(addresses, data.shape[1], threads)] = data


class Global:
    """The arrays that a kernel may touch, in the host's memory; those that overlap are one."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, Array]] = []
        self._owners: list[Array] = []

    def add(self, array: Array) -> int:
        """Let the kernel touch an array. Returns its address. ValueError unless its elements are in C's order."""
        if not array.flags.c_contiguous:
            raise ValueError("an array with strides")
        start, end = array.ctypes.data, array.ctypes.data + array.nbytes
        address = start
        self._owners.append(array)
        if array.nbytes:
            apart = [r for r in self._ranges if r[1] <= start or end <= r[0]]
            for r in [r for r in self._ranges if r not in apart]:
                start, end = min(start, r[0]), max(end, r[1])
            view = np.ctypeslib.as_array((ctypes.c_uint8 * (end - start)).from_address(start))
            self._ranges = sorted([*apart, (start, end, view)], key=lambda r: r[0])
        return address

    def _pieces(self, addresses: Array, size: int) -> Iterator[tuple[Array, Array, Array]]:
        """Bytes of an array, which threads touch it, and where: [those threads, size]."""
        aligned("global", addresses, size)
        left = np.ones(len(addresses), bool)
        while left.any():
            first = int(addresses[left][0])
            at = bisect.bisect_right([start for start, _, _ in self._ranges], first) - 1
            start, end, view = self._ranges[at] if at >= 0 else (0, 0, np.empty(0, np.uint8))
            if not start <= first or first + size > end:
                raise Fault(f"global address {first:#x} and the {size} bytes there are in no array")
            inside = left & (addresses >= np.uint64(start)) & (addresses <= np.uint64(end - size))
            yield view, inside, (addresses[inside] - np.uint64(start)).astype(np.int64)[:, None] + np.arange(size)
            left &= ~inside

    def read(self, addresses: Array, size: int, threads: Array) -> Array:
        result = np.empty((len(addresses), size), np.uint8)
        for view, inside, places in self._pieces(addresses, size):
            result[inside] = view[places]
        return result

    def write(self, addresses: Array, data: Array, threads: Array) -> None:
        for view, inside, places in self._pieces(addresses, data.shape[1]):
            view[places] = data[inside]


@dataclass
class Copies:
    """Asynchronous copies on their way: for each, its threads, and which group of each thread it belongs to."""

    groups: Array
    """How many groups each thread has committed."""
    pending: list[tuple[Array, Array, Array, Array]] = field(default_factory=list)
    """Threads, their groups, addresses in shared memory, bytes."""
