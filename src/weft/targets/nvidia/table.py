"""The table of instructions: every entry by name. Adding one is adding an entry to the file of its kind."""

from __future__ import annotations

from ..instruction import Instruction
from .bulk import bulk_instructions
from .cluster import cluster_barrier_instructions
from .convert import convert_instructions
from .copies import copy_instructions
from .lanes import lane_instructions
from .matrices import matrix_instructions
from .mbarrier import mbarrier_instructions
from .mma import mma_instructions
from .sent import sending_instructions
from .tensormap import tensormap_instructions
from .wgmma import wgmma_instructions

__all__ = ["INSTRUCTIONS", "instruction"]


def _table() -> dict[str, Instruction]:
    by_name: dict[str, Instruction] = {}
    for family in (
        mma_instructions,
        matrix_instructions,
        lane_instructions,
        convert_instructions,
        copy_instructions,
        mbarrier_instructions,
        bulk_instructions,
        cluster_barrier_instructions,
        sending_instructions,
        tensormap_instructions,
        wgmma_instructions,
    ):
        for entry in family():
            assert entry.name not in by_name, entry.name
            by_name[entry.name] = entry
    return by_name


INSTRUCTIONS = _table()


def instruction(name: str) -> Instruction:
    """The entry of this name."""
    return INSTRUCTIONS[name]
