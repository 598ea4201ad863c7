"""Launches on a GPU that are queued in native code, for plans of `backends/cpu/calls`.

    queue = queued(function, kernel, config, name=..., stream=..., note=..., fail=..., context=...)
    words[Plan.RUN], words[Plan.QUEUE] = runs_queue(), queue.address

The driver takes a configuration: the three sizes of the grid (12 bytes), and then what is the same for each launch but
the stream (`Queue.STREAM_AT`). The parameters are the slots of the plan, 8 bytes each.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from weft.base import data_lines, load

from ..cpu.calls import address


class Queue:
    """Words of a queue.

    FUNCTION is the driver's, called with the address of a configuration, KERNEL, the addresses of the parameters, and
    0. STREAM is a function of Python that gives the handle of the stream. NOTE takes (NAME, sizes of the grid); NOTED
    is a list with what it took last, when the sizes were PLANE (x, and y above it) and LAYERS. FAIL takes a status of
    the driver and how often the launch was tried before, and raises unless it is to be tried again. CONTEXT is the one
    that the launch has to be made in, or 0 if there is no other; CURRENT, PUSH and POP are the driver's functions for
    contexts.
    """

    (
        FUNCTION, KERNEL, STREAM, FAIL, NOTE, NAME, NOTED, PLANE, LAYERS, CONTEXT, CURRENT, PUSH, POP, CONFIG,
    ) = range(14)  # fmt: skip
    CONFIG_WORDS, STREAM_AT = 7, 32
    """Of a configuration: how long it is, and the byte that its stream begins at."""
    SIZE = CONFIG + CONFIG_WORDS


class Context(NamedTuple):
    """The context that a launch has to be made in, and the driver's functions for contexts; zeros if there is one."""

    context: int = 0
    current: int = 0
    push: int = 0
    pop: int = 0


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
) -> Queued:
    """The queue of a kernel's launches on one GPU; `config` is a whole configuration, with any grid and stream."""
    words, noted = (ctypes.c_int64 * Queue.SIZE)(), [None]
    words[Queue.FUNCTION], words[Queue.KERNEL] = function, kernel
    words[Queue.STREAM], words[Queue.FAIL], words[Queue.NOTE] = id(stream), id(fail), id(note)
    words[Queue.NAME], words[Queue.NOTED], words[Queue.PLANE] = id(name), id(noted), -1
    words[Queue.CONTEXT], words[Queue.CURRENT], words[Queue.PUSH], words[Queue.POP] = context
    words[Queue.CONFIG :] = list(struct.unpack(f"<{Queue.CONFIG_WORDS}q", config))
    return Queued(ctypes.addressof(words), (words, stream, fail, note, name, noted))


@lru_cache(maxsize=1)
def runs_queue() -> int:
    """The address of the native function that queues a launch."""
    return address("queues", "weft_queue", _text)


def _text() -> str:
    code = load("weft.backends.cpu.native_code")
    text = "\n".join(data_lines(__name__, "queued.ll"))
    made: str = code.filled("words") + "\n" + code.named(text, {**code.SOURCES, "queue": Queue})
    return made
