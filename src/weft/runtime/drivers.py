"""The device, as code written for Triton asks for it: `driver.active.get_current_target()` and so on.

It is the GPU where launches are meant for one (`WEFT_TARGET`, `with weft.target(...)`), a simulated one too, or, where
none is said, as soon as a library with arrays on a GPU is loaded (PyTorch with CUDA, CuPy) or this thread has used a
GPU; else the CPU.

>>> driver.active.get_current_target().backend
'cpu'
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

from weft import compiler
from weft.base import Unsupported, load

from . import testing
from .compiling import current_target
from .streams import may_use_gpu


class _Event:
    """A point in time, in the interface of torch.cuda.Event."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        """Now."""
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """Nothing is ever pending."""

    def elapsed_time(self, end: _Event) -> float:
        """Milliseconds from this to another."""
        return 1e3 * (end._time - self._time)


class _DeviceInterface:
    """The CPU in the interface of torch.cuda."""

    Event = _Event

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Launches have finished when they return."""

    @staticmethod
    def current_device() -> int:
        """The only one."""
        return 0

    @staticmethod
    def device_count() -> int:
        """One."""
        return 1

    @staticmethod
    def is_available() -> bool:
        """Always."""
        return True


class _Utils:
    """Facts about the device."""

    @staticmethod
    def get_device_properties(device: Any = 0) -> dict[str, Any]:
        """What libraries size their grids and blocks by; a core counts as a multiprocessor, its L2 as shared memory."""
        from_backend = compiler.host_cpu()
        return {
            "max_shared_mem": from_backend.l2_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": from_backend.cores,
            "warpSize": compiler.as_target("cpu").warp_size,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    @staticmethod
    def load_binary(name: str, kernel: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Loading is the compiled kernel's own affair."""
        raise Unsupported("loading a bare binary", "cpu", hint="use CompiledKernel, which loads itself")


def cpp_type(name: str) -> str:
    """The C type of a type in a signature."""
    if name.startswith("*"):
        return "void*"
    types = {"i1": "int8_t", "u1": "uint8_t", "fp16": "float", "bf16": "float", "fp32": "float", "fp64": "double"}
    return types.get(name) or f"{'u' if name.startswith('u') else ''}int{name[1:]}_t"


class CPUDriver:
    """The CPU, which is always there."""

    utils: Any = _Utils()

    @staticmethod
    def is_active() -> bool:
        """Always."""
        return True

    @staticmethod
    def get_current_target() -> Any:
        """GPUTarget("cpu", name of the processor, 32)."""
        return compiler.as_target()

    @staticmethod
    def get_current_device() -> int:
        """The only one."""
        return 0

    @staticmethod
    def set_current_device(device: Any) -> None:
        """There is nothing to choose."""

    @staticmethod
    def get_current_stream(device: Any = None) -> int:
        """There are no streams."""
        return 0

    @staticmethod
    def get_active_torch_device() -> Any:
        """torch.device("cpu")."""
        import torch

        return torch.device("cpu")

    @staticmethod
    def get_device_interface() -> Any:
        """The device in the interface of torch.cuda."""
        return _DeviceInterface

    @staticmethod
    def get_benchmarker() -> Callable[..., Any]:
        """What autotuning measures with."""
        return testing.do_bench

    @staticmethod
    def get_empty_cache_for_benchmark() -> Any:
        """What clear_cache clears."""
        return None

    @staticmethod
    def clear_cache(cache: Any = None) -> None:
        """Push everything out of the caches."""
        testing.clear_cache()

    map_python_to_cpp_type = staticmethod(cpp_type)

    def __repr__(self) -> str:
        return f"CPUDriver({platform.machine()})"


class DriverConfig:
    """Which driver is used; `driver.active` is the one."""

    def __init__(self) -> None:
        self._cpu = CPUDriver()
        self._simulated: Any = None
        self._gpu: Any = None
        self._active: Any = None

    @property
    def default(self) -> Any:
        """The driver of what launches are meant for now."""
        if current_target() in compiler.SIMULATED:
            if self._simulated is None:
                self._simulated = load("weft.runtime.simulated_driver").SimulatedDriver()
            return self._simulated
        if self._gpu is None and (may_use_gpu() or compiler.is_gpu(current_target())):
            self._gpu = load("weft.runtime.gpu_driver").GPUDriver()
        return self._gpu if self._gpu is not None and self._gpu.is_active() else self._cpu

    @property
    def active(self) -> Any:
        """The driver that is used."""
        return self._active if self._active is not None else self.default

    def set_active(self, driver: Any) -> None:
        """Use another; launches still run on the target they are compiled for."""
        self._active = driver

    def reset_active(self) -> None:
        """Use the machine's."""
        self._active = None


driver = DriverConfig()
