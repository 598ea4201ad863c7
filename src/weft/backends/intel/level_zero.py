"""The functions of Level Zero that are called, with the types of their arguments, structures and numbers of enums.

    ze = api()                                                # NoDevice, saying what is missing
    context = answer(ze.zeContextCreate, driver, byref(ContextDesc()))

All of them give a `ze_result_t`. Most write what they answer behind their last pointer. Types and numbers are those of
ze_api.h of Level Zero 1.8, whose loader Debian 12 has; newer versions add to them and change none. What came later
(1.9 waits for a command list) is not used.

A call behind a `zeInit` that failed ends the process in that loader: nothing is called then.
"""

from __future__ import annotations

import ctypes
import glob
import os
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char, c_char_p, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p
from functools import lru_cache
from typing import Any

from weft.base import NoDevice

from .loader import open_loader

UUID, NAME = 16, 256
"""Bytes of them."""


def _structure(name: str, kind: int, fields: str) -> Any:
    """A structure of Level Zero's: its kind and a pointer to what extends it, then fields: "u32 flags; ptr code"."""
    types: dict[str, Any] = {"u32": c_uint32, "u64": c_uint64, "size": c_size_t, "ptr": c_void_p, "text": c_char_p}
    types |= {"uuid": c_uint8 * UUID, "name": c_char * NAME, "sizes": c_uint32 * 8, "two": c_uint8 * (2 * UUID)}
    given = [(field, types[type]) for type, field in (part.split() for part in fields.split(";"))]

    def begin(self: Any, **values: Any) -> None:
        Structure.__init__(self, stype=kind, **values)

    members = {"_fields_": [("stype", c_uint32), ("pNext", c_void_p), *given], "__init__": begin}
    return type(name, (Structure,), members)


DeviceProperties = _structure(  # as of 1.2, where a timer's resolution is ticks in a second
    "DeviceProperties",
    0x20006,
    "u32 type; u32 vendorId; u32 deviceId; u32 flags; u32 subdeviceId; u32 coreClockRate; u64 maxMemAllocSize;"
    "u32 maxHardwareContexts; u32 maxCommandQueuePriority; u32 numThreadsPerEU; u32 physicalEUSimdWidth;"
    "u32 numEUsPerSubslice; u32 numSubslicesPerSlice; u32 numSlices; u64 timerResolution; u32 timestampValidBits;"
    "u32 kernelTimestampValidBits; uuid uuid; name name",
)
IpVersion = _structure("IpVersion", 0x1000F, "u32 ipVersion")
ComputeProperties = _structure(
    "ComputeProperties",
    0x4,
    "u32 maxTotalGroupSize; u32 maxGroupSizeX; u32 maxGroupSizeY; u32 maxGroupSizeZ; u32 maxGroupCountX;"
    "u32 maxGroupCountY; u32 maxGroupCountZ; u32 maxSharedLocalMemory; u32 numSubGroupSizes; sizes subGroupSizes",
)
MemoryProperties = _structure(
    "MemoryProperties", 0x7, "u32 flags; u32 maxClockRate; u32 maxBusWidth; u64 totalSize; name name"
)
CacheProperties = _structure("CacheProperties", 0x9, "u32 flags; size cacheSize")
ModuleProperties = _structure(
    "ModuleProperties",
    0x5,
    "u32 spirvVersionSupported; u32 flags; u32 fp16flags; u32 fp32flags; u32 fp64flags; u32 maxArgumentsSize;"
    "u32 printfBufferSize; uuid nativeKernelSupported",
)
ContextDesc = _structure("ContextDesc", 0xD, "u32 flags")
QueueDesc = _structure("QueueDesc", 0xE, "u32 ordinal; u32 index; u32 flags; u32 mode; u32 priority")
PoolDesc = _structure("PoolDesc", 0x10, "u32 flags; u32 count")
EventDesc = _structure("EventDesc", 0x11, "u32 index; u32 signal; u32 wait")
DeviceMemoryDesc = _structure("DeviceMemoryDesc", 0x15, "u32 flags; u32 ordinal")
AllocationProperties = _structure("AllocationProperties", 0x17, "u32 type; u64 id; u64 pageSize")
ModuleDesc = _structure(
    "ModuleDesc", 0x1B, "u32 format; size inputSize; ptr pInputModule; text pBuildFlags; ptr pConstants"
)
KernelDesc = _structure("KernelDesc", 0x1D, "u32 flags; text pKernelName")
KernelProperties = _structure(
    "KernelProperties",
    0x1E,
    "u32 numKernelArgs; u32 requiredGroupSizeX; u32 requiredGroupSizeY; u32 requiredGroupSizeZ;"
    "u32 requiredNumSubGroups; u32 requiredSubgroupSize; u32 maxSubgroupSize; u32 maxNumSubgroups; u32 localMemSize;"
    "u32 privateMemSize; u32 spillMemSize; two uuid",
)


