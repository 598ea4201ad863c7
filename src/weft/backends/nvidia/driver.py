"""The CUDA driver, through cuda-bindings: devices and memory; `loaded_kernel` has what runs on them.

The context of a device is its primary one, which PyTorch and CuPy use as well; a thread without a current context gets
that of the device. Where there are several GPUs, what is done on another than the thread's leaves the thread with the
one that it had (`entered`, `on`).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from weft.machines import closest

from ..gpu.launches import OUT_OF_MEMORY, check_index, check_memory, no_memory_left
from ..gpu.queued import Context
from .faults import NoDevice, bindings, check, failed

__all__ = [
    "Device",
    "allocate",
    "available",
    "context_of",
    "current_device",
    "device",
    "device_count",
    "driver_version",
    "entered",
    "free",
    "gpu_of_address",
    "installed",
    "on",
    "to_device",
    "to_host",
]

_NO_DEVICE = 100
"""CUDA_ERROR_NO_DEVICE"""


@lru_cache(maxsize=1)
def api() -> Any:
    """`cuda.bindings.driver`, initialised. Raises NoDevice, saying what is missing."""
    try:
        driver = bindings()
    except ImportError:
        raise NoDevice(
            "the package cuda-bindings is not installed",
            hint="pip install 'weft[cuda]'; without a GPU use the target cpu, or sim:cuda:90 to simulate one",
        ) from None
    try:
        (status,) = driver.cuInit(0)
    except Exception as error:  # the bindings raise errors of their own when there is no driver library
        raise NoDevice(
            f"NVIDIA's driver was not found ({str(error).splitlines()[0].strip()})",
            hint="install the display driver; without a GPU use the target cpu, or sim:cuda:90 to simulate one",
        ) from None
    if int(status) == _NO_DEVICE:
        raise NoDevice(
            f"the driver sees no NVIDIA GPU: {failed(driver, status)}",
            hint="CUDA_VISIBLE_DEVICES may hide it; without a GPU use the target cpu, or sim:cuda:90 to simulate one",
        )
    if int(status) != 0:
        raise NoDevice(
            f"the CUDA driver does not start: {failed(driver, status)}",
            hint="nvidia-smi says more; without a GPU use the target cpu, or sim:cuda:90 to simulate one",
        )
    return driver


def available() -> bool:
    """Whether there is a driver and at least one GPU."""
    try:
        return device_count() > 0
    except NoDevice:
        return False


def installed() -> bool:
    """Whether the package is there through which the driver is asked; the driver itself is not."""
    try:
        bindings()
    except ImportError:
        return False
    return True


@lru_cache(maxsize=1)
def device_count() -> int:
    """GPUs that this process sees."""
    return int(check(api().cuDeviceGetCount()))


@lru_cache(maxsize=1)
def driver_version() -> int:
    """The newest CUDA version that the driver knows, 1000 major + 10 minor: 13000."""
    return int(check(api().cuDriverGetVersion()))


_ATTRIBUTES = {
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "major": "COMPUTE_CAPABILITY_MAJOR",
    "minor": "COMPUTE_CAPABILITY_MINOR",
    "shared_bytes": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "registers": "MAX_REGISTERS_PER_BLOCK",
    "max_threads": "MAX_THREADS_PER_BLOCK",
    "l2_bytes": "L2_CACHE_SIZE",
    "clock_khz": "CLOCK_RATE",
    "memory_clock_khz": "MEMORY_CLOCK_RATE",
    "bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
}


@dataclass(frozen=True)
class Device:
    """A GPU: its number, what it is, and what its blocks may take."""

    index: int
    name: str
    memory_bytes: int
    context: Any
    multiprocessors: int
    major: int
    minor: int
    shared_bytes: int
    registers: int
    max_threads: int
    l2_bytes: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int

    @property
    def capability(self) -> int:
        """Compute capability as a number: 90."""
        return 10 * self.major + self.minor

    @property
    def target(self) -> str:
        """The target that kernels for it are compiled for: its own, or the newest that runs on it."""
        row = closest("nvidia", self.capability)
        return row.name if row is not None else f"cuda:{self.capability}"

    def make_current(self) -> None:
        """Make its context the one of this thread."""
        check(api().cuCtxSetCurrent(self.context))

    def synchronize(self) -> None:
        """Wait for all that was queued. Raises DeviceLost when some of it failed."""
        with entered(self):
            check(api().cuCtxSynchronize())


@lru_cache(maxsize=64)
def device(index: int) -> Device:
    """A GPU by its number; its context is made if there is none yet."""
    check_index(index, device_count())
    cuda = api()
    handle = check(cuda.cuDeviceGet(index))
    kind = cuda.CUdevice_attribute
    facts = {
        name: int(check(cuda.cuDeviceGetAttribute(getattr(kind, f"CU_DEVICE_ATTRIBUTE_{attribute}"), handle)))
        for name, attribute in _ATTRIBUTES.items()
    }
    name = check(cuda.cuDeviceGetName(128, handle)).split(b"\0")[0].decode()
    memory = int(check(cuda.cuDeviceTotalMem(handle)))
    return Device(index, name, memory, check(cuda.cuDevicePrimaryCtxRetain(handle)), **facts)


def current_device() -> Device:
    """The GPU of this thread's context; the first one where there is none, whose context then becomes current."""
    cuda = api()
    if int(check(cuda.cuCtxGetCurrent())) == 0:
        if device_count() == 0:
            raise NoDevice("there is no NVIDIA GPU here", hint="use the target cpu, or sim:cuda:90 to simulate one")
        device(0).make_current()
    return device(int(check(cuda.cuCtxGetDevice())))


