"""Points in time on a GPU's queue, by Level Zero."""

from __future__ import annotations

import sys
from ctypes import byref, c_void_p
from typing import Any

from .driver import available, current_device
from .faults import answer, check
from .level_zero import (
    FOREVER,
    HOST_SCOPE,
    HOST_VISIBLE,
    NOT_READY,
    TIMESTAMPS,
    EventDesc,
    PoolDesc,
    Timestamps,
    api,
    started,
)
from .queues import finish, queue_of


def in_use() -> bool:
    """Whether this process has used a GPU: Weft, or PyTorch for xpu, which is not loaded or started to find out."""
    gpus = getattr(sys.modules.get("torch"), "xpu", None)
    by_torch = gpus is not None and gpus.is_available() and gpus.is_initialized()
    return (started() or by_torch) and available()


class Event:
    """A point in time of a stream, in the interface of torch.xpu.Event; it belongs to the current GPU.

    begin.record(stream); ...; end.record(stream); end.synchronize(); begin.elapsed_time(end)   # milliseconds
    """

    def __init__(self, enable_timing: bool = True, **_: Any) -> None:
        ze, self._gpu = api(), current_device()
        self._handle = self._pool = 0
        desc = PoolDesc(flags=HOST_VISIBLE | (TIMESTAMPS if enable_timing else 0), count=1)
        devices = byref(c_void_p(self._gpu.handle))
        self._pool = answer(ze.zeEventPoolCreate, self._gpu.context, byref(desc), 1, devices)
        self._handle = answer(ze.zeEventCreate, self._pool, byref(EventDesc(signal=HOST_SCOPE, wait=HOST_SCOPE)))

    def record(self, stream: Any = 0) -> None:
        """When all that was queued in the stream so far is done; a stream is a handle, or has `sycl_queue`."""
        ze, queue = api(), queue_of(self._gpu)
        handle = int(getattr(stream, "sycl_queue", stream) or 0)
        if handle:
            finish(handle, self._gpu.index)
        with queue.lock:
            check(ze.zeEventHostReset(self._handle))
            queue.pending = True
            check(ze.zeCommandListAppendBarrier(queue.list, self._handle, 0, None))

    def query(self) -> bool:
        """Whether it is over."""
        status = api().zeEventQueryStatus(self._handle)
        if status != NOT_READY:
            check(status)
        return bool(status != NOT_READY)

    def synchronize(self) -> None:
        """Wait until it is over."""
        check(api().zeEventHostSynchronize(self._handle, FOREVER))

    def _ticks(self) -> int:
        times = Timestamps()
        check(api().zeEventQueryKernelTimestamp(self._handle, byref(times)))
        return int(times.end)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this to another; both must be over. The GPU's counter begins anew, some minutes apart."""
        ticks = end._ticks() - self._ticks() & (1 << (self._gpu.timer_bits or 64)) - 1
        return ticks * 1e3 / self._gpu.timer

    def __del__(self) -> None:
        try:
            if self._handle:
                api().zeEventDestroy(self._handle)
            if self._pool:
                api().zeEventPoolDestroy(self._pool)
        except Exception:  # the process ends: the library is gone before its events
            self._handle = self._pool = 0
