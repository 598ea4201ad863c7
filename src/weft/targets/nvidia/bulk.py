"""cp.async.bulk.tensor: one thread has a box of a tensor copied between global and shared memory.

A tensor map (128 bytes that the host encodes) says where the tensor lies, how large it and the box are, and how the
box is swizzled in shared memory; the instruction gives the coordinates of the box's first element, the innermost
first. Elements outside of the tensor read as zero and are not written. A load completes on an mbarrier, by bytes,
those outside included; stores complete in groups of the thread.

>>> box = TensorMap(0, 2, (100, 10), (208,), (64, 8), 128)
>>> box.bytes, [int(x) for x in box.offsets()[1, :10:8]]          # in row 1 chunks 0 and 1 have changed places
(1024, [144, 128])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .instruction import Array, Instruction, Operand

__all__ = ["TensorMap", "bulk_instructions"]

SWIZZLES = (16, 32, 64, 128)


@dataclass(frozen=True)
class TensorMap:
    """What cuTensorMapEncodeTiled is given. Sizes count elements, the innermost dimension first.

    `strides` are bytes, of all dimensions but the innermost; `swizzle` is 16 (none), 32, 64 or 128 bytes.
    """

    address: int
    element_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 16

    def __post_init__(self) -> None:
        rank = len(self.shape)
        inner = self.box[0] * self.element_bytes if self.box else 0
        rules = (
            (1 <= rank <= 5, f"a tensor map has 1 to 5 dimensions, got {rank}"),
            (len(self.box) == rank and len(self.strides) == rank - 1, "shape, strides and box differ in rank"),
            (self.address % 16 == 0, f"the address must be a multiple of 16, got {self.address:#x}"),
            (all(s % 16 == 0 for s in self.strides), f"strides must be multiples of 16 bytes, got {self.strides}"),
            (all(1 <= b <= 256 for b in self.box), f"a box has 1 to 256 elements along each dimension, got {self.box}"),
            (inner % 16 == 0, f"a box's rows must be multiples of 16 bytes, got {inner}"),
            (self.swizzle in SWIZZLES, f"swizzle must be one of {SWIZZLES}, got {self.swizzle}"),
            (self.swizzle == 16 or inner <= self.swizzle, f"rows of {inner} bytes are wider than the swizzle"),
        )
        for holds, message in rules:
            if not holds:
                raise ValueError(message)

    @property
    def bytes(self) -> int:
        """What a copy of the box counts on its mbarrier."""
        return int(np.prod(self.box)) * self.element_bytes

    def elements(self, coordinates: tuple[int, ...]) -> tuple[Array, Array]:
        """(address in global memory, whether inside of the tensor) of the box's elements, the innermost axis last."""
        index = np.indices(self.box[::-1])[::-1]
        strides = (self.element_bytes, *self.strides)
        address = np.full(self.box[::-1], self.address, np.int64)
        inside = np.ones(self.box[::-1], np.bool_)
        for at, start, size, stride in zip(index, coordinates, self.shape, strides, strict=True):
            address += (at + start) * stride
            inside &= (at + start >= 0) & (at + start < size)
        return address, inside

    def offsets(self) -> Array:
        """Where the box's elements lie in shared memory, in bytes from its beginning, which is aligned to 1024."""
        plain = np.arange(int(np.prod(self.box))).reshape(self.box[::-1]) * self.element_bytes
        return np.asarray(plain ^ (plain >> 3 & (self.swizzle // 16 - 1) << 4))


def bulk_instructions() -> Iterator[Instruction]:
    """All entries of this file."""

    def word(name: str, count: int = 1, constraint: str = "r") -> Operand:
        return Operand(name, "i32", count, constraint)

    tensor_map = Operand("map", "i64", 1, "l")
    for rank in range(1, 6):
        at = word("at", rank)
        yield Instruction(
            name=f"cp.async.bulk.tensor.{rank}d.load",
            since=90,
            text=f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[<to>], [<map>, <at*>], [<barrier>];",
            operands=(word("to"), tensor_map, at, word("barrier")),
            cost=4,
            touches="bulk",
            stores=True,
            ptx="8.0",
            params={"rank": rank},
        )
        yield Instruction(
            name=f"cp.async.bulk.tensor.{rank}d.store",
            since=90,
            text=f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [<map>, <at*>], [<source>];",
            operands=(tensor_map, at, word("source")),
            cost=4,
            touches="bulk",
            ptx="8.0",
            params={"rank": rank},
        )
    pending = word("pending", 1, "n")
    yield Instruction("cp.async.bulk.commit_group", 90, "cp.async.bulk.commit_group;", touches="sync", ptx="8.0")
    for read in ("", ".read"):
        name = f"cp.async.bulk.wait_group{read}"
        yield Instruction(name, 90, f"{name} <pending>;", (pending,), touches="sync", ptx="8.0")
