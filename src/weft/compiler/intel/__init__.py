"""Intel's back end (see `compiler/backends.py`): LLVM IR to SPIR-V, which the GPU's driver compiles.

What makes code is imported when the first kernel has to be compiled, and is at work in another process: where LLVM
finds no instruction, it ends the one that it is in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.base import CompileOptions, LaunchTypeError, load
from weft.machines import Machine
from weft.machines.intel import WITHOUT_BLOCKS

from ..backends import OfVendor
from . import driver
from .kernel import SpirvKernel, XpuKernel

if TYPE_CHECKING:
    from weft.ir.lane import LaneProgram

__all__ = ["BACKEND"]

GRF_MODES = "default", "128", "256", "auto"
"""128 registers, 256, or as the driver's compiler chooses; by default 128, and 256 where those are too few."""


class _Intel(OfVendor):
    vendor = "intel"
    texts: tuple[str, ...] = ("llir",)
    binary = "spirv"
    shown, codes = ("llir",), ("spirv",)
    in_worker = True
    driver = driver
    kernel: type[SpirvKernel] = XpuKernel

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """`imported_products`: products are calls of functions that a module imports, as older compilers know them.
        `grf_mode`: how many registers a thread of the hardware has, by the names of Triton's Intel back end."""
        imported, mode = options.get("imported_products"), options.get("grf_mode") or "default"
        if imported not in (None, False, True):
            raise LaunchTypeError(f"imported_products must be True or False, got {imported!r}", "imported_products")
        if mode not in GRF_MODES:
            raise LaunchTypeError(f"grf_mode must be one of {', '.join(GRF_MODES)}, got {mode!r}", "grf_mode")
        return {
            **({"imported_products": True} if imported else {}),
            **({"grf_mode": mode} if mode != "default" else {}),
        }

    def begin(self, machine: Machine) -> None:
        load("weft.backends.intel").begin()

    def tell(self, module: Any, options: Mapping[str, Any]) -> None:
        """Compilers that know products by imported functions alone know no 2D blocks of memory."""
        if options.get("imported_products"):
            module.attributes[WITHOUT_BLOCKS] = load("weft.ir").unit_attr()

    def make(
        self, program: LaneProgram, language: CompileOptions, options: Mapping[str, Any], timings: dict[str, float]
    ) -> tuple[dict[str, Any], dict[str, str | bytes]]:
        result: tuple[dict[str, Any], dict[str, str | bytes]] = load("weft.compiler.intel.make").make(
            program, language, options, timings
        )
        return result


BACKEND = _Intel()
