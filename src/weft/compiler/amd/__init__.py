"""AMD's back end (see `compiler/backends.py`): LLVM IR to a code object, ROCm's driver.

What makes code is imported when the first kernel has to be compiled, and is at work in another process: where LLVM
finds no instruction, it ends the one that it is in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.base import CompileOptions, LaunchTypeError, load
from weft.machines import Machine

from ..backends import OfVendor
from . import driver
from .kernel import HipKernel

if TYPE_CHECKING:
    from weft.ir.lane import LaneProgram

__all__ = ["BACKEND"]

SMALL = (1 << 31) - (1 << 17)
"""Bytes of the largest arrays that are reached through buffer descriptors from any place within them (see `BIAS` of
`ir/amd/amdg.py`): 2 GiB, but for the distances that are kept free."""
MOST_WARPS = 20
"""That fit on a SIMD of any processor."""


HINTS = {"matrix_instr_nonkdim": (0, 4, 16, 32), "kpack": (1, 2)}
"""Options of Triton's that choose among instructions, with their values; 0, 4 and 1 change nothing."""
FOLLOWED = (("matrix_instr_nonkdim", 16), ("matrix_instr_nonkdim", 32), ("kpack", 2))


class _AMD(OfVendor):
    vendor = "amd"
    texts: tuple[str, ...] = ("llir",)
    binary = "hsaco"
    shown, codes = ("llir", "amdgcn"), ("hsaco",)
    in_worker = True
    small_arrays = SMALL
    driver = driver
    kernel = HipKernel

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Whether all programs are to run at once, so that they may wait for each other, and how many warps are to fit
        on a SIMD. `launch_pdl`, which lets a kernel begin before the one in front of it has ended, changes nothing
        here."""
        together = options.get("launch_cooperative_grid")
        if together not in (None, False, True):
            text = f"launch_cooperative_grid must be True or False, got {together!r}"
            raise LaunchTypeError(text, "launch_cooperative_grid")
        warps = options.get("waves_per_eu") or 0
        if type(warps) is not int or not 0 <= warps <= MOST_WARPS:
            text = f"waves_per_eu must be a number of warps from 0 (any) to {MOST_WARPS}, got {warps!r}"
            raise LaunchTypeError(text, "waves_per_eu")
        for name, allowed in HINTS.items():
            if options.get(name) not in (None, *allowed):
                text = f"{name} must be one of {', '.join(map(str, allowed))}, got {options[name]!r}"
                raise LaunchTypeError(text, name)
        return {
            **({"launch_cooperative_grid": True} if together else {}),
            **({"waves_per_eu": warps} if warps else {}),
            **{name: value for name, value in FOLLOWED if options.get(name) == value},
        }

    def begin(self, machine: Machine) -> None:
        amd = load("weft.backends.amd")
        amd.begin(amd.processor_of(machine))

    def make(
        self, program: LaneProgram, language: CompileOptions, options: Mapping[str, Any], timings: dict[str, float]
    ) -> tuple[dict[str, Any], dict[str, str | bytes]]:
        result: tuple[dict[str, Any], dict[str, str | bytes]] = load("weft.compiler.amd.make").make(
            program, language, options.get("maxnreg"), options.get("waves_per_eu") or 0, timings
        )
        return result


BACKEND = _AMD()
