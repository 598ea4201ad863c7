"""What is queued on a GPU: one command list for each, in which everything waits for what was appended before it.

    queue_of(gpu).in_order(stream, ze.zeCommandListAppendMemoryCopy, target, source, size)
    queue_of(gpu).wait()

A command list may run what is appended in any order, so that a barrier is appended in front of each. Level Zero takes
no calls for one list from two threads at once: a list has a lock.

PyTorch's streams are queues of SYCL, whose handles mean nothing to Level Zero, and what would take the list out of one
is code of C++. So what goes to such a stream waits for the stream first, by PyTorch, and for its own end afterwards:
it is in the stream's order, and the host waits for each.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from ctypes import byref, c_void_p
from functools import lru_cache
from typing import Any

from weft.base.locks import renewed

from .driver import Device, waits
from .faults import answer, check
from .level_zero import ASYNCHRONOUS, FOREVER, HOST_SCOPE, HOST_VISIBLE, EventDesc, PoolDesc, QueueDesc, api


class Queue:
    """The command list of a GPU."""

    def __init__(self, gpu: Device) -> None:
        ze = api()
        self.gpu, self.lock = gpu, renewed(threading.RLock())
        kind, events = QueueDesc(mode=ASYNCHRONOUS), PoolDesc(flags=HOST_VISIBLE, count=1)
        self.list = answer(ze.zeCommandListCreateImmediate, gpu.context, gpu.handle, byref(kind))
        pool = answer(ze.zeEventPoolCreate, gpu.context, byref(events), 1, byref(c_void_p(gpu.handle)))
        self._end = answer(ze.zeEventCreate, pool, byref(EventDesc(signal=HOST_SCOPE, wait=HOST_SCOPE)))
        self.pending = False
        """Whether something was appended that nobody has waited for."""

    def append(self, function: Any, *arguments: Any) -> int:
        """Append something behind all that was appended so far; its result. It signals no event and waits for none."""
        with self.lock:
            self.pending = True
            return int(
                api().zeCommandListAppendBarrier(self.list, None, 0, None)
                or function(self.list, *arguments, None, 0, None)
            )

    def wait(self) -> int:
        """Wait for the end of all that was appended; the result."""
        ze = api()
        with self.lock:
            if not self.pending:
                return 0
            status = (
                ze.zeEventHostReset(self._end)
                or ze.zeCommandListAppendBarrier(self.list, self._end, 0, None)
                or ze.zeEventHostSynchronize(self._end, FOREVER)
            )
            self.pending = bool(status)
            return int(status)

    def in_order(self, stream: int, function: Any, *arguments: Any) -> None:
        """Append something in the order of a stream: 0 is the list itself, others are PyTorch's."""
        if stream:
            finish(stream, self.gpu.index)
        check(self.append(function, *arguments))
        if stream:
            check(self.wait())


@lru_cache(maxsize=64)
def queue_of(gpu: Device) -> Queue:
    """That of a GPU."""
    return Queue(gpu)


def finish(stream: int, index: int) -> None:
    """Wait for a stream of PyTorch's, by the address of its queue of SYCL."""
    gpus = sys.modules["torch"].xpu
    known: Callable[..., Any] | None = getattr(gpus, "get_stream_from_external", None)
    if known is None:
        gpus.synchronize(index)
    else:
        known(stream, index).synchronize()


def synchronize(gpu: Device) -> None:
    """Wait for all that was queued on a GPU by this module."""
    check(queue_of(gpu).wait())


waits[:] = [synchronize]


def free(address: int, where: Device) -> None:
    """Give memory back, when what uses it has ended."""
    synchronize(where)
    check(api().zeMemFree(where.context, address))


def to_device(address: int, host: int, size: int, where: Device) -> None:
    """Copy bytes from the host to a GPU; done when it returns."""
    copy(address, host, size, where)
    synchronize(where)


def to_host(host: int, address: int, size: int, where: Device) -> None:
    """Copy bytes from a GPU to the host, after what was queued before; done when it returns."""
    copy(host, address, size, where)
    synchronize(where)


def copy(target: int, source: int, size: int, where: Device, stream: int = 0) -> None:
    """Copy bytes within a GPU's memory, in the order of a stream."""
    if size:
        queue_of(where).in_order(stream, api().zeCommandListAppendMemoryCopy, target, source, size)


_BYTES = (ctypes.c_uint8 * 256)(*range(256))
"""Of all values, where they stay: nobody says when a pattern is read."""


def fill(address: int, size: int, where: Device, stream: int = 0, value: int = 0) -> None:
    """Write a byte to `size` bytes of a GPU's memory, in the order of a stream."""
    if size:
        pattern = ctypes.addressof(_BYTES) + value
        queue_of(where).in_order(stream, api().zeCommandListAppendMemoryFill, address, pattern, 1, size)
