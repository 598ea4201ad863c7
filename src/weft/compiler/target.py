"""Which machine to compile for.

as_target("cpu")        the processor this runs on
as_target("cuda:90")    GPUTarget("cuda", 90, 32)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from weft import machines
from weft.backends.cpu.driver import get_num_threads, host_cpu, set_num_threads, set_scratch_limit
from weft.base import Unsupported

__all__ = [
    "TARGETS",
    "SIMULATED",
    "GPUTarget",
    "as_target",
    "get_num_threads",
    "host_cpu",
    "set_num_threads",
    "set_scratch_limit",
    "target_of_arch",
]

CAPABILITIES = (80, 86, 89, 90)
"""Compute capabilities of NVIDIA GPUs, times ten, that are compiled for."""

TARGETS = ("cpu", *(f"cuda:{n}" for n in CAPABILITIES))
"""The targets that exist."""

SIMULATED = ("sim:cuda:80", "sim:cuda:90")
"""The simulated targets that exist: for launches only."""


WARP_SIZE = 32
"""Of every target, in Triton's terms. The CPU runs a program on one thread, and has no warps: programs that divide a
number of threads by this for `num_warps` get one that is allowed."""


@dataclass(frozen=True)
class GPUTarget:
    """A target in Triton's terms; on the CPU `arch` is LLVM's name of the processor."""

    backend: str
    arch: int | str
    warp_size: int

    @property
    def machine(self) -> machines.Machine:
        """What the compiler knows of a GPU."""
        return machines.machine_of(str(self))

    def __str__(self) -> str:
        return self.backend if self.backend == "cpu" else f"{self.backend}:{self.arch}"


def _nearest(number: int) -> str:
    """Which of the targets a GPU of another capability can run, in words.

    Code for 90 is for that processor alone; that for the others runs on everything newer.
    """
    below = [n for n in CAPABILITIES if n < number and n != 90]
    if not below:
        return f"a GPU of capability {number} is older than all that are compiled for: use cpu, or sim:cuda:80; "
    return f"the nearest that a GPU of capability {number} runs is cuda:{max(below)}; "


def _hint(backend: str, arch: str) -> str:
    """Which targets there are; first the one that was meant, where that can be told (sm_90, cuda:90b, sim:cuda:86)."""
    digits = "".join(re.findall(r"\d+", arch or backend)[:1])
    number = int(digits) if digits and re.match(r"(sim:)?(cuda|sm_|\d)", f"{backend}:{arch}") else 0
    nearest = ""
    if number:
        near = f"did you mean cuda:{number}? " if number in CAPABILITIES else _nearest(number)
        nearest = near if backend != "sim" else f"the nearest is sim:cuda:{90 if number >= 90 else 80}; "
    return f"{nearest}targets that exist: {', '.join((*TARGETS, *SIMULATED))}; " + (
        "set WEFT_TARGET or use `with weft.target(...)`"
    )


def as_target(target: Any = None) -> GPUTarget:
    """Turn a name, a triple (backend, arch, warp size) or nothing into a target that exists."""
    if target is None or target == "cpu":
        return GPUTarget("cpu", host_cpu().name, WARP_SIZE)
    if isinstance(target, str):
        backend, _, arch = target.partition(":")
    else:
        backend, arch = str(getattr(target, "backend", target)), str(getattr(target, "arch", ""))
    number = arch.removesuffix("a")
    if backend == "cuda" and number.isdigit() and int(number) in CAPABILITIES:
        return GPUTarget("cuda", int(number), 32)
    if backend != "cpu":
        raise Unsupported("compiling", f"{backend}:{arch}" if arch else backend, hint=_hint(backend, arch))
    if arch and arch != host_cpu().name:
        raise Unsupported("compiling for another processor than this one", f"cpu:{arch}", works_on=["cpu"])
    return GPUTarget("cpu", host_cpu().name, WARP_SIZE)


def target_of_arch(arch: Any) -> GPUTarget:
    """The target that the option `arch` means: "sm80", "sm_90a", 80. Unsupported where there is none."""
    return as_target(f"cuda:{str(arch).removeprefix('sm').removeprefix('_')}")
