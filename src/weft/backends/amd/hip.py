"""The functions of the HIP library that are called, with the types of their arguments, and the numbers of its enums.

    hip = api()                                   # NoDevice, saying what is missing
    count = ask(hip.hipGetDeviceCount, c_int)     # what a function writes behind its first pointer

All of them give a `hipError_t`. Types and numbers are those of hip/hip_runtime_api.h of ROCm 7.1, which are the same
from 6.0 on; ROCm 5 has other kinds of memory and other properties of devices, and is refused.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from functools import lru_cache
from typing import Any

from weft.base import NoDevice

from .library import open_library

_POINTER_TO = {kind: POINTER(kind) for kind in (c_int, c_float, c_size_t, c_void_p)}
_INT, _SIZE, _HANDLE = (_POINTER_TO[kind] for kind in (c_int, c_size_t, c_void_p))
_GRID_AND_BLOCK = (c_uint,) * 6

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "hipInit": (c_uint,),
    "hipRuntimeGetVersion": (_INT,),
    "hipGetLastError": (),
    "hipGetDeviceCount": (_INT,),
    "hipGetDevice": (_INT,),
    "hipSetDevice": (c_int,),
    "hipDeviceGetName": (c_char_p, c_int, c_int),
    "hipDeviceGetAttribute": (_INT, c_int, c_int),
    "hipDeviceTotalMem": (_SIZE, c_int),
    "hipGetDevicePropertiesR0600": (c_void_p, c_int),
    "hipDeviceSynchronize": (),
    "hipStreamSynchronize": (c_void_p,),
    "hipModuleLoadData": (_HANDLE, c_void_p),
    "hipModuleGetFunction": (_HANDLE, c_void_p, c_char_p),
    "hipModuleGetGlobal": (_HANDLE, _SIZE, c_void_p, c_char_p),
    "hipFuncGetAttribute": (_INT, c_int, c_void_p),
    "hipModuleLaunchKernel": (c_void_p, *_GRID_AND_BLOCK, c_uint, c_void_p, c_void_p, c_void_p),
    "hipModuleLaunchCooperativeKernel": (c_void_p, *_GRID_AND_BLOCK, c_uint, c_void_p, c_void_p),
    "hipEventCreateWithFlags": (_HANDLE, c_uint),
    "hipEventRecord": (c_void_p, c_void_p),
    "hipEventQuery": (c_void_p,),
    "hipEventSynchronize": (c_void_p,),
    "hipEventElapsedTime": (_POINTER_TO[c_float], c_void_p, c_void_p),
    "hipEventDestroy": (c_void_p,),
    "hipMalloc": (_HANDLE, c_size_t),
    "hipFree": (c_void_p,),
    "hipMemGetInfo": (_SIZE, _SIZE),
    "hipMemcpyHtoD": (c_void_p, c_void_p, c_size_t),
    "hipMemcpyDtoH": (c_void_p, c_void_p, c_size_t),
    "hipMemcpyDtoDAsync": (c_void_p, c_void_p, c_size_t, c_void_p),
    "hipMemsetD8Async": (c_void_p, c_ubyte, c_size_t, c_void_p),
    "hipPointerGetAttribute": (c_void_p, c_int, c_void_p),
    "hipMemGetAddressRange": (_HANDLE, _SIZE, c_void_p),
}
TEXTS = ("hipGetErrorName", "hipGetErrorString")
"""Functions that give a text for a status."""

# hipDeviceAttribute_t, by the names that `driver.Device` has for them
ATTRIBUTES = {
    "clock_khz": 5,
    "l2_bytes": 19,
    "major": 23,
    "max_threads": 56,
    "bus_bits": 59,
    "memory_clock_khz": 60,
    "minor": 61,
    "multiprocessors": 63,
    "registers": 71,
    "shared_bytes": 74,
    "lanes": 87,
}
PROPERTIES_BYTES, ARCH_AT, ARCH_BYTES = 1472, 1160, 256
"""sizeof(hipDeviceProp_tR0600), and where the name of the processor (gcnArchName) lies in it."""
# hipFunction_attribute
MAX_THREADS, SHARED_BYTES, LOCAL_BYTES, REGISTERS = 0, 1, 3, 4
# hipPointer_attribute, hipMemoryType
MEMORY_TYPE, DEVICE_ORDINAL = 2, 9
DEVICE_MEMORY = 2
NO_TIMING = 2
"""hipEventDisableTiming"""
# hipError_t
SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONFIGURATION, NO_DEVICE, NOT_READY = 0, 1, 2, 9, 100, 600

OLDEST = 6
"""The major version of ROCm that brought these kinds of memory and properties."""


class Hip:
    """The library's functions, by name."""

    def __init__(self, library: Any) -> None:
        self.path = str(getattr(library, "_name", ""))
        for name, types in (*FUNCTIONS.items(), *((name, (c_int,)) for name in TEXTS)):
            try:
                function = getattr(library, name)
            except AttributeError:
                raise NoDevice(
                    f"the HIP library {self.path} has no function {name}", hint=f"install ROCm {OLDEST}.0 or newer"
                ) from None
            function.argtypes, function.restype = types, c_char_p if name in TEXTS else c_int
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} is no function of HIP that is used")

    def said(self, status: int) -> str:
        """The library's name for a status and what it says of it."""
        name, text = (getattr(self, function)(status) or b"?" for function in TEXTS)
        return f"{name.decode(errors='replace')} ({text.decode(errors='replace')})"

    @property
    def version(self) -> tuple[int, int, int]:
        """That of the library: (7, 1, 25424)."""
        _, number = ask(self.hipRuntimeGetVersion, c_int)
        return number // 10**7, number // 10**5 % 100, number % 10**5


