"""A GPU that is only pretended, for tests of what the host does: memory is the host's, launches are written down.

    gpu = pretend(monkeypatch)                    # an H200
    kernel[(4,)](weft.cuda.to_device(x), 64)
    gpu.launched[-1].grid, gpu.launched[-1].values("QQ")

Code is compiled to PTX, but not assembled, and nothing runs.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from weft.backends.gpu.queued import Context
from weft.backends.nvidia import driver as backend, events, faults, loaded_kernel, occupancy, tensormaps
from weft.backends.nvidia.ptxas import MachineCode
from weft.runtime import gpu as launching, gpu_compiled
from weft.runtime.streams import own_stream

from .pretended_torch import Tensor

__all__ = ["Array", "Launched", "PretendedGPU", "Tensor", "forget", "pretend"]

H200 = {
    "MULTIPROCESSOR_COUNT": 132, "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "MAX_REGISTERS_PER_BLOCK": 65536, "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472, "L2_CACHE_SIZE": 50 << 20,
    "CLOCK_RATE": 1980000, "MEMORY_CLOCK_RATE": 3201000, "GLOBAL_MEMORY_BUS_WIDTH": 6144,
}  # fmt: skip
STATUS = {
    2: "CUDA_ERROR_OUT_OF_MEMORY", 209: "CUDA_ERROR_NO_BINARY_FOR_GPU", 218: "CUDA_ERROR_INVALID_PTX",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 700: "CUDA_ERROR_ILLEGAL_ADDRESS", 720: "CUDA_ERROR_TOO_LARGE",
}  # fmt: skip


MOST_VALUES = 24
"""Parameters that are read of a launch by native code, most of which are not its own."""


class Named:
    """An enumeration of the driver: its members are their names, without what they all begin with."""

    def __init__(self, start: str) -> None:
        self._start = start

    def __getattr__(self, name: str) -> str:
        return name.removeprefix(self._start)


@dataclass(frozen=True)
class Launched:
    """One call of cuLaunchKernelEx, as the driver would read it from memory."""

    kernel: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    attributes: bytes
    copies: tuple[bytes, ...]
    """The first 8 bytes of each parameter."""
    gpu: int
    """That whose context the thread had."""

    def values(self, codes: str) -> tuple[Any, ...]:
        """The parameters, each by its struct code."""
        return tuple(struct.unpack_from("<" + c, self.copies[i])[0] for i, c in enumerate(codes))


@dataclass
class PretendedGPU:
    """The functions of cuda.bindings.driver that Weft calls; `answers` holds statuses other than success by name."""

    attributes: dict[str, int] = field(default_factory=lambda: dict(H200))
    count: int = 1
    answers: dict[str, int] = field(default_factory=dict)
    facts: dict[str, int] = field(default_factory=dict)
    launched: list[Launched] = field(default_factory=list)
    native: int = 0
    """How many of them native code has made."""
    parameters: int = 0
    """Of the kernel that native code launches; it has to be said where some are not slots of 8 bytes."""
    set: dict[str, int] = field(default_factory=dict)
    """Attributes of kernels that were set."""
    current: int = 0
    addresses: dict[int, int] = field(default_factory=dict)
    """GPUs by the addresses that are in their memory, besides those that were allocated."""
    blocks_at_once: int = 8
    """Of a kernel on a multiprocessor of GPU 0; on GPU 1 it is twice as many."""
    launch_answers: Callable[[], int] = lambda: 0
    _memory: dict[int, Any] = field(default_factory=dict)
    _pushed: list[int] = field(default_factory=list)
    _kept: list[Any] = field(default_factory=list)

    CUdevice_attribute = Named("CU_DEVICE_ATTRIBUTE_")
    CUfunction_attribute = Named("CU_FUNC_ATTRIBUTE_")
    CUpointer_attribute = Named("CU_POINTER_ATTRIBUTE_")

    def _answer(self, name: str, *values: Any) -> tuple[Any, ...]:
        return (self.answers.get(name, 0), *values)

    def cuDeviceGetCount(self) -> Any:
        return self._answer("cuDeviceGetCount", self.count)

    def cuDriverGetVersion(self) -> Any:
        return 0, 13000

    def cuDeviceGet(self, index: int) -> Any:
        return 0, index

    def cuDeviceGetAttribute(self, name: str, device: int) -> Any:
        return 0, self.attributes[name]

    def cuDeviceGetName(self, size: int, device: int) -> Any:
        return 0, b"NVIDIA H200 (pretended)\0"

    def cuDeviceTotalMem(self, device: int) -> Any:
        return 0, 141 << 30

    def cuDevicePrimaryCtxRetain(self, device: int) -> Any:
        return 0, 1000 + device

    def cuCtxGetCurrent(self) -> Any:
        return 0, 1000 + self.current

    def cuCtxSetCurrent(self, context: int) -> Any:
        self.current = context - 1000
        return (0,)

    def cuCtxPushCurrent(self, context: int) -> Any:
        self._pushed.append(self.current)
        self.current = context - 1000
        return (0,)

    def cuCtxPopCurrent(self) -> Any:
        left, self.current = self.current, self._pushed.pop()
        return 0, 1000 + left

    def cuCtxGetDevice(self) -> Any:
        return 0, self.current

    def cuCtxSynchronize(self) -> Any:
        return self._answer("cuCtxSynchronize")

    def cuMemAlloc(self, size: int) -> Any:
        block = (ctypes.c_char * (size + 256))()
        address = -(-ctypes.addressof(block) // 256) * 256
        self._memory[address] = block
        return self._answer("cuMemAlloc", address)

    def cuMemGetInfo(self) -> Any:
        return 0, 1 << 20, 141 << 30

    def cuMemFree(self, address: int) -> Any:
        return (0,) if self._memory.pop(address, None) is not None else (1,)

    def cuMemcpyHtoD(self, to: int, source: int, size: int) -> Any:
        ctypes.memmove(to, source, size)
        return (0,)

    cuMemcpyDtoH = cuMemcpyHtoD

    def cuMemcpyDtoDAsync(self, to: int, source: int, size: int, stream: int) -> Any:
        return self.cuMemcpyHtoD(to, source, size)

    def cuPointerGetAttribute(self, name: str, address: int) -> Any:
        if address not in self.addresses:
            return 1, None
        return 0, {"MEMORY_TYPE": 2, "DEVICE_ORDINAL": self.addresses[address]}[name]

    def cuLibraryLoadData(self, image: bytes, *more: Any) -> Any:
        return self._answer("cuLibraryLoadData", 5)

    def cuLibraryGetKernel(self, library: int, name: bytes) -> Any:
        return 0, 0xABC0

    def cuKernelGetAttribute(self, name: str, kernel: int, device: int) -> Any:
        return 0, {"MAX_THREADS_PER_BLOCK": 1024, "NUM_REGS": 32, **self.facts}.get(name, 0)

    def cuKernelSetAttribute(self, name: str, value: int, kernel: int, device: int) -> Any:
        self.set[name] = value
        return (0,)

    def cuGetErrorName(self, status: int) -> Any:
        return 0, STATUS.get(int(status), f"CUDA_ERROR_{int(status)}").encode()

    def cuGetErrorString(self, status: int) -> Any:
        return 0, b"as the driver puts it"

    def CUfunction(self, kernel: int) -> int:
        return kernel

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, function: int, threads: int, shared: int) -> Any:
        return 0, self.blocks_at_once * (1 + self.current)

    def CUresult(self, status: int) -> int:
        return status

    def launch(self, config: Any, kernel: Any, parameters: Any, extra: None) -> int:
        """cuLaunchKernelEx."""
        raw = ctypes.string_at(config.value, 56)
        addresses, at = list[int](), ctypes.c_uint64.from_address
        while not addresses or addresses[-1] + 8 < config.value:  # Weft puts the parameters before the configuration
            address = at(parameters.value + 8 * len(addresses)).value
            if addresses and not addresses[-1] < address < config.value:  # the last one is a tensor map, which is long
                break
            addresses.append(address)
        return self._launch(raw, kernel.value, tuple(ctypes.string_at(a, 8) for a in addresses))

    def _launch(self, config: bytes, kernel: int, copies: tuple[bytes, ...]) -> int:
        *sizes, shared, stream, attributes, count = struct.unpack("<IIIIIII4xQQI4x", config)
        size = 72 * count
        self.launched.append(
            Launched(
                kernel,
                (sizes[0], sizes[1], sizes[2]),
                (sizes[3], sizes[4], sizes[5]),
                shared,
                stream,
                ctypes.string_at(attributes, size) if size else b"",
                copies,
                self.current,
            )
        )
        return self.answers.get("cuLaunchKernelEx", 0) or self.launch_answers()

    def natively(self) -> dict[str, int]:
        """The addresses of what native code calls of the driver, by name."""

        def launch(config: int, kernel: int, parameters: int, extra: None) -> int:
            self.native += 1
            if self.parameters:
                places = (ctypes.c_uint64 * self.parameters).from_address(parameters)
            else:  # one behind the other, and nobody says how many
                first = ctypes.c_uint64.from_address(parameters).value
                places = [first + 8 * i for i in range(MOST_VALUES)]
            copies = tuple(ctypes.string_at(place, 8) for place in places)
            return self._launch(ctypes.string_at(config, 56), kernel, copies)

        def current(answer: int) -> int:
            status, ctypes.c_uint64.from_address(answer).value = self.cuCtxGetCurrent()
            return int(status)

        def push(context: int) -> int:
            return int(self.cuCtxPushCurrent(context)[0])

        def pop(answer: int) -> int:
            status, ctypes.c_uint64.from_address(answer).value = self.cuCtxPopCurrent()
            return int(status)

        ptr = ctypes.c_void_p
        functions = {
            "cuLaunchKernelEx": ctypes.CFUNCTYPE(ctypes.c_int, ptr, ptr, ptr, ptr)(launch),
            **{f.__name__: ctypes.CFUNCTYPE(ctypes.c_int, ptr)(f) for f in (current, push, pop)},
        }
        self._kept.append(functions)
        return {name: ctypes.cast(function, ptr).value or 0 for name, function in functions.items()}


class Array:
    """An array on a GPU, as any library may have it: an address that need not exist, and the number of a GPU."""

    def __init__(self, address: int = 1 << 40, dtype: Any = np.float32, size: int = 64, device: int = 0) -> None:
        self.dtype, self.device = np.dtype(dtype), device
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": self.dtype.str, "data": (address, False), "version": 3, "strides": None,
        }  # fmt: skip


def forget() -> None:
    """What was found out of the machine's GPUs counts no more."""
    for known in (backend.device_count, backend.driver_version, backend.device, launching._target_of):
        known.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> Iterator[PretendedGPU]:
    """The whole process sees this GPU until the iterator is ended."""
    gpu = PretendedGPU(**facts)
    for module in (backend, events, loaded_kernel, tensormaps):
        monkeypatch.setattr(module, "api", lambda: gpu)
    for module in (launching, gpu_compiled):
        monkeypatch.setattr(module, "stream_of", lambda arrays, index: own_stream)
    monkeypatch.setattr(faults, "bindings", lambda: gpu)
    monkeypatch.setattr(loaded_kernel, "_launch_function", lambda: gpu.launch)
    natively = gpu.natively()
    monkeypatch.setattr(loaded_kernel, "_launch_address", lambda: natively["cuLaunchKernelEx"])
    contexts = [natively[name] for name in ("current", "push", "pop")]

    def context_of(where: Any) -> Context:
        return Context() if gpu.count == 1 else Context(1000 + where.index, *contexts)

    monkeypatch.setattr(loaded_kernel, "context_of", context_of)
    monkeypatch.setattr(backend, "_current_context", lambda: lambda: 1000 + gpu.current)
    monkeypatch.setattr(occupancy, "assemble_for", lambda *args, **limits: MachineCode(b"", "ptxas", 32))
    faults.launches.clear()
    forget()
    yield gpu
    forget()
