"""Kernels for AMD's GPUs: their code objects, and the assembly of those, which is made when somebody asks for it.

kernel.asm["hsaco"], kernel.asm["amdgcn"], kernel.n_regs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.base import load
from weft.machines import machine_of

from ..gpu_kernels import GPUKernel


class HipKernel(GPUKernel):
    """A kernel compiled for an AMD GPU; loaded when it is launched."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        llir, machine = self.asm["llir"], machine_of(str(self.metadata.target))
        self.asm.add("amdgcn", lambda: assembly_of(llir, machine))
        self.kernel = self.asm["hsaco"]

    @property
    def taken(self) -> Mapping[str, Any]:
        """What its code takes of the processor: `backends.amd.Facts`, by name."""
        taken: Mapping[str, Any] = self.metadata.taken
        return taken

    @property
    def n_regs(self) -> int:
        """Vector registers of a thread, those of products among them."""
        return int(self.taken["registers"])

    @property
    def n_spills(self) -> int:
        """Vector registers that a thread spills."""
        return int(self.taken["spills"])

    @property
    def n_max_threads(self) -> int:
        """The largest number of threads a block may have."""
        return int(self.taken["threads"])


def assembly_of(llir: str, machine: Any) -> str:
    """What the code object has, as text."""
    amd = load("weft.backends.amd")
    text: str = amd.assembly(llir, amd.processor_of(machine))
    return text
