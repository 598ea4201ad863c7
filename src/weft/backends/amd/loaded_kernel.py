"""Loaded kernels and their launch, through the HIP library.

    kernel = LoadedKernel(image, metadata)               # a code object (HSACO)
    launch = kernel.launcher("QQq", stream_of)           # one struct code for each parameter, 8 bytes each
    launch(nx, ny, nz, address_x, address_out, n)

Nothing waits: a launch returns when it is queued, and a fault of the kernel shows up in a later call (see `faults`). A
launch is one call of `hipModuleLaunchKernel`; its parameters lie in one buffer, which one `struct.pack_into` fills. The
library reads as many bytes of each as the code object says, and has copied them when it returns.

A module is in the memory of one GPU: it is loaded once for each that the kernel is launched on.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int, c_uint, c_void_p
from functools import partial
from typing import Any

from weft.base import LaunchError, OutOfResources, Unsupported

from ..gpu.launches import check_shared, on_each_gpu, written_launch
from .driver import Device, current_device, entered
from .faults import answer, check, launches
from .hip import INVALID_CONFIGURATION, INVALID_VALUE, LOCAL_BYTES, MAX_THREADS, REGISTERS, SHARED_BYTES, api
from .messages import Listener

Stream = Callable[[], int]
"""Gives the stream of the next launch."""

MOST_THREADS = (1 << 32) - 1
"""Of a grid along one axis: the packet that starts a kernel counts threads."""

_NOT_LOADED = 98, 200, 209, 218, 302
"""hipErrorInvalidDeviceFunction, _InvalidImage, _NoBinaryForGpu, _InvalidKernelFile, _SharedObjectSymbolNotFound"""

class _Buffer:
    """Memory of one launch: its parameters, 8 bytes each, and their addresses.

    `rest` are the arguments of the launch behind the grid; `stream` is the one that is among them.
    """

    __slots__ = ("_fixed", "_keep", "_pointers", "memory", "rest", "stream")

    def __init__(self, count: int, threads: int, shared: int, extra: tuple[None, ...]) -> None:
        self.memory = (ctypes.c_uint64 * max(1, count))()
        start = ctypes.addressof(self.memory)
        self._keep = (c_void_p * max(1, count))(*(start + 8 * i for i in range(count)))
        self._fixed = c_uint(threads), c_uint(1), c_uint(1), c_uint(shared)
        self._pointers = c_void_p(ctypes.addressof(self._keep)), *extra
        self.go_to(0)

    def go_to(self, stream: int) -> None:
        """The next launch is for another stream."""
        self.stream = stream
        self.rest = *self._fixed, c_void_p(stream), *self._pointers


def processor_of(image: bytes) -> str:
    """The processor that a code object says it is for, with what must be on or off; "" if it does not.

    It stands in the metadata, in MessagePack: behind `amdhsa.target` a text, whose length is in its first byte or in
    the one behind that.

    >>> processor_of(b"...amdhsa.target" + bytes([0xd9, 34]) + b"amdgcn-amd-amdhsa--gfx90a:sramecc+amdhsa.version")
    'gfx90a:sramecc+'
    """
    behind = image.partition(b"amdhsa.target")[2]
    long = behind[:1] == b"\xd9"
    length = behind[1] if long and len(behind) > 1 else (behind[0] & 31) if behind else 0
    return behind[1 + long :][:length].decode(errors="replace").rpartition("--")[2]


class LoadedKernel:
    """A kernel in a process: a code object, loaded for the GPUs that it is launched on.

    `metadata` has name, shared (bytes of LDS), num_warps, and threads where they are not warps times the GPU's lanes.
    """

    def __init__(self, image: bytes, metadata: Mapping[str, Any]) -> None:
        self.gpu = current_device()
        self.name: str = metadata["name"]
        self.shared: int = int(metadata["shared"])
        self.threads: int = int(metadata.get("threads") or int(metadata["num_warps"]) * self.gpu.lanes)
        self._cooperative = bool(metadata.get("launch_cooperative_grid"))
        self._extra = () if self._cooperative else (None,)
        self._image = ctypes.create_string_buffer(image, len(image))
        self._processor = processor_of(image)
        self._functions: dict[int, int] = {}
        self._messages = metadata.get("messages") or ()
        self._listeners: dict[int, Listener] = {}
        self._check_limits(self.gpu)
        self.address = self.function_on(self.gpu)

        def fact(kind: int) -> int:
            return int(answer(api().hipFuncGetAttribute, c_int, kind, self.address, kernel=self.name))

        self.registers, self.local_bytes = fact(REGISTERS), fact(LOCAL_BYTES)
        self.static_shared, self.max_threads = fact(SHARED_BYTES), fact(MAX_THREADS)
        self.dynamic_shared = max(0, self.shared - self.static_shared)
        """What a launch has to ask for: what the code object does not ask for itself."""
        if self.threads > self.max_threads:
            raise self._too_many_threads(self.gpu, self.max_threads)

    def function_on(self, gpu: Device) -> int:
        """Its handle on a GPU, where it is loaded when that is first asked for."""
        if gpu.index not in self._functions:
            self._check_processor(gpu)
            hip = api()
            with entered(gpu):
                module, function = c_void_p(), c_void_p()
                status = hip.hipModuleLoadData(ctypes.byref(module), self._image)
                if status in _NOT_LOADED:
                    hip.hipGetLastError()
                    raise LaunchError(
                        f"the HIP library cannot load the machine code of {self.name}, which is for "
                        f"{self._processor or 'no processor that it names'}, on the {gpu.name} "
                        f"({gpu.full_processor}): {hip.said(status)}",
                        hint="install a newer ROCm",
                    )
                check(status, self.name)
                check(hip.hipModuleGetFunction(ctypes.byref(function), module, self.name.encode()), self.name)
                if self._messages:
                    self._listeners[gpu.index] = Listener(self._messages, self.name, gpu)
                    self._listeners[gpu.index].told_to(module)
            self._functions[gpu.index] = int(function.value or 0)
        return self._functions[gpu.index]

    def _check_processor(self, gpu: Device) -> None:
        """Refuse code for another processor, before the library does without saying which."""
        processor, *settings = self._processor.split(":")
        wrong = [setting for setting in settings if setting not in gpu.full_processor.split(":")[1:]]
        if processor and (processor != gpu.processor or wrong):
            raise Unsupported(
                f"running code for hip:{self._processor}",
                f"hip:{gpu.full_processor}",
                hint=f"the {gpu.name} takes target hip:{gpu.processor}"
                + (f", compiled without {', '.join(wrong)}" if wrong else ""),
            )

    def _check_limits(self, gpu: Device) -> None:
        """Refuse what this GPU cannot run, before the library does without saying why."""
        self._check_processor(gpu)
        if self.threads > gpu.max_threads:
            raise self._too_many_threads(gpu, gpu.max_threads)
        check_shared(self.shared, gpu)

    def _too_many_threads(self, gpu: Device, most: int) -> OutOfResources:
        """What the threads of a block are beside what there may be."""
        warps, lanes = self.threads // gpu.lanes, gpu.lanes
        details = [f"  threads of a block  {self.threads:>7} ({warps} warps of {lanes}), of at most {most}"]
        fewer = f"num_warps={most // lanes}" if most >= lanes else "smaller tiles"
        return OutOfResources(self.threads, most, "threads", hint=fewer, details=details)

    def launcher(self, codes: str, stream: Stream) -> Callable[..., None]:
        """A function (nx, ny, nz, *values) that queues a launch on the GPU that it was first loaded for.

        `launch.on_gpu(gpu)` is the same for another one.
        """
        return on_each_gpu(partial(self._launcher, codes, stream), self.gpu)

    def _launcher(self, codes: str, stream: Stream, gpu: Device) -> Callable[..., None]:
        count = parameters(codes)
        spaces: dict[str, Any] = {
            "pack": struct.Struct(f"<{codes}").pack_into,
            "new": partial(_Buffer, count, self.threads, self.dynamic_shared, self._extra),
            "call": self._call(),
            "function": c_void_p(self.function_on(gpu)),
            "stream": stream,
            "note": launches.append,
            "failed": self._failed,
        }
        call, fail = "call(function, nx, ny, nz, *buffer.rest)", "failed(status, nx, ny, nz)"
        return self._heard(written_launch(self.name, count, spaces, call=call, fail=fail), stream, gpu)

    def frozen(self, codes: str, stream: Stream, grid: Sequence[int], values: Sequence[Any]) -> Callable[[], None]:
        """A function without arguments that queues the same launch each time; `on_gpu` as that of `launcher` has it."""
        buffer = _Buffer(parameters(codes), self.threads, self.dynamic_shared, self._extra)
        struct.pack_into(f"<{codes}", buffer.memory, 0, *values)
        call, fail = self._call(), self._failed
        noted, note = (self.name, grid[0], grid[1], grid[2]), launches.append

        def on_gpu(gpu: Device) -> Callable[[], None]:
            function = c_void_p(self.function_on(gpu))

            def launch() -> None:
                note(noted)
                now = stream()
                if now != buffer.stream:
                    buffer.go_to(now)
                status = call(function, *grid, *buffer.rest)
                if status:
                    fail(status, *grid)

            return self._heard(launch, stream, gpu)

        return on_each_gpu(on_gpu, self.gpu)

    def _heard(self, launch: Callable[..., None], stream: Stream, gpu: Device) -> Callable[..., None]:
        """The launch of a kernel that prints or asserts waits for its end, and tells what it said."""
        listener = self._listeners.get(gpu.index)
        if listener is None:
            return launch

        def heard(*arguments: Any) -> None:
            with listener.hearing(stream()):
                launch(*arguments)

        return heard

    def _call(self) -> Any:
        """The function that launches, without types for its arguments: they are ctypes' own objects, but for the grid's
        sizes, which have 32 bits. That takes half as long."""
        hip = api()
        function = hip.hipModuleLaunchCooperativeKernel if self._cooperative else hip.hipModuleLaunchKernel
        return ctypes.CFUNCTYPE(c_int)(ctypes.cast(function, c_void_p).value or 0)

    def _failed(self, status: int, *grid: int) -> None:
        """A launch was not taken: say why."""
        if status in (INVALID_VALUE, INVALID_CONFIGURATION) and grid[0] * self.threads > MOST_THREADS:
            api().hipGetLastError()
            raise LaunchError(
                f"grid size {grid[0]} on axis 0 exceeds {MOST_THREADS // self.threads}, the most with "
                f"{self.threads} threads a program",
                hint="put some of it on another axis, or launch with a smaller num_warps",
            )
        check(status, self.name)


def parameters(codes: str) -> int:
    """How many parameters codes are of, where an x is for bytes that nobody reads.

    >>> parameters("Qqf4xd")
    4
    """
    return sum(c.isalpha() and c != "x" for c in codes)
