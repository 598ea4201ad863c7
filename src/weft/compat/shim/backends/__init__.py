"""triton.backends: one, the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.runtime.drivers import CPUDriver

from . import compiler, driver
from .compiler import CPUBackend

__all__ = ["Backend", "backends", "compiler", "driver"]


@dataclass(frozen=True)
class Backend:
    """A back end and its driver."""

    compiler: Any
    driver: Any


backends: dict[str, Backend] = {"cpu": Backend(CPUBackend, CPUDriver)}
