"""OpenCL by pyopencl: a module of SPIR-V is built for a device, and runs on arrays of the host.

A device that reaches all memory of the host is given addresses of it, as the host's processor is; for others arrays
are copied into memory that they share with it (SVM), and back after the launch.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from weft.backends.own_folder import own_folder
from weft.base import LaunchError, NoDevice, OutOfResources, Unsupported, load
from weft.base.locks import renewed
from weft.ops import BY_LANGUAGE
from weft.ops.dtypes import SIGNATURE_DTYPES

from .failures import HEAD, raise_failure
from .module import WITHOUT_FLOAT64, Module

WANTED = "cl_intel_subgroups", "cl_intel_required_subgroup_size"
"""Without them a warp is no subgroup of 16."""
FLOAT64 = "cl_khr_fp64"
"""The extension of devices that compute with it."""
SYSTEM = 1 << 2
"""The bit of a device's SVM capabilities which says that it reaches all of the host's memory."""
ALIGNED = 128
"""Of a kernel's own memory."""
ICD = "libintelocl.so"
HINT = "pip install 'weft[opencl]'; for the processor of the host, intel-opencl-rt intel-cmplr-lib-rt tbb"


@lru_cache(maxsize=1)
def library() -> Any:
    """pyopencl, which finds the processor's device where that is installed as a wheel."""
    library = Path(sys.prefix) / "lib" / ICD
    if "OCL_ICD_VENDORS" not in os.environ and library.exists():
        folder = own_folder() / "icd"
        folder.mkdir(exist_ok=True)
        for other in Path("/etc/OpenCL/vendors").glob("*.icd"):
            (folder / other.name).write_text(other.read_text())
        (folder / "intel-cpu.icd").write_text(f"{library}\n")
        os.environ["OCL_ICD_VENDORS"] = str(folder)
    try:
        return load("pyopencl")
    except ImportError as error:
        raise NoDevice(f"pyopencl, by which OpenCL is reached, is not installed ({error})", hint=HINT) from None


@lru_cache(maxsize=1)
def _devices() -> tuple[Any, ...]:
    cl = library()
    try:
        return tuple(device for platform in cl.get_platforms() for device in platform.get_devices())
    except cl.LogicError:  # which is how the loader says that there is none
        return ()


def lacks(device: Any) -> list[str]:
    """What a device lacks that kernels need, in words."""
    has = device.extensions.split()
    missing = [name for name in WANTED if name not in has]
    return missing + ([] if "SPIR-V" in getattr(device, "il_version", "") else ["SPIR-V"])


@lru_cache(maxsize=1)
def chosen() -> tuple[Any, Any, Any]:
    """(device, context, queue): the first that has what is needed."""
    cl = library()
    devices = _devices()
    fit = [device for device in devices if not lacks(device)]
    if not fit:
        names = "; ".join(f"{device.name} lacks {', '.join(lacks(device))}" for device in devices) or "none at all"
        raise NoDevice(f"there is no OpenCL device that takes SPIR-V with subgroups ({names})", hint=HINT)
    context = cl.Context([fit[0]])
    return fit[0], context, cl.CommandQueue(context)


def found() -> str:
    """The devices, and which is taken."""
    try:
        devices = _devices()
    except NoDevice as error:
        return f"none: {error.message}"
    return "; ".join(f"{d.name}{', lacks ' + ', '.join(lacks(d)) if lacks(d) else ''}" for d in devices) or "none"


