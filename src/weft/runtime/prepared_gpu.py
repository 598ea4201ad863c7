"""Launches on GPUs from Python's call on in native code: plans, as `prepared` has them for the CPU.

A plan says of each tensor that it is on the GPU of the launch, and of each integer what divides it as far as kernels
for GPUs are compiled for it. It ends in a call of the driver (`backends/gpu/queued.py`), if the kernel's driver has
such a call. Left to Python are kernels that need more than arguments and tensor maps made of them: clusters, memory of
their own, Gluon's descriptors; and arrays that are not PyTorch's, or of a PyTorch without DLPack's exchange functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.backends.cpu.calls import Plan
from weft.backends.gpu.queued import Parameters, runs_queue

from .device import devices
from .exchange import HOST, Described
from .prepared import NoPlan, PlanOfFunction
from .specialize import FINE

__all__ = ["PlanOnGPU"]


class PlanOnGPU(PlanOfFunction):
    """Of launches on one GPU, into the stream that a function gives."""

    divisors = FINE

    def __init__(
        self,
        kernel: Any,
        entry: tuple[Any, ...],
        watched: bool,
        index: int,
        stream: Callable[[], int],
        parameters: Parameters,
    ) -> None:
        self._index, self._stream, self._parameters, self._tensors = index, stream, parameters, 0
        super().__init__(kernel, entry[0], [entry], watched)
        self._pairs.clear()  # nothing is assumed of how arrays on a GPU overlap
        self._arrays.clear()

    def _run(self) -> Mapping[int, int]:
        facts = self._compiled.metadata
        if facts.num_ctas != 1 or facts.global_scratch_size or facts.checked:
            raise NoPlan
        gpu = devices.device(self._index)
        with devices.entered(gpu):
            loaded = self._compiled.load()
            queued = getattr(loaded, "queued", None)
            if queued is None:
                raise NoPlan
            queue = queued(self._stream, gpu, self._parameters)
        self._kept += [loaded, queue]
        return {Plan.RUN: runs_queue(), Plan.QUEUE: queue.address}

    def plan(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        words = super().plan(args, kwargs)
        if not self._tensors:  # nothing says which GPU the next launch is for
            raise NoPlan
        return words

    def _tensor(self, path: tuple[int, ...], value: Any, slot: int, *, align: bool) -> list[int]:
        self._tensors += 1
        return super()._tensor(path, value, slot, align=align)

    def _can_read(self, tensor: Any, told: Described) -> bool:
        return told.kind != HOST and told.number == tensor.get_device() == self._index

    def _ndarray(self, path: tuple[int, ...], value: Any, slot: int, *, align: bool) -> list[int]:
        raise NoPlan
