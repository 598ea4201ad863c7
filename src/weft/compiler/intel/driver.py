"""Intel's `Driver` (see `compiler/backends.py`): what the back end's driver layer says of the GPUs of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.backends.intel.driver import *  # noqa: F403
from weft.backends.intel.driver import device, device_count, library_version
from weft.backends.intel.events import Event, in_use as in_use
from weft.backends.intel.loaded_kernel import LoadedKernel
from weft.backends.intel.queues import (
    copy as copy,
    fill as fill,
    free as free,
    to_device as to_device,
    to_host as to_host,
)
from weft.base import NoDevice, Unsupported

memory_kinds = ("xpu", "oneapi")
event = Event


def load(image: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
    """SPIR-V, compiled by the driver for the current GPU."""
    return LoadedKernel(image, metadata)


def map_maker(*facts: Any) -> Any:
    """Unsupported: there are no descriptors for a copy engine."""
    raise Unsupported("a tensor map for the copy engine", "xpu")


ADVICE = {"Level Zero": "install Intel's compute runtime for launches; kernels are compiled for xpu:pvc without it"}
"""What to do about what `found` does not find."""


def found() -> dict[str, str]:
    """What there is for launches on Intel's GPUs, in words: GPUs, the library."""
    try:
        gpus = [device(i) for i in range(device_count())]
        names = [f"{gpu.name}, {gpu.memory_bytes >> 30} GiB, {gpu.number:#06x}" for gpu in gpus]
        text = library_version()
    except NoDevice as error:
        names, text = [], f"none: {error.message}"
    return {"Intel GPUs": "; ".join(names) or "none", "Level Zero": text}
