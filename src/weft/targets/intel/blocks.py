"""2D blocks: a warp loads, stores or prefetches a block of rows of a surface in memory by one instruction.

A surface is rows of so many bytes (`width`), so many of them (`height`), each `pitch` bytes behind the one before. A
block begins at column `x` (in elements) and row `y`. What of it is outside of the surface is 0 when it is loaded, and
is not stored. All of that is the same in all lanes.

    load_block2d.d16.8x16x2                rows x columns x blocks side by side, elements of 16 bits
      lane          column 0 .. 15         register: row 0 .. 7, then the same of the second block, 16 columns further
    load_block2d.d16.16x16x1.transform     as DPAS takes its right operand: neighbouring rows share a word
    load_block2d.d16.16x16x1.transpose     a lane has a row: register = column. Memory is loaded in words of 32 bits:
                                           a right operand whose columns lie in memory as rows, as DPAS takes it

The layouts are linear: register, lane -> row (dim0), column (dim1) in the surface. With fewer columns than lanes, more
rows share a register; with more, a lane has neighbouring columns.

>>> a = INSTRUCTIONS_BY_NAME["load_block2d.d16.8x16x2"].results[0].layout
>>> a.bases["register"], a.bases["lane"]
(((1, 0), (2, 0), (4, 0), (0, 16)), ((0, 1), (0, 2), (0, 4), (0, 8)))

Which blocks there are stands in OpenCL's extension cl_intel_subgroup_2d_block_io, for subgroups of 16. In SPIR-V they
are instructions of SPV_INTEL_2d_block_io, which write to memory of the lane's own: translators hold it in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from weft.layouts import LinearLayout
from weft.machines.intel import BLOCKS, LANES, PVC

from ..instruction import Array, Instruction, Memory, Operand

SURFACE = ("base", "width", "height", "pitch", "x", "y")
"""The operands of each: an address, bytes, rows, bytes, elements, rows."""
LOAD, TRANSFORM, TRANSPOSE, STORE, PREFETCH = "load", "transform", "transpose", "store", "prefetch"
_FORMS = {
    LOAD: ("Load", "PU3AS1KviiiDv2_iPv"),
    TRANSFORM: ("LoadTransform", "PU3AS1KviiiDv2_iPv"),
    TRANSPOSE: ("LoadTranspose", "PU3AS1KviiiDv2_iPv"),
    STORE: ("Store", "PKvPU3AS1viiiDv2_i"),
    PREFETCH: ("Prefetch", "PU3AS1KviiiDv2_i"),
}
"""What SPIR-V calls them, and the types of their operands behind the four sizes, as C++ mangles them."""
WORD = 4
"""Bytes of what is transposed, and of what neighbouring rows share."""


@dataclass(frozen=True)
class Block:
    """One kind of access: `count` blocks of `rows` x `columns` elements of so many bytes, side by side."""

    kind: str
    bytes: int
    rows: int
    columns: int
    count: int = 1

    @property
    def name(self) -> str:
        """That of its entry."""
        form = f"{'load' if self.kind in (TRANSFORM, TRANSPOSE) else self.kind}_block2d.d{8 * self.bytes}"
        suffix = f".{self.kind}" if self.kind in (TRANSFORM, TRANSPOSE) else ""
        return f"{form}.{self.rows}x{self.columns}x{self.count}{suffix}"

    @property
    def function(self) -> str:
        """The function that is SPIR-V's instruction, by its mangled name."""
        form, types = _FORMS[self.kind]
        name = f"__spirv_Subgroup2DBlock{form}INTEL"
        return f"_Z{len(name)}{name}iiii{types}"

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Its first four operands: bytes of an element, columns, rows, blocks. Words are transposed."""
        if self.kind == TRANSPOSE:
            return WORD, self.columns * self.bytes // WORD, self.rows, self.count
        return self.bytes, self.columns, self.rows, self.count

    def layout(self) -> LinearLayout:
        """register, lane -> row, column."""
        if self.kind == TRANSPOSE:
            steps = [("register", 1, self.columns), ("lane", 0, self.rows)]
        elif self.kind == TRANSFORM:
            shared = WORD // self.bytes
            steps = [("register", 0, shared), ("lane", 1, self.columns), ("register", 0, self.rows // shared)]
        else:
            together, rows = max(1, self.columns // LANES), max(1, LANES // self.columns)
            steps = [
                ("register", 1, together), ("lane", 1, self.columns // together), ("lane", 0, rows),
                ("register", 0, self.rows // rows),
            ]  # fmt: skip
        steps.append(("register", 1, self.count))
        bases: dict[str, list[tuple[int, int]]] = {"register": [], "lane": []}
        sizes = [1, 1]
        for place, dim, size in steps:
            while size > 1:
                bases[place].append((sizes[0], 0) if dim == 0 else (0, sizes[1]))
                sizes[dim] *= 2
                size //= 2
        shape = {"dim0": self.rows, "dim1": self.columns * self.count}
        return LinearLayout.from_bases(bases, shape)

    def fits(self) -> bool:
        """Whether the limits of an instruction allow for it."""
        most = BLOCKS.stored_rows if self.kind == STORE else BLOCKS.rows
        return self.columns * self.count * self.bytes <= BLOCKS.row_bytes and self.rows <= most


def _blocks() -> Iterator[Block]:
    """The largest first."""
    for rows in (32, 16, 8, 4, 2, 1):
        for count in (2, 1):
            yield Block(LOAD, 1, rows, 32, count)
            yield Block(LOAD, 2, rows, 16, count)
            if rows > 1:
                yield Block(LOAD, 4, rows, 8, count)
        yield Block(LOAD, 4, rows, 16)
    for count in (4, 2, 1):
        yield Block(TRANSFORM, 1, 32, 16, count)
    for rows in (32, 16):
        for count in (2, 1):
            yield Block(TRANSFORM, 2, rows, 16, count)
    for size in (1, 2, 4):
        yield Block(TRANSPOSE, size, LANES, 8 * WORD // size)
    for rows in (8, 4, 2, 1):
        yield from (Block(STORE, 1, rows, 32), Block(STORE, 2, rows, 16), Block(STORE, 4, rows, 16))
    for rows in (32, 16, 8, 4, 2, 1):
        for count in (2, 1):
            yield from (Block(PREFETCH, 1, rows, 32, count), Block(PREFETCH, 2, rows, 16, count))
        yield Block(PREFETCH, 4, rows, 16)


def _places(
    block: Block, layout: LinearLayout, surface: tuple[Array, ...]
) -> tuple[Array, Array, int]:
    """(address, whether inside of the surface) of each element, [register * warp, lane]; registers."""
    base, width, height, pitch, x, y = (s.astype(np.int64) for s in surface)
    count = layout.in_dims["register"]
    lane, register = np.meshgrid(np.arange(LANES), np.arange(count), indexing="ij")
    at = layout.apply({"register": register, "lane": lane})
    row, column = (np.asarray(at[d], np.int64) for d in ("dim0", "dim1"))  # [lane, register]
    column, row = column + x, row + y  # [warp, lane, register]
    inside = (column >= 0) & ((column + 1) * block.bytes <= width) & (row >= 0) & (row < height)
    address = base + row * pitch + column * block.bytes

    def flat(a: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(a, 2, 0)).reshape(-1, a.shape[1])

    return flat(address), flat(inside), count


def _loads(block: Block, layout: LinearLayout) -> Callable[..., tuple[Array, ...]]:
    def run(memory: Memory, *surface: Array) -> tuple[Array, ...]:
        address, inside, count = _places(block, layout, surface)
        data = memory.read("global", address, block.bytes, inside)
        elements = np.ascontiguousarray(data).view(f"i{block.bytes}")
        return (np.moveaxis(elements.reshape(count, *surface[0].shape[:2]), 0, 2),)

    return run


def _stores(block: Block, layout: LinearLayout) -> Callable[..., tuple[Array, ...]]:
    def run(memory: Memory, *operands: Array) -> tuple[Array, ...]:
        *surface, data = operands
        address, inside, _ = _places(block, layout, tuple(surface))
        elements = np.ascontiguousarray(np.moveaxis(data, 2, 0)).reshape(-1, data.shape[1], 1)
        memory.write("global", address, elements.view(np.uint8).reshape(*address.shape, block.bytes), inside)
        return ()

    return run


def _prefetch(memory: Memory, *surface: Array) -> tuple[Array, ...]:
    return ()


def _entry(block: Block) -> Instruction:
    layout = block.layout()
    elem, count = f"i{8 * block.bytes}", layout.in_dims["register"]
    surface = tuple(Operand(name, "i64" if name == "base" else "i32", 1, "r") for name in SURFACE)
    data = Operand("d", elem, count, "r", layout)
    meaning = {STORE: _stores(block, layout), PREFETCH: _prefetch}.get(block.kind) or _loads(block, layout)
    return Instruction(
        block.name, PVC, block.function, (*surface, data) if block.kind == STORE else surface,
        () if block.kind in (STORE, PREFETCH) else (data,), meaning, cost=float(count), touches="global",
        width=block.bytes, stores=block.kind == STORE, params={"block": block},
    )  # fmt: skip


def block_instructions() -> Iterator[Instruction]:
    """All entries of this file."""
    return (_entry(block) for block in _blocks() if block.fits())


INSTRUCTIONS_BY_NAME: dict[str, Instruction] = {entry.name: entry for entry in block_instructions()}
