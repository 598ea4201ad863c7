"""The table of instructions: every entry by name."""

from __future__ import annotations

from ..instruction import Instruction
from .dpas import dpas_instructions

INSTRUCTIONS: dict[str, Instruction] = {entry.name: entry for entry in dpas_instructions()}
