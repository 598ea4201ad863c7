"""Partial results of several warps, or blocks of a cluster, brought together through shared memory.

Each is stored once; those of warps are read as a vector, those of blocks from the memory of each block.

What a thread holds in a register is known by its place, the bits of register, lane and warp. Places that hold the same
value, because they are copies or were already combined, are one place in memory; the places whose values are to be
combined lie next to each other:

    four warps, each with one sum        %0 = [s0 s1 s2 s3]          16 bytes; every thread loads all of it at once
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import f2

from .context import Context

VECTOR_BYTES = 16
Place = tuple[int, int, int]
"""Bits of register, lane and warp."""


class Partials:
    """Where each place lies: `same` are directions along which values are equal, `apart` those to be combined along."""

    def __init__(self, c: Context, registers: int, same: Sequence[Place], apart: Sequence[Place]) -> None:
        self.c, self.log = c, registers
        self.lanes, self.warps = c.program.lanes.bit_length() - 1, c.program.warps.bit_length() - 1
        rows = f2.Echelon()
        equal = [x for x in map(self._flat, same) if rows.add(x)]
        groups = [x for x in map(self._flat, apart) if rows.add(x)]
        threads = [1 << registers + i for i in range(self.lanes + self.warps)]
        rest = [x for x in (*threads, *(1 << i for i in range(registers))) if rows.add(x)]
        self.ways, self.size = 1 << len(groups), 1 << len(groups) + len(rest)
        coordinates = f2.Echelon([*equal, *groups, *rest])
        bits = range(registers + self.lanes + self.warps)
        self.columns = [(coordinates.coefficients(1 << i) or 0) >> len(equal) for i in bits]
        among = f2.Echelon(x >> registers for x in equal)
        self.idle = sum(1 << i for i in range(len(threads)) if among.reduce(1 << i)[0] != 1 << i)
        """Bits of lane and warp of which only the threads that have none set store; the others have the same."""

    def _flat(self, place: Place) -> int:
        register, lane, warp = place
        return register | (lane | warp << self.lanes) << self.log

    def _address(self, base: Value, registers: Sequence[int], width: int, low: int, steps: Sequence[int]) -> Value:
        """For each register and step: where its value lies, without the bits `low`, and so many elements further."""
        columns = [x & ~low for x in self.columns]
        starts = [((f2.multiply(columns[: self.log], r)) | s) * width for r in registers for s in steps]
        by_lane = [x * width for x in columns[self.log : self.log + self.lanes]]
        by_warp = [x * width for x in columns[self.log + self.lanes :]]
        return self.c.plus(self.c.build.linear(starts, by_lane, by_warp), base)

    def stored(self, value: Value, registers: Sequence[int]) -> tuple[Value, int]:
        """(where a fragment of these registers lies in memory, once; bytes of an element)."""
        c = self.c
        if value.elem == "i1":
            value = c.build.op("arith.extui", [value], "i8")
        width = max(8, ELEMENT_BITS[value.elem]) // 8
        base = c.allocate(self.size * width, "reduction")
        masks = (("lane", self.idle & c.program.lanes - 1), ("warp", self.idle >> self.lanes))
        once = c.all_of([c.is_zero(c.index(d, m)) for d, m in masks if m])
        c.build.store("shared", self._address(base, registers, width, 0, [0]), value, 1, once)
        return base, width

    def read(self, elem: str, base: Value, width: int, registers: Sequence[int]) -> list[Value]:
        """For each place to combine the stored fragment of these registers, in one order for all threads."""
        vector = min(self.ways, VECTOR_BYTES // width)
        address = self._address(base, registers, width, self.ways - 1, range(0, self.ways, vector))
        loaded = self._loaded(elem, address, vector)
        return [self.c.build.rename(loaded, range(k, loaded.count, self.ways)) for k in range(self.ways)]

    def spread(self) -> list[int] | None:
        """Lanes of which each can read another place to combine, as bits; None where they hold different rows."""
        low = self.ways - 1
        equal = [1 << i for i in range(self.lanes) if not self.columns[self.log + i] & ~low]
        return equal[: low.bit_length()] if len(equal) >= low.bit_length() else None

    def read_apart(self, elem: str, base: Value, width: int, registers: Sequence[int], lanes: Sequence[int]) -> Value:
        """The stored fragment of these registers: each of the lanes that differ in some bits has another place's."""
        low = self.ways - 1
        starts = [(f2.multiply(self.columns[: self.log], r) & ~low) * width for r in registers]
        way = {bit.bit_length() - 1: 1 << i for i, bit in enumerate(lanes)}
        columns = [x & ~low for x in self.columns[self.log :]]
        by_lane = [(x | way.get(i, 0)) * width for i, x in enumerate(columns[: self.lanes])]
        by_warp = [x * width for x in columns[self.lanes :]]
        return self._loaded(elem, self.c.plus(self.c.build.linear(starts, by_lane, by_warp), base), 1)

    def _loaded(self, elem: str, address: Value, vector: int) -> Value:
        c = self.c
        loaded = c.build.load("shared", address, "i8" if elem == "i1" else elem, vector)
        return c.build.op("arith.trunci", [loaded], "i1") if elem == "i1" else loaded

    def of_blocks(
        self, elem: str, base: Value, width: int, registers: Sequence[int], directions: Sequence[tuple[Place, int]]
    ) -> list[Value]:
        """Fragments of these registers from several blocks, in one order for all of them.

        `directions` say what to add to a place and to the block's rank to find what is to be combined; the first of
        each group of blocks is the one whose rank has no leading bit of them.
        """
        c, log = self.c, self.c.program.blocks.bit_length() - 1
        rows = f2.Echelon(rank for _, rank in directions)
        places = [self._flat(place) for place, _ in directions]
        first, moved = [], []  # of each bit of the rank: that of the first block, and what the way there adds to places
        for i in range(log):
            rank, _ = rows.reduce(1 << i)
            way = rows.coefficients(rank ^ 1 << i) or 0
            first.append(rank)
            moved.append(f2.multiply(self.columns, f2.multiply(places, way)) * width)
        columns = [x * width for x in self.columns]
        lanes, warps = columns[self.log : self.log + self.lanes], columns[self.log + self.lanes :]
        values = []
        for way in range(1 << len(directions)):
            rank, place = (f2.multiply(x, way) for x in ([r for _, r in directions], places))
            starts = [f2.multiply(columns, r ^ place) for r in registers]
            home = c.build.remote(base, c.build.linear([rank], block=first))
            address = c.plus(c.build.linear(starts, lanes, warps, moved), home)
            loaded = c.build.load("cluster", address, "i8" if elem == "i1" else elem)
            values.append(c.build.op("arith.trunci", [loaded], "i1") if elem == "i1" else loaded)
        return values
