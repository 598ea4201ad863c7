"""The GPUs of this machine: the `Driver` of the target that launches are for, else of the first vendor with any here.

    devices.driver()                        the driver
    devices.current_device().name           what a driver has is had from the module, too

The runtime says (`chosen`) which target launches are for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from weft.machines.vendors import SIGNS, part_of, vendors_with

from .backends import Backend, Device, Driver, Event, Loaded, backend_of, first_backend
from .target import as_target, is_gpu

if TYPE_CHECKING:
    _driver = cast(Driver, None)
    allocate, available, copy, current_device = (
        _driver.allocate,
        _driver.available,
        _driver.copy,
        _driver.current_device,
    )
    device, device_count, entered, event = _driver.device, _driver.device_count, _driver.entered, _driver.event
    fill, free, gpu_of_address = _driver.fill, _driver.free, _driver.gpu_of_address
    in_use, installed, load, map_maker = _driver.in_use, _driver.installed, _driver.load, _driver.map_maker
    on, to_device, to_host = _driver.on, _driver.to_device, _driver.to_host
    memory_kinds = _driver.memory_kinds

__all__ = ["Device", "Event", "Loaded", "backend", "chosen", "driver", "driver_of_cupy"]

chosen: list[Callable[[], str | None]] = []
"""Gives the target that was asked for, if any."""


def backend() -> Backend:
    """The back end of the target that is asked for, where that is a GPU; else the first."""
    for asks in chosen:
        asked = asks()
        if asked is not None and is_gpu(asked):
            return backend_of(as_target(asked).machine)
    return first_backend()


def driver() -> Driver:
    """The driver of that back end."""
    return backend().driver


def _drivers() -> Iterator[tuple[str, Driver]]:
    """Those of all vendors."""
    return ((vendor, part_of("compiler", vendor).BACKEND.driver) for vendor in vendors_with("compiler"))


def vendor_of(its: Driver) -> str:
    """Whose driver it is."""
    return next(vendor for vendor, other in _drivers() if other is its)


def vendor_with(memory: str) -> str:
    """The vendor whose GPUs have memory of this kind; "" where nobody's have."""
    return next((vendor for vendor, its in _drivers() if memory in its.memory_kinds), "")


def driver_of_cupy(array: Any) -> Driver | None:
    """The driver of the GPUs that CuPy is built for, which an array of CuPy's is on; None for all other arrays."""
    if type(array).__module__.partition(".")[0] != "cupy":
        return None
    runtime, first = sys.modules["cupy"].cuda.runtime, next(vendors_with("compiler"))
    whose = next((vendor for vendor, (name, _) in SIGNS.items() if getattr(runtime, f"is_{name}", False)), first)
    its: Driver = part_of("compiler", whose).BACKEND.driver
    return its


def found() -> dict[str, str]:
    """What there is for launches on GPUs, of all vendors, in words."""
    return {what: text for _, its in _drivers() for what, text in its.found().items()}


def tools() -> dict[str, str]:
    """Programs and libraries of vendors that compiling can use, in words."""
    return {what: text for _, its in _drivers() for what, text in vars(its).get("tools", dict)().items()}


def advice() -> dict[str, str]:
    """What to do about what is missing, by the names of `found` and `tools`."""
    return {what: text for _, its in _drivers() for what, text in getattr(its, "ADVICE", {}).items()}


def __getattr__(name: str) -> Any:
    return getattr(driver(), name)
