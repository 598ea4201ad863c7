"""Points in time on a GPU's streams, and memory written or copied there, by the HIP library."""

from __future__ import annotations

import sys
from ctypes import c_float, c_void_p
from typing import Any

from .driver import Device, available, entered
from .faults import answer, check
from .hip import NO_TIMING, NOT_READY, api, started


def in_use() -> bool:
    """Whether this process has used a GPU: Weft, or PyTorch for ROCm, which is not loaded or started to find out.

    The library has no contexts that a thread could be without.
    """
    torch = sys.modules.get("torch")
    built_for = getattr(getattr(torch, "version", None), "hip", None)
    by_torch = torch is not None and built_for is not None and torch.cuda.is_initialized()
    return (started() or by_torch) and available()


class Event:
    """A point in time of a stream, in the interface of torch.cuda.Event; it belongs to the current GPU.

    begin.record(stream); ...; end.record(stream); end.synchronize(); begin.elapsed_time(end)   # milliseconds
    """

    def __init__(self, enable_timing: bool = True, **_: Any) -> None:
        self._handle = answer(api().hipEventCreateWithFlags, c_void_p, 0 if enable_timing else NO_TIMING)

    def record(self, stream: Any = 0) -> None:
        """When all that was queued in the stream so far is done; a stream is a handle, or has `cuda_stream`."""
        handle = getattr(stream, "cuda_stream", stream) or 0
        check(api().hipEventRecord(self._handle, int(handle)))

    def query(self) -> bool:
        """Whether it is over."""
        hip = api()
        status = hip.hipEventQuery(self._handle)
        if status == NOT_READY:
            hip.hipGetLastError()
            return False
        check(status)
        return True

    def synchronize(self) -> None:
        """Wait until it is over."""
        check(api().hipEventSynchronize(self._handle))

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this to another; both must be over."""
        return float(answer(api().hipEventElapsedTime, c_float, self._handle, end._handle))

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            try:
                api().hipEventDestroy(handle)
            except Exception:  # the process ends: the library is gone before its events
                self._handle = None


def fill(address: int, size: int, where: Device, stream: int = 0, value: int = 0) -> None:
    """Write a byte to `size` bytes of a GPU's memory, in the order of a stream."""
    if size:
        with entered(where):
            check(api().hipMemsetD8Async(address, value, size, stream))


def copy(target: int, source: int, size: int, where: Device, stream: int = 0) -> None:
    """Copy bytes within a GPU's memory, in the order of a stream."""
    if size:
        with entered(where):
            check(api().hipMemcpyDtoDAsync(target, source, size, stream))
