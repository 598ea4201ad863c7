"""Machines as values: what the compiler knows of each GPU. Loaded when a kernel is for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .machine import Machine
    from .rows import DEFAULT, MACHINES, closest, machine_of, meant, oldest_with, target_named
    from .vendors import join, part, part_of

__all__ = [
    "DEFAULT",
    "MACHINES",
    "Machine",
    "closest",
    "join",
    "machine_of",
    "meant",
    "oldest_with",
    "part",
    "part_of",
    "target_named",
]

__getattr__ = lazy_face(
    __name__,
    {
        "machine": "Machine",
        "rows": "DEFAULT MACHINES closest machine_of meant oldest_with target_named",
        "vendors": "join part part_of",
    },
)
