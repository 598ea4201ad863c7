"""Loaded kernels and their launch, through Level Zero.

    kernel = LoadedKernel(spirv, metadata)               # the driver compiles it for the current GPU
    launch = kernel.launcher("QQq", stream_of)           # one struct code for each parameter, 8 bytes each
    launch(nx, ny, nz, address_x, address_out, n)

A launch on the GPU's own queue (`queues`) returns when it is queued, one in a stream of PyTorch's when it has ended.
The parameters lie in one buffer, which one `struct.pack_into` fills, and are handed over one by one, each with the
bytes that its type has. Blocks and subgroups have the sizes that stand in the module.

A kernel whose registers are too few is built again with twice as many (256 for each thread of the hardware, of which
there are half as many then), where `grf_mode` says nothing else, the block still fits, and less is spilled that way.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_size_t, c_void_p
from functools import partial
from typing import Any

from weft.base import LaunchError, OutOfResources, Unsupported
from weft.base.locks import renewed
from weft.ops import BY_LANGUAGE

from ..gpu.launches import check_shared, on_each_gpu, written_launch
from .driver import Device, allocate, current_device
from .failures import HEAD, raise_failure
from .faults import answer, check, launches
from .level_zero import (
    INDIRECT,
    SPIRV,
    GroupCount,
    KernelDesc,
    KernelProperties,
    ModuleDesc,
    api,
    said,
)
from .module import WITHOUT_FLOAT64, Module, is_module
from .queues import fill, finish, queue_of, to_host

Stream = Callable[[], int]
"""Gives the stream of the next launch."""
FLAGS = {"default": "", "128": "-cl-intel-128-GRF-per-thread", "256": "-ze-opt-large-register-file",
         "auto": "-cl-intel-enable-auto-large-GRF-mode"}  # fmt: skip
"""What the driver's compiler is told for each `grf_mode`."""
LOG_BYTES = 2000
"""How much is told of what the driver's compiler says."""


class _Buffer:
    """Memory of one launch: its parameters, 8 bytes each, and the blocks of its grid."""

    __slots__ = ("groups", "memory", "stream")

    def __init__(self, count: int) -> None:
        self.memory = (ctypes.c_uint64 * max(1, count))()
        self.groups = GroupCount()
        self.go_to(0)

    def go_to(self, stream: int) -> None:
        """The next launch is for another stream."""
        self.stream = stream


class _Built:
    """A module that the driver has compiled for a GPU, its kernel, and what that takes."""

    def __init__(self, code: Any, name: str, gpu: Device, threads: int, mode: str) -> None:
        self.mode, ze = mode, api()
        desc = ModuleDesc(
            format=SPIRV,
            inputSize=len(code),
            pInputModule=ctypes.addressof(code),
            pBuildFlags=FLAGS[mode].encode(),
        )
        self.module, log = c_void_p(), c_void_p()
        status = ze.zeModuleCreate(gpu.context, gpu.handle, byref(desc), byref(self.module), byref(log))
        if status:
            raise LaunchError(
                f"the driver of the {gpu.name} does not build `{name}`: {said(status)}{_said_by_compiler(log)}",
                hint="a newer driver may know the extensions of SPIR-V that it has: kernel.metadata.extensions",
            )
        if log.value:
            ze.zeModuleBuildLogDestroy(log)
        named = KernelDesc(pKernelName=name.encode())
        self.kernel = answer(ze.zeKernelCreate, self.module, byref(named), kernel=name)
        check(ze.zeKernelSetGroupSize(self.kernel, threads, 1, 1), name)
        check(ze.zeKernelSetIndirectAccess(self.kernel, INDIRECT), name)
        self.facts = KernelProperties()
        check(ze.zeKernelGetProperties(self.kernel, byref(self.facts)), name)

    def destroy(self) -> None:
        """Give it back: another one is used."""
        api().zeKernelDestroy(self.kernel)
        api().zeModuleDestroy(self.module)


