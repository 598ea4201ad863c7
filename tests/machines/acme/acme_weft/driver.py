"""Acme's driver: memory of the host's that is taken for the GPU's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from .host import Loaded
from .rows import ROWS

__all__ = ["Driver"]


@dataclass
class Device:
    """The only one."""

    index: int = 0
    name: str = "Acme One"
    target: str = ROWS[0].name
    memory_bytes: int = 1 << 30
    l2_bytes: int = 1 << 20
    shared_bytes: int = ROWS[0].shared_bytes
    registers: int = 64 << 10
    multiprocessors: int = ROWS[0].multiprocessors
    capability: int = ROWS[0].generation
    major: int = 1
    minor: int = 0
    clock_khz: int = 1
    memory_clock_khz: int = 1
    bus_bits: int = 64

    def make_current(self) -> None:
        """It is."""

    def synchronize(self) -> None:
        """Launches wait."""


class Event:
    """A point in time: launches wait."""

    def __init__(self, enable_timing: bool = True) -> None:
        self.at = 0.0

    def record(self, stream: Any = 0) -> None:
        self.at = perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """It is past."""

    def elapsed_time(self, end: Any) -> float:
        return 1e3 * float(end.at - self.at)


class Driver:
    """See `weft.compiler.backends.Driver`."""

    memory_kinds = ("acme",)
    event = Event

    def __init__(self) -> None:
        self.memory: dict[int, Any] = {}

    def installed(self) -> bool:
        return True

    available = in_use = installed

    def device_count(self) -> int:
        return 1

    def device(self, index: int) -> Device:
        return Device(index)

    def current_device(self) -> Device:
        return Device()

    @contextmanager
    def entered(self, where: Device) -> Iterator[None]:
        yield

    def on(self, where: Device, launch: Callable[..., None]) -> Callable[..., None]:
        return launch

    def allocate(self, size: int, where: Device) -> int:
        block = (ctypes.c_char * (size + 256))()
        address = -(-ctypes.addressof(block) // 256) * 256
        self.memory[address] = block
        return address

    def free(self, address: int, where: Device) -> None:
        del self.memory[address]

    def gpu_of_address(self, address: int) -> int | None:
        return 0 if address in self.memory else None

    def to_device(self, address: int, host: int, size: int, where: Device) -> None:
        ctypes.memmove(address, host, size)

    to_host = to_device

    def copy(self, target: int, source: int, size: int, where: Device, stream: int = 0) -> None:
        ctypes.memmove(target, source, size)

    def fill(self, address: int, size: int, where: Device, stream: int = 0, value: int = 0) -> None:
        ctypes.memset(address, value, size)

    def load(self, image: bytes, metadata: Mapping[str, Any]) -> Loaded:
        return Loaded(image.decode(), metadata)

    def map_maker(self, *facts: Any) -> Any:
        raise NotImplementedError

    def found(self) -> dict[str, str]:
        return {"GPUs": "Acme One"}
