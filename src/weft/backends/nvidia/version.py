"""The dialect of PTX: the processor, and the version of PTX that what has been written so far needs."""

from __future__ import annotations

from weft.machines import Machine

from .machine import ptx_target


class Version:
    """The processor that is compiled for. A dialect is made for each program, because the version is the program's."""

    def __init__(self, machine: Machine) -> None:
        self.target = ptx_target(machine)
        self.capability, self.processor = self.target.capability, self.target.processor
        self.adds_bf16 = self.capability >= 90
        self.version = 0
        """The version of PTX that the instructions used so far need, times ten."""

    def needs(self, version: str) -> None:
        """An instruction is used that a version of PTX, such as 8.1, is the first to have."""
        major, _, minor = version.partition(".")
        self.version = max(self.version, 10 * int(major) + int(minor))
