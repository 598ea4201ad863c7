"""Launches on a GPU that are queued in native code, for plans of `backends/cpu/calls`.

    queue = queued(function, kernel, config, name=..., stream=..., note=..., fail=..., context=..., parameters=...)
    words[Plan.RUN], words[Plan.QUEUE] = runs_queue(), queue.address

The driver takes a configuration: the three sizes of the grid (12 bytes), and then what is the same for each launch but
the stream (`Queue.STREAM_AT`). Its parameters are slots of the plan, of 8 bytes, and tensor maps, of 128, which are
looked up by the values of slots.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from weft.base import data_lines, load

from ..cpu.calls import MOST_SLOTS, address


class Queue:
    """Words of a queue.

    FUNCTION is the driver's, called with the address of a configuration, KERNEL, the addresses of the parameters, and
    0. STREAM is a function of Python that gives the handle of the stream. NOTE takes (NAME, sizes of the grid); NOTED
    is a list with what it took last, when the sizes were PLANE (x, and y above it) and LAYERS. FAIL takes a status of
    the driver and how often the launch was tried before, and raises unless it is to be tried again. CONTEXT is the one
    that the launch has to be made in, or 0 if there is no other; CURRENT, PUSH and POP are the driver's functions for
    contexts. PLACES has for each of the PARAMETERS the number of its slot, or of a map: -1 for the first, -2 for the
    second. Rows of `Lookup` go from LOOKUPS to LOOKUPS_END. INSTEAD launches in Python where there is no map for the
    values of a launch: it takes the sizes of the grid, and the bytes of all slots. A block executes up to EACH
    programs; where those are more than one, AT_A_TIME blocks run at a time, and how many programs the grid has along x
    is a last parameter, of which PARAMETERS does not tell.
    """

    (
        FUNCTION, KERNEL, STREAM, FAIL, NOTE, NAME, NOTED, PLANE, LAYERS, CONTEXT, CURRENT, PUSH, POP, PLACES,
        PARAMETERS, LOOKUPS, LOOKUPS_END, INSTEAD, EACH, AT_A_TIME, CONFIG,
    ) = range(21)  # fmt: skip
    CONFIG_WORDS, STREAM_AT = 7, 32
    """Of a configuration: how long it is, and the byte that its stream begins at."""
    SIZE = CONFIG + CONFIG_WORDS
    MOST_MAPS = 16
    MOST_PARAMETERS = MOST_SLOTS + MOST_MAPS
    MOST_POINTERS = MOST_PARAMETERS + 1


class Lookup:
    """Words of a lookup of maps: in the dictionary TABLE, by a tuple of the values in COUNT slots, of NUMBERS.

    It has the bytes of as many MAPS, the first of which is the map FIRST_MAP of the launch; or None.
    """

    TABLE, NUMBERS, COUNT, MAPS, FIRST_MAP = range(5)
    SIZE = 5
    BYTES, WORDS = 128, 16
    """Of a map."""


@dataclass(frozen=True)
class Maps:
    """Maps of a kernel, one after the other, and what gives their bytes: for a tuple of the values of some slots."""

    table: dict[tuple[int, ...], bytes | None]
    slots: Sequence[int]
    count: int = 1


class Context(NamedTuple):
    """The context that a launch has to be made in, and the driver's functions for contexts; zeros if there is one."""

    context: int = 0
    current: int = 0
    push: int = 0
    pop: int = 0


@dataclass(frozen=True)
class Parameters:
    """What a kernel is handed: slots by their numbers, and maps, -1 for the first one; see `Queue`."""

    places: Sequence[int]
    maps: Sequence[Maps] = ()
    instead: Callable[[tuple[int, int, int], bytes], object] | None = None

    @property
    def are_few(self) -> bool:
        """Whether native code has room for them."""
        return len(self.places) <= Queue.MOST_PARAMETERS and sum(m.count for m in self.maps) <= Queue.MOST_MAPS


@dataclass(frozen=True)
class Queued:
    """A queue, and what it points to."""

    address: int
    keep: tuple[Any, ...] = field(repr=False)


def queued(
    function: int,
    kernel: int,
    config: bytes,
    *,
    name: str,
    stream: Callable[[], int],
    note: Callable[[Any], None],
    fail: Callable[[int, int], None],
    context: Context,
    parameters: Parameters,
    programs_each: int = 1,
    at_a_time: int = 0,
) -> Queued:
    """The queue of a kernel's launches on one GPU; `config` is a whole configuration, with any grid and stream."""
    words, noted, rows = (ctypes.c_int64 * Queue.SIZE)(), [None], list[int]()
    keep: list[Any] = [words, stream, fail, note, name, noted, parameters]
    maps = 0
    for lookup in parameters.maps:
        numbers = (ctypes.c_int64 * len(lookup.slots))(*lookup.slots)
        rows += [id(lookup.table), ctypes.addressof(numbers), len(lookup.slots), lookup.count, maps]
        keep.append(numbers)
        maps += lookup.count
    places = (ctypes.c_int64 * max(1, len(parameters.places)))(*parameters.places)
    lookups = (ctypes.c_int64 * max(1, len(rows)))(*rows)
    words[Queue.PLACES], words[Queue.PARAMETERS] = ctypes.addressof(places), len(parameters.places)
    words[Queue.LOOKUPS], words[Queue.LOOKUPS_END] = (ctypes.addressof(lookups) + 8 * k for k in (0, len(rows)))
    words[Queue.INSTEAD] = id(parameters.instead)
    words[Queue.EACH], words[Queue.AT_A_TIME] = programs_each, at_a_time
    words[Queue.FUNCTION], words[Queue.KERNEL] = function, kernel
    words[Queue.STREAM], words[Queue.FAIL], words[Queue.NOTE] = id(stream), id(fail), id(note)
    words[Queue.NAME], words[Queue.NOTED], words[Queue.PLANE] = id(name), id(noted), -1
    words[Queue.CONTEXT], words[Queue.CURRENT], words[Queue.PUSH], words[Queue.POP] = context
    words[Queue.CONFIG :] = list(struct.unpack(f"<{Queue.CONFIG_WORDS}q", config))
    return Queued(ctypes.addressof(words), (*keep, places, lookups))


@lru_cache(maxsize=1)
def runs_queue() -> int:
    """The address of the native function that queues a launch."""
    return address("queues", "weft_queue", _text)


def _text() -> str:
    code = load("weft.backends.cpu.native_code")
    text = "\n".join(data_lines(__name__, "queued.ll"))
    made: str = code.filled("words") + "\n" + code.named(text, {**code.SOURCES, "queue": Queue, "lookup": Lookup})
    return made
