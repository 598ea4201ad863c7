"""Intel's GPUs by Level Zero: devices and memory; `queues` has what is queued on them, `loaded_kernel` what runs.

The GPUs are those of Intel's among all drivers', as PyTorch counts them: where there are cards, graphics that are part
of a processor are none. A thread has a current one, PyTorch's where that has begun to use GPUs. Memory and modules
belong to one context, which this process has for each driver.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from weft.base import NoDevice, Unsupported
from weft.machines import MACHINES, part_of

from ..gpu.launches import check_index, check_memory, no_memory_left
from .faults import answer, check
from .level_zero import (
    FLOAT64,
    GPU,
    INTEGRATED,
    INTEL,
    MEMORY_OF_A_DEVICE,
    NUMBERS,
    SIMULATED,
    AllocationProperties,
    CacheProperties,
    ComputeProperties,
    ContextDesc,
    DeviceMemoryDesc,
    DeviceProperties,
    IpVersion,
    MemoryProperties,
    ModuleProperties,
    api,
    listed,
)

__all__ = [
    "Device",
    "allocate",
    "available",
    "current_device",
    "device",
    "device_count",
    "entered",
    "gpu_of_address",
    "installed",
    "library_version",
    "on",
]

RELEASES = {1255: "dg2", 1256: "dg2", 1257: "dg2", 1260: "pvc", 1261: "pvc", 2001: "bmg", 2002: "bmg", 2004: "lnl",
            3000: "ptl", 3001: "ptl", 3002: "ptl"}  # fmt: skip
"""Rows of machines by the architecture and release that hardware says it is of: 12.60 is 1260."""
NUMBERED = {0x0BD: 1260, 0x569: 1255, 0x56A: 1255, 0x56B: 1255, 0x56C: 1255, 0xE20: 2001, 0xE21: 2001, 0xE22: 2002,
            0x642: 2004, 0x64A: 2004, 0x64B: 2004, 0xB08: 3000, 0xB09: 3000, 0xB0A: 3000, 0xB0B: 3000}  # fmt: skip
"""The same by all digits of a device's number but the last, for drivers that do not say the release."""


@dataclass(frozen=True)
class Device:
    """A GPU: its number, what it is, and what its blocks may take."""

    index: int
    name: str
    handle: int
    context: int
    number: int
    """What PCI knows it by: 0x0bd5."""
    release: int
    """1260 of Ponte Vecchio; 0 where nobody knows."""
    integrated: bool
    memory_bytes: int
    l2_bytes: int
    shared_bytes: int
    max_threads: int
    multiprocessors: int
    threads: int
    """Of hardware, on a multiprocessor."""
    lanes: tuple[int, ...]
    """Of a subgroup."""
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    timer: int
    """Ticks in a second."""
    timer_bits: int
    has_float64: bool

    @property
    def capability(self) -> int:
        """The number by which rows of machines are ordered: 1260."""
        return self.release

    @property
    def major(self) -> int:
        """12 of Ponte Vecchio."""
        return self.release // 100

    @property
    def minor(self) -> int:
        """60 of Ponte Vecchio."""
        return self.release % 100

    @property
    def registers(self) -> int:
        """Of 32 bits, on a multiprocessor."""
        row = RELEASES.get(self.release)
        return int(MACHINES[f"xpu:{row}"].registers) if row else 0

    @property
    def target(self) -> str:
        """The target that kernels for it are compiled for. Unsupported, with those that there are, where none is."""
        row = RELEASES.get(self.release)
        if row is not None:
            return f"xpu:{row}"
        what = f"of release {self.major}.{self.minor}" if self.release else f"device {self.number:#06x}"
        nearest = part_of("machines", "intel").nearest(self.release)
        hint = f"the {self.name} is {what}; {nearest}or use the target cpu"
        raise Unsupported("compiling", f"xpu:{self.number:04x}", hint=hint)

    def make_current(self) -> None:
        """Make it the one of this thread, PyTorch's too."""
        torch = _torch()
        (_choose if torch is None else torch.set_device)(self.index)

    def synchronize(self) -> None:
        """Wait for all that was queued. Raises DeviceLost when some of it failed."""
        waits[0](self)


class _Thread(threading.local):
    """What a thread has chosen."""

    current = 0


_thread = _Thread()
waits: list[Callable[[Device], None]] = []
"""How all that was queued is waited for: `queues` says it, which is made of devices."""


def available() -> bool:
    """Whether there is a loader, a driver and at least one GPU."""
    try:
        return device_count() > 0
    except NoDevice:
        return False


def device_count() -> int:
    """GPUs that this process sees."""
    return len(_devices())


def device(index: int) -> Device:
    """A GPU by its number."""
    check_index(index, device_count())
    return _devices()[index]


@lru_cache(maxsize=1)
def _devices() -> tuple[Device, ...]:
    """All of Intel's GPUs, or the cards among them where there are any."""
    ze = api()
    found: list[Device] = []
    for driver in listed(ze.zeDriverGet, ctypes.c_void_p):
        gpus = [(h, p) for h in listed(ze.zeDeviceGet, ctypes.c_void_p, driver) if (p := _gpu(h)) is not None]
        if gpus:
            context = answer(ze.zeContextCreate, driver, byref(ContextDesc()))
            found += [_described(handle, context, *facts) for handle, facts in gpus]
    cards = [gpu for gpu in found if not gpu.integrated] or found
    return tuple(_numbered(i, gpu) for i, gpu in enumerate(cards))


