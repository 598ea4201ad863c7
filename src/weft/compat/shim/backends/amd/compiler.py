"""triton.backends.amd.compiler."""

from __future__ import annotations

from typing import Any

from weft.compiler import GPUTarget

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

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Is it an AMD GPU?"""
        return target.backend == "hip"

    def arch(self) -> str:
        """What the option `arch` is: gfx942."""
        return str(self.target.arch)
