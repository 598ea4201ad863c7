"""What a block of threads has while it runs: registers, memory, the threads that take part; the table of instructions.

A register is an array of 64-bit words, one per thread, whatever its declared width; operands are read as the type that
the instruction names. Writing changes the threads that take part, no others.

    @means("not")
    def _not(s: State, i: Instruction) -> None: ...
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from .parsing import Instruction, Program
from .spaces import Array, Copies, Fault, Flat, Global, Local, Space, Unknown

BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)
TYPES: dict[str, np.dtype[Any]] = {
    **{f"{kind}{n}": np.dtype(f"u{n // 8}") for kind in "bu" for n in (8, 16, 32, 64)},
    **{f"s{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"f{n}": np.dtype(f"f{n // 8}") for n in (16, 32, 64)},
    "bf16": BF16,
}
NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)U?$")
FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})$|0[dD]([0-9a-fA-F]{16})$")
REGISTER = re.compile(r"%(?!clock)\w*\d+$|%SPL?$")
WARP = 32
Place = tuple[int, int, int]

__all__ = [
    "BF16", "E4M3", "E5M2", "MEANINGS", "TYPES", "WARP",
    "Array", "Fault", "Meaning", "Place", "State", "Unknown", "bits_of", "means", "words",
]  # fmt: skip


def bits_of(array: Array) -> Array:
    """The bits of each element in a 64-bit word, zeros above them."""
    if array.dtype == bool:
        return array.astype(np.uint64)
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.uint64)


def words(value: int) -> np.uint64:
    """The number modulo 2^64."""
    return np.uint64(value & (1 << 64) - 1)


class State:
    """Registers of a block, the threads that take part in the instruction, and what special registers tell.

    `symbols` are addresses by name: tables, parameters, arrays in shared and local memory.
    """

    def __init__(
        self, program: Program, memory: Global, parameters: Array, shared: int, block: Place, grid: Place
    ) -> None:
        self.program = program
        self.threads = program.threads
        self.active: Array = np.ones(self.threads, bool)
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
        self.registers: dict[str, Array] = {}
        thread = np.arange(self.threads, dtype=np.uint64)
        known = {"%tid.x": thread, "%laneid": thread % np.uint64(WARP), "%warpid": thread // np.uint64(WARP)}
        for axis, at, count in zip("xyz", block, grid, strict=True):
            known[f"%ctaid.{axis}"] = self.every(at)
            known[f"%nctaid.{axis}"] = self.every(count)
        known |= {"%ntid.x": self.every(self.threads), "%ntid.y": self.every(1), "%ntid.z": self.every(1)}
        known |= {"%tid.y": self.every(0), "%tid.z": self.every(0)}
        self.special = known

    def every(self, value: int) -> Array:
        """The same word for each thread."""
        return np.full(self.threads, words(value), np.uint64)

    def garbage(self) -> Array:
        """What a register holds that nothing has written."""
        return self.noise.integers(0, 1 << 64, self.threads, np.uint64)

    def word(self, operand: str) -> Array:
        """The 64-bit words of an operand, not to be changed in place; what is in no register yet is noise."""
        known = self.registers.get(operand)
        if known is not None:
            return known
        if operand.startswith("!"):
            return bits_of(self.word(operand[1:]) == 0)
        if NUMBER.match(operand):
            return self.every(int(operand.rstrip("U"), 0))
        m = FLOAT.match(operand)
        if m is not None:
            return self.every(int(m[1] or m[2], 16))
        if operand in self.special:
            return self.special[operand]
        if operand in self.symbols:
            return self.every(self.symbols[operand])
        if REGISTER.match(operand):
            self.registers[operand] = value = self.garbage()
            return value
        raise Unknown(f"operand {operand}")

    def read(self, operand: str, type: str) -> Array:
        """An operand as an array of its type; `pred` gives booleans."""
        word = self.word(operand)
        if type == "pred":
            return np.asarray(word != 0)
        dtype = TYPES.get(type)
        if dtype is None:
            raise Unknown(f"type .{type}")
        return word.astype(f"u{dtype.itemsize}").view(dtype)

    def write(self, register: str, value: Array) -> None:
        """What the threads that take part put into a register; `_` takes anything."""
        if register == "_":
            return
        word = value if value.dtype == np.uint64 else bits_of(value)
        if not self.active.all():
            old = self.registers.get(register)
            word = np.where(self.active, word, self.garbage() if old is None else old)
        self.registers[register] = word

    def warps(self) -> list[slice]:
        """The threads of each warp in which some take part."""
        every = [slice(start, start + WARP) for start in range(0, self.threads, WARP)]
        return [warp for warp in every if self.active[warp].any()]


Meaning = Callable[[Any, Instruction], None]
"""A function of the machine and an instruction; it reads and writes registers."""
MEANINGS: dict[str, Meaning] = {}
"""By the name that stands before the first dot."""


def means(*instructions: str) -> Callable[[Meaning], Meaning]:
    """Puts a function into the table under these names."""

    def register(function: Meaning) -> Meaning:
        for name in instructions:
            assert name not in MEANINGS, f"{name} stands twice"
            MEANINGS[name] = function
        return function

    return register