class Built:
    """A kernel that has been built for the device; functions that its module imports are those of
    `library_source`, OpenCL C."""

    def __init__(self, code: bytes, metadata: Mapping[str, Any], library_source: str = "") -> None:
        cl = library()
        self.device, self.context, self.queue = chosen()
        self.params, self.name = list(metadata["params"]), metadata["name"]
        self.threads, self.scratch = metadata["threads"], metadata["global_scratch_size"]
        self.messages = metadata.get("messages") or ()
        if metadata["shared"] > self.device.local_mem_size:
            raise OutOfResources(metadata["shared"], self.device.local_mem_size, "shared memory")
        if self.threads > self.device.max_work_group_size:
            raise OutOfResources(self.threads, self.device.max_work_group_size, "threads")
        if Module.of(code).needs_float64 and FLOAT64 not in self.device.extensions.split():
            raise Unsupported(f"float64, with which `{self.name}` computes,", self.device.name, hint=WITHOUT_FLOAT64)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of vectors, by the compiler; of pyopencl's own cache
                self.kernel = cl.Kernel(_program(self.context, code, library_source), self.name)
        except cl.Error as error:
            raise LaunchError(f"{self.device.name} does not build `{self.name}`: {error}") from None
        self.reaches_all = bool(self.device.svm_capabilities & SYSTEM)
        self.lock = renewed(threading.Lock())  # a kernel has its arguments until it is queued

    def run(self, sizes: tuple[int, int, int], values: Sequence[Any]) -> None:
        """Run over a grid on arrays and numbers, to the end."""
        arrays = [v for k, v in zip(self.params, values, strict=True) if k[0] == "*"]
        scratch = np.empty(self.scratch * sizes[0] * sizes[1] * sizes[2] + ALIGNED, np.uint8)
        record = np.zeros(HEAD.size, np.uint8)
        memory = (_Reached if self.reaches_all else _Copied)(self, [*arrays, scratch, record])
        given = [memory.pointer(v) if k[0] == "*" else _number(k, v) for k, v in zip(self.params, values, strict=True)]
        if self.scratch:
            given.append(memory.pointer(scratch, ALIGNED))
        if self.messages:
            given.append(memory.pointer(record))
        grid = sizes[0] * self.threads, sizes[1], sizes[2]
        cl = library()
        try:
            with self.lock:
                for i, value in enumerate(given):
                    self.kernel.set_arg(i, value)
                done = cl.enqueue_nd_range_kernel(self.queue, self.kernel, grid, (self.threads, 1, 1))
            done.wait()
        except cl.Error as error:
            raise LaunchError(f"{self.device.name} does not run `{self.name}`: {error}") from None
        memory.back()
        raise_failure(record.tobytes(), self.messages, self.name)


def _program(context: Any, code: bytes, library_source: str) -> Any:
    """A module, built; linked with OpenCL C that defines what it imports, where there is some."""
    cl = library()
    module = cl.Program(context, code)
    if not library_source:
        return module.build()
    plain = cl.Program(context, library_source).compile()
    return cl.link_program(context, [module.compile(), plain])


def _number(kind: str, value: Any) -> Any:
    """A number as the kernel's parameter has it: what is no type of C's goes by its bits."""
    if kind in ("u1", "i1"):
        return np.uint8(bool(value))
    elem = BY_LANGUAGE[kind]
    if not elem.is_float:
        bits = int(value) & (1 << elem.bits) - 1
        return np.uint64(bits).astype(f"u{elem.bits // 8}")
    with np.errstate(over="ignore"):
        number = np.array(value, np.float64).astype(SIGNATURE_DTYPES[kind])
    return number[()] if elem.bits >= 32 else number.view(f"u{elem.bits // 8}")[()]


class _Reached:
    """Arrays of the host where they are."""

    def __init__(self, built: Built, arrays: Sequence[Any]) -> None:
        self.pointers: list[Any] = []

    def pointer(self, array: Any, aligned: int = 1) -> Any:
        """What an argument is given for the address of an array's first element."""
        address = -(-array.ctypes.data // aligned) * aligned
        return library().SVM((ctypes.c_ubyte * 1).from_address(address))

    def back(self) -> None:
        """They are where they were."""


class _Copied:
    """Arrays of the host as copies in memory that the device reaches; those that overlap are in one."""

    def __init__(self, built: Built, arrays: Sequence[Any]) -> None:
        cl, self.queue = library(), built.queue
        spans = sorted(np.lib.array_utils.byte_bounds(array) for array in arrays if array.size)
        joined: list[tuple[int, int]] = []
        for low, high in spans:
            if joined and low < joined[-1][1]:
                joined[-1] = joined[-1][0], max(high, joined[-1][1])
            else:
                joined.append((low, high))
        self.parts: list[tuple[int, int, Any, Any]] = []
        for low, high in joined:
            host = np.ctypeslib.as_array((ctypes.c_ubyte * (high - low)).from_address(low))
            there = cl.SVMAllocation(built.context, high - low, ALIGNED, cl.svm_mem_flags.READ_WRITE)
            cl.enqueue_copy(self.queue, there, host)
            self.parts.append((low, high, host, there))

    def pointer(self, array: Any, aligned: int = 1) -> Any:
        """The same as that of `_Reached`, of the copy."""
        address = array.ctypes.data
        for low, high, _, there in self.parts:
            if low <= address < high:
                place = -(-(there.svm_ptr + address - low) // aligned) * aligned
                return library().SVM((ctypes.c_ubyte * 1).from_address(place))
        return None

    def back(self) -> None:
        """Copy all of it back."""
        for _, _, host, there in self.parts:
            library().enqueue_copy(self.queue, host, there)
        self.queue.finish()
