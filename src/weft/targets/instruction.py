"""What an instruction is here: operands with layouts, text, meaning, cost.

The registers of an operand are counted in elements: an `mma` that takes eight f16 in four 32-bit registers has an
operand of eight. `Instruction.asm` says how they are packed, the lowest bits first. In the text `<name>` stands for
the registers of an operand: in braces where there are several, or where the syntax wants a vector (`<name*>`);
`<name.1>` is the second of them.

The meaning of an instruction on registers is a function from arrays [warp, lane, register] to such arrays, one for each
result. One that touches memory gets a `Memory` before them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from weft.layouts import LinearLayout
from weft.machines import Machine
from weft.ops import ELEMENTS

Array = npt.NDArray[Any]

BITS = {**{e.name: e.bits for e in ELEMENTS.values()}, "tf32": 32, "u32": 32, "u64": 64}
"""Bits of an element; what a tensor map is of may be u32 or u64, for reductions."""
OF_WARP = "bytes_of_warp"
"""Of an operation that is a copy of the bulk copy engine: how many bytes from its address on it reads, for a warp that
has written them itself."""
WORD = {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64, "n": 32, "b": 1}
"""Bits of a register by LLVM's constraint; n is an immediate, b a predicate."""


class Memory(Protocol):
    """What a meaning may do with memory; spaces are "shared" and "global", addresses are bytes."""

    def read(self, space: str, address: Array, width: int, active: Array) -> Array:
        """`width` bytes at each address [warp, lane], as uint8 [warp, lane, width]; zeros where not active."""

    def write(self, space: str, address: Array, data: Array, active: Array) -> None:
        """The bytes uint8 [warp, lane, width] to each address [warp, lane], where active."""


