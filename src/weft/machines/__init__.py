"""Machines as values: what the compiler knows of each GPU. Loaded when a kernel is for one."""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .machine import Machine
    from .rows import DEFAULT, MACHINES, closest, machine_of, oldest_with
    from .vendors import join, part, part_of

__all__ = ["DEFAULT", "MACHINES", "Machine", "closest", "join", "machine_of", "oldest_with", "part", "part_of"]

__getattr__ = lazy_face(
    __name__,
    {"machine": "Machine", "rows": "DEFAULT MACHINES closest machine_of oldest_with", "vendors": "join part part_of"},
)
