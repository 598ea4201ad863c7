"""The HIP library: devices and memory; `loaded_kernel` has what runs on them.

A thread has a current device, by its number, which PyTorch and CuPy use as well; stream 0 is that device's. Where there
are several GPUs, what is done on another than the thread's leaves the thread with its own (`entered`, `on`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_int, c_size_t, c_void_p
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from weft.base import NoDevice, Unsupported
from weft.machines import MACHINES, part_of

from ..gpu.launches import OUT_OF_MEMORY, check_index, check_memory, no_memory_left
from .faults import answer, check
from .hip import (
    ARCH_AT,
    ARCH_BYTES,
    ATTRIBUTES,
    DEVICE_MEMORY,
    DEVICE_ORDINAL,
    MEMORY_TYPE,
    PROPERTIES_BYTES,
    api,
    ask,
    started,
)
from .library import there

__all__ = [
    "Device",
    "allocate",
    "allocation_bytes",
    "available",
    "current_device",
    "device",
    "device_count",
    "entered",
    "free",
    "gpu_of_address",
    "installed",
    "library_version",
    "on",
    "to_device",
    "to_host",
]


def available() -> bool:
    """Whether there is a library and at least one GPU."""
    try:
        return device_count() > 0
    except NoDevice:
        return False


def installed() -> bool:
    """Whether the library is there; it is not started to find out."""
    return started() or there()


@lru_cache(maxsize=1)
def device_count() -> int:
    """GPUs that this process sees."""
    return int(answer(api().hipGetDeviceCount, c_int))


def library_version() -> str:
    """That of the library, and which copy of it is used."""
    hip = api()
    return f"HIP {'.'.join(map(str, hip.version))}, {hip.path}"


def _rows() -> Any:
    """The module that has AMD's machines."""
    return part_of("machines", "amd")


@dataclass(frozen=True)
class Device:
    """A GPU: its number, what it is, and what its blocks may take."""

    index: int
    name: str
    memory_bytes: int
    full_processor: str
    """As the driver calls it, with what it has on and off: gfx90a:sramecc+:xnack-."""
    multiprocessors: int
    major: int
    minor: int
    shared_bytes: int
    registers: int
    max_threads: int
    lanes: int
    l2_bytes: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int

    @property
    def processor(self) -> str:
        """What code is compiled for: gfx90a."""
        return self.full_processor.partition(":")[0]

    @property
    def capability(self) -> int:
        """The number by which rows of machines are ordered: 0x90a."""
        return int(_rows().generation_of(self.processor))

    @property
    def target(self) -> str:
        """The target that kernels for it are compiled for. Unsupported, with the nearest, where there is none."""
        name = f"hip:{self.processor}"
        if name in MACHINES:
            return name
        family = [m.name for m in _rows().ROWS if m.generation >> 8 == self.capability >> 8 >= 0x10]
        version = f"{int(family[0][-4:-2])}.{family[0][-2]}.{family[0][-1]}" if family else ""
        taken = f"HSA_OVERRIDE_GFX_VERSION={version} has the driver take it for {family[0]}; " if family else ""
        nearest = _rows().nearest(self.capability)
        hint = f"the {self.name} is a {self.processor}; {nearest}{taken}or use the target cpu"
        raise Unsupported("compiling", name, hint=hint)

    def make_current(self) -> None:
        """Make it the one of this thread."""
        check(api().hipSetDevice(self.index))

    def synchronize(self) -> None:
        """Wait for all that was queued. Raises DeviceLost when some of it failed."""
        with entered(self):
            check(api().hipDeviceSynchronize())


@lru_cache(maxsize=64)
def device(index: int) -> Device:
    """A GPU by its number."""
    check_index(index, device_count())
    hip = api()
    facts = {name: int(answer(hip.hipDeviceGetAttribute, c_int, kind, index)) for name, kind in ATTRIBUTES.items()}
    name, properties = ctypes.create_string_buffer(256), ctypes.create_string_buffer(2 * PROPERTIES_BYTES)
    check(hip.hipDeviceGetName(name, len(name), index))
    check(hip.hipGetDevicePropertiesR0600(properties, index))
    processor = properties.raw[ARCH_AT : ARCH_AT + ARCH_BYTES].partition(b"\0")[0].decode()
    memory = int(answer(hip.hipDeviceTotalMem, c_size_t, index))
    return Device(int(index), name.value.decode(errors="replace"), memory, processor, **facts)


def current_device() -> Device:
    """The GPU of this thread. NoDevice where there is none."""
    return device(_current())


def _current() -> int:
    if device_count() == 0:
        raise NoDevice("there is no AMD GPU here", hint="use the target cpu, or sim:hip:gfx942 to simulate one")
    return int(answer(api().hipGetDevice, c_int))


@contextmanager
def entered(where: Device) -> Iterator[None]:
    """Have a GPU be that of this thread inside of a `with`; afterwards it is the one that was."""
    before = where.index if device_count() == 1 else _current()
    if before == where.index:
        yield
        return
    where.make_current()
    try:
        yield
    finally:
        api().hipSetDevice(before)


def on(where: Device, launch: Callable[..., None]) -> Callable[..., None]:
    """A launch that takes place on a GPU, whichever is the thread's.

    Code is in the memory of one GPU, so a launch of a kernel says itself what it is there (`on_gpu`).
    """
    there = getattr(launch, "on_gpu", None)
    launch = launch if there is None else there(where)
    if device_count() == 1:
        return launch

    def entering(*values: Any) -> None:
        with entered(where):
            launch(*values)

    return entering


# --------------------------------------------------------------------------------------------------------------------
# Memory


def allocate(size: int, where: Device) -> int:
    """The address of `size` bytes on a GPU, to be given back with `free`; OutOfResources where they are not there."""
    check_memory(size, where)
    with entered(where):
        hip = api()
        status, address = ask(hip.hipMalloc, c_void_p, max(1, size))
        if status == OUT_OF_MEMORY:
            hip.hipGetLastError()
            free_bytes = answer(hip.hipMemGetInfo, c_size_t, c_size_t())
            raise no_memory_left(size, int(free_bytes))
        check(status)
        return int(address)


def free(address: int, where: Device) -> None:
    """Give memory back; the launches that use it are waited for by the library."""
    with entered(where):
        check(api().hipFree(address))


def gpu_of_address(address: int) -> int | None:
    """The number of the GPU whose memory an address is in; None for one that the library does not know as such."""
    hip = api()
    kind = c_int()
    status = hip.hipPointerGetAttribute(ctypes.byref(kind), MEMORY_TYPE, address)
    if status:
        hip.hipGetLastError()  # of memory that is the host's, it says so by an error
    if status or kind.value != DEVICE_MEMORY:
        return None
    return int(answer(hip.hipPointerGetAttribute, c_int, DEVICE_ORDINAL, address))


def allocation_bytes(address: int) -> int | None:
    """The bytes of the allocation that an address is in; None for one that the library does not know."""
    hip = api()
    begin, size = c_void_p(), c_size_t()
    if hip.hipMemGetAddressRange(ctypes.byref(begin), ctypes.byref(size), address):
        hip.hipGetLastError()
        return None
    return size.value


def to_device(address: int, host: int, size: int, where: Device) -> None:
    """Copy bytes from the host to a GPU; done when it returns."""
    with entered(where):
        check(api().hipMemcpyHtoD(address, host, size))


def to_host(host: int, address: int, size: int, where: Device) -> None:
    """Copy bytes from a GPU to the host, after what was queued before; done when it returns."""
    with entered(where):
        check(api().hipMemcpyDtoH(host, address, size))
