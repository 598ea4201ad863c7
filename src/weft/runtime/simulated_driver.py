"""A simulated GPU, as code written for Triton asks for the device: arrays are the host's, kernels are for the GPU."""

from __future__ import annotations

from typing import Any

from weft import compiler
from weft.machines import part

from .compiling import current_target
from .drivers import CPUDriver


def _target() -> Any:
    return compiler.as_target(current_target().removeprefix("sim:"))


class _Utils:
    """Facts about the GPU that is simulated."""

    load_binary = staticmethod(CPUDriver.utils.load_binary)

    @staticmethod
    def get_device_properties(device: Any = 0) -> dict[str, Any]:
        """What libraries size their grids and blocks by; memory per block in bytes. There are no clocks."""
        machine = _target().machine
        return {
            **CPUDriver.utils.get_device_properties(device),
            "max_shared_mem": machine.shared_bytes,
            "multiprocessor_count": machine.multiprocessors,
            "warpSize": machine.lanes,
        }


class _Interface:
    """The simulated GPU in the interface of torch.cuda; what is not here is the CPU's."""

    @staticmethod
    def get_device_capability(device: Any = None) -> tuple[int, int]:
        """(9, 0) for sim:cuda:90, (9, 4) for sim:hip:gfx942."""
        machine = _target().machine
        capability_of = getattr(part("machines", machine), "capability_of", lambda generation: divmod(generation, 10))
        capability: tuple[int, int] = capability_of(machine.generation)
        return capability

    def __getattr__(self, name: str) -> Any:
        return getattr(CPUDriver.get_device_interface(), name)


class SimulatedDriver(CPUDriver):
    """The GPU of the target that simulated launches are for.

    >>> from weft.runtime import target
    >>> from weft.runtime import driver
    >>> with target("sim:cuda:80"):
    ...     driver.active.get_current_target().arch, driver.active.get_current_target().warp_size
    (80, 32)
    """

    utils: Any = _Utils()

    @staticmethod
    def get_current_target() -> Any:
        """GPUTarget("cuda", 90, 32) for sim:cuda:90."""
        return _target()

    @staticmethod
    def get_device_interface() -> Any:
        """The device in the interface of torch.cuda."""
        return _Interface()

    def __repr__(self) -> str:
        return f"SimulatedDriver({current_target()})"
