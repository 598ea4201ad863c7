"""What Level Zero says, as errors: a result that it answers, a kernel that went wrong (see `gpu/launches.py`)."""

from __future__ import annotations

import ctypes
from typing import Any

from ..gpu.launches import NOT_INITIALIZED, OUT_OF_MEMORY, Library
from .level_zero import NUMBERS, said

__all__ = ["answer", "check", "launches"]

_FAULTS = {
    NUMBERS["DEVICE_LOST"]: "a kernel ended by a fault, or ran longer than the system allows",
    NUMBERS["DEVICE_REQUIRES_RESET"]: "the GPU has to be reset",
}
"""Results after which nothing works any more."""
_COMMON = {
    NUMBERS["OUT_OF_HOST_MEMORY"]: OUT_OF_MEMORY,
    NUMBERS["OUT_OF_DEVICE_MEMORY"]: OUT_OF_MEMORY,
    NUMBERS["UNINITIALIZED"]: NOT_INITIALIZED,
}
"""Results for which other libraries have a status, by which errors are made."""
_ZE = Library(
    "Level Zero",
    "Level Zero",
    _FAULTS,
    {
        NUMBERS["INVALID_ARGUMENT"]: "an address is in no memory that a GPU of Intel's was given: an array of the "
        "host, or memory that was given back",
        NUMBERS["INVALID_KERNEL_NAME"]: "the module has no such kernel",
        NUMBERS["INVALID_GROUP_SIZE_DIMENSION"]: "a block has another number of threads than was compiled for",
    },
    "run the kernel with target='sim:xpu:pvc', which names the line and the address",
)
launches = _ZE.launches


def check(status: int, kernel: str = "") -> None:
    """Raise what went wrong; nothing where it is a success."""
    if status:
        raise _ZE.error(_COMMON.get(status, status), said(status), kernel)


def answer(function: Any, *arguments: Any, kernel: str = "") -> int:
    """The handle that a function writes behind its last pointer; what went wrong is raised."""
    handle = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(handle)), kernel)
    return int(handle.value or 0)
