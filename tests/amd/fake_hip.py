"""A HIP library that is only pretended, without a GPU: it checks every argument, and runs kernels in the simulator.

    hip = pretend(monkeypatch)                      # one MI300X; pretend(monkeypatch, RX_9070, RX_9070) has two others
    kernel[(4,)](weft.cuda.to_device(x), 64)        # right results: the lane program of the code object has run
    hip.launched[-1].grid, hip.launched[-1].values

Its functions are of C: they are called at an address, through the types of arguments that the caller has declared, and
get them by those of HIP's header. Memory of a GPU is the host's. What a caller may not do (a handle that was not given
out or has been given back, memory that is not live, a size that is too large, a parameter that does not lie as the code
object says) is answered by the status that the real library has for it, and noted in `problems`, which is looked at
when the test ends. Statuses to be answered in the place of others stand in `answers`, by the name of the function.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint32, c_void_p
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pytest

from runtime.pretended_vendor import pretended, prototypes
from weft import sim
from weft.backends.amd import driver, faults, hip as hip_functions, library, messages as kept
from weft.base import DeviceAssertionError
from weft.ir.lane import LaneProgram
from weft.runtime import gpu as launching

from .containers import Kernel, bytes_at, kernels_of, target_of, variables_of

PROTOTYPES = """
hipInit(unsigned flags)
hipRuntimeGetVersion(int* version)
hipGetLastError()
hipGetDeviceCount(int* count)
hipGetDevice(int* device)
hipSetDevice(int device)
hipDeviceGetName(char* name, int len, int device)
hipDeviceGetAttribute(int* value, enum attribute, int device)
hipDeviceTotalMem(size_t* bytes, int device)
hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int device)
hipDeviceSynchronize()
hipStreamSynchronize(handle stream)
hipModuleLoadData(hipModule_t* module, void* image)
hipModuleGetFunction(hipFunction_t* function, handle module, char* name)
hipModuleGetGlobal(void** address, size_t* size, handle module, char* name)
hipFuncGetAttribute(int* value, enum attribute, handle function)
hipModuleLaunchKernel(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
unsigned shared, handle stream, void** params, void** extra)
hipModuleLaunchCooperativeKernel(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
unsigned bz, unsigned shared, handle stream, void** params)
hipEventCreateWithFlags(hipEvent_t* event, unsigned flags)
hipEventRecord(handle event, handle stream)
hipEventQuery(handle event)
hipEventSynchronize(handle event)
hipEventElapsedTime(float* ms, handle start, handle stop)
hipEventDestroy(handle event)
hipMalloc(void** address, size_t size)
hipFree(void* address)
hipMemGetInfo(size_t* free, size_t* total)
hipMemcpyHtoD(void* dst, void* src, size_t size)
hipMemcpyDtoH(void* dst, void* src, size_t size)
hipMemcpyDtoDAsync(void* dst, void* src, size_t size, handle stream)
hipMemsetD8Async(void* dst, byte value, size_t count, handle stream)
hipPointerGetAttribute(void* data, enum attribute, void* address)
hipMemGetAddressRange(void** base, size_t* size, void* address)
"""
"""Those of hip/hip_runtime_api.h, with pointers by what they point to, and typedefs by what they are."""
TYPES = {"int": c_int, "enum": c_uint, "unsigned": c_uint, "size_t": c_size_t, "byte": c_ubyte, "handle": c_void_p}

NAMES = {
    0: "hipSuccess", 1: "hipErrorInvalidValue", 2: "hipErrorOutOfMemory", 3: "hipErrorNotInitialized",
    9: "hipErrorInvalidConfiguration", 17: "hipErrorInvalidDevicePointer", 100: "hipErrorNoDevice",
    101: "hipErrorInvalidDevice", 200: "hipErrorInvalidImage", 209: "hipErrorNoBinaryForGpu",
    400: "hipErrorInvalidHandle", 500: "hipErrorNotFound", 600: "hipErrorNotReady", 700: "hipErrorIllegalAddress",
    701: "hipErrorLaunchOutOfResources", 719: "hipErrorLaunchFailure", 720: "hipErrorCooperativeLaunchTooLarge",
    900: "hipErrorStreamCaptureUnsupported",
}  # fmt: skip


@dataclass(frozen=True)
class GPU:
    """One of its GPUs, as `hipDeviceGetAttribute` and the properties describe it."""

    name: str
    processor: str
    lanes: int
    shared_bytes: int = 64 << 10
    memory_bytes: int = 1 << 30
    most_threads: int = 1024
    blocks_at_once: int = 608

    def attribute(self, kind: int) -> int | None:
        """By the number of hipDeviceAttribute_t."""
        digits = self.processor.partition(":")[0].removeprefix("gfx")
        major, minor = int(digits[:-2]), int(digits[-2])
        return {5: 2100000, 19: 4 << 20, 23: major, 56: self.most_threads, 59: 8192, 60: 1300000, 61: minor, 63: 304,
                71: 65536, 74: self.shared_bytes, 87: self.lanes}.get(kind)  # fmt: skip


MI300X = GPU("AMD Instinct MI300X", "gfx942:sramecc+:xnack-", 64)
MI210 = GPU("AMD Instinct MI210", "gfx90a:sramecc+:xnack-", 64)
RX_9070 = GPU("AMD Radeon RX 9070 XT", "gfx1201", 32)


@dataclass
class Memory:
    """An allocation."""

    address: int
    size: int
    gpu: int
    data: Any
    live: bool = True


@dataclass(frozen=True)
class Function:
    """A kernel of a module that was loaded on a GPU."""

    gpu: int
    kernel: Kernel
    digest: str
    module: int


@dataclass(frozen=True)
class Launched:
    """A launch that was taken."""

    name: str
    grid: tuple[int, int, int]
    threads: int
    shared: int
    """Bytes of LDS that the launch asked for, beside those of the code object."""
    stream: int
    gpu: int
    values: tuple[int, ...]
    """The parameters, as unsigned numbers."""
    cooperative: bool


LEFT: set[int] = set()
"""Memory and events that were alive when their library ended, in the traceback of an error, say."""
_handles = count(0x5_0000_1000, 0x100)
"""More than 32 bits, as real ones; those of one library are never those of the next."""


class _Refused(Exception):
    """A call that is answered by a status."""

    def __init__(self, status: int, why: str = "") -> None:
        super().__init__(why)
        self.status = status


def _put(kind: Any, address: int | None, value: Any) -> None:
    """Write a result."""
    if not address:
        raise _Refused(1, "a result is to be written to no address")
    if address % ctypes.sizeof(kind):
        raise _Refused(1, "a result is to be written to an address that is not aligned")
    kind.from_address(address).value = value


class FakeHip:
    """The library. `library(path)` is what `ctypes.CDLL` would give."""

    def __init__(self, *gpus: GPU, version: int = 70125424) -> None:
        self.gpus, self.version = gpus, version
        self.answers: dict[str, int] = {}
        self.problems: list[str] = []
        self.called: list[str] = []
        self.launched: list[Launched] = []
        self.programs: dict[str, LaneProgram] = {}
        """Lane programs by the SHA-256 of their code objects: what launches run."""
        self.messages: dict[str, Any] = {}
        """What those may say, likewise."""
        self.variables: dict[tuple[int, str], int] = {}
        """Addresses of variables, by module and name."""
        self.memory: dict[int, Memory] = {}
        self.streams: dict[int, int] = {0: -1}
        """The GPU of each stream."""
        self.modules: dict[int, tuple[int, dict[str, Kernel], str, frozenset[str]]] = {}
        self.functions: dict[int, Function] = {}
        self.events: dict[int, Any] = {}
        self._clock = count(1)
        self._thread = threading.local()
        self._ready = False
        self._functions = {name: self._made(name, types) for name, types in prototypes(PROTOTYPES, TYPES)}
        self._said = {status: ctypes.create_string_buffer(text.encode()) for status, text in NAMES.items()}
        self._texts = {
            n: ctypes.CFUNCTYPE(c_void_p, c_int)(self._text) for n in ("hipGetErrorName", "hipGetErrorString")
        }

    # -- being a library

    def library(self, path: str) -> Any:
        """What `ctypes.CDLL(path)` would give: functions without types, at their addresses."""
        made: dict[str, Any] = {**self._functions, **self._texts}

        class Library:
            _name = path

            def __getattr__(self, name: str) -> Any:
                if name not in made:
                    raise AttributeError(f"{path}: undefined symbol: {name}")
                address = ctypes.cast(made[name], c_void_p).value
                assert address is not None
                function = ctypes.CFUNCTYPE(c_int)(address)
                setattr(self, name, function)
                return function

        return Library()

    def _made(self, name: str, types: Sequence[Any]) -> Any:
        """A function of C that calls the method of this name."""
        method: Callable[..., None] = getattr(self, f"_{name}")

        def call(*arguments: Any) -> int:
            self.called.append(name)
            if (status := self.answers.get(name)) is not None:
                self.last = status
                return status
            try:
                if not self._ready and name != "hipInit":
                    raise _Refused(3, "the library is not initialised")
                method(*arguments)
            except _Refused as refused:
                if str(refused):
                    self.problems.append(f"{name}: {refused}")
                self.last = refused.status
                return refused.status
            except BaseException as error:  # of the simulator, say: nothing passes through C
                self.problems.append(f"{name}: {type(error).__name__}: {error}")
                self.last = 719
                return 719
            return 0

        return ctypes.CFUNCTYPE(c_int, *types)(call)

    def _text(self, status: int) -> int:
        return ctypes.addressof(self._said[status])

    @property
    def last(self) -> int:
        """The status that `hipGetLastError` would tell this thread."""
        return int(getattr(self._thread, "last", 0))

    @last.setter
    def last(self, status: int) -> None:
        self._thread.last = status

    # -- what the rest asks

    def stream(self, gpu: int = 0) -> int:
        """A new stream, as PyTorch would make it."""
        handle = next(_handles)
        self.streams[handle] = gpu
        return handle

    @property
    def current(self) -> int:
        """The GPU of this thread."""
        return int(getattr(self._thread, "current", 0))

    def _gpu(self, index: int) -> GPU:
        if not 0 <= index < len(self.gpus):
            raise _Refused(101, f"there is no GPU {index}")
        return self.gpus[index]

    def _stream_gpu(self, stream: int | None) -> int:
        gpu = self.streams.get(stream or 0)
        if gpu is None:
            raise _Refused(1, f"the stream {stream:#x} does not exist" if stream else "")
        return self.current if gpu < 0 else gpu

    def holder(self, address: int) -> Memory | None:
        """The live allocation that an address is in."""
        return next((m for m in self.memory.values() if m.live and m.address <= address < m.address + m.size), None)

    def _span(self, address: int | None, size: int, what: str) -> Memory:
        held = self.holder(address or 0)
        if held is None:
            raise _Refused(17, f"{what} {address or 0:#x} is in no live memory")
        if (address or 0) + size > held.address + held.size:
            raise _Refused(1, f"{what} {address:#x} and {size} bytes run over the end of memory")
        return held

    # -- the functions

    def _hipInit(self, flags: int) -> None:
        if flags:
            raise _Refused(1, "flags must be 0")
        if not self.gpus:
            raise _Refused(100)
        self._ready = True

    def _hipRuntimeGetVersion(self, version: int) -> None:
        _put(c_int, version, self.version)

    def _hipGetLastError(self) -> None:
        self.last = 0

    def _hipGetDeviceCount(self, number: int) -> None:
        _put(c_int, number, len(self.gpus))

    def _hipGetDevice(self, device: int) -> None:
        _put(c_int, device, self.current)

    def _hipSetDevice(self, device: int) -> None:
        self._gpu(device)
        self._thread.current = device

    def _hipDeviceGetName(self, name: int, size: int, device: int) -> None:
        text = self._gpu(device).name.encode() + b"\0"
        if not name or size < len(text):
            raise _Refused(1, "there is no room for the name")
        ctypes.memmove(name, text, len(text))

    def _hipDeviceGetAttribute(self, value: int, kind: int, device: int) -> None:
        found = self._gpu(device).attribute(kind)
        if found is None:
            raise _Refused(1, f"nobody should ask for attribute {kind}")
        _put(c_int, value, found)

    def _hipDeviceTotalMem(self, size: int, device: int) -> None:
        _put(c_size_t, size, self._gpu(device).memory_bytes)

    def _hipGetDevicePropertiesR0600(self, properties: int, device: int) -> None:
        gpu = self._gpu(device)
        whole = bytearray(b"\xee" * 1472)
        whole[0 : len(gpu.name) + 1] = gpu.name.encode() + b"\0"
        whole[1160 : 1160 + len(gpu.processor) + 1] = gpu.processor.encode() + b"\0"
        ctypes.memmove(properties, bytes(whole), len(whole))

    def _hipDeviceSynchronize(self) -> None:
        """Launches wait."""

    def _hipModuleLoadData(self, module: int, image: int) -> None:
        if not image:
            raise _Refused(1, "no image")
        data = bytes_at(image)
        if data is None:
            raise _Refused(200)
        processor, *settings = target_of(data).split(":")
        own, *has = self.gpus[self.current].processor.split(":")
        if processor != own or any(s not in has for s in settings):
            raise _Refused(209)
        handle = next(_handles)
        digest = hashlib.sha256(data).hexdigest()
        self.modules[handle] = self.current, kernels_of(data), digest, frozenset(variables_of(data))
        _put(c_void_p, module, handle)

    def _hipModuleGetFunction(self, function: int, module: int, name: int) -> None:
        if module not in self.modules:
            raise _Refused(400, "the module was not given out")
        gpu, kernels, digest, _ = self.modules[module]
        wanted = ctypes.string_at(name).decode()
        if wanted not in kernels:
            raise _Refused(500)
        handle = next(_handles)
        self.functions[handle] = Function(gpu, kernels[wanted], digest, module)
        _put(c_void_p, function, handle)

    def _hipModuleGetGlobal(self, address: int, size: int, module: int, name: int) -> None:
        if module not in self.modules:
            raise _Refused(400, "the module was not given out")
        wanted = ctypes.string_at(name).decode()
        if wanted not in self.modules[module][3]:
            raise _Refused(500)
        if (module, wanted) not in self.variables:
            self._hipMalloc(address, 8)
            self.variables[module, wanted] = c_void_p.from_address(address).value or 0
        _put(c_void_p, address, self.variables[module, wanted])
        _put(c_size_t, size, 8)

    def _hipStreamSynchronize(self, stream: int | None) -> None:
        self._stream_gpu(stream)

    def _function(self, handle: int | None) -> Function:
        if handle not in self.functions:
            raise _Refused(400, f"the function {handle} was not given out")
        return self.functions[handle]

    def _hipFuncGetAttribute(self, value: int, kind: int, function: int) -> None:
        kernel = self._function(function).kernel
        facts = {0: kernel.most_threads, 1: kernel.shared, 3: kernel.local_bytes, 4: kernel.registers}
        if kind not in facts:
            raise _Refused(1, f"nobody should ask for attribute {kind} of a function")
        _put(c_int, value, facts[kind])

    def _hipModuleLaunchKernel(self, function: int, *rest: Any) -> None:
        *sizes, stream, params, extra = rest
        if extra:
            raise _Refused(1, "parameters are given in two ways")
        self._launch(function, sizes, stream, params, cooperative=False)

    def _hipModuleLaunchCooperativeKernel(self, function: int, *rest: Any) -> None:
        *sizes, stream, params = rest
        self._launch(function, sizes, stream, params, cooperative=True)

    def _launch(
        self, handle: int, sizes: Sequence[int], stream: int | None, params: int | None, *, cooperative: bool
    ) -> None:
        made = self._function(handle)
        kernel, where = made.kernel, self._stream_gpu(stream)
        gpu = self.gpus[where]
        (gx, gy, gz), (bx, by, bz), shared = sizes[:3], sizes[3:6], sizes[6]
        threads = bx * by * bz
        if made.gpu != where:
            raise _Refused(101, f"code in GPU {made.gpu}'s memory is launched on GPU {where}")
        if not (gx and gy and gz) or gx >= 1 << 31 or gy > 1 << 16 or gz > 1 << 16:
            raise _Refused(1)
        if gx * bx >= 1 << 32 or not threads:
            raise _Refused(9)
        if threads > gpu.most_threads:
            raise _Refused(1)
        if threads > kernel.most_threads:
            raise _Refused(719, f"{threads} threads, of at most {kernel.most_threads}")
        if shared + kernel.shared > gpu.shared_bytes:
            raise _Refused(1, f"{shared} bytes of LDS and {kernel.shared} more")
        if cooperative and gx * gy * gz > gpu.blocks_at_once:
            raise _Refused(720)
        values = self._parameters(kernel, params, where)
        self.launched.append(
            Launched(kernel.name, (gx, gy, gz), threads, shared, stream or 0, where, values, cooperative)
        )
        program = self.programs.get(made.digest)
        if program is not None:
            said = self._run(program, (gx, gy, gz), threads, shared + kernel.shared, values)
            if messages := self.messages.get(made.digest):
                record(messages, self.variables[made.module, "weft_messages"], *said)

    def _parameters(self, kernel: Kernel, params: int | None, gpu: int) -> tuple[int, ...]:
        """As the library copies them: as many bytes of each as the code object says."""
        if kernel.parameters and not params:
            raise _Refused(1, "there are no parameters")
        values = []
        for i, parameter in enumerate(kernel.parameters):
            place = c_void_p.from_address((params or 0) + 8 * i).value or 0
            if not place or place % parameter.size:
                raise _Refused(1, f"parameter {i} of {parameter.size} bytes lies at {place:#x}")
            value = int.from_bytes(ctypes.string_at(place, parameter.size), "little")
            if parameter.is_pointer and value:
                held = self.holder(value)
                if held is None:
                    self.problems.append(f"parameter {i} of {kernel.name} is {value:#x}, which is in no live memory")
                elif held.gpu != gpu:
                    self.problems.append(f"parameter {i} of {kernel.name} is in the memory of GPU {held.gpu}")
            values.append(value)
        return tuple(values)

    def _run(
        self, program: LaneProgram, grid: tuple[int, int, int], threads: int, shared: int, values: Sequence[int]
    ) -> tuple[list[str], DeviceAssertionError | None]:
        """The lane program on the memory that the parameters point to; what it printed, what did not hold."""
        if threads != program.warps * program.lanes or shared < program.shared_bytes:
            raise _Refused(719, f"{program.warps} warps, {program.shared_bytes} bytes of LDS: {threads}, {shared}")
        arguments: dict[str, Any] = {}
        for parameter, value in zip(program.parameters, values, strict=False):
            if parameter.elem == "ptr":
                held = self.holder(value)
                size = 0 if held is None else held.address + held.size - value
                arguments[parameter.name] = np.frombuffer((c_ubyte * size).from_address(value), np.uint8)
            else:
                arguments[parameter.name] = number_of(parameter.elem, value)
        try:
            return sim.run(program, grid, arguments).printed, None
        except DeviceAssertionError as error:
            return [], error

    def _hipEventCreateWithFlags(self, event: int, flags: int) -> None:
        if flags & ~3:
            raise _Refused(1, f"flags {flags} of an event")
        handle = next(_handles)
        self.events[handle] = [self.current, not flags & 2, None]
        _put(c_void_p, event, handle)

    def _event(self, handle: int) -> Any:
        if handle not in self.events:
            raise _Refused(400, "the event was not given out, or has been given back")
        return self.events[handle]

    def _hipEventRecord(self, event: int, stream: int | None) -> None:
        known = self._event(event)
        if known[0] != self._stream_gpu(stream):
            raise _Refused(400, "the event is of another GPU than the stream")
        known[2] = next(self._clock)

    def _hipEventQuery(self, event: int) -> None:
        self._event(event)

    _hipEventSynchronize = _hipEventQuery

    def _hipEventElapsedTime(self, ms: int, start: int, stop: int) -> None:
        begin, end = self._event(start), self._event(stop)
        if None in (begin[2], end[2]) or not (begin[1] and end[1]):
            raise _Refused(400, "an event was not recorded, or has no time")
        _put(c_float, ms, float(end[2] - begin[2]))

    def _hipEventDestroy(self, event: int) -> None:
        if event in LEFT:
            return
        self._event(event)
        del self.events[event]

    def _hipMalloc(self, address: int, size: int) -> None:
        taken = sum(m.size for m in self.memory.values() if m.live and m.gpu == self.current)
        if not size:
            raise _Refused(1, "nobody should ask for no memory: there is no address of it")
        if taken + size > self.gpus[self.current].memory_bytes:
            raise _Refused(2)
        data = (c_ubyte * (size + 512))()
        start = -(-ctypes.addressof(data) // 256) * 256
        LEFT.discard(start)
        ctypes.memset(start, 0xA5, size)
        self.memory[start] = Memory(start, size, self.current, data)
        _put(c_void_p, address, start)

    def _hipFree(self, address: int | None) -> None:
        if address in LEFT:
            return
        held = self.memory.get(address or 0)
        if held is None or not held.live:
            raise _Refused(1, f"{address or 0:#x} was not allocated, or has been given back")
        held.live = False

    def _hipMemGetInfo(self, free: int, total: int) -> None:
        taken = sum(m.size for m in self.memory.values() if m.live and m.gpu == self.current)
        _put(c_size_t, free, self.gpus[self.current].memory_bytes - taken)
        _put(c_size_t, total, self.gpus[self.current].memory_bytes)

    def _hipMemcpyHtoD(self, dst: int, src: int, size: int) -> None:
        self._span(dst, size, "the destination")
        if self.holder(src):
            raise _Refused(1, "the source is in a GPU's memory")
        ctypes.memmove(dst, src, size)

    def _hipMemcpyDtoH(self, dst: int, src: int, size: int) -> None:
        self._span(src, size, "the source")
        if self.holder(dst):
            raise _Refused(1, "the destination is in a GPU's memory")
        ctypes.memmove(dst, src, size)

    def _hipMemcpyDtoDAsync(self, dst: int, src: int, size: int, stream: int | None) -> None:
        self._stream_gpu(stream)
        self._span(dst, size, "the destination")
        self._span(src, size, "the source")
        ctypes.memmove(dst, src, size)

    def _hipMemsetD8Async(self, dst: int, value: int, size: int, stream: int | None) -> None:
        self._stream_gpu(stream)
        self._span(dst, size, "the destination")
        ctypes.memset(dst, value, size)

    def _hipPointerGetAttribute(self, data: int, kind: int, address: int | None) -> None:
        held = self.holder(address or 0)
        if kind not in (2, 9):
            raise _Refused(1, f"nobody should ask for attribute {kind} of a pointer")
        if held is None:
            _put(c_uint32, data, 0)
            raise _Refused(1)
        _put(c_uint32, data, 2 if kind == 2 else held.gpu)

    def _hipMemGetAddressRange(self, base: int, size: int, address: int | None) -> None:
        held = self.holder(address or 0)
        if held is None:
            raise _Refused(500)
        _put(c_void_p, base, held.address)
        _put(c_size_t, size, held.size)


def record(
    messages: Sequence[Sequence[Any]], variable: int, printed: Sequence[str], failure: DeviceAssertionError | None
) -> None:
    """Write into the memory that a variable names what a GPU would have: `weft.backends.amd.messages` says how."""
    memory = c_void_p.from_address(variable).value or 0
    asked, lost = 0, 0
    for line in printed:
        each = ((i, _values(message, line + "\n")) for i, message in enumerate(messages))
        number, values = next((i, values) for i, values in each if values is not None)
        data = struct.pack(f"<I{messages[number][1]}", number, *values)
        if asked < kept.CAPACITY:
            ctypes.memmove(memory + 32 + asked, data, len(data))
        lost += asked >= kept.CAPACITY
        asked += len(data)
    number, program = 0, (0, 0, 0)
    if failure is not None:
        number = 1 + next(i for i, m in enumerate(messages) if len(m) == 3 and m[0] == failure.message)
        program = failure.program or program
    ctypes.memmove(memory, struct.pack("<QQI3I", asked, lost, number, *program), 32)


def _values(message: Sequence[Any], line: str) -> list[Any] | None:
    """The values that a message has in a line; None where it is of another one."""
    if len(message) != 2:
        return None
    kinds = re.findall(r"%[\d.]*([duxf])", message[0].replace("%%", ""))
    pattern = re.sub(r"%%|%[\d.]*[duxf]", lambda m: "%" if m[0] == "%%" else "\0", message[0])
    words = {"d": r" *(-?\d+)", "u": r" *(\d+)", "x": r"([\da-f]+)", "f": r"(-?[\d.]+|-?inf|nan)"}
    parts = [re.escape(part) for part in pattern.split("\0")]
    whole = parts[0] + "".join(words[k] + part for k, part in zip(kinds, parts[1:], strict=True))
    if (found := re.fullmatch(whole, line)) is None:
        return None
    each = zip(kinds, found.groups(), strict=True)
    return [float(x) if k == "f" else int(x, 16 if k == "x" else 10) for k, x in each]


def number_of(elem: str, bits: int) -> Any:
    """A parameter of a lane program from its bits."""
    if elem in ("f32", "f64"):
        return struct.unpack("<f" if elem == "f32" else "<d", bits.to_bytes(4 if elem == "f32" else 8, "little"))[0]
    if elem in ("f16", "bf16"):
        return np.frombuffer(bits.to_bytes(2, "little"), np.float16 if elem == "f16" else "bfloat16")[0]
    width = int(elem[1:])
    return bits & 1 if width == 1 else bits - (bits >> width - 1 << width)


def pretend(monkeypatch: pytest.MonkeyPatch, *gpus: GPU, **facts: Any) -> Iterator[FakeHip]:
    """The whole process sees these GPUs, one MI300X if none are named, until the iterator is ended."""
    hip = FakeHip(*(gpus or (MI300X,)), **facts)
    monkeypatch.setattr(library, "loaded", lambda: None)
    yield from pretended(monkeypatch, hip, "amd", "hsaco", (library, faults), forget)
    LEFT.update(hip.events, (address for address, memory in hip.memory.items() if memory.live))


def forget() -> None:
    """What was found out of the machine's GPUs counts no more."""
    for known in (hip_functions.api, driver.device_count, driver.device, launching._target_of):
        known.cache_clear()
