"""triton.backends.amd.compiler."""

from __future__ import annotations

from typing import Any

from weft.compiler import GPUTarget
from weft.runtime.compiling import small_arrays
from weft.runtime.extents import is_within

from ..compiler import GPUBackend

_OF_LAUNCHES: dict[str, Any] = {
    "waves_per_eu": 0,
    "launch_cooperative_grid": False,
    "matrix_instr_nonkdim": 0,
    "kpack": 1,
    "allow_flush_denorm": False,
    "instrumentation_mode": "",
    "schedule_hint": "none",
}
"""Options that Triton has for AMD GPUs besides the language's: tools tell them from parameters by these names."""


class HIPBackend(GPUBackend):
    """AMD GPUs, as tools written for Triton ask for them."""

    binary_ext = "hsaco"
    name = "hip"
    launch_options = _OF_LAUNCHES
    supports_native_tensor_specialization = False

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Is it an AMD GPU?"""
        return target.backend == "hip"

    @staticmethod
    def is_within_2gb(arg: Any) -> bool:
        """Whether kernels are compiled for an array as for a small one."""
        return is_within(arg, small_arrays("hip:gfx942"))

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """The attributes that the letters of a specialisation key stand for."""
        return GPUBackend.parse_attr(desc) + ([["tt.pointer_range", 32]] if "S" in desc else [])

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        """The key of an array."""
        return GPUBackend.get_tensor_specialization(arg, **kwargs) + "S" * HIPBackend.is_within_2gb(arg)

    def arch(self) -> str:
        """What the option `arch` is: gfx942."""
        return str(self.target.arch)
