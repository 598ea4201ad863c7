"""NVIDIA's back end (see `compiler/backends.py`): LLVM IR to PTX, machine code by ptxas, the CUDA driver.

What makes code is imported when the first kernel has to be compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.backends.nvidia import begin, ptx_target
from weft.backends.nvidia.loaded_kernel import LoadedKernel
from weft.base import CompileOptions, LaunchTypeError, load
from weft.machines import Machine

from ..backends import OfVendor
from . import driver
from .kernel import CudaKernel

if TYPE_CHECKING:
    from weft.ir.lane import LaneProgram

__all__ = ["BACKEND"]

LAUNCH_OPTIONS = ("launch_cooperative_grid", "launch_pdl")
"""Options of the launch: all programs at once, so that they may wait for each other; and programmatic dependent launch,
before the kernel that is in front in the stream has ended."""
MADE_TENSORS = "made_tensors"
"""Whether loads through pointers may become bulk copies, of tensors that a launch makes of several arguments."""


class _Nvidia(OfVendor):
    vendor = "nvidia"
    texts: tuple[str, ...] = ("llir", "ptx")
    binary, in_worker = "", False
    shown, codes = texts, ("cubin", "sass")
    driver = driver
    kernel = CudaKernel

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those of LAUNCH_OPTIONS that are on, and MADE_TENSORS if it is off. LaunchTypeError where one is neither."""
        for name in (*LAUNCH_OPTIONS, MADE_TENSORS):
            if options.get(name) not in (None, False, True):
                raise LaunchTypeError(f"{name} must be True or False, got {options[name]!r}", name)
        off = {MADE_TENSORS: False} if options.get(MADE_TENSORS) is False else {}
        return {**{name: True for name in LAUNCH_OPTIONS if options.get(name)}, **off}

    def begin(self, machine: Machine) -> None:
        begin(ptx_target(machine))

    def make(
        self, program: LaneProgram, language: CompileOptions, options: Mapping[str, Any], timings: dict[str, float]
    ) -> tuple[dict[str, Any], dict[str, str | bytes]]:
        result: tuple[dict[str, Any], dict[str, str | bytes]] = load("weft.compiler.nvidia.make").make(
            program, language, options.get("maxnreg"), timings
        )
        return result

    def tool(self, name: str) -> Any:
        return load("weft.backends.nvidia.ptxas").find_tool(name)

    def load(self, kernel: Any) -> LoadedKernel:
        loaded: LoadedKernel = kernel.in_memory()
        return loaded


BACKEND = _Nvidia()
