"""Rings of buffers in shared memory that one warp fills and others empty, with two mbarriers for each buffer.

slot   0 1 2 0 1 2 0 ...        the buffer of an iteration
phase  0 0 0 1 1 1 0 ...        the parity of the mbarriers' phase that ends in it, which changes with each round
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, i1, i32, i32_attr, i64, segments, unit_attr
from weft.ir.gpu import MemDescType, memdesc, ttg
from weft.ir.nvidia import ttng
from weft.layouts import SwizzledSharedLayout

from .bulk_loads import BulkLoad
from .side_by_side import Row
from .specialized_loops import Group


@dataclass(frozen=True)
class Buffers:
    """Where the tiles of a load go: buffers of their own, or parts of buffers of several `units`, from one on."""

    memory: SSAValue
    tile: MemDescType
    unit: MemDescType
    units: int = 1
    first: int = 0

    def at(self, b: Builder, slot: SSAValue, memory: SSAValue | None = None) -> SSAValue:
        """The tile in a slot; `memory` is what all of them are called there."""
        number = slot
        if self.units > 1:
            number = b.binary(arith.MuliOp, slot, b.constant(self.units, i32))
            number = b.binary(arith.AddiOp, number, b.constant(self.first, i32)) if self.first else number
        begin = b.create(ttg.MemDescIndexOp, (memory or self.memory, number), (self.unit,)).result
        return begin if self.unit == self.tile else b.create(ttg.MemDescReinterpretOp, (begin,), (self.tile,)).result


def buffers_of(b: Builder, loads: Sequence[BulkLoad], rows: Sequence[Row], count: int) -> tuple[Buffers, ...]:
    """`count` buffers for each load; right operands of products side by side are adjacent."""
    made: dict[BulkLoad, Buffers] = {}
    for row in rows:
        if row.operands and row.operands[0].load in loads and row.operands[0].load not in made:
            unit = row.unit.load
            sizes = [x.columns // row.unit.columns for x in row.operands]
            memory = b.create(ttg.LocalAllocOp, (), (unit.memory(count * sum(sizes)),)).result
            for i, load in enumerate(row.loads):
                made[load] = Buffers(memory, load.memory(), unit.memory(), sum(sizes), sum(sizes[:i]))
    for x in loads:
        if x not in made:
            made[x] = Buffers(b.create(ttg.LocalAllocOp, (), (x.memory(count),)).result, x.memory(), x.memory())
        made[x].memory.name_hint = made[x].memory.name_hint or f"{x.base.name_hint or 'tile'}_buffers"
    return tuple(made[x] for x in loads)


@dataclass(frozen=True)
class Ring:
    """The buffers of a group and their mbarriers."""

    group: Group
    buffers: tuple[Buffers, ...]
    full: SSAValue
    empty: SSAValue


def ring_of(
    b: Builder, early: Builder, group: Group, rows: Sequence[Row], count: int, warps: int, blocks: int, several: bool
) -> Ring:
    """A ring of `count` buffers, which all warps of all blocks empty; its mbarriers are initialised at `early`."""
    buffers = buffers_of(b, group.loads, rows, count)
    full, empty = (early.create(ttg.LocalAllocOp, (), (words(count, blocks),)).result for _ in range(2))
    of = f"{group.loads[0].base.name_hint}_" if several else ""
    full.name_hint, empty.name_hint = f"{of}full", f"{of}empty"
    for barriers, arrivals in ((full, 1), (empty, warps * blocks)):
        for i in range(count):
            one = word(early, barriers, early.constant(i, i32))
            early.create(ttng.InitBarrierOp, (one,), (), {"count": i32_attr(arrivals)})
    return Ring(group, buffers, full, empty)


def give_back(b: Builder, ring: Ring, slot: SSAValue, blocks: int, where: SSAValue | None = None) -> None:
    """Let each warp say that it is done with a buffer, if `where` holds."""
    one = word(b, ring.empty, slot)
    condition = where if where is not None else b.constant(1, i1)
    arrive = b.create(ttng.ArriveBarrierOp, (one, condition), (), {"count": i32_attr(1)})
    arrive.attributes[ttng.EACH_WARP] = unit_attr()
    if blocks > 1:  # one block has the buffers of all filled with what they share
        arrive.attributes[ttng.EVERY_BLOCK] = unit_attr()


def next_slot(b: Builder, count: int, slot: SSAValue, phase: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The buffer of the next iteration, of so many, and which phase of its mbarriers that is."""
    is_last = b.cmpi("eq", slot, b.constant(count - 1, i32))
    one = b.constant(1, i32)
    following = b.select(is_last, b.constant(0, i32), b.binary(arith.AddiOp, slot, one))
    other = b.select(is_last, b.binary(arith.SubiOp, one, phase), phase)
    following.name_hint, other.name_hint = "slot", "phase"
    return following, other


def slot_before(b: Builder, count: int, slot: SSAValue) -> SSAValue:
    """The buffer of the iteration before, of so many."""
    is_first = b.cmpi("eq", slot, b.constant(0, i32))
    return b.select(is_first, b.constant(count - 1, i32), b.binary(arith.SubiOp, slot, b.constant(1, i32)))


def words(count: int, blocks: int = 1) -> MemDescType:
    """The type of `count` mbarriers, in each block of a cluster."""
    layout = SwizzledSharedLayout(1, 1, 1, [0], [[0]] * (blocks.bit_length() - 1))
    return memdesc((count, 1), i64, layout, mutable=True)


def word(b: Builder, barriers: SSAValue, slot: SSAValue) -> SSAValue:
    """One mbarrier of several."""
    assert isinstance(barriers.type, MemDescType)
    layout = barriers.type.data.layout.named
    assert isinstance(layout, SwizzledSharedLayout)
    return b.create(ttg.MemDescIndexOp, (barriers, slot), (memdesc((1,), i64, layout, mutable=True),)).result


def wait(b: Builder, barrier: SSAValue, phase: SSAValue) -> Operation:
    """Wait for the end of a phase of an mbarrier."""
    sizes = {"operandSegmentSizes": segments(1, 1, 1, 0)}
    return b.create(ttng.WaitBarrierOp, (barrier, phase, b.constant(1, i1)), (), sizes)
