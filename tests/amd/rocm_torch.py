"""PyTorch for ROCm, as far as launches look at it: tensors on a pretended GPU, its streams, which vendor it is for.

torch = install(monkeypatch, hip)
x = torch.of(np.arange(64, dtype=np.float32))          # a tensor whose device says cuda:0
kernel[(1,)](x, ...); torch.to_numpy(x)
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from runtime.pretended_torch import Tensor
from runtime.pretended_vendor import PretendedTorch
from weft.compiler.amd import driver

from .fake_hip import FakeHip


class Torch(PretendedTorch):
    """The module, with the stream that is the current one of each GPU."""

    def __init__(self, library: FakeHip, **version: str | None) -> None:
        super().__init__(driver, Tensor)
        self.version = SimpleNamespace(**{"cuda": None, "hip": None, "xpu": None, **version})
        self.streams = dict.fromkeys(range(len(library.gpus)), 0)
        self.cuda = SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: True,
            current_device=lambda: library.current,
            set_device=library._hipSetDevice,
            current_stream=lambda device=0: SimpleNamespace(cuda_stream=self.streams[device]),
        )
        self._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: self.streams[device])


def install(monkeypatch: pytest.MonkeyPatch, library: FakeHip, **version: str | None) -> Torch:
    """It is imported: for ROCm, or what `version` says."""
    torch = Torch(library, **(version or {"hip": "7.1.25424"}))
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch
