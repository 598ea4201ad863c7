"""The table of instructions: every entry by name. Adding one is adding an entry to the file of its kind."""

from __future__ import annotations

from ..instruction import Instruction
from .lanes import lane_instructions
from .mfma import mfma_instructions
from .scaled import scaled_instructions
from .transposed import transposing_reads
from .wmma import wmma_instructions

__all__ = ["INSTRUCTIONS"]


def _table() -> dict[str, Instruction]:
    by_name: dict[str, Instruction] = {}
    families = (mfma_instructions, wmma_instructions, scaled_instructions, lane_instructions, transposing_reads)
    for family in families:
        for entry in family():
            assert entry.name not in by_name, entry.name
            by_name[entry.name] = entry
    return by_name


INSTRUCTIONS = _table()
