"""The GPUs of this machine, for those who launch: what the driver layer of the NVIDIA back end says of them."""

from __future__ import annotations

from weft.backends.nvidia.driver import (
    Device,
    LoadedKernel,
    allocate,
    available,
    current_device,
    device,
    device_count,
    driver_version,
    free,
    to_device,
    to_host,
)
from weft.backends.nvidia.events import Event, copy, fill, in_use
from weft.backends.nvidia.tensormaps import map_maker

__all__ = [
    "Device",
    "Event",
    "LoadedKernel",
    "allocate",
    "available",
    "copy",
    "current_device",
    "device",
    "device_count",
    "driver_version",
    "fill",
    "free",
    "in_use",
    "map_maker",
    "to_device",
    "to_host",
]
