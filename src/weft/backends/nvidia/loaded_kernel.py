"""Loaded kernels and their launch, through the CUDA driver.

    kernel = LoadedKernel(image, metadata)               # a cubin or PTX
    launch = kernel.launcher("QQq", stream_of)           # one struct code for each parameter, 8 bytes each
    launch(nx, ny, nz, address_x, address_out, n)

Nothing waits: a launch returns when it is queued, and a fault of the kernel shows up in a later call (see `faults`). A
launch is one call into the driver, of `cuLaunchKernelEx` by its address: its parameters and its configuration lie in
one buffer, which one `struct.pack_into` fills; the stream is written only where it is another.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from weft.base import LaunchError, OutOfResources, Unsupported, WeftError, shorten
from weft.base.grids import blocks_along_x
from weft.machines import DEFAULT

from ..gpu.launches import check_shared, written_launch
from ..gpu.queued import Parameters, Queued, queued
from .driver import Device, api, context_of, current_device, device_count, driver_version
from .faults import check, failed, launches

Stream = Callable[[], int]
"""Gives the stream of the next launch."""

# CUlaunchConfig: grid x y z; block x y z, bytes of shared memory, (padding); stream; attributes, how many, (padding).
# It lies behind the parameters, so that what each launch has of its own is side by side: parameters and grid.
_GRID = "III"
_FIXED = "<IIII4xQQQ"
"""The configuration after the grid."""
_CONFIG_BYTES, _STREAM_AT = 56, 32
_ATTRIBUTE_BYTES = 72
_COOPERATIVE, _CLUSTER, _PROGRAMMATIC = 2, 4, 6
"""CU_LAUNCH_ATTRIBUTE_COOPERATIVE, _CLUSTER_DIMENSION, _PROGRAMMATIC_STREAM_SERIALIZATION"""
_INVALID_CONTEXT = 201


def _address(name: str) -> int:
    """Where a function of the driver is."""
    address, _ = check(api().cuGetProcAddress(name.encode(), 12000, 0))
    return int(address)


@lru_cache(maxsize=1)
def _launch_address() -> int:
    """The address of cuLaunchKernelEx(configuration, function, parameters, nothing) -> status."""
    return _address("cuLaunchKernelEx")


@lru_cache(maxsize=1)
def _clusters_function() -> Any:
    """cuOccupancyMaxActiveClusters(count, function, configuration) -> status."""
    return ctypes.CFUNCTYPE(ctypes.c_int)(_address("cuOccupancyMaxActiveClusters"))


@lru_cache(maxsize=1)
def _launch_function() -> Any:
    """The same as a function, which is called without the interpreter's lock.

    Its arguments are ctypes' own pointers, made once for each buffer: that is quicker than to have numbers converted.
    """
    return ctypes.CFUNCTYPE(ctypes.c_int)(_launch_address())


def _attributes(metadata: Mapping[str, Any]) -> bytes:
    """The launch attributes of a kernel, as the driver has them in memory."""
    pairs: list[tuple[int, tuple[int, ...]]] = []
    blocks = int(metadata.get("num_ctas", 1))
    if blocks > 1:
        pairs.append((_CLUSTER, (blocks, 1, 1)))
    if metadata.get("launch_cooperative_grid"):
        pairs.append((_COOPERATIVE, (1,)))
    if metadata.get("launch_pdl"):
        pairs.append((_PROGRAMMATIC, (1,)))
    return b"".join(struct.pack("<I4x", kind) + struct.pack(f"<{len(v)}i", *v).ljust(64, b"\0") for kind, v in pairs)


class _Buffer:
    """Memory of one launch: parameters, configuration, and the addresses of the parameters.

    `arguments` are those of `cuLaunchKernelEx`; `stream` is the one that the configuration names.
    """

    __slots__ = ("_keep", "_stream", "arguments", "memory", "stream")

    def __init__(self, offsets: Sequence[int], size: int, kernel: int, fixed: Sequence[int]) -> None:
        end = size + _CONFIG_BYTES
        self._keep = (ctypes.c_char * (end + 8 * max(1, len(offsets)) + 63))()
        start = -(-ctypes.addressof(self._keep) // 64) * 64
        self.memory = (ctypes.c_char * end).from_address(start)
        (ctypes.c_uint64 * len(offsets)).from_address(start + end)[:] = [start + at for at in offsets]
        pointers = (ctypes.c_void_p(at) for at in (start + size, kernel, start + end))
        self.arguments = (*pointers, None)
        self.stream = 0
        self._stream = ctypes.c_uint64.from_address(start + size + _STREAM_AT)
        struct.pack_into(_FIXED, self.memory, size + struct.calcsize(_GRID), *fixed)

    def go_to(self, stream: int) -> None:
        """The next launch is for another stream."""
        self._stream.value = self.stream = stream


_NOT_LOADED = 200, 209, 218, 221, 222
"""CUDA_ERROR_INVALID_IMAGE, _NO_BINARY_FOR_GPU, _INVALID_PTX, _JIT_COMPILER_NOT_FOUND, _UNSUPPORTED_PTX_VERSION"""
LEAST_SHARED = RESERVED_SHARED = 1024
"""Bytes of shared memory: what a block gets only to limit how many run at a time, and what each takes for itself."""
SHARES = tuple(size << 10 for size in (8, 16, 32, 64, 100, 132, 164, 196, 228))
"""Bytes of it that a multiprocessor can have; the rest is its L1 cache's. (CUDA programming guide, sections on compute
capabilities 8.x, 9.0 and 10.0: each has some of them.)"""
FAST_MEMORY, AS_MANY = 4e12, 4 / 3
"""If memory is faster than so many bytes per second, this factor raises the number of blocks at a time for rows that
begin anywhere. Where three blocks are best on an H100 (3.35e12), four are on an H200 (4.9e12); for four it is five."""
GRANULE = 128
"""The shared memory of a block is a multiple of so many bytes."""
OLDEST_DRIVER = 12000
"""The CUDA version that brought libraries of kernels and `cuLaunchKernelEx`."""


def _version(number: int) -> str:
    return f"CUDA {number // 1000}.{number % 1000 // 10}"


def _limiting_share(most: int, least: int, all_of_it: int) -> tuple[int, int]:
    """(preferred shared memory of a multiprocessor, shared memory that each block requests), in bytes, so that at most
    `most` blocks run at a time, each of which needs `least` bytes. Zeros if no share has room for `most` blocks, so
    that no limit is needed.

    The driver takes the preferred share as a hint and may choose the next larger one: asked for 8 KB it gives 16, in
    which an H200 ran six blocks of 2,688 bytes instead of three. So each block requests so much that even the next
    larger share has no room for one more, if a quarter of the memory is then left for the L1 cache. Otherwise it
    requests so much that this share has no room for one more.

    >>> [_limiting_share(most, 2048, 228 << 10) for most in (3, 8, 128)]
    [(102400, 34048), (16384, 2048), (0, 0)]
    """
    shares = [share for share in SHARES if most * least <= share <= all_of_it]
    sizes = [(share, share // most // GRANULE * GRANULE) for share in shares]
    for (share, each), larger in zip(sizes, shares[1:]):
        if (most + 1) * each > larger and 4 * share <= 3 * all_of_it:
            return share, each
    return sizes[0] if sizes else (0, 0)


def _library(image: bytes, name: str) -> Any:
    """An image in the driver. LaunchError where the driver is too old for it, or cannot read it."""
    cuda, version = api(), driver_version()
    update = "install a newer display driver"
    if version < OLDEST_DRIVER:
        raise LaunchError(
            f"the driver knows {_version(version)}; kernels need one that knows {_version(OLDEST_DRIVER)}", hint=update
        )
    answer = cuda.cuLibraryLoadData(image, None, None, 0, None, None, 0)
    if int(answer[0]) in _NOT_LOADED:
        match = re.search(rb"\.version\s+([\d.]+)", image[:4096]) if not image.startswith(b"\x7fELF") else None
        image_name = f"the PTX of {name}, version {match[1].decode()}" if match else f"the machine code of {name}"
        raise LaunchError(
            f"the driver, which knows {_version(version)}, cannot load {image_name}: {failed(cuda, answer[0])}",
            hint=f"{update}; or compile for this GPU with a ptxas that is no newer than the driver (WEFT_PTXAS)",
        )
    return check(answer, name)


class LoadedKernel:
    """A kernel in a process: an image, loaded by the driver for the devices it is launched on.

    `metadata` has name, shared (bytes of dynamic shared memory), num_warps, num_ctas, target, most_blocks where only
    at most so many blocks are to run at a time on a multiprocessor, blocks_by_memory if faster memory needs more, and
    programs_each where a block executes up to so many programs: a launch then starts fewer blocks than the grid has
    programs, and hands on how many those are along x.
    """

    def __init__(self, image: bytes, metadata: Mapping[str, Any]) -> None:
        self.name: str = metadata["name"]
        self.shared: int = int(metadata["shared"])
        self.threads: int = DEFAULT.threads(int(metadata["num_warps"]))
        self._check_limits(current_device(), str(metadata.get("target", "")))
        cuda = api()
        self._image = image
        self._library = _library(image, self.name)
        self.kernel = check(cuda.cuLibraryGetKernel(self._library, self.name.encode()), self.name)
        self.address = int(self.kernel)
        attributes = _attributes(metadata)
        self._attributes = (ctypes.c_char * max(1, len(attributes))).from_buffer_copy(attributes or b"\0")
        self._attribute_count = len(attributes) // _ATTRIBUTE_BYTES
        self.blocks = int(metadata.get("num_ctas", 1))
        self.programs_each = int(metadata.get("programs_each", 1))
        kind = cuda.CUfunction_attribute
        gpu = check(cuda.cuDeviceGet(current_device().index))

        def fact(name: str) -> int:
            return int(check(cuda.cuKernelGetAttribute(getattr(kind, f"CU_FUNC_ATTRIBUTE_{name}"), self.kernel, gpu)))

        self.registers, self.local_bytes = fact("NUM_REGS"), fact("LOCAL_SIZE_BYTES")
        self.static_shared, self.max_threads = fact("SHARED_SIZE_BYTES"), fact("MAX_THREADS_PER_BLOCK")
        if self.threads > self.max_threads:
            raise self._too_many_threads(current_device())
        if int(metadata.get("num_ctas", 1)) > 8:  # more than every GPU of this generation can do
            for index in range(device_count()):
                large = kind.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
                check(cuda.cuKernelSetAttribute(large, 1, self.kernel, check(cuda.cuDeviceGet(index))))
        if metadata.get("most_blocks"):
            self._limit_blocks(int(metadata["most_blocks"]), bool(metadata.get("blocks_by_memory")))
        if self.shared + self.static_shared > 48 << 10:
            # How much of the memory that it divides with the L1 cache is shared is left to the driver: all of it would
            # leave L1 less than the loads of a block need (docs/explanation/performance.md).
            name = kind.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            for index in range(device_count()):
                check(cuda.cuKernelSetAttribute(name, self.shared, self.kernel, check(cuda.cuDeviceGet(index))))

    def _limit_blocks(self, most: int, by_memory: bool) -> None:
        """Limit the blocks that run at a time on a multiprocessor, by requesting as little shared memory as needed. If
        the number depends on the speed of memory (`by_memory`), a GPU with fast memory runs more."""
        cuda = api()
        kind = cuda.CUfunction_attribute
        for index in range(device_count()):
            device = check(cuda.cuDeviceGet(index))

            def fact(name: str, device: Any = device) -> int:
                attribute = getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
                return int(check(cuda.cuDeviceGetAttribute(attribute, device)))

            all_of_it = fact("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")
            speed = 2e3 * fact("MEMORY_CLOCK_RATE") * fact("GLOBAL_MEMORY_BUS_WIDTH") / 8
            blocks = round(most * AS_MANY) if by_memory and speed > FAST_MEMORY else most
            share, each = _limiting_share(blocks, max(self.shared, LEAST_SHARED) + RESERVED_SHARED, all_of_it)
            if share:  # else no more blocks fit anyway
                self.shared = max(self.shared, each - RESERVED_SHARED)
                name = kind.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
                check(cuda.cuKernelSetAttribute(name, share * 100 // all_of_it, self.kernel, device))

    def _check_limits(self, gpu: Device, target: str) -> None:
        """Refuse what this GPU cannot run, before the driver does without saying why."""
        wanted = target.rpartition(":")[2].rstrip("a")
        if wanted.isdigit() and (int(wanted) > gpu.capability or (int(wanted) >= 90 and target.endswith("a"))):
            capability = gpu.capability
            if int(wanted) != capability:
                raise Unsupported(
                    f"running code for cuda:{wanted}", gpu.target, hint=f"the {gpu.name} takes target cuda:{capability}"
                )
        check_shared(self.shared, gpu)

    def _too_many_threads(self, device: Device) -> OutOfResources:
        """What the threads of a block need beside what there is."""
        all_registers, lanes = self.registers * self.threads, DEFAULT.lanes
        details = [
            f"  threads of a block  {self.threads:>7} ({self.threads // lanes} warps), of at most {device.max_threads}",
            f"  their registers     {all_registers:>7} ({self.registers} each), of at most {device.registers}",
        ]
        fewer = f"num_warps={self.max_threads // lanes}" if self.max_threads >= lanes else "smaller tiles"
        hint = f"{fewer}, or maxnreg={device.registers // self.threads // 8 * 8}"
        return OutOfResources(
            self.threads,
            self.max_threads,
            "threads",
            hint=hint if all_registers > device.registers else fewer,
            details=details,
        )

    def _fixed(self) -> tuple[int, ...]:
        """The part of a configuration after the grid that is the same for each launch; of the default stream."""
        return self.threads, 1, 1, self.shared, 0, ctypes.addressof(self._attributes), self._attribute_count

    def programs_at_once(self) -> int:
        """How many programs this thread's GPU runs at once; one that is a cluster lies within one group of its
        multiprocessors, of which not all have the same number."""
        gpu, cuda = current_device(), api()
        if self.blocks == 1:
            function = cuda.CUfunction(self.address)
            answer = cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, self.threads, self.shared)
            return int(check(answer, self.name)) * gpu.multiprocessors
        config = struct.pack(f"<{_GRID}{_FIXED[1:]}", self.blocks, 1, 1, *self._fixed())
        count, memory = ctypes.c_int(), ctypes.create_string_buffer(config)
        status = _clusters_function()(ctypes.byref(count), ctypes.c_void_p(self.address), memory)
        check((cuda.CUresult(status),), self.name)
        return count.value

    def _blocks_along_x(self, nx: int, ny: int, nz: int, at_a_time: int) -> int:
        """How many blocks to start for a grid of programs that is not empty."""
        return blocks_along_x((nx, ny, nz), self.programs_each, at_a_time)

    def launcher(self, codes: str, stream: Stream) -> Callable[..., None]:
        """A function (nx, ny, nz, *values) that queues a launch on this thread's GPU; a code has 8 bytes, or is 128s
        for a tensor map."""
        count, packed = len(_split(codes)), ", nx, ny, nz"
        spaces: dict[str, Any] = {}
        if self.programs_each > 1:
            codes, packed = codes + "q", ", nx, blocks(nx, ny, nz), ny, nz"
            spaces["blocks"] = partial(self._blocks_along_x, at_a_time=self.programs_at_once())
        offsets, size = _parameter_offsets(codes)
        spaces |= {
            "pack": struct.Struct(f"<{_padded(codes)}{_GRID}").pack_into,
            "new": partial(_Buffer, offsets, size, self.address, self._fixed()),
            "call": _launch_function(),
            "stream": stream,
            "note": launches.append,
            "failed": self._failed,
        }
        call, fail = "call(*buffer.arguments)", "failed(status, buffer)"
        return written_launch(self.name, count, spaces, call=call, fail=fail, packed=packed)

    def queued(self, stream: Stream, gpu: Device, parameters: Parameters) -> Queued:
        """What native code queues launches on a GPU by."""

        def fail(status: int, tries: int) -> None:
            try:
                if status != _INVALID_CONTEXT or tries:
                    check((api().CUresult(status),), self.name)
                current_device()
            except WeftError as error:  # native code has no frame of its own that could shorten it
                shorten(error)
                raise

        config = struct.pack(f"<{_GRID}{_FIXED[1:]}", 1, 1, 1, *self._fixed())
        return queued(
            _launch_address(),
            self.address,
            config,
            name=self.name,
            stream=stream,
            note=launches.append,
            fail=fail,
            context=context_of(gpu),
            parameters=parameters,
            programs_each=self.programs_each,
            at_a_time=self.programs_at_once() if self.programs_each > 1 else 0,
        )

    def frozen(
        self, codes: str, stream: Stream, grid: tuple[int, int, int], values: Sequence[Any]
    ) -> Callable[[], None]:
        """A function without arguments that queues the same launch each time."""
        started = grid
        if self.programs_each > 1:
            codes, values = codes + "q", (*values, grid[0])
            started = (self._blocks_along_x(*grid, self.programs_at_once()), *grid[1:])
        offsets, size = _parameter_offsets(codes)
        buffer = _Buffer(offsets, size, self.address, self._fixed())
        struct.pack_into(f"<{_padded(codes)}{_GRID}", buffer.memory, 0, *values, *started)
        arguments, keep = buffer.arguments, self
        call, fail = _launch_function(), self._failed
        noted, note = (self.name, *grid), launches.append

        def launch() -> None:
            note(noted)
            now = stream()
            if now != buffer.stream:
                buffer.go_to(now)
            status = call(*arguments)
            if status:
                fail(status, buffer)

        launch.kernel = keep  # type: ignore[attr-defined]
        return launch

    def _failed(self, status: int, buffer: _Buffer) -> None:
        """A launch was not taken: once more where the thread had no context, else say why."""
        if status == _INVALID_CONTEXT:
            current_device()
            status = _launch_function()(*buffer.arguments)
            if not status:
                return
        check((api().CUresult(status),), self.name)


def _parameter_offsets(codes: str) -> tuple[list[int], int]:
    """Where each parameter lies in a buffer, and the bytes of all."""
    offsets, at = [], 0
    for code in _split(codes):
        if code == "128s":
            at = -(-at // 64) * 64
        offsets.append(at)
        at += struct.calcsize("<" + code)
    return offsets, -(-at // 8) * 8


def _padded(codes: str) -> str:
    """The codes, with padding in front of tensor maps, which lie at multiples of 64 bytes."""
    parts, at = [], 0
    for code in _split(codes):
        if code == "128s" and at % 64:
            parts.append(f"{64 - at % 64}x")
            at += 64 - at % 64
        parts.append(code)
        at += struct.calcsize("<" + code)
    return "".join(parts)


def _split(codes: str) -> list[str]:
    """The codes of single parameters: "Qf4x128s" has three."""
    parts, digits = list[str](), ""
    for c in codes:
        if c.isdigit():
            digits += c
        elif c == "x":
            parts[-1] += digits + c
            digits = ""
        else:
            parts.append(digits + c)
            digits = ""
    return parts
