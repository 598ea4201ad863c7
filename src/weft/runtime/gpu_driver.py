"""GPUs as code written for Triton asks for them: `driver.active`, where launches go to a GPU (see `drivers`).

What differs between vendors is asked of their `Driver` (`compiler/backends.py`).
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

from weft import compiler
from weft.base import LaunchError
from weft.compiler import GPUTarget
from weft.compiler.devices import vendor_of

from . import gpu_arrays
from .clock import GPUClock, current_stream
from .compiling import choose_by_arrays, current_target
from .device import devices
from .drivers import CPUDriver
from .streams import may_use_gpu, torch_gpus


class _Interface:
    """The GPUs in the interface of torch.cuda, where PyTorch is not there or cannot use them."""

    @property
    def Event(self) -> Any:
        """The class of points in time."""
        return devices.event

    @staticmethod
    def synchronize(device: int | None = None) -> None:
        """Wait for all that was queued on a GPU."""
        gpu_arrays.synchronize(device)

    @staticmethod
    def current_device() -> int:
        """The number of this thread's GPU."""
        return devices.current_device().index

    @staticmethod
    def set_device(device: int) -> None:
        """Make a GPU that of this thread."""
        devices.device(device).make_current()

    @staticmethod
    def device_count() -> int:
        """How many there are."""
        return gpu_arrays.device_count()

    @staticmethod
    def is_available() -> bool:
        """Whether there is one."""
        return devices.available()

    @staticmethod
    def get_device_capability(device: int | None = None) -> tuple[int, int]:
        """Compute capability: (9, 0)."""
        gpu = devices.current_device() if device is None else devices.device(device)
        return gpu.major, gpu.minor


class _Utils:
    """Facts about a GPU."""

    @staticmethod
    def get_device_properties(device: int | None = 0) -> dict[str, Any]:
        """What libraries size their grids and blocks by; clocks in kHz, memory per block in bytes."""
        gpu = devices.current_device() if device is None else devices.device(device)
        return {
            "max_shared_mem": gpu.shared_bytes,
            "max_num_regs": gpu.registers,
            "multiprocessor_count": gpu.multiprocessors,
            "warpSize": compiler.as_target(gpu.target).warp_size,
            "sm_clock_rate": gpu.clock_khz,
            "mem_clock_rate": gpu.memory_clock_khz,
            "mem_bus_width": gpu.bus_bits,
        }

    @staticmethod
    def load_binary(name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Load machine code: (library, kernel, registers, spilled bytes, the most threads of a block)."""
        with devices.entered(devices.device(device)):
            loaded = devices.load(kernel, {"name": name, "shared": shared, "num_warps": 1})
        return loaded, loaded.address, loaded.registers, loaded.local_bytes, loaded.max_threads


class GPUDriver(CPUDriver):
    """The GPU of this thread."""

    utils = _Utils()

    @staticmethod
    def is_active() -> bool:
        """Whether launches go to a GPU when no array says otherwise."""
        if not choose_by_arrays():
            return compiler.is_gpu(current_target()) and devices.available()
        if not may_use_gpu():
            return False
        if torch_gpus() is not None:
            # PyTorch's answer holds also in a process that was forked from one that uses the GPU, as those that it
            # compiles kernels in are; there the driver answers no questions.
            return devices.installed()
        return ("cupy" in sys.modules or devices.in_use()) and devices.available()

    @staticmethod
    def get_current_target() -> GPUTarget:
        """GPUTarget("cuda", 90, 32): what a launch on this thread's GPU is compiled for."""
        target = current_target()
        return compiler.as_target(target if compiler.is_gpu(target) else devices.current_device().target)

    @staticmethod
    def get_current_device() -> int:
        """The number of this thread's GPU."""
        return devices.current_device().index

    @staticmethod
    def set_current_device(device: int) -> None:
        """Make a GPU that of this thread, PyTorch's too."""
        gpus = torch_gpus()
        if gpus is not None:
            gpus.set_device(device)
        devices.device(device).make_current()

    @staticmethod
    def get_current_stream(device: int | None = None) -> int:
        """The handle of the stream that launches go to."""
        return current_stream(devices.current_device().index if device is None else device)

    @staticmethod
    def get_active_torch_device() -> Any:
        """torch.device("cuda", number of this thread's GPU). LaunchError where PyTorch cannot use it."""
        import torch

        if torch_gpus() is None:
            raise LaunchError(
                f"PyTorch {torch.__version__} cannot use the GPU",
                hint="install a PyTorch for it, or use weft.cuda.to_device(...)",
            )
        return torch.device(devices.memory_kinds[0], devices.current_device().index)

    @staticmethod
    def get_device_interface() -> Any:
        """torch.cuda, or the same interface where PyTorch cannot use the GPU."""
        return torch_gpus() or _Interface()

    @staticmethod
    def get_empty_cache_for_benchmark() -> Any:
        """Memory larger than the L2 cache, for clear_cache."""
        return gpu_arrays.empty(max(256 << 20, 2 * devices.current_device().l2_bytes), "u1")

    @staticmethod
    def clear_cache(cache: Any = None) -> None:
        """Queue that what is in the L2 cache is overwritten."""
        if cache is None:
            GPUClock().clear_cache()
        else:
            cache.zero_()

    def __repr__(self) -> str:
        return f"GPUDriver({devices.current_device().name})"


@lru_cache(maxsize=8)
def of_vendor(vendor: str) -> type[GPUDriver]:
    """The driver of one vendor's GPUs alone: Triton has one for each."""

    def is_active() -> bool:
        return GPUDriver.is_active() and vendor_of(devices.driver()) == vendor

    return type("GPUDriver", (GPUDriver,), {"is_active": staticmethod(is_active)})