class GroupCount(Structure):
    """The blocks of a launch."""

    _fields_ = [("x", c_uint32), ("y", c_uint32), ("z", c_uint32)]


class Timestamps(Structure):
    """When what an event is for began and ended, in ticks of the device and of the context."""

    _fields_ = [(name, c_uint64) for name in ("begin", "end", "context_begin", "context_end")]


_P, _N, _WAITS = c_void_p, POINTER(c_uint32), (c_void_p, c_uint32, c_void_p)
"""A handle or an address; a number that is read and written; the event to signal and those to wait for."""
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "zeInit": (c_uint32,),
    "zeDriverGet": (_N, _P),
    "zeDeviceGet": (_P, _N, _P),
    "zeDeviceGetProperties": (_P, _P),
    "zeDeviceGetComputeProperties": (_P, _P),
    "zeDeviceGetModuleProperties": (_P, _P),
    "zeDeviceGetMemoryProperties": (_P, _N, _P),
    "zeDeviceGetCacheProperties": (_P, _N, _P),
    "zeContextCreate": (_P, _P, _P),
    "zeCommandListCreateImmediate": (_P, _P, _P, _P),
    "zeCommandListAppendLaunchKernel": (_P, _P, _P, *_WAITS),
    "zeCommandListAppendMemoryCopy": (_P, _P, _P, c_size_t, *_WAITS),
    "zeCommandListAppendMemoryFill": (_P, _P, _P, c_size_t, c_size_t, *_WAITS),
    "zeCommandListAppendBarrier": (_P, *_WAITS),
    "zeEventPoolCreate": (_P, _P, c_uint32, _P, _P),
    "zeEventPoolDestroy": (_P,),
    "zeEventCreate": (_P, _P, _P),
    "zeEventDestroy": (_P,),
    "zeEventHostReset": (_P,),
    "zeEventHostSynchronize": (_P, c_uint64),
    "zeEventQueryStatus": (_P,),
    "zeEventQueryKernelTimestamp": (_P, _P),
    "zeMemAllocDevice": (_P, _P, c_size_t, c_size_t, _P, _P),
    "zeMemFree": (_P, _P),
    "zeMemGetAllocProperties": (_P, _P, _P, _P),
    "zeModuleCreate": (_P, _P, _P, _P, _P),
    "zeModuleDestroy": (_P,),
    "zeModuleBuildLogGetString": (_P, POINTER(c_size_t), _P),
    "zeModuleBuildLogDestroy": (_P,),
    "zeKernelCreate": (_P, _P, _P),
    "zeKernelDestroy": (_P,),
    "zeKernelGetProperties": (_P, _P),
    "zeKernelSetGroupSize": (_P, c_uint32, c_uint32, c_uint32),
    "zeKernelSetArgumentValue": (_P, c_uint32, c_size_t, _P),
    "zeKernelSetIndirectAccess": (_P, c_uint32),
}

GPU_ONLY = 1
"""ZE_INIT_FLAG_GPU_ONLY"""
GPU, INTEGRATED, INTEL = 1, 1, 0x8086
"""ze_device_type_t, ze_device_property_flag_t, the vendor's number."""
FLOAT64 = 2
"""ZE_DEVICE_MODULE_FLAG_FP64"""
ASYNCHRONOUS = 2
"""ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS"""
HOST_VISIBLE, TIMESTAMPS, HOST_SCOPE = 1, 4, 4
"""Flags of pools of events and of events."""
SPIRV = 0
"""ZE_MODULE_FORMAT_IL_SPIRV"""
MEMORY_OF_A_DEVICE = 2, 3
"""ze_memory_type_t: of one device alone, and shared with the host."""
INDIRECT = 7
"""ze_kernel_indirect_access_flag_t: memory of every kind may be reached by addresses that lie in memory."""
FOREVER = (1 << 64) - 1
# ze_result_t
SUCCESS, NOT_READY = 0, 1
NAMES = {
    0x70000001: "DEVICE_LOST", 0x70000002: "OUT_OF_HOST_MEMORY", 0x70000003: "OUT_OF_DEVICE_MEMORY",
    0x70000004: "MODULE_BUILD_FAILURE", 0x70000005: "MODULE_LINK_FAILURE", 0x70000006: "DEVICE_REQUIRES_RESET",
    0x70010000: "INSUFFICIENT_PERMISSIONS", 0x70010001: "NOT_AVAILABLE", 0x70020000: "DEPENDENCY_UNAVAILABLE",
    0x78000001: "UNINITIALIZED", 0x78000002: "UNSUPPORTED_VERSION", 0x78000003: "UNSUPPORTED_FEATURE",
    0x78000004: "INVALID_ARGUMENT", 0x78000005: "INVALID_NULL_HANDLE", 0x78000006: "HANDLE_OBJECT_IN_USE",
    0x78000007: "INVALID_NULL_POINTER", 0x78000008: "INVALID_SIZE", 0x78000009: "UNSUPPORTED_SIZE",
    0x7800000A: "UNSUPPORTED_ALIGNMENT", 0x7800000F: "INVALID_NATIVE_BINARY", 0x78000011: "INVALID_KERNEL_NAME",
    0x78000013: "INVALID_GROUP_SIZE_DIMENSION", 0x78000014: "INVALID_GLOBAL_WIDTH_DIMENSION",
    0x78000015: "INVALID_KERNEL_ARGUMENT_INDEX", 0x78000016: "INVALID_KERNEL_ARGUMENT_SIZE",
    0x78000018: "INVALID_MODULE_UNLINKED", 0x7FFFFFFE: "UNKNOWN",
}  # fmt: skip
NUMBERS = {name: status for status, name in NAMES.items()}


