"""What native code hands a kernel on a GPU: the slots of its arguments, and tensor maps that are made of them.

A kernel takes, for each argument in order, its slots and behind those of a descriptor its maps; and last the maps of
tensors that no argument describes (`made_maps`). Maps are kept by the values that they are made of.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from weft.backends.gpu.queued import Maps, Parameters
from weft.base import WeftError, shorten

from .launch import Leaf, MapMaker, descriptor_rank, slots_of
from .made_maps import KEPT, MadeMaps, NoTensor

__all__ = ["Arguments", "Parameters", "parameters_of"]


class _OfDescriptor(dict[tuple[int, ...], "bytes | None"]):
    """The maps of a descriptor, by its slots."""

    def __init__(self, make: Callable[[Any], tuple[Any, ...]]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, values: tuple[int, ...]) -> bytes:
        try:
            made = b"".join(self._make(values)[len(values) :])
        except WeftError as error:  # native code has no frame of its own that could shorten it
            shorten(error)
            raise
        if len(self) >= KEPT:
            self.clear()
        self[values] = made
        return made


class _OfTensor(dict[tuple[int, ...], "bytes | None"]):
    """The map of a tensor that no argument describes, by the values that it is made of; None where there is none."""

    def __init__(self, maps: MadeMaps) -> None:
        super().__init__()
        self._maps = maps

    def __missing__(self, values: tuple[int, ...]) -> bytes | None:
        try:
            made: bytes | None = self._maps[values]
        except NoTensor:
            made = None
        if len(self) >= KEPT:
            self.clear()
        self[values] = made
        return made


class Arguments:
    """What a launch in Python takes, from the slots of one in native code; `numbers` are those of its parameters."""

    def __init__(self, leaves: Sequence[Leaf], numbers: Sequence[int]) -> None:
        self._leaves, self._numbers = leaves, numbers
        self._format = "<" + "".join(_code(kind) for _, kind in leaves)

    def of(self, slots: bytes) -> list[Any]:
        """The value for each parameter; a descriptor is a tuple of its slots."""
        left, values = iter(struct.unpack(self._format, slots)), dict[int, Any]()
        for path, kind in self._leaves:
            parts = tuple(next(left) for _ in range(slots_of(kind)))
            values[path[0]] = parts if kind.startswith("tensordesc") else parts[0]
        return [values.get(number) for number in self._numbers]


def _code(kind: str) -> str:
    """The code of `struct` for the slots of a type.

    >>> _code("*fp32"), _code("i32"), _code("fp32"), _code("tensordesc<fp16[64, 64]>")
    ('Q', 'q', 'f4x', 'Qqqqqq')
    """
    if kind.startswith("tensordesc"):
        return "Qq" + "q" * (2 * descriptor_rank(kind))
    return "Q" if kind.startswith("*") or kind == "u64" else {"fp32": "f4x", "fp64": "d"}.get(kind, "q")


def parameters_of(
    leaves: Sequence[Leaf],
    makers: Sequence[MapMaker | None],
    made: Sequence[MadeMaps],
    instead: Callable[[tuple[int, int, int], bytes], object],
) -> Parameters | None:
    """The parameters of a kernel, whose descriptors have maps by `makers`, in order; None for a descriptor that is
    handed on as its map (Gluon's). `instead` launches where there is no map for some values.
    """
    places, lookups = list[int](), list[Maps]()
    descriptors = iter(makers)
    slot = maps = 0

    def look_up(table: dict[tuple[int, ...], bytes | None], slots: Sequence[int], count: int) -> None:
        nonlocal maps
        lookups.append(Maps(table, slots, count))
        places.extend(-1 - number for number in range(maps, maps + count))
        maps += count

    for _, kind in leaves:
        own = range(slot, slot + slots_of(kind))
        places += own
        slot = own.stop
        maker = next(descriptors, None) if kind.startswith("tensordesc") else None
        if maker is not None:
            make, codes = maker
            if codes.startswith("128s"):
                return None
            look_up(_OfDescriptor(make), own, codes.count("128s"))
    for of_tensor in made:
        look_up(_OfTensor(of_tensor), of_tensor.numbers, 1)
    found = Parameters(places, lookups, instead)
    return found if found.are_few else None
