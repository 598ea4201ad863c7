"""triton.backends: the CPU and GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.base import load
from weft.runtime.drivers import CPUDriver

from . import compiler, driver
from .amd.compiler import HIPBackend
from .compiler import BaseBackend, CPUBackend, CUDABackend
from .driver import DriverBase

__all__ = ["Backend", "BaseBackend", "DriverBase", "backends", "compiler", "driver"]


@dataclass(frozen=True)
class Backend:
    """A back end and its driver."""

    compiler: Any
    driver: Any


class _GPUs(Backend):
    """That of a vendor's GPUs; its driver is imported when it is asked for."""

    def __init__(self, vendor: str, compiler: Any) -> None:
        object.__setattr__(self, "compiler", compiler)
        object.__setattr__(self, "vendor", vendor)

    def __getattr__(self, name: str) -> Any:
        if name != "driver":
            raise AttributeError(name)
        return load("weft.runtime.gpu_driver").of_vendor(self.vendor)


backends: dict[str, Backend] = {
    "cpu": Backend(CPUBackend, CPUDriver),
    "nvidia": _GPUs("nvidia", CUDABackend),
    "amd": _GPUs("amd", HIPBackend),
}