def _no_gpu(message: str) -> NoDevice:
    simulated = "without a GPU use the target cpu, or sim:hip:gfx942 to simulate one"
    hint = "rocminfo says more"
    if os.name == "posix" and not os.path.exists("/dev/kfd"):
        hint = "there is no /dev/kfd: the kernel driver amdgpu is not loaded, or a container was not given it"
    elif os.name == "posix" and not os.access("/dev/kfd", os.R_OK | os.W_OK):
        hint = "this user may not open /dev/kfd: usually the groups render and video may"
    elif hiding := [n for n in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES") if n in os.environ]:
        hint = f"{hiding[0]}={os.environ[hiding[0]]} may hide it"
    return NoDevice(message, hint=f"{hint}; {simulated}")


@lru_cache(maxsize=1)
def api() -> Hip:
    """The library, initialised. NoDevice, saying what is missing."""
    try:
        hip = Hip(open_library())
    except FileNotFoundError as error:
        hint = (
            "install ROCm, or PyTorch for ROCm; ROCM_PATH names another place; "
            "without a GPU use the target cpu, or sim:hip:gfx942 to simulate one"
        )
        raise NoDevice(str(error), hint=hint) from None
    status = hip.hipInit(0)
    if status == NO_DEVICE:
        raise _no_gpu(f"the HIP library sees no AMD GPU: {hip.said(status)}")
    if status:
        raise _no_gpu(f"the HIP library does not start: {hip.said(status)}")
    major, minor, _ = hip.version
    if major < OLDEST:
        raise NoDevice(
            f"the HIP library {hip.path} is of ROCm {major}.{minor}; {OLDEST}.0 or newer is needed",
            hint="install a newer ROCm",
        )
    return hip


def started() -> bool:
    """Whether the library has been loaded and initialised from here."""
    return api.cache_info().currsize > 0


def ask(function: Callable[..., int], kind: Any, *arguments: Any) -> tuple[int, Any]:
    """(status, what a function writes behind its first pointer, which is to a value of this kind)."""
    answer = kind()
    return function(ctypes.byref(answer), *arguments), answer.value
