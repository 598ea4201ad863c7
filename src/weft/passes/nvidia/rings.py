"""Rings of buffers in shared memory, which one warp has filled and others empty, with two mbarriers for each buffer.

slot   0 1 2 0 1 2 0 ...        the buffer of an iteration
phase  0 0 0 1 1 1 0 ...        which phase of its mbarriers ends then: it goes round with the buffers
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from weft.ir import Builder, i1, i32, i64, segments
from weft.ir.gpu import MemDescType, memdesc, ttg
from weft.ir.nvidia import ttng
from weft.layouts import SwizzledSharedLayout

from .specialized_loops import Group


@dataclass(frozen=True)
class Ring:
    """The buffers of a group and their mbarriers."""

    group: Group
    buffers: tuple[SSAValue, ...]
    full: SSAValue
    empty: SSAValue


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
    """So many mbarriers, in each block of a cluster."""
    layout = SwizzledSharedLayout(1, 1, 1, [0], [[0]] * (blocks.bit_length() - 1))
    return memdesc((count, 1), i64, layout, mutable=True)


def word(b: Builder, barriers: SSAValue, slot: SSAValue) -> SSAValue:
    """One mbarrier of several."""
    assert isinstance(barriers.type, MemDescType)
    layout = barriers.type.data.layout.named
    assert isinstance(layout, SwizzledSharedLayout)
    return b.create(ttg.MemDescIndexOp, (barriers, slot), (memdesc((1,), i64, layout, mutable=True),)).result


def wait(b: Builder, barrier: SSAValue, phase: SSAValue) -> None:
    sizes = {"operandSegmentSizes": segments(1, 1, 1, 0)}
    b.create(ttng.WaitBarrierOp, (barrier, phase, b.constant(1, i1)), (), sizes)
