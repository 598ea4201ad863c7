"""How a product is computed on a processor: by which instruction, and with which block of sums in registers.

    plan(a, b, 512, context)     # of 64x64 and 64x64 f32: Plan("f32", "f32", "fma", lanes=16, rows=6, vectors=4)

Half, fp8 and, without an instruction, bf16 operands are widened to single when they are packed. The instructions of
`targets.PRODUCTS` multiply pairs or quadruples along K at once: those of vectors in `blocks`, of tile registers in
`tiles`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weft.backends.cpu.program import Op, Value, element_bits
from weft.targets import CPU, PRODUCTS, Product

TILES_OF_SUMS = 4
"""Tile registers that hold sums: those from 0 on. Those of A come next, then those of B."""


@dataclass(frozen=True)
class Plan:
    """How a product is computed: the packed element, the accumulator, the instruction and the block of registers.

    A block is `rows` rows of `vectors` vectors of `lanes` sums; by an instruction that works on tiles, `rows` rows of
    `vectors` tiles.
    """

    packed: str  # element of the packed operands
    accumulator: str
    instruction: str  # "fma", "muladd", or the name of `by`
    lanes: int
    rows: int
    vectors: int
    by: Product | None = None

    @property
    def pair(self) -> int:
        """Elements of K multiplied by one lane of one instruction."""
        return self.by.pair if self.by is not None else 1

    @property
    def in_tiles(self) -> bool:
        """Whether the instruction works on tile registers."""
        return self.by is not None and self.by.in_tiles

    @property
    def panel(self) -> int:
        """Columns of sums of a block."""
        return self.lanes * self.vectors

    @property
    def down(self) -> int:
        """Rows of sums of a block."""
        return self.rows * (self.by.rows if self.by is not None else 1)


def instruction_for(a: Value, b: Value, vector_bits: int, features: frozenset[str]) -> Product | None:
    """The instruction by which these tiles are multiplied, if there is one for more than one element at a time."""
    n, m, k = b.shape[-1], a.shape[-2], a.shape[-1]
    for by in PRODUCTS:
        fits = m >= by.rows and n >= by.columns and k >= by.depth and (by.in_tiles or vector_bits == 32 * by.columns)
        if fits and by.feature in features and a.elem == b.elem == by.multiplies:
            return by
    return None


def plan(a: Value, b: Value, vector_bits: int, context: Context) -> Plan:
    """The way to multiply these tiles on the processor of a compilation, with vectors of so many bits."""
    n, m, cpu = b.shape[-1], a.shape[-2], context.cpu
    by = instruction_for(a, b, vector_bits, context.product_features)
    if by is not None:
        block = (by.columns, *_tiles(m, n, by)) if by.in_tiles else _block(m, n, by.columns, cpu.vector_registers)
        return Plan(by.elements, by.accumulator, by.name, *block, by)
    elem = "f64" if "f64" in (a.elem, b.elem) else "i32" if a.elem[0] == "i" else "f32"
    instruction = "muladd" if elem == "i32" else "fma"
    at_once = instruction == "fma" and cpu.multiplies_and_adds
    block = _block(m, n, vector_bits // element_bits(elem), cpu.vector_registers, at_once)
    return Plan(elem, elem, instruction, *block)


class Context(Protocol):
    """What a plan depends on besides the tiles."""

    cpu: CPU
    product_features: frozenset[str]


def is_in_tiles(op: Op, features: frozenset[str]) -> bool:
    """Whether an operation is a product that is computed by tile registers."""
    if op.name != "tt.dot":
        return False
    by = instruction_for(op.args[0], op.args[1], 0, features)
    return by is not None and by.in_tiles


def _tiles(m: int, n: int, by: Product) -> tuple[int, int]:
    """How many tiles of sums, down and across, are kept in registers for a product of m x n."""
    down = min(2, m // by.rows)
    return down, min(TILES_OF_SUMS // down, n // by.columns)


def _block(m: int, n: int, width: int, registers: int, at_once: bool = True) -> tuple[int, int, int]:
    """Lanes, rows and vectors of a block of registers: three quarters of these hold sums where there are rows enough.

    6x4 load ten values for 24 multiplications, and 6x2, where there are 16 registers, eight for twelve. Eight sums at
    least cover the latency of the multiply-add, so fewer rows want more vectors, and fewer vectors more rows. Where no
    instruction multiplies and adds `at_once`, half of the registers hold sums.
    """
    lanes, many = min(width, n), registers >= 32
    across, most = max(1, n // lanes), 4 if many else 2
    if m > 8 and at_once:
        return lanes, 6 if across >= most else 8, min(most, across)
    rows = min(m, 4)
    return lanes, rows, min(4 * most // max(rows, 2), across)
