"""triton.backends: the CPU and NVIDIA GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.base import load
from weft.runtime.drivers import CPUDriver

from . import compiler, driver
from .compiler import BaseBackend, CPUBackend, CUDABackend
from .driver import DriverBase

__all__ = ["Backend", "BaseBackend", "DriverBase", "backends", "compiler", "driver"]


@dataclass(frozen=True)
class Backend:
    """A back end and its driver."""

    compiler: Any
    driver: Any


class _NVIDIA(Backend):
    """That of NVIDIA GPUs; its driver is imported when it is asked for."""

    def __init__(self) -> None:
        object.__setattr__(self, "compiler", CUDABackend)

    def __getattr__(self, name: str) -> Any:
        if name != "driver":
            raise AttributeError(name)
        return load("weft.runtime.gpu_driver").GPUDriver


backends: dict[str, Backend] = {"cpu": Backend(CPUBackend, CPUDriver), "nvidia": _NVIDIA()}