@contextmanager
def entered(where: Device) -> Iterator[None]:
    """Have a GPU's context be that of this thread inside of a `with`; afterwards it is the one that was."""
    if device_count() == 1:
        where.make_current()
        yield
        return
    cuda = api()
    check(cuda.cuCtxPushCurrent(where.context))
    try:
        yield
    finally:
        cuda.cuCtxPopCurrent()


class _Answer(threading.local):
    """Where the driver writes its answer to this thread."""

    def __init__(self) -> None:
        self.word = ctypes.c_void_p()
        self.place = ctypes.byref(self.word)


@lru_cache(maxsize=1)
def _current_context() -> Callable[[], int]:
    """A quick function for the context of this thread as a number; 0 where there is none."""
    address, _ = check(api().cuGetProcAddress(b"cuCtxGetCurrent", 4000, 0))
    call, answer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(int(address)), _Answer()

    def current() -> int:
        call(answer.place)
        return answer.word.value or 0

    return current


def context_of(where: Device) -> Context:
    """The context of a GPU, for launches that are made natively; see `on`."""
    if device_count() == 1:
        return Context()
    cuda = api()
    names = (b"cuCtxGetCurrent", b"cuCtxPushCurrent", b"cuCtxPopCurrent")
    return Context(int(where.context), *(int(check(cuda.cuGetProcAddress(name, 4000, 0))[0]) for name in names))


def on(where: Device, launch: Callable[..., None]) -> Callable[..., None]:
    """A launch that takes place on a GPU, whichever is the thread's: the default stream is that of the context."""
    if device_count() == 1:
        return launch
    context, current = int(where.context), _current_context()

    def there(*values: Any) -> None:
        if current() == context:
            launch(*values)
            return
        with entered(where):
            launch(*values)

    return there


# --------------------------------------------------------------------------------------------------------------------
# Memory


def allocate(size: int, where: Device) -> int:
    """The address of `size` bytes on a GPU, to be given back with `free`; OutOfResources where they are not there."""
    check_memory(size, where)
    with entered(where):
        status, address = api().cuMemAlloc(max(1, size))
        if int(status) == OUT_OF_MEMORY:
            free_bytes, _ = check(api().cuMemGetInfo())
            raise no_memory_left(size, int(free_bytes))
        return int(check((status, address)))


def free(address: int, where: Device) -> None:
    """Give memory back; the launches that use it are waited for by the driver."""
    with entered(where):
        check(api().cuMemFree(address))


_ON_A_GPU = 2
"""CU_MEMORYTYPE_DEVICE"""


def gpu_of_address(address: int) -> int | None:
    """The number of the GPU whose memory an address is in; None for one that the driver does not know as such."""
    current_device()  # the driver answers threads that have a context
    cuda = api()
    kind = cuda.CUpointer_attribute
    status, place = cuda.cuPointerGetAttribute(kind.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address)
    if int(status) or int(place) != _ON_A_GPU:
        return None
    return int(check(cuda.cuPointerGetAttribute(kind.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)))


def to_device(address: int, host: int, size: int, where: Device) -> None:
    """Copy bytes from the host to a GPU; done when it returns."""
    with entered(where):
        check(api().cuMemcpyHtoD(address, host, size))


def to_host(host: int, address: int, size: int, where: Device) -> None:
    """Copy bytes from a GPU to the host, after what was queued before; done when it returns."""
    with entered(where):
        check(api().cuMemcpyDtoH(host, address, size))
