"""The back end of OpenCL devices: the same SPIR-V, built and launched by OpenCL (`backends/intel/opencl.py`)."""

from __future__ import annotations

from typing import Any, ClassVar

from weft.base import NoDevice, load

from . import _Intel
from .kernel import SpirvKernel

__all__ = ["BACKEND"]


class _Driver:
    """What is asked of all vendors' drivers. Arrays are the host's, and launches are made by the kernel itself."""

    memory_kinds = ("opencl",)
    ADVICE: ClassVar = {"OpenCL": "pip install 'weft[opencl]' intel-opencl-rt: OpenCL on x86 processors"}

    def available(self) -> bool:
        """Nothing is launched on an OpenCL device that did not ask for it."""
        return False

    installed = in_use = available

    def gpu_of_address(self, address: int) -> int | None:
        """No address is one of a device's."""
        return None

    def found(self) -> dict[str, str]:
        """The devices, in words."""
        return {"OpenCL": str(load("weft.backends.intel.opencl").found())}

    def __getattr__(self, name: str) -> Any:
        raise NoDevice(f"an OpenCL device has no `{name}` of its own", hint="launch with arrays of the host")


class OpenCLKernel(SpirvKernel):
    """A kernel for an OpenCL device, which builds it when it is first launched."""

    _built: Any = None

    def run_on_host(self, sizes: tuple[int, int, int], values: list[Any]) -> None:
        """Run over a grid, on arrays of the host, to the end."""
        if self._built is None:
            self._built = load("weft.backends.intel.opencl").Built(self.asm["spirv"], self.metadata._asdict())
        self._built.run(sizes, values)


class _OpenCL(_Intel):
    vendor = "opencl"
    driver: Any = _Driver()
    kernel = OpenCLKernel


BACKEND = _OpenCL()