def _numbered(index: int, gpu: Device) -> Device:
    return Device(**{**vars(gpu), "index": index})


def _gpu(handle: int) -> tuple[Any, int] | None:
    """The properties of one of Intel's GPUs and its release; None for another device."""
    ze = api()
    version = IpVersion()
    facts = DeviceProperties(pNext=ctypes.addressof(version))
    if ze.zeDeviceGetProperties(handle, byref(facts)):  # a driver that is too old to be asked for the release
        facts = DeviceProperties()
        check(ze.zeDeviceGetProperties(handle, byref(facts)))
    if (facts.type, facts.vendorId) != (GPU, INTEL):
        return None
    release = (version.ipVersion >> 22) * 100 + (version.ipVersion >> 14 & 0xFF)
    return facts, release or NUMBERED.get(facts.deviceId >> 4, 0)


def _described(handle: int, context: int, facts: Any, release: int) -> Device:
    ze = api()
    compute = ComputeProperties()
    check(ze.zeDeviceGetComputeProperties(handle, byref(compute)))
    modules = ModuleProperties()
    check(ze.zeDeviceGetModuleProperties(handle, byref(modules)))
    memories = listed(ze.zeDeviceGetMemoryProperties, MemoryProperties, handle)
    caches = listed(ze.zeDeviceGetCacheProperties, CacheProperties, handle)
    return Device(
        0,
        facts.name.decode(errors="replace"),
        handle,
        context,
        facts.deviceId,
        release,
        bool(facts.flags & INTEGRATED),
        sum(memory.totalSize for memory in memories),
        max((cache.cacheSize for cache in caches), default=0),
        compute.maxSharedLocalMemory,
        compute.maxTotalGroupSize,
        facts.numSlices * facts.numSubslicesPerSlice,
        facts.numEUsPerSubslice * facts.numThreadsPerEU,
        tuple(compute.subGroupSizes[: compute.numSubGroupSizes]),
        1000 * facts.coreClockRate,
        1000 * max((memory.maxClockRate for memory in memories), default=0),
        max((memory.maxBusWidth for memory in memories), default=0),
        facts.timerResolution,
        facts.kernelTimestampValidBits,
        bool(modules.flags & FLOAT64),
    )


def _torch() -> Any:
    """`torch.xpu`, where it has begun to use GPUs."""
    gpus = getattr(sys.modules.get("torch"), "xpu", None)
    return gpus if gpus is not None and gpus.is_available() and gpus.is_initialized() else None


def current_device() -> Device:
    """The GPU of this thread. NoDevice where there is none."""
    if device_count() == 0:
        raise NoDevice("Level Zero's drivers have no Intel GPU", hint=SIMULATED)
    torch = _torch()
    return device(_thread.current if torch is None else torch.current_device())


@contextmanager
def entered(where: Device) -> Iterator[None]:
    """Have a GPU be that of this thread inside of a `with`; afterwards it is the one that was."""
    torch = _torch()
    before = _thread.current if torch is None else torch.current_device()
    if before == where.index:
        yield
        return
    choose = _choose if torch is None else torch.set_device
    choose(where.index)
    try:
        yield
    finally:
        choose(before)


def _choose(index: int) -> None:
    _thread.current = index


def on(where: Device, launch: Callable[..., None]) -> Callable[..., None]:
    """A launch that takes place on a GPU, whichever is the thread's: the queue that it goes to is the GPU's."""
    there = getattr(launch, "on_gpu", None)
    return launch if there is None else there(where)


def library_version() -> str:
    """Which copy of the loader is used."""
    return f"Level Zero, {api().path}"


# --------------------------------------------------------------------------------------------------------------------
# Memory

ALIGNMENT = 64
"""Of memory that is allocated; blocks of two dimensions begin at multiples of it."""


def allocate(size: int, where: Device) -> int:
    """The address of `size` bytes on a GPU, to be given back with `free`; OutOfResources where they are not there."""
    check_memory(size, where)
    address = ctypes.c_void_p()
    status = api().zeMemAllocDevice(
        where.context, byref(DeviceMemoryDesc()), max(1, size), ALIGNMENT, where.handle, byref(address)
    )
    if status in (NUMBERS["OUT_OF_DEVICE_MEMORY"], NUMBERS["OUT_OF_HOST_MEMORY"], NUMBERS["UNSUPPORTED_SIZE"]):
        raise no_memory_left(size, 0)
    check(status)
    return int(address.value or 0)


def gpu_of_address(address: int) -> int | None:
    """The number of the GPU whose memory an address is in; None for one that Level Zero does not know as such."""
    for context in {gpu.context for gpu in _devices()}:
        facts, handle = AllocationProperties(), ctypes.c_void_p()
        status = api().zeMemGetAllocProperties(context, address, byref(facts), byref(handle))
        if not status and facts.type in MEMORY_OF_A_DEVICE:
            return next((gpu.index for gpu in _devices() if gpu.handle == handle.value), None)
    return None


def installed() -> bool:
    """Whether the loader and a driver are there."""
    try:
        api()
    except NoDevice:
        return False
    return True
