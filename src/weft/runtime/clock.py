"""Time of what a function queues on a GPU: by events in its stream, the GPU's cache overwritten before each run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from . import gpu_arrays
from .device import devices
from .streams import handle_of, own_stream, torch_gpus

FLUSHED_BYTES = 256 << 20
"""What is overwritten before a run, where twice the GPU's L2 cache is not more."""
MOST_RUNS = 10_000


def current_stream(device: int) -> int:
    """The handle of the stream that work of now goes to: PyTorch's, CuPy's, or Weft's own."""
    gpus, cupy = torch_gpus(), sys.modules.get("cupy")
    if gpus is not None and gpus.is_initialized():
        return handle_of(gpus.current_stream(device))
    if cupy is not None:
        return int(cupy.cuda.get_current_stream().ptr)
    return own_stream()


class GPUClock:
    """Measures functions on the current GPU: `times` in milliseconds, with a cold cache or with a warm one."""

    _flushed: dict[tuple[type, int], gpu_arrays.DeviceArray] = {}
    """By the class of a vendor's devices, and the number."""

    def __init__(self) -> None:
        self.device = devices.current_device()

    @staticmethod
    def of(index: int) -> devices.Device:
        """Another GPU, by its number."""
        return devices.device(index)

    def clear_cache(self) -> None:
        """Queue that more memory is written than the L2 cache holds."""
        index = self.device.index
        place = type(self.device), index
        memory = self._flushed.get(place)
        if memory is None:
            size = max(FLUSHED_BYTES, 2 * self.device.l2_bytes)
            memory = self._flushed[place] = gpu_arrays.empty(size, "u1", index)
        devices.fill(memory.address, memory.nbytes, self.device, current_stream(index))

    def _run(self, fn: Callable[[], Any], runs: int, prepare: Callable[[], None]) -> list[float]:
        """Milliseconds of each run; they are queued one after the other and waited for at the end."""
        stream = current_stream(self.device.index)
        marks = [(devices.event(), devices.event()) for _ in range(runs)]
        for begin, end in marks:
            prepare()
            begin.record(stream)
            fn()
            end.record(stream)
        self.device.synchronize()
        return [begin.elapsed_time(end) for begin, end in marks]

    def times(
        self, fn: Callable[[], Any], warmup: float, rep: float, grads: Sequence[Any] = (), *, cold: bool = True
    ) -> list[float]:
        """Times of about `rep` ms of runs, after about `warmup` ms that are not measured."""

        def prepare() -> None:
            for tensor in grads:
                tensor.grad = None
            if cold:
                self.clear_cache()

        self.device.synchronize()
        begin = perf_counter()
        self._run(fn, 5, prepare)
        estimate = max(1e-3, 1e3 * (perf_counter() - begin) / 5)
        for _ in range(min(MOST_RUNS, int(warmup / estimate))):
            prepare()
            fn()
        return self._run(fn, max(3, min(MOST_RUNS, int(rep / estimate))), prepare)