@dataclass(frozen=True)
class Operand:
    """Registers of one type: `count` elements in each lane, in PTX registers of the constraint's kind."""

    name: str
    elem: str
    count: int
    constraint: str
    layout: LinearLayout | None = None
    """register, lane[, warp] -> the dimensions of the matrix, for an operand that is one."""
    tied: str = ""
    """The result whose registers it must be in: the instruction changes them in place."""

    @property
    def bits(self) -> int:
        """Of an element."""
        return BITS[self.elem]

    @property
    def per_word(self) -> int:
        """Elements in each PTX register."""
        return max(1, WORD[self.constraint] // BITS[self.elem])

    @property
    def words(self) -> int:
        """PTX registers of each lane."""
        return -(-self.count // self.per_word)


@dataclass(frozen=True)
class Reach:
    """One access of shared memory that an instruction makes, at the address in an operand (see `analysis.Touch`)."""

    operand: str
    width: int
    how: str
    masked: bool = False
    """Whether it is for the lanes whose operand `active` holds."""
    later: str = ""
    """Where it happens some time afterwards: what must be waited for, `copy`, `bulk`, `barrier` or `product`."""
    together: bool = False
    release: bool = False
    each: bool = False
    far: bool = False


@dataclass(frozen=True)
class Effects:
    """What an instruction does that others have to be ordered with."""

    reaches: tuple[Reach, ...] = ()
    waits: str = ""
    """The kind of accesses that it waits for; its operand says how many of them may be left, and all without one."""
    closes: str = ""
    """The kind of accesses of which those before it, since the last such instruction, are a group."""
    meets: str = ""
    """Whether it is where all blocks of a cluster `arrive` at a barrier, or `wait` for the others."""
    lasting: bool = False
    """Whether nothing else may ever be where it writes."""


@dataclass(frozen=True)
class Instruction:
    """An entry of the table.

    `since` is the first generation of its vendor's machines that has it, `until` the first that no longer has (0 for
    none). `touches` says what it reads or writes beside registers: "" nothing, "shared", "global", "copy" (both),
    "bulk" (copies of the bulk copy engine), "barrier" (an object in shared memory at which threads and copies arrive),
    "sync".
    """

    name: str
    since: int
    text: str
    operands: tuple[Operand, ...] = ()
    results: tuple[Operand, ...] = ()
    semantics: Callable[..., tuple[Array, ...]] | None = None
    cost: float = 1.0
    """Cycles that one warp keeps the issuing unit or the pipe busy."""
    until: int = 0
    touches: str = ""
    width: int = 0
    """Bytes that each address gives, for one that reads or writes memory."""
    stores: bool = False
    version: str = "7.0"
    """The first version of its vendor's assembly that has it."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Shapes and modifiers, for whoever chooses among entries."""
    fetch: Callable[..., Any] | None = None
    """Of an instruction of a matrix unit that takes operands from memory: reads them, given the memory and, by the
    operands' names, what says where they are."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, n, k) of a matrix product, else ()."""
        return tuple(self.params.get("shape", ()))

    @property
    def products(self) -> int:
        """How many products of two elements a matrix product sums; 0 for what is none."""
        return prod(self.shape) if self.shape else 0

    @property
    def is_coarse(self) -> bool:
        """Whether a matrix product leaves out bits of its operands: f32 is multiplied as tf32."""
        return "tf32" in self.params.get("types", ())

    def effects(self) -> Effects:
        """What it does if that follows from what it touches: one access, by all lanes of a warp together."""
        if self.touches not in ("shared", "copy"):
            return Effects()
        later, how = ("copy" if self.touches == "copy" else ""), ("write" if self.stores else "read")
        return Effects((Reach(self.operands[0].name, self.width, how, later=later, together=not later),))

    @property
    def is_shared_load(self) -> bool:
        """Whether it loads registers from shared memory, and does nothing else."""
        return self.touches == "shared" and not self.stores and not self.products

    def works_on(self, machine: Machine) -> bool:
        """Whether a machine of its vendor has it."""
        return self.since <= machine.generation and (not self.until or machine.generation < self.until)

    def asm(self) -> tuple[str, str]:
        """(text, constraints) of LLVM's inline assembly; results come first, each PTX register is one operand.

        >>> from weft.targets.nvidia import instruction
        >>> instruction("mma.sync.m8n8k4.f64.f64.f64.f64").asm()[1]
        '=d,=d,d,d,d,d'
        """
        constraints = [f"={o.constraint}" for o in self.results for _ in range(o.words)]
        first = {r.name: sum(o.words for o in self.results[:i]) for i, r in enumerate(self.results)}
        for o in self.operands:
            constraints += [str(first[o.tied] + i) if o.tied else o.constraint for i in range(o.words)]
        if self.touches:
            constraints.append("~{memory}")
        numbers = iter(range(len(constraints)))
        names = {o.name: [f"${next(numbers)}" for _ in range(o.words)] for o in (*self.results, *self.operands)}
        return self.written(names), ",".join(constraints)

    def is_address(self, name: str) -> bool:
        """Does an operand stand in brackets wherever it stands, so that a constant can be added to it there?

        >>> from weft.targets.nvidia import instruction
        >>> instruction("ldmatrix.x4").is_address("address"), instruction("cluster_barrier.pass").is_address("address")
        (True, False)
        """
        return 0 < self.text.count(f"<{name}>") == self.text.count(f"[<{name}>]")

    def written(self, names: Mapping[str, list[str]]) -> str:
        """The text with these PTX registers for each operand."""

        def one(match: re.Match[str]) -> str:
            registers = names[match[1]]
            if match[2]:
                return registers[int(match[2])]
            return registers[0] if len(registers) == 1 and not match[3] else "{" + ", ".join(registers) + "}"

        return re.sub(r"<(\w+)(?:\.(\d+)|(\*))?>", one, self.text)

    def run(self, *operands: Array, memory: Memory | None = None) -> tuple[Array, ...]:
        """The results for operands [warp, lane, register], all of one number of warps."""
        if self.semantics is None:
            raise NotImplementedError(f"{self.name} has no meaning on registers alone")
        with np.errstate(all="ignore"):
            return self.semantics(memory, *operands) if self.touches else self.semantics(*operands)
