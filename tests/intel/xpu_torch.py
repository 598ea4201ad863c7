"""PyTorch for xpu, as far as launches look at it: tensors on a pretended GPU, its streams, which are queues of SYCL.

torch = install(monkeypatch)
x = torch.of(np.arange(64, dtype=np.float32))          # a tensor whose device says xpu:0
kernel[(1,)](x, ...); torch.to_numpy(x)
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.pretended_torch import Tensor as OnCuda
from runtime.pretended_vendor import PretendedTorch
from weft.compiler.intel import driver


class Tensor(OnCuda):
    """One whose device says xpu."""

    is_cuda, is_xpu = False, True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.device.type = "xpu"


Tensor.__module__ = "torch"


class Torch(PretendedTorch):
    """The module; `queued` is what was asked of streams, in order."""

    def __init__(self, count: int, *, external: bool = True) -> None:
        super().__init__(driver, Tensor)
        self.__version__ += "+xpu"
        self.version = SimpleNamespace(cuda=None, hip=None, xpu="20250302")
        self.waited: list[tuple[str, int, int]] = []
        """(how, address of the queue, GPU)"""
        self.current, self.queues = 0, {i: 0x9_0000_0000 + i for i in range(count)}
        self.xpu = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            current_device=lambda: self.current,
            set_device=self._set,
            current_stream=lambda device=0: SimpleNamespace(sycl_queue=self.queues[device]),
            synchronize=lambda device: self.waited.append(("device", 0, device)),
        )
        if external:
            self.xpu.get_stream_from_external = lambda queue, device: SimpleNamespace(
                synchronize=lambda: self.waited.append(("stream", queue, device))
            )
        self._C = SimpleNamespace(_xpu_getCurrentRawStream=lambda device: self.queues[device])

    def _set(self, device: int) -> None:
        self.current = device


def install(monkeypatch: pytest.MonkeyPatch, count: int = 1, *, external: bool = True) -> Torch:
    """It is imported; before 2.8 it took no streams from outside (`external`)."""
    torch = Torch(count, external=external)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch
