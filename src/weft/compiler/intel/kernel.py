"""Kernels for Intel's GPUs: modules of SPIR-V.

kernel.asm["spirv"], kernel.metadata.extensions
kernel.n_regs, kernel.n_spills, kernel.n_max_threads        # of the GPU that is here, whose driver compiles it
"""

from __future__ import annotations

from typing import Any

from ..gpu_kernels import GPUKernel


class SpirvKernel(GPUKernel):
    """A kernel whose device compiles it, when it is first launched."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kernel = self.asm["spirv"]


class XpuKernel(SpirvKernel):
    """One that Level Zero launches."""

    @property
    def n_regs(self) -> int:
        """Registers of a thread of the hardware."""
        return int(self.load().registers)

    @property
    def n_spills(self) -> int:
        """Bytes that a thread of the hardware spills."""
        return int(self.load().spills)

    @property
    def n_max_threads(self) -> int:
        """The largest number of threads a block may have."""
        return int(self.load().max_threads)
