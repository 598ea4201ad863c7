"""NVIDIA's `Driver` (see `compiler/backends.py`): what the back end's driver layer says of the GPUs of this machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from weft.backends.nvidia.driver import *  # noqa: F403
from weft.backends.nvidia.driver import device, device_count, driver_version
from weft.backends.nvidia.events import Event, copy as copy, fill as fill, in_use as in_use
from weft.backends.nvidia.loaded_kernel import LoadedKernel
from weft.base import NoDevice, load as load_module

event = Event


def __getattr__(name: str) -> Any:
    """`memory_kinds`: what PyTorch calls cuda is not NVIDIA's where it is built for another vendor's GPUs."""
    if name != "memory_kinds":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    version = getattr(sys.modules.get("torch"), "version", None)
    return () if getattr(version, "hip", None) else ("cuda",)


def load(image: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
    """A cubin or PTX in the memory of the current GPU."""
    return LoadedKernel(image, metadata)


def map_maker(*facts: Any) -> Any:
    """See `weft.backends.nvidia.tensormaps`, which comes with the layouts when the first kernel has a tensor map."""
    return load_module("weft.backends.nvidia.tensormaps").map_maker(*facts)


ADVICE = {
    "GPUs": "none is needed: with sim:cuda:90 as target kernels are simulated, and weft explain predicts their times",
    "driver": "pip install 'weft[cuda]' beside NVIDIA's driver; start a container with --gpus all",
    "ptxas": "pip install nvidia-cuda-nvcc, or the CUDA toolkit: registers and spills are then counted without a GPU",
}
"""What to do about what `found` does not find."""


def found() -> dict[str, str]:
    """What there is for launches on NVIDIA GPUs, in words: GPUs, the driver, the assembler."""
    try:
        gpus = [device(i) for i in range(device_count())]
        names = [f"{gpu.name}, {gpu.memory_bytes >> 30} GiB, {gpu.target}" for gpu in gpus]
        version = driver_version()
        text = f"CUDA {version // 1000}.{version % 1000 // 10}"
    except NoDevice as error:
        names, text = [], f"none: {error.message}"
    tool = load_module("weft.backends.nvidia.ptxas").find_tool()
    return {"GPUs": "; ".join(names) or "none", "driver": text, "ptxas": tool or "none: nvJitLink or the driver"}
