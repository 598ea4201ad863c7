"""Which machine to compile for.

as_target("cpu")        the processor this runs on
as_target("cpu:apple-m1")   GPUTarget("cpu", "apple-m1", 32), for machines of that kind
as_target("cuda:90")    GPUTarget("cuda", 90, 32)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft import machines
from weft.backends.cpu.driver import get_num_threads, host_cpu, set_native_store, set_num_threads, set_scratch_limit
from weft.base import Unsupported, load
from weft.machines.vendors import after_joining, vendors_with

__all__ = [
    "TARGETS",
    "HOSTED",
    "SIMULATED",
    "GPUTarget",
    "as_target",
    "get_num_threads",
    "host_cpu",
    "is_gpu",
    "set_native_store",
    "set_num_threads",
    "set_scratch_limit",
    "target_of_arch",
]

if TYPE_CHECKING:
    TARGETS: tuple[str, ...]
    SIMULATED: tuple[str, ...]
    HOSTED: tuple[str, ...]


def __getattr__(name: str) -> Any:
    """TARGETS, SIMULATED and HOSTED: the targets that exist, those that are simulated, for launches only, and those
    whose launches take arrays of the host.

    The rows of machines say them, which are loaded when somebody asks.
    """
    if name not in ("TARGETS", "SIMULATED", "HOSTED"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    vendors = set(vendors_with("compiler"))
    compiled = {m.name: m for m in machines.MACHINES.values() if m.vendor in vendors}
    hosted = tuple(name for name, machine in compiled.items() if machine.hosted)
    globals().update(TARGETS=("cpu", *compiled), SIMULATED=tuple(f"sim:{n}" for n in compiled), HOSTED=hosted)
    return globals()[name]


def _forget(vendor: str) -> None:
    """A vendor has joined: there are more, here and where the face keeps them."""
    for name in ("TARGETS", "SIMULATED", "HOSTED"):
        globals().pop(name, None)
        vars(sys.modules[__package__]).pop(name, None)


after_joining.append(_forget)

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
        return self.backend if self.backend == "cpu" or self.arch == "" else f"{self.backend}:{self.arch}"


def is_gpu(target: str) -> bool:
    """Whether launches for a target go to a GPU, neither to the CPU nor to the simulator."""
    return target.partition(":")[0] not in ("cpu", "sim")


def _nearest(number: int, vendor: str) -> str:
    """Which of the targets a GPU of another capability runs, in words."""
    below = machines.closest(vendor, number)
    if below is None:
        simulated = f"sim:{machines.DEFAULT.name}"
        return f"a GPU of capability {number} is older than all that are compiled for: use cpu, or {simulated}; "
    return f"the nearest that a GPU of capability {number} runs is {below.name}; "


def _hint(backend: str, arch: str) -> str:
    """Which targets there are; first the one that was meant, where that can be told (sm_90, cuda:90b, sim:cuda:88,
    cuda:gfx942)."""
    targets, simulated = __getattr__("TARGETS"), __getattr__("SIMULATED")
    if f"{backend}:{arch}" in simulated:  # launches can be for it; what is compiled, or described, is the GPU
        return f"the simulator runs what is compiled for {arch}: use {arch} here"
    vendor, number = load("weft.machines.rows").meant(f"{backend}:{arch}")
    compiled = vendor in vendors_with("compiler")
    below = machines.closest(vendor, number) if compiled else None
    told = getattr(machines.part_of("machines", vendor), "nearest", None) if compiled and below is None else None
    asked, names = f"{backend}:{arch}", (*targets, *simulated)
    begun = [name for name in names if name.startswith(asked)]
    alike = begun or load("difflib").get_close_matches(asked, names, 1, 0.8)
    nearest = f"did you mean {alike[0]}? " if arch and alike else ""
    named = _of_processor(asked.lower(), simulated if backend == "sim" else targets)
    if named and not begun:
        nearest = f"did you mean {named}? "
    elif told is not None:
        nearest = told(number)
    elif compiled and backend == "sim":
        nearest = f"the nearest is sim:{below.name}; " if below is not None else ""
    elif below is not None and below.generation == number:
        nearest = f"did you mean {below.name}? "
    elif compiled:
        nearest = _nearest(number, vendor)
    return f"{nearest}targets that exist: {', '.join((*targets, *simulated))}; " + (
        "set WEFT_TARGET or use `with weft.target(...)`"
    )


def _of_processor(asked: str, names: Iterable[str]) -> str:
    """The target of a processor whose name says which vendor's it is, whatever stands before it."""
    whole = {name.rpartition(":")[2]: name for name in names}
    processor = asked.rpartition(":")[2]
    if processor.isdigit() or ":" not in asked:
        return ""
    alike = load("difflib").get_close_matches(processor, whole, 1, 0.9)
    return whole[alike[0]] if alike else ""


def _known(backend: str, arch: str) -> GPUTarget | None:
    """A GPU that is compiled for; `cuda:90a` is `cuda:90`."""
    for name in (arch, arch.removesuffix("a")):
        machine = machines.MACHINES.get(f"{backend}:{name}" if name else backend)
        if machine is not None and machine.vendor in set(vendors_with("compiler")):
            return GPUTarget(backend, int(name) if name.isdigit() else name, machine.lanes)
    return None


def _check_lanes(row: GPUTarget, asked: Any) -> None:
    """Unsupported where a triple (backend, arch, warp size) says another size than the GPU's."""
    if asked and asked != row.warp_size:
        right = f"GPUTarget({row.backend!r}, {row.arch!r}, {row.warp_size})"
        raise Unsupported(f"a warp of {asked} threads", str(row), hint=f"its warps have {row.warp_size}: {right}")


def as_target(target: Any = None) -> GPUTarget:
    """Turn a name, a triple (backend, arch, warp size) or nothing into a target that exists."""
    if target is None or target == "cpu":
        return GPUTarget("cpu", host_cpu().name, WARP_SIZE)
    if isinstance(target, str):
        backend, _, arch = target.partition(":")
    else:
        backend, arch = str(getattr(target, "backend", target)), str(getattr(target, "arch", ""))
    if backend != "cpu":
        row = _known(backend, arch)
        if row is None and load("weft.compiler.backends").find_others():
            row = _known(backend, arch)
        if row is not None:
            _check_lanes(row, getattr(target, "warp_size", None))
            return row
        raise Unsupported("compiling", f"{backend}:{arch}" if arch else backend, hint=_hint(backend, arch))
    if arch and arch != host_cpu().name:
        load("weft.backends.cpu.named").cpu_named(arch)  # says so where LLVM does not know it
    return GPUTarget("cpu", arch or host_cpu().name, WARP_SIZE)


def target_of_arch(arch: Any) -> GPUTarget:
    """The target that the option `arch` means: "sm80", "sm_90a", 80. Unsupported where there is none."""
    return as_target(load("weft.machines.rows").target_named(str(arch)))
