"""Kernels for Intel's GPUs: modules of SPIR-V.

kernel.asm["spirv"], kernel.metadata.extensions
"""

from __future__ import annotations

from typing import Any

from ..gpu_kernels import GPUKernel


class SpirvKernel(GPUKernel):
    """A kernel compiled for an Intel GPU; loaded when it is launched, when the driver compiles it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kernel = self.asm["spirv"]
