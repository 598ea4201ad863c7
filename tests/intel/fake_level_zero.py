"""A loader of Level Zero that is only pretended, without a GPU: it checks every argument, and runs kernels in the
simulator.

    ze = pretend(monkeypatch)                       # one Ponte Vecchio; pretend(monkeypatch, BMG, BMG) has two others
    kernel[(4,)](weft.cuda.to_device(x), 64)        # right results: the lane program of the module has run
    ze.launched[-1].grid, ze.launched[-1].values

Its functions are of C, called at an address with the types of Level Zero's header, and structures are read by the
distances that fields have there. What a caller may not do (a handle that was not given out or has been given back, a
structure of another kind, an argument of another size, something appended with no barrier in front) is answered by the
result that the real library has for it, and noted in `problems`, which is looked at when the test ends. Results to be
answered in the place of others stand in `answers`, by the name of the function.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Callable, Iterator
from ctypes import c_size_t, c_ubyte, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest

from amd.fake_hip import Memory, number_of
from runtime.pretended_vendor import pretended, prototypes
from weft import sim
from weft.backends.intel import driver, faults, level_zero, loader, queues
from weft.backends.intel.module import Module
from weft.base import DeviceAssertionError
from weft.ir.lane import LaneProgram
from weft.runtime import gpu as launching

WAITS = "handle signal, u32 waiting, void* waits"
PROTOTYPES = f"""
zeInit(u32 flags)
zeDriverGet(u32* count, void* drivers)
zeDeviceGet(handle driver, u32* count, void* devices)
zeDeviceGetProperties(handle device, void* properties)
zeDeviceGetComputeProperties(handle device, void* properties)
zeDeviceGetModuleProperties(handle device, void* properties)
zeDeviceGetMemoryProperties(handle device, u32* count, void* properties)
zeDeviceGetCacheProperties(handle device, u32* count, void* properties)
zeContextCreate(handle driver, void* desc, handle* context)
zeCommandListCreateImmediate(handle context, handle device, void* desc, handle* list)
zeCommandListAppendLaunchKernel(handle list, handle kernel, void* groups, {WAITS})
zeCommandListAppendMemoryCopy(handle list, void* target, void* source, size size, {WAITS})
zeCommandListAppendMemoryFill(handle list, void* address, void* pattern, size each, size size, {WAITS})
zeCommandListAppendBarrier(handle list, {WAITS})
zeEventPoolCreate(handle context, void* desc, u32 devices, handle* device, handle* pool)
zeEventPoolDestroy(handle pool)
zeEventCreate(handle pool, void* desc, handle* event)
zeEventDestroy(handle event)
zeEventHostReset(handle event)
zeEventHostSynchronize(handle event, u64 timeout)
zeEventQueryStatus(handle event)
zeEventQueryKernelTimestamp(handle event, void* times)
zeMemAllocDevice(handle context, void* desc, size size, size alignment, handle device, handle* address)
zeMemFree(handle context, void* address)
zeMemGetAllocProperties(handle context, void* address, void* properties, handle* device)
zeModuleCreate(handle context, handle device, void* desc, handle* module, handle* log)
zeModuleDestroy(handle module)
zeModuleBuildLogGetString(handle log, size* size, void* text)
zeModuleBuildLogDestroy(handle log)
zeKernelCreate(handle module, void* desc, handle* kernel)
zeKernelDestroy(handle kernel)
zeKernelGetProperties(handle kernel, void* properties)
zeKernelSetGroupSize(handle kernel, u32 x, u32 y, u32 z)
zeKernelSetArgumentValue(handle kernel, u32 index, size size, void* value)
zeKernelSetIndirectAccess(handle kernel, u32 flags)
"""
"""Those of ze_api.h, with pointers by what they point to, and typedefs by what they are."""
TYPES = {"u32": c_uint32, "u64": c_uint64, "size": c_size_t, "handle": c_void_p}
INVALID_ARGUMENT, NULL_HANDLE, KERNEL_NAME = 0x78000004, 0x78000005, 0x78000011
_handles = count(0x7_0000_1000, 0x100)


@dataclass(frozen=True)
class GPU:
    """One of its GPUs."""

    name: str
    number: int
    release: tuple[int, int]
    flags: int = 0
    vendor: int = 0x8086
    float64: bool = True
    shared_bytes: int = 128 << 10
    memory_bytes: int = 1 << 30
    most_threads: int = 1024
    lanes: tuple[int, ...] = (16, 32)


MAX_1550 = GPU("Intel(R) Data Center GPU Max 1550", 0x0BD5, (12, 60))
ARC_A770 = GPU(
    "Intel(R) Arc(TM) A770 Graphics", 0x56A0, (12, 56), shared_bytes=64 << 10, lanes=(8, 16, 32), float64=False
)
ARC_B580 = GPU("Intel(R) Arc(TM) B580 Graphics", 0xE20B, (20, 1))
GRAPHICS = GPU("Intel(R) Graphics", 0x7D55, (12, 71), flags=1)


@dataclass(frozen=True)
class Launched:
    """A launch that was taken."""

    name: str
    grid: tuple[int, int, int]
    threads: int
    gpu: int
    values: tuple[int, ...]


@dataclass
class Built:
    """A module on a GPU."""

    gpu: int
    code: bytes
    flags: str
    kernels: tuple[str, ...]


@dataclass
class Kernel:
    """A kernel of a module, with what it was given."""

    module: Built
    name: str
    threads: int = 0
    given: dict[int, bytes] = field(default_factory=dict)


@dataclass
class List:
    """A command list: whether what was appended last is a barrier."""

    gpu: int
    ordered: bool = False


class _Refused(Exception):
    """A call that is answered by a result."""

    def __init__(self, status: int, why: str = "") -> None:
        super().__init__(why)
        self.status = status


def _read(address: int | None, kind: int, form: str) -> tuple[Any, ...]:
    """The fields of a structure behind its kind and the pointer to others."""
    if not address or c_uint32.from_address(address).value != kind:
        raise _Refused(INVALID_ARGUMENT, f"this is no structure of kind {kind:#x}")
    return struct.unpack(form, ctypes.string_at(address + 16, struct.calcsize(form)))


def _write(address: int | None, kind: int, form: str, *values: Any) -> None:
    if not address or c_uint32.from_address(address).value != kind:
        raise _Refused(INVALID_ARGUMENT, f"this is no structure of kind {kind:#x}")
    data = struct.pack(form, *values)
    ctypes.memmove(address + 16, data, len(data))


class FakeLevelZero:
    """The loader. `library(path)` is what `ctypes.CDLL` would give."""

    def __init__(self, *gpus: GPU, **facts: Any) -> None:
        self.gpus = gpus
        self.spills: Callable[[str], int] = facts.get("spills", lambda flags: 0)
        """Bytes that kernels spill, by the flags that they are built with."""
        self.knows_releases = facts.get("knows_releases", True)
        self.says = facts.get("says", b"error: undefined reference to `f()'\n")
        self.answers: dict[str, int] = {}
        self.problems: list[str] = []
        self.called: list[str] = []
        self.launched: list[Launched] = []
        self.programs: dict[str, LaneProgram] = {}
        """Lane programs by the SHA-256 of their SPIR-V: what launches run."""
        self.messages: dict[str, Any] = {}
        """What their kernels assert."""
        self.memory: dict[int, Memory] = {}
        self.made: dict[int, Any] = {}
        """What handles stand for."""
        self.driver = self._new("driver")
        self.devices = [self._new(i) for i in range(len(gpus))]
        self._clock, self._ready = count(1), False
        self._functions = {name: self._c_function(name, types) for name, types in prototypes(PROTOTYPES, TYPES)}

    def _new(self, thing: Any) -> int:
        handle = next(_handles)
        self.made[handle] = thing
        return handle

    def library(self, path: str) -> Any:
        """Functions without types, at their addresses."""
        functions = self._functions

        class Library:
            _name = path

            def __getattr__(self, name: str) -> Any:
                if name not in functions:
                    raise AttributeError(f"{path}: undefined symbol: {name}")
                function = ctypes.CFUNCTYPE(c_uint32)(ctypes.cast(functions[name], c_void_p).value or 0)
                setattr(self, name, function)
                return function

        return Library()

    def _c_function(self, name: str, types: list[Any]) -> Any:
        method: Callable[..., None] = getattr(self, f"_{name}")

        def call(*arguments: Any) -> int:
            self.called.append(name)
            if (status := self.answers.get(name)) is not None:
                return status
            try:
                if not self._ready and name != "zeInit":
                    raise _Refused(0x78000001, "nothing may be called before zeInit, or when it has failed")
                method(*arguments)
            except _Refused as refused:
                if str(refused):
                    self.problems.append(f"{name}: {refused}")
                return refused.status
            except BaseException as error:  # of the simulator, say: nothing passes through C
                self.problems.append(f"{name}: {type(error).__name__}: {error}")
                return 0x7FFFFFFE
            return 0

        return ctypes.CFUNCTYPE(c_uint32, *types)(call)

    def _of(self, handle: int | None, kind: type) -> Any:
        thing = self.made.get(handle or 0)
        if not isinstance(thing, kind):
            raise _Refused(NULL_HANDLE, f"{handle or 0:#x} is no {kind.__name__} that was given out")
        return thing

    def _put(self, address: int | None, thing: Any) -> None:
        if not address:
            raise _Refused(0x78000007, "a handle is to be written to no address")
        c_void_p.from_address(address).value = self._new(thing)

    def holder(self, address: int) -> Memory | None:
        """The live allocation that an address is in."""
        return next((m for m in self.memory.values() if m.live and m.address <= address < m.address + m.size), None)

    # -- drivers and devices

    def _zeInit(self, flags: int) -> None:
        if flags != 1:
            raise _Refused(0x7800000C, "ZE_INIT_FLAG_GPU_ONLY is asked for")
        if not self.gpus:
            raise _Refused(0x78000001)
        self._ready = True

    def _listed(self, number: int, array: int | None, handles: list[int]) -> None:
        place = c_uint32.from_address(number)
        if array:
            for i, handle in enumerate(handles[: place.value]):
                c_void_p.from_address(array + 8 * i).value = handle
        else:
            place.value = len(handles)

    def _zeDriverGet(self, number: int, drivers: int | None) -> None:
        self._listed(number, drivers, [self.driver])

    def _zeDeviceGet(self, driver: int, number: int, devices: int | None) -> None:
        self._of(driver, str)
        self._listed(number, devices, self.devices)

    def _zeDeviceGetProperties(self, device: int, properties: int) -> None:
        gpu = self.gpus[self._of(device, int)]
        facts = 1, gpu.vendor, gpu.number, gpu.flags, 0, 1600, 1 << 30, 1, 0, 8, 16, 8, 16, 4
        name = gpu.name.encode()
        _write(properties, 0x20006, "<6IQ7I4xQII16s256s", *facts, 10**7, 32, 32, b"", name)
        more = c_void_p.from_address(properties + 8).value
        if more and not self.knows_releases:
            raise _Refused(0x78000003)
        if more:
            _write(more, 0x1000F, "<I", gpu.release[0] << 22 | gpu.release[1] << 14 | 3)

    def _zeDeviceGetComputeProperties(self, device: int, properties: int) -> None:
        gpu = self.gpus[self._of(device, int)]
        most, lanes = gpu.most_threads, [*gpu.lanes, *[0] * (8 - len(gpu.lanes))]
        facts = most, most, most, most, 1 << 31, 1 << 31, 1 << 31, gpu.shared_bytes, len(gpu.lanes)
        _write(properties, 0x4, "<9I8I", *facts, *lanes)

    def _zeDeviceGetModuleProperties(self, device: int, properties: int) -> None:
        gpu = self.gpus[self._of(device, int)]
        _write(properties, 0x5, "<7I", 0x10004, 5 | 2 * gpu.float64, 0, 0, 0, 2048, 1 << 22)

    def _zeDeviceGetMemoryProperties(self, device: int, number: int, properties: int | None) -> None:
        gpu = self.gpus[self._of(device, int)]
        if properties:
            _write(properties, 0x7, "<IIIxxxxQ256s", 0, 3200, 8192, gpu.memory_bytes, b"HBM")
        c_uint32.from_address(number).value = 1

    def _zeDeviceGetCacheProperties(self, device: int, number: int, properties: int | None) -> None:
        self._of(device, int)
        if properties:
            _write(properties, 0x9, "<IxxxxQ", 0, 4 << 20)
        c_uint32.from_address(number).value = 1

    def _zeContextCreate(self, driver: int, desc: int, context: int) -> None:
        self._of(driver, str)
        _read(desc, 0xD, "<I")
        self._put(context, ("context",))

    # -- what is queued

    def _zeCommandListCreateImmediate(self, context: int, device: int, desc: int, made: int) -> None:
        self._of(context, tuple)
        *_, mode, priority = _read(desc, 0xE, "<5I")
        if (mode, priority) != (2, 0):
            raise _Refused(INVALID_ARGUMENT, f"a list of mode {mode}, priority {priority}")
        self._put(made, List(self._of(device, int)))

    def _append(self, handle: int | None, signal: int | None, waiting: int, waits: int | None) -> List:
        """The list, where what is appended comes behind a barrier, and so behind all that was appended before."""
        which: List = self._of(handle, List)
        if signal or waiting or waits:
            raise _Refused(INVALID_ARGUMENT, "events are not asked for here")
        if not which.ordered:
            self.problems.append("something was appended with no barrier in front of it")
        which.ordered = False
        return which

    def _zeCommandListAppendBarrier(self, handle: int, signal: int | None, waiting: int, waits: int | None) -> None:
        self._of(handle, List).ordered = True
        if signal:
            self._of(signal, list)[0] = next(self._clock)

    def _zeCommandListAppendMemoryCopy(self, handle: int, target: int, source: int, size: int, *waits: Any) -> None:
        self._append(handle, *waits)
        self._check_span(target, size)
        self._check_span(source, size)
        if not (self.holder(target) or self.holder(source)):
            self.problems.append("a copy from the host's memory to the host's")
        ctypes.memmove(target, source, size)

    def _zeCommandListAppendMemoryFill(
        self, handle: int, address: int, pattern: int, each: int, size: int, *waits: Any
    ) -> None:
        self._append(handle, *waits)
        self._check_span(address, size)
        if each != 1 or self.holder(address) is None:
            raise _Refused(INVALID_ARGUMENT, "a byte is written to a GPU's memory")
        ctypes.memset(address, c_ubyte.from_address(pattern).value, size)

    def _check_span(self, address: int | None, size: int) -> None:
        held = self.holder(address or 0)
        if not address or (held is not None and address + size > held.address + held.size):
            raise _Refused(INVALID_ARGUMENT, f"{size} bytes at {address or 0:#x} run over the end of memory")

    def _zeCommandListAppendLaunchKernel(self, handle: int, kernel: int, groups: int, *waits: Any) -> None:
        which, made = self._append(handle, *waits), self._of(kernel, Kernel)
        if made.module.gpu != which.gpu:
            raise _Refused(INVALID_ARGUMENT, "the kernel is on another GPU than the list")
        grid = struct.unpack("<3I", ctypes.string_at(groups, 12))
        program = self.programs.get(hashlib.sha256(made.module.code).hexdigest())
        values = tuple(int.from_bytes(made.given[i], "little") for i in sorted(made.given))
        self.launched.append(Launched(made.name, grid, made.threads, which.gpu, values))
        if program is not None:
            self._run(program, grid, made)

    def _run(self, program: LaneProgram, grid: Any, made: Kernel) -> None:
        """The lane program on the memory that the arguments point to."""
        if made.threads != program.warps * program.lanes:
            raise _Refused(0x78000013, f"{made.threads} threads, for {program.warps} warps")
        if len(made.given) < len(program.parameters):
            raise _Refused(0x78000015, f"{len(made.given)} arguments, of {len(program.parameters)}")
        arguments: dict[str, Any] = {}
        for i, parameter in enumerate(program.parameters):
            data = made.given[i]
            wanted = 8 if parameter.elem == "ptr" else max(8, int(parameter.elem.lstrip("bfi"))) // 8
            if len(data) != wanted:
                raise _Refused(0x78000016, f"argument {i} is a {parameter.elem}, given as {len(data)} bytes")
            value = int.from_bytes(data, "little")
            if parameter.elem != "ptr":
                arguments[parameter.name] = number_of(parameter.elem, value)
                continue
            held = self.holder(value)
            if held is not None and held.gpu != made.module.gpu:
                self.problems.append(f"argument {i} of {made.name} is in the memory of GPU {held.gpu}")
            size = 0 if held is None else held.address + held.size - value
            arguments[parameter.name] = np.frombuffer((c_ubyte * size).from_address(value), np.uint8)
        try:
            sim.run(program, grid, arguments)
        except DeviceAssertionError as error:
            texts = self.messages[hashlib.sha256(made.module.code).hexdigest()]
            number = 1 + next(i for i, (text, *_) in enumerate(texts) if text == error.message)
            record = int.from_bytes(made.given[len(program.parameters)], "little")
            ctypes.memmove(record, struct.pack("<4I", number, *(error.program or (0, 0, 0))), 16)

    # -- events

    def _zeEventPoolCreate(self, context: int, desc: int, number: int, device: int, pool: int) -> None:
        self._of(context, tuple)
        self._of(c_void_p.from_address(device).value, int)
        flags, size = _read(desc, 0x10, "<II")
        if number != 1 or size != 1 or not flags & 1:
            raise _Refused(INVALID_ARGUMENT, "a pool of one event that the host sees is asked for")
        self._put(pool, {"timed": bool(flags & 4)})

    def _gone(self, handle: int, kind: type) -> None:
        self._of(handle, kind)
        del self.made[handle]

    def _zeEventPoolDestroy(self, pool: int) -> None:
        self._gone(pool, dict)

    def _zeEventCreate(self, pool: int, desc: int, event: int) -> None:
        index, _, _ = _read(desc, 0x11, "<III")
        if index:
            raise _Refused(INVALID_ARGUMENT, "the pool has one event")
        self._put(event, [None, self._of(pool, dict)["timed"]])

    def _zeEventDestroy(self, event: int) -> None:
        self._gone(event, list)

    def _zeEventHostReset(self, event: int) -> None:
        self._of(event, list)[0] = None

    def _zeEventHostSynchronize(self, event: int, timeout: int) -> None:
        if self._of(event, list)[0] is None:
            raise _Refused(1, "nobody signals the event: a wait for ever")

    def _zeEventQueryStatus(self, event: int) -> None:
        if self._of(event, list)[0] is None:
            raise _Refused(1)

    def _zeEventQueryKernelTimestamp(self, event: int, times: int) -> None:
        at, timed = self._of(event, list)
        if at is None or not timed:
            raise _Refused(1)
        ctypes.memmove(times, struct.pack("<4Q", *[at * 10**4 & 0xFFFFFFFF] * 4), 32)

    # -- memory

    def _zeMemAllocDevice(self, context: int, desc: int, size: int, aligned: int, device: int, address: int) -> None:
        self._of(context, tuple)
        _read(desc, 0x15, "<II")
        gpu = self._of(device, int)
        taken = sum(m.size for m in self.memory.values() if m.live and m.gpu == gpu)
        if not size or aligned & aligned - 1:
            raise _Refused(0x78000009, f"{size} bytes, aligned to {aligned}")
        if taken + size > self.gpus[gpu].memory_bytes:
            raise _Refused(0x70000003)
        data = (c_ubyte * (size + 512))()
        start = -(-ctypes.addressof(data) // 256) * 256
        ctypes.memset(start, 0xA5, size)
        self.memory[start] = Memory(start, size, gpu, data)
        c_void_p.from_address(address).value = start

    def _zeMemFree(self, context: int, address: int | None) -> None:
        held = self.memory.get(address or 0)
        if held is None or not held.live:
            raise _Refused(INVALID_ARGUMENT, f"{address or 0:#x} was not allocated, or has been given back")
        held.live = False

    def _zeMemGetAllocProperties(self, context: int, address: int, properties: int, device: int) -> None:
        held = self.holder(address)
        _write(properties, 0x17, "<IxxxxQQ", 0 if held is None else 2, 1, 4096)
        c_void_p.from_address(device).value = None if held is None else self.devices[held.gpu]

    # -- modules and kernels

    def _zeModuleCreate(self, context: int, device: int, desc: int, module: int, log: int) -> None:
        self._of(context, tuple)
        form, size, code, flags, constants = _read(desc, 0x1B, "<IxxxxQQQQ")
        data = ctypes.string_at(code, size)
        c_void_p.from_address(log).value = self._new(bytes(self.says))
        if form != 0 or constants:
            raise _Refused(INVALID_ARGUMENT, "SPIR-V without constants is asked for")
        try:
            kernels = Module.of(data).kernels
        except ValueError:
            raise _Refused(0x70000004) from None
        told = ctypes.string_at(flags).decode() if flags else ""
        self._put(module, Built(self._of(device, int), data, told, kernels))

    def _zeModuleDestroy(self, module: int) -> None:
        self._gone(module, Built)

    def _zeModuleBuildLogGetString(self, log: int, size: int, text: int | None) -> None:
        said = self._of(log, bytes) + b"\0"
        if text:
            ctypes.memmove(text, said, len(said))
        c_size_t.from_address(size).value = len(said)

    def _zeModuleBuildLogDestroy(self, log: int) -> None:
        self._gone(log, bytes)

    def _zeKernelCreate(self, module: int, desc: int, kernel: int) -> None:
        built = self._of(module, Built)
        _, name = _read(desc, 0x1D, "<IxxxxQ")
        named = ctypes.string_at(name).decode()
        if named not in built.kernels:
            raise _Refused(KERNEL_NAME)
        self._put(kernel, Kernel(built, named))

    def _zeKernelDestroy(self, kernel: int) -> None:
        self._gone(kernel, Kernel)

    def _zeKernelGetProperties(self, kernel: int, properties: int) -> None:
        made = self._of(kernel, Kernel)
        _write(properties, 0x1E, "<11I", 0, made.threads, 1, 1, 0, 16, 16, 0, 0, 0, self.spills(made.module.flags))

    def _zeKernelSetGroupSize(self, kernel: int, x: int, y: int, z: int) -> None:
        made = self._of(kernel, Kernel)
        if not 0 < x <= self.gpus[made.module.gpu].most_threads or (y, z) != (1, 1):
            raise _Refused(0x78000013)
        made.threads = x

    def _zeKernelSetArgumentValue(self, kernel: int, index: int, size: int, value: int | None) -> None:
        made = self._of(kernel, Kernel)
        if not value:
            raise _Refused(0x78000007, "no value")
        made.given[index] = ctypes.string_at(value, size)
        address = int.from_bytes(made.given[index], "little")
        program = self.programs.get(hashlib.sha256(made.module.code).hexdigest())
        if program is not None and index < len(program.parameters) and program.parameters[index].elem == "ptr":
            if address and self.holder(address) is None:
                raise _Refused(INVALID_ARGUMENT)

    def _zeKernelSetIndirectAccess(self, kernel: int, flags: int) -> None:
        self._of(kernel, Kernel)
        if flags != 7:
            raise _Refused(INVALID_ARGUMENT, f"flags {flags}")


def pretend(monkeypatch: pytest.MonkeyPatch, *gpus: GPU, **facts: Any) -> Iterator[FakeLevelZero]:
    """The whole process sees these GPUs, one Ponte Vecchio if none are named, until the iterator is ended."""
    ze = FakeLevelZero(*(gpus or (MAX_1550,)), **facts)
    yield from pretended(monkeypatch, ze, "intel", "spirv", (loader, faults), forget)


def forget() -> None:
    """What was found out of the machine's GPUs counts no more."""
    driver._thread.current = 0
    for known in (level_zero._start, driver._devices, queues.queue_of, launching._target_of):
        known.cache_clear()
