"""The registry of vendors, the only place that names them: in which rooms each has what is its own.

    machines/   its processors, as rows                            `ROWS`, and where it wants `generation_of`, `name_of`
    ir/         operations of layout IR that only it has           a dialect, with its text and rules
    targets/    its instructions                                   `INSTRUCTIONS`
    passes/     what only its matrix units and copies need         `PASSES`
    lower/      operations that only it has                        `LOWERING`
    sim/        what those do                                      `MEANING`
    compiler/   its back end: what makes code, loads and launches  `BACKEND`
    explain/    what its operations cost, for the model of time    `COSTS`

A room asks for its own part alone, by a machine: `part("lower", machine)` is `weft.lower.nvidia` for one of NVIDIA's,
loaded when it is first asked for. A vendor whose parts are in somebody else's package joins (`compiler/backends.py`
finds it by its entry point).

>>> part_of("lower", "opencl") is None, part_of("machines", "intel").ROWS[0].name
(True, 'xpu:dg2')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.base import load

from .machine import Machine

VENDORS: dict[str, Mapping[str, str]] = {
    vendor: {room: f"weft.{room}.{vendor}" for room in rooms.split()}
    for vendor, rooms in {
        "nvidia": "machines ir targets passes lower sim compiler writing explain",
        "amd": "machines ir targets passes lower sim compiler writing",
        "intel": "machines ir targets passes lower sim compiler",
    }.items()
}
VENDORS["opencl"] = {"machines": "weft.machines.opencl", "compiler": "weft.compiler.intel.opencl"}
SIGNS = {"nvidia": ("cuda", "/dev/nvidiactl"), "amd": ("hip", "/dev/kfd"), "intel": ("xpu", "/sys/module/xe")}
SIGNS["opencl"] = "", ""
"""What `torch.version` calls a vendor's software, and the file that its kernel driver has where one of its GPUs is."""
_parts: dict[tuple[str, str], Any] = {}
after_joining: list[Callable[[str], None]] = []
"""Called with the name of a vendor that has joined."""


def part(room: str, machine: Machine) -> Any:
    """The module of a room that is the own one of a machine's vendor; None where it has none."""
    return part_of(room, machine.vendor)


def part_of(room: str, vendor: str) -> Any:
    """The same, by the vendor's name."""
    try:
        return _parts[room, vendor]
    except KeyError:
        name = VENDORS.get(vendor, {}).get(room)
        module = _parts[room, vendor] = None if name is None else load(name)
        return module


def vendors_with(room: str) -> Iterator[str]:
    """The vendors that have something of their own in a room."""
    return (vendor for vendor, parts in VENDORS.items() if room in parts)


@dataclass(frozen=True)
class _Joined:
    """The parts of a vendor that its back end says: its machines, and itself."""

    ROWS: Sequence[Machine]
    BACKEND: Any


def join(vendor: str, backend: Any) -> None:
    """Another vendor, by its back end (`compiler/backends.py`)."""
    assert vendor not in VENDORS, f"there are two vendors {vendor}"
    joined = _Joined(backend.machines, backend)
    VENDORS[vendor] = {**backend.parts, "machines": "", "compiler": ""}
    _parts["machines", vendor] = _parts["compiler", vendor] = joined
    for told in after_joining:
        told(vendor)