def said(status: int) -> str:
    """Level Zero's name for a result.

    >>> said(0x78000011)
    'ZE_RESULT_ERROR_INVALID_KERNEL_NAME'
    """
    if status == NOT_READY:
        return "NOT_READY: it was not recorded, or has no time"
    return f"ZE_RESULT_ERROR_{NAMES[status]}" if status in NAMES else f"result {status:#x}"


class LevelZero:
    """The loader's functions, by name."""

    def __init__(self, library: Any) -> None:
        self.path = str(getattr(library, "_name", ""))
        for name, types in FUNCTIONS.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                hint = "install a newer Level Zero: 1.8 or later"
                raise NoDevice(f"Level Zero's loader {self.path} has no function {name}", hint=hint) from None
            function.argtypes, function.restype = types, c_uint32
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} is no function of Level Zero that is used")


SIMULATED = "without a GPU use the target cpu, or sim:xpu:pvc to simulate one"


def _no_gpu(message: str) -> NoDevice:
    """What the system says of it."""
    hint = "clinfo and xpu-smi discovery say more"
    if os.name == "posix":
        nodes = sorted(glob.glob("/dev/dri/renderD*"))
        if not nodes:
            there_is = "there is no /dev/dri/renderD*"
            hint = f"{there_is}: the kernel driver i915 or xe is not loaded, or a container was not given it"
        elif not any(os.access(node, os.R_OK | os.W_OK) for node in nodes):
            hint = f"this user may not open {nodes[0]}: usually the group render may"
        elif hiding := [n for n in ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR") if n in os.environ]:
            hint = f"{hiding[0]}={os.environ[hiding[0]]} may hide it"
    return NoDevice(message, hint=f"{hint}; {SIMULATED}")


def api() -> LevelZero:
    """The loader, initialised. NoDevice, saying what is missing."""
    there = _start()
    if isinstance(there, NoDevice):
        raise NoDevice(there.message, hint=there.hint)
    return there


@lru_cache(maxsize=1)
def _start() -> LevelZero | NoDevice:
    """It, or why it is not there: once in a process, as nothing may be called when it has failed."""
    try:
        ze = LevelZero(open_loader())
    except FileNotFoundError as error:
        packages = "install libze1 and libze-intel-gpu1 (Debian 12: intel-opencl-icd), or Intel's driver"
        return NoDevice(str(error), hint=f"{packages}; {SIMULATED}")
    except NoDevice as error:
        return error
    status = ze.zeInit(GPU_ONLY)
    if status:
        return _no_gpu(f"Level Zero ({ze.path}) finds no driver of an Intel GPU: {said(status)}")
    return ze


def started() -> bool:
    """Whether Level Zero has been initialised from here."""
    return _start.cache_info().currsize > 0 and not isinstance(_start(), NoDevice)


def listed(function: Callable[..., int], kind: Any, *arguments: Any) -> list[Any]:
    """What a function enumerates: it is asked how many there are, then for them. The first status that is no success
    ends the list."""
    count = c_uint32(0)
    if function(*arguments, ctypes.byref(count), None) or not count.value:
        return []
    array = (kind * count.value)(*(kind() for _ in range(count.value)))
    if function(*arguments, ctypes.byref(count), ctypes.addressof(array)):
        return []
    return list(array[: count.value])