def _said_by_compiler(log: c_void_p) -> str:
    """What the driver's compiler said, behind a colon; the log is given back."""
    if not log.value:
        return ""
    ze, size = api(), c_size_t()
    ze.zeModuleBuildLogGetString(log, byref(size), None)
    text = ctypes.create_string_buffer(size.value + 1)
    ze.zeModuleBuildLogGetString(log, byref(size), text)
    ze.zeModuleBuildLogDestroy(log)
    lines = text.value.decode(errors="replace").strip()
    return f":\n{lines[:LOG_BYTES]}" if lines else ""


def sizes_of(params: Sequence[str], scratch: bool) -> list[int]:
    """The bytes of each parameter of a kernel.

    >>> sizes_of(["*fp32", "i32", "i1", "bf16", "fp64"], True)
    [8, 4, 1, 2, 8, 8]
    """
    given = [8 if kind[0] == "*" else max(8, BY_LANGUAGE[kind].bits) // 8 for kind in params]
    return given + [8] * scratch


class LoadedKernel:
    """A kernel in a process: SPIR-V, compiled by the driver for the GPUs that it is launched on.

    `metadata` has name, shared (bytes), params, global_scratch_size, threads or num_warps, and grf_mode where the user
    named one.
    """

    def __init__(self, image: bytes, metadata: Mapping[str, Any]) -> None:
        self.gpu = current_device()
        self.name: str = metadata["name"]
        self.shared: int = int(metadata["shared"])
        self._lanes = int(metadata.get("warp_size") or 16)
        self.threads: int = int(metadata.get("threads") or int(metadata["num_warps"]) * self._lanes)
        self._sizes = sizes_of(metadata.get("params") or (), bool(metadata.get("global_scratch_size")))
        self._messages = metadata.get("messages") or ()
        self._records: dict[int, ctypes.c_uint64] = {}
        """The addresses of memory on GPUs to which assertions that do not hold are written."""
        self._asserting = renewed(threading.Lock())
        self._mode: str = metadata.get("grf_mode") or "default"
        self._target = str(metadata.get("target") or "")
        self._image = (ctypes.c_uint8 * len(image)).from_buffer_copy(image)
        self._float64 = is_module(image) and Module.of(image).needs_float64
        self._built: dict[int, _Built] = {}
        facts = self.built_on(self.gpu).facts
        self.address = self._built[self.gpu.index].kernel
        self.local_bytes = facts.spillMemSize + facts.privateMemSize
        self.spills = facts.spillMemSize
        self.registers = 256 if self.large else 128
        self.max_threads = self._most_threads(self.gpu, self.large)

    @property
    def large(self) -> bool:
        """Whether each thread of the hardware has 256 registers."""
        return self._built[self.gpu.index].mode == "256"

    def built_on(self, gpu: Device) -> _Built:
        """It on a GPU, where it is compiled when that is first asked for."""
        if gpu.index not in self._built:
            self._check_limits(gpu)
            build = partial(_Built, self._image, self.name, gpu, self.threads)
            built = build(self._mode)
            if self._mode == "default" and built.facts.spillMemSize and self.threads <= self._most_threads(gpu, True):
                larger = build("256")
                worse, built = sorted((built, larger), key=lambda b: b.facts.spillMemSize, reverse=True)
                worse.destroy()
            if built.facts.localMemSize > gpu.shared_bytes:
                check_shared(built.facts.localMemSize, gpu)
            self._built[gpu.index] = built
        return self._built[gpu.index]

    @staticmethod
    def _most_threads(gpu: Device, large: bool) -> int:
        """Of a block; there are half as many where each has twice the registers."""
        return gpu.max_threads // 2 if large else gpu.max_threads

    def _check_limits(self, gpu: Device) -> None:
        """Refuse what this GPU cannot run, before the driver does without saying why."""
        if self._target.startswith("xpu:") and gpu.target != self._target:
            raise Unsupported(
                f"running code for {self._target}", gpu.target, hint=f"the {gpu.name} takes target {gpu.target}"
            )
        if self._lanes not in gpu.lanes:
            sizes = ", ".join(map(str, gpu.lanes))
            raise Unsupported(f"a subgroup of {self._lanes} lanes", gpu.name, hint=f"its subgroups have {sizes}")
        most = self._most_threads(gpu, self._mode == "256")
        if self.threads > most:
            warps = self.threads // self._lanes
            taken = f"{self.threads:>7} ({warps} warps of {self._lanes})"
            mode = ", as grf_mode='256' halves them" if self._mode == "256" else ""
            details = [f"  threads of a block  {taken}, of at most {most}{mode}"]
            hint = f"num_warps={most // self._lanes}"
            raise OutOfResources(self.threads, most, "threads", hint=hint, details=details)
        check_shared(self.shared, gpu)
        if self._float64 and not gpu.has_float64:
            raise Unsupported(f"float64, with which `{self.name}` computes,", gpu.name, hint=WITHOUT_FLOAT64)

    def launcher(self, codes: str, stream: Stream) -> Callable[..., None]:
        """A function (nx, ny, nz, *values) that queues a launch on the GPU that it was first loaded for.

        `launch.on_gpu(gpu)` is the same for another one.
        """
        return on_each_gpu(partial(self._launcher, codes, stream), self.gpu)

    def _launcher(self, codes: str, stream: Stream, gpu: Device) -> Callable[..., None]:
        count = sum(c.isalpha() and c != "x" for c in codes)
        spaces = {
            "pack": struct.Struct(f"<{codes}").pack_into,
            "new": partial(_Buffer, count),
            "call": self._call(count, gpu),
            "stream": stream,
            "note": launches.append,
            "failed": self._failed,
        }
        launch = written_launch(self.name, count, spaces, call="call(buffer, nx, ny, nz)", fail="failed(status)")
        return self._heard(launch, gpu) if self._messages else launch

    def _record(self, gpu: Device) -> ctypes.c_uint64:
        """The address of a GPU's record, which is there as long as the kernel's code."""
        if gpu.index not in self._records:
            self._records[gpu.index] = ctypes.c_uint64(allocate(HEAD.size, gpu))
        return self._records[gpu.index]

    def _heard(self, launch: Callable[..., None], gpu: Device) -> Callable[..., None]:
        """The launch of a kernel that asserts: it waits for its end, and raises what does not hold."""
        record, said = self._record(gpu).value, (ctypes.c_uint8 * HEAD.size)()

        def heard(*arguments: Any) -> None:
            with self._asserting:
                fill(record, HEAD.size, gpu)
                launch(*arguments)
                to_host(ctypes.addressof(said), record, HEAD.size, gpu)
                written = bytes(said)
            raise_failure(written, self._messages, self.name)

        return heard

    def frozen(self, codes: str, stream: Stream, grid: Sequence[int], values: Sequence[Any]) -> Callable[[], None]:
        """A function without arguments that queues the same launch each time; `on_gpu` as that of `launcher` has it."""

        def on_gpu(gpu: Device) -> Callable[[], None]:
            queue = self._launcher(codes, stream, gpu)
            return lambda: queue(*grid, *values)

        return on_each_gpu(on_gpu, self.gpu)

    def _call(self, count: int, gpu: Device) -> Callable[[_Buffer, int, int, int], int]:
        """What queues a launch with the parameters of a buffer, and gives the result."""
        if self._sizes and len(self._sizes) != count:
            raise LaunchError(f"{count} parameters were given for `{self.name}`, which takes {len(self._sizes)}")
        ze, queue, kernel = api(), queue_of(gpu), self.built_on(gpu).kernel
        sizes = list(enumerate(self._sizes or [8] * count))
        further = self._record(gpu) if self._messages else None
        give, append = ze.zeKernelSetArgumentValue, ze.zeCommandListAppendLaunchKernel

        def call(buffer: _Buffer, nx: int, ny: int, nz: int) -> int:
            groups, start = buffer.groups, ctypes.addressof(buffer.memory)
            groups.x, groups.y, groups.z = nx, ny, nz
            if buffer.stream:
                finish(buffer.stream, gpu.index)
            with queue.lock:  # a kernel has its arguments until it is queued
                for i, size in sizes:
                    status = give(kernel, i, size, start + 8 * i)
                    if status:
                        return int(status)
                if further is not None and (status := give(kernel, count, 8, ctypes.addressof(further))):
                    return int(status)
                status = queue.append(append, kernel, byref(groups))
                return int(status or (queue.wait() if buffer.stream else 0))

        return call

    def _failed(self, status: int) -> None:
        """A launch was not taken: say why."""
        check(status, self.name)

