"""AMD's `Driver` (see `compiler/backends.py`): what the back end's driver layer says of the GPUs of this machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from weft.backends.amd.driver import *  # noqa: F403
from weft.backends.amd.driver import device, device_count, library_version
from weft.backends.amd.events import Event, copy as copy, fill as fill, in_use as in_use
from weft.backends.amd.loaded_kernel import LoadedKernel
from weft.base import NoDevice, Unsupported, load as load_module

event = Event


def __getattr__(name: str) -> Any:
    """`memory_kinds`: PyTorch for ROCm calls its devices cuda; those of a PyTorch for another vendor are not AMD's."""
    if name != "memory_kinds":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    version = getattr(sys.modules.get("torch"), "version", None)
    return ("cuda", "rocm") if version is None or getattr(version, "hip", None) else ("rocm",)


def load(image: bytes, metadata: Mapping[str, Any]) -> LoadedKernel:
    """A code object in the memory of the current GPU."""
    return LoadedKernel(image, metadata)


def map_maker(*facts: Any) -> Any:
    """Unsupported: there are no descriptors for a copy engine."""
    raise Unsupported("a tensor map for the copy engine", "hip")


ADVICE = {
    "HIP": "install ROCm for launches; kernels are compiled for hip:gfx942 and others without it",
    "AMD assembler": "install ROCm, llvm-mc or clang for kernels with inline assembly; all others need none",
}
"""What to do about what `found` does not find."""


def tools() -> dict[str, str]:
    """The assembler of kernels with inline assembly, in words."""
    return {"AMD assembler": next(load_module("weft.backends.amd.assembler").paths(), "none")}


def found() -> dict[str, str]:
    """What there is for launches on AMD GPUs, in words: GPUs, the library."""
    try:
        gpus = [device(i) for i in range(device_count())]
        names = [f"{gpu.name}, {gpu.memory_bytes >> 30} GiB, hip:{gpu.full_processor}" for gpu in gpus]
        text = library_version()
    except NoDevice as error:
        names, text = [], f"none: {error.message}"
    return {"AMD GPUs": "; ".join(names) or "none", "HIP": text}
