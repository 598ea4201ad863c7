"""What a block of threads has while it runs: registers, memory, the threads that take part; instructions of its own.

A register is an array of bits, one per thread; what only registers take part in is computed by the table of
instructions that inline assembly in the simulator reads too (weft.sim.nvidia.ptx_table). Writing changes the threads
that take part, no others.

    @means("activemask")
    def _active(s: State, i: Statement) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.sim.nvidia.ptx_table import Registers
from weft.sim.nvidia.ptx_text import Group, Operand, Place, PTXError, Statement
from weft.sim.nvidia.ptx_values import Array, is_float

from .parsing import Program
from .spaces import Copies, Fault, Flat, Global, Local, Space, Unknown

WARP = 32
Block = tuple[int, int, int]

__all__ = [
    "MEANINGS", "WARP",
    "Array", "Block", "Fault", "Group", "Meaning", "Operand", "PTXError", "Place", "State", "Statement", "Unknown",
    "means", "parts_of", "words",
]  # fmt: skip


def words(value: int) -> np.uint64:
    """The number modulo 2^64."""
    return np.uint64(value & (1 << 64) - 1)


def parts_of(operand: Operand) -> tuple[Operand, ...]:
    """The registers of a vector operand; of another, itself."""
    return operand.parts if isinstance(operand, Group) else (operand,)


class State(Registers):
    """Registers of a block, the threads that take part in the instruction, and what special registers tell.

    `symbols` are addresses by name: tables, parameters, arrays in shared and local memory.
    """

    def __init__(
        self, program: Program, memory: Global, parameters: Array, shared: int, block: Block, grid: Block
    ) -> None:
        super().__init__()
        self.program = program
        self.threads = program.threads
        self.active: Array = np.ones(self.threads, bool)
        self.whole = True
        self.noise = np.random.default_rng(1)
        self.symbols = {parameter.name: parameter.start for parameter in program.parameters}
        self.symbols |= dict.fromkeys(program.shared, 0)
        local = 0
        for name, size in program.local.items():
            self.symbols[name] = local
            local += size
        self.spaces: dict[str, Space] = {
            "global": memory,
            "param": Flat("param", parameters, writable=False),
            "shared": Flat("shared", self.noise.integers(0, 256, shared, np.uint8)),
            "local": Local(self.noise.integers(0, 256, (self.threads, local), np.uint8)),
        }
        self.copies = Copies(np.zeros(self.threads, np.int64))
        thread = np.arange(self.threads, dtype=np.uint64)
        known = {"tid.x": thread, "laneid": thread % np.uint64(WARP), "warpid": thread // np.uint64(WARP)}
        for axis, at, count in zip("xyz", block, grid, strict=True):
            known[f"ctaid.{axis}"] = self.every(at)
            known[f"nctaid.{axis}"] = self.every(count)
        known |= {"ntid.x": self.every(self.threads), "ntid.y": self.every(1), "ntid.z": self.every(1)}
        self.hardware = known | {"tid.y": self.every(0), "tid.z": self.every(0)}

    def every(self, value: int) -> Array:
        """The same word for each thread."""
        return np.full(self.threads, words(value), np.uint64)

    def special(self, name: str) -> Array:
        found = self.hardware.get(name)
        if found is not None:
            return found
        return self.every(self.symbols[name]) if name in self.symbols else super().special(name)

    def unset(self, name: str) -> Array:
        """Noise, so that what relies on zeros gives another result."""
        self.registers[name] = value = self.noise.integers(0, 1 << 64, self.threads, np.uint64)
        return value

    def full(self, operand: Operand, type: str) -> Array:
        """An operand as bits of a type, one for each thread."""
        found = self.read(operand, type)
        return found if len(found) == self.threads else np.broadcast_to(found, self.threads)

    def put(self, name: str, bits: Array) -> None:
        if len(bits) != self.threads:
            bits = np.full(self.threads, bits[0])
        if not self.whole:
            old = self.registers.get(name)
            bits = np.where(self.active, bits, self.unset(name) if old is None else old)
        self.registers[name] = bits

    def checked(self, name: tuple[str, ...], operands: list[Array]) -> list[Array]:
        """Fault where an integer is divided by zero: the result is open."""
        if name[0] in ("div", "rem") and not is_float(name[-1]) and ((operands[1] == 0) & self.active).any():
            raise Fault("a division of integers by zero")
        return operands

    def warps(self) -> list[slice]:
        """The threads of each warp in which some take part."""
        every = [slice(start, start + WARP) for start in range(0, self.threads, WARP)]
        return [warp for warp in every if self.active[warp].any()]


Meaning = Callable[[Any, Statement], None]
"""A function of the block and an instruction; it reads and writes registers."""
MEANINGS: dict[str, Meaning] = {}
"""Of instructions that more takes part in than registers, by the name that stands before the first dot."""


def means(*instructions: str) -> Callable[[Meaning], Meaning]:
    """Puts a function into the table under these names."""

    def register(function: Meaning) -> Meaning:
        for name in instructions:
            assert name not in MEANINGS, f"{name} stands twice"
            MEANINGS[name] = function
        return function

    return register
