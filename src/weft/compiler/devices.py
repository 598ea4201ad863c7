"""The GPUs of this machine, for those who launch: what the driver layer of the NVIDIA back end says of them."""

from __future__ import annotations

import importlib
from typing import Any

from weft.backends.nvidia.driver import (
    Device,
    LoadedKernel,
    allocate,
    available,
    current_device,
    device,
    device_count,
    driver_version,
    entered,
    free,
    gpu_of_address,
    installed,
    on,
    to_device,
    to_host,
)
from weft.backends.nvidia.events import Event, copy, fill, in_use
from weft.base import NoDevice

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
    "entered",
    "fill",
    "found",
    "free",
    "gpu_of_address",
    "in_use",
    "installed",
    "map_maker",
    "on",
    "to_device",
    "to_host",
]


def map_maker(*facts: Any) -> Any:
    """See `weft.backends.nvidia.tensormaps`, which comes with the layouts when the first kernel has a tensor map."""
    return importlib.import_module("weft.backends.nvidia.tensormaps").map_maker(*facts)


def found() -> dict[str, str]:
    """What there is for launches on NVIDIA GPUs, in words: GPUs, the driver, the assembler."""
    try:
        gpus = [device(i) for i in range(device_count())]
        names = [f"{gpu.name}, {gpu.memory_bytes >> 30} GiB, {gpu.target}" for gpu in gpus]
        known = driver_version()
        which = f"CUDA {known // 1000}.{known % 1000 // 10}"
    except NoDevice as error:
        names, which = [], f"none: {error.message}"
    tool = importlib.import_module("weft.backends.nvidia.ptxas").find_tool()
    return {"GPUs": "; ".join(names) or "none", "driver": which, "ptxas": tool or "none: nvJitLink or the driver"}
