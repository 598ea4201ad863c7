"""The table of instructions: every entry by name. Adding one is adding an entry to the file of its kind."""

from __future__ import annotations

from functools import lru_cache

from weft.machines import Machine

from ..instruction import Instruction
from .lanes import lane_instructions
from .mbarriers import mbarrier_instructions
from .mfma import mfma_instructions
from .scaled import scaled_instructions
from .tensors import tensor_instructions
from .transposed import transposing_reads
from .wmma import wmma_instructions

__all__ = ["INSTRUCTIONS", "scaled_products"]


def _table() -> dict[str, Instruction]:
    by_name: dict[str, Instruction] = {}
    families = (
        mfma_instructions, wmma_instructions, scaled_instructions, lane_instructions, tensor_instructions,
        transposing_reads, mbarrier_instructions,
    )  # fmt: skip
    for family in families:
        for entry in family():
            assert entry.name not in by_name, entry.name
            by_name[entry.name] = entry
    return by_name


INSTRUCTIONS = _table()


@lru_cache(maxsize=64)
def scaled_products(machine: Machine, left: str, right: str) -> tuple[Instruction, ...]:
    """The products with scales of a machine for operands of these kinds, e2m1 among them: the cheapest first."""
    kinds = left, right
    of_kinds = (e for e in INSTRUCTIONS.values() if e.params.get("scaled") and e.params["types"] == kinds)
    return tuple(sorted((e for e in of_kinds if e.works_on(machine)), key=lambda e: (e.cost / e.products, -e.products)))
