"""Points in time on a GPU's streams, and memory written or copied there, by the CUDA driver."""

from __future__ import annotations

import sys
from typing import Any

from .driver import Device, api, available, entered
from .faults import check

_NOT_READY = 600
"""CUDA_ERROR_NOT_READY"""


def in_use() -> bool:
    """Whether this thread has a CUDA context: it, or a library that it called, has used a GPU.

    Neither PyTorch nor the driver's package is loaded or started to find out.
    """
    torch = sys.modules.get("torch")
    used = "cuda.bindings.driver" in sys.modules or (torch is not None and torch.cuda.is_initialized())
    return used and available() and int(check(api().cuCtxGetCurrent())) != 0


class Event:
    """A point in time of a stream, in the interface of torch.cuda.Event; it belongs to the current GPU.

    begin.record(stream); ...; end.record(stream); end.synchronize(); begin.elapsed_time(end)   # milliseconds
    """

    def __init__(self, enable_timing: bool = True, **_: Any) -> None:
        self._handle = check(api().cuEventCreate(0 if enable_timing else 2))  # 2: CU_EVENT_DISABLE_TIMING

    def record(self, stream: Any = 0) -> None:
        """When all that was queued in the stream so far is done; a stream is a handle, or has `cuda_stream`."""
        handle = getattr(stream, "cuda_stream", stream) or 0
        check(api().cuEventRecord(self._handle, int(handle)))

    def query(self) -> bool:
        """Whether it is over."""
        answer = api().cuEventQuery(self._handle)
        if int(answer[0]) == _NOT_READY:
            return False
        check(answer)
        return True

    def synchronize(self) -> None:
        """Wait until it is over."""
        check(api().cuEventSynchronize(self._handle))

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this to another; both must be over."""
        return float(check(api().cuEventElapsedTime(self._handle, end._handle)))

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            try:
                api().cuEventDestroy(handle)
            except Exception:  # the process ends: the driver is gone before its events
                self._handle = None


def fill(address: int, size: int, where: Device, stream: int = 0, value: int = 0) -> None:
    """Write a byte to `size` bytes of a GPU's memory, in the order of a stream."""
    if size:
        with entered(where):
            check(api().cuMemsetD8Async(address, value, size, stream))


def copy(target: int, source: int, size: int, where: Device, stream: int = 0) -> None:
    """Copy bytes within a GPU's memory, in the order of a stream."""
    if size:
        with entered(where):
            check(api().cuMemcpyDtoDAsync(target, source, size, stream))
