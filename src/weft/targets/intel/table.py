"""The table of instructions: every entry by name."""

from __future__ import annotations

from ..instruction import Instruction
from .blocks import INSTRUCTIONS_BY_NAME
from .dpas import dpas_instructions

INSTRUCTIONS: dict[str, Instruction] = {entry.name: entry for entry in dpas_instructions()} | INSTRUCTIONS_BY_NAME
