"""How much shared memory other tiles and layout conversions leave for the buffers of a loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import Protocol

from xdsl.dialects import scf
from xdsl.ir import Attribute, Operation, SSAValue

from weft import ir
from weft.ir.gpu import MemDescType, layout_of
from weft.ir.gpu.ttg import ConvertLayoutOp, LocalAllocOp
from weft.layouts import SharedLayout
from weft.machines import Machine

from .buffered_tiles import is_converted
from .overlap_products import stored_operands

SPARE_BYTES = 8 << 10
"""What is left for conversions, reductions and the like in a loop."""


class BufferedLoad(Protocol):
    """A load whose tile gets buffers."""

    @property
    def load(self) -> ir.tt.LoadOp:
        """The load."""

    @property
    def layout(self) -> SharedLayout:
        """How its tile lies in a buffer."""


def other_bytes(loop: scf.ForOp, copied: Sequence[BufferedLoad], by_twos: bool) -> int:
    """Bytes of the other tiles in shared memory that may be in use during the loop; the stages of others are not."""
    loaded = {c.load.result for c in copied}
    twice = stored_operands(loop) if by_twos else []
    total = 0
    for op in ir.walk(_function_of(loop)):
        if not isinstance(op, LocalAllocOp) or op.src is None or _is_buffer(op, loaded):
            continue
        if _is_in_use(op, loop):
            total += (1 + (op in twice)) * _bytes_of(op)
    return total


def _bytes_of(alloc: LocalAllocOp) -> int:
    type = alloc.result.type
    assert isinstance(type, MemDescType)
    return prod(type.shape) * ir.bit_width(type.element_type) // 8


def peak_bytes(loop: scf.ForOp, copied: Sequence[BufferedLoad], machine: Machine) -> int:
    """Bytes of the other tiles in shared memory that are in use at a time, at most, and of what is moved meanwhile.

    Unlike `other_bytes` and `moved_bytes`, which are enough for any order of allocations, this is what is left if tiles
    that are not in use at the same time share their memory, and what is stored twice is stored once.
    """
    ops = list(loop.body.block.ops)
    loaded = {c.load.result for c in copied}
    used = other_bytes(loop, copied, False)
    taken = [moved_bytes(op, copied, machine) for op in ops]
    spans: dict[tuple[SSAValue, Attribute], tuple[int, int, int]] = {}
    for at, op in enumerate(ops):
        for alloc in ir.walk(op):
            if isinstance(alloc, LocalAllocOp) and alloc.src is not None and not _is_buffer(alloc, loaded):
                users = {use.operation for memory in _views(alloc.result) for use in memory.uses}
                last = max((i for i, x in enumerate(ops) if not users.isdisjoint(ir.walk(x))), default=at)
                first, before, size = spans.get((alloc.src, alloc.result.type), (at, at, _bytes_of(alloc)))
                spans[alloc.src, alloc.result.type] = first, max(before, last), size
                used -= size
    for first, last, size in spans.values():
        for at in range(first, last + 1):
            taken[at] += size
    return used + max(taken)


def _is_buffer(alloc: LocalAllocOp, loaded: Collection[SSAValue]) -> bool:
    """Whether memory is a buffer of a loaded tile: where a branch stores one, it is stored once more."""
    source = stored_source(alloc.src) if alloc.src is not None else alloc.result
    return source in loaded and isinstance(source.owner, Operation) and alloc.parent is source.owner.parent


def _function_of(op: Operation) -> Operation:
    while op.name != "tt.func" and (parent := op.parent_op()) is not None:
        op = parent
    return op


def _is_in_use(alloc: LocalAllocOp, loop: Operation) -> bool:
    """Whether memory may be in use while a loop runs: what other loops and branches store for themselves is not."""
    if loop.is_ancestor(alloc):
        return True
    at: Operation | None = loop
    while at is not None and at.parent is not alloc.parent:
        at = at.parent_op()
    if at is None:
        return False
    users = {op for memory in _views(alloc.result) for op in (use.operation for use in memory.uses)}
    while at is not None:
        if any(at.is_ancestor(op) for op in users):
            return True
        at = at.next_op
    return False


def _views(memory: SSAValue) -> list[SSAValue]:
    """Memory, and all that is the same or a part of it."""
    found = [memory]
    for value in found:
        found += [op.results[0] for op in (use.operation for use in value.uses) if op.name.startswith("ttg.memdesc_")]
    return found


def moved_bytes(
    around: Operation, copied: Sequence[BufferedLoad], machine: Machine, without: Collection[Operation] = ()
) -> int:
    """Bytes of the largest tile that a loop or a branch moves between lanes or warps, by other operations than some."""
    sizes = [0]
    buffers: dict[SSAValue, SharedLayout] = {c.load.result: c.layout for c in copied}
    for op in ir.walk(around):
        if isinstance(op, ConvertLayoutOp) and op not in without:
            if op.src in buffers and not is_converted(op, buffers[op.src], machine):
                continue
            before, after = (layout_of(x.type).bases for x in (op.src, op.result))
            if any(before[dim] != after[dim] for dim in ("lane", "warp")):
                sizes.append(prod(ir.shape_of(op.src.type)) * max(8, ir.bit_width(ir.element_of(op.src.type))) // 8)
    return max(sizes)


def stores_anew(loop: scf.ForOp, loaded: Collection[SSAValue]) -> bool:
    """Whether a loop computes operands of its only product and stores them, some of them not as they were loaded."""
    return any(op.src is not None and stored_source(op.src) not in loaded for op in stored_operands(loop))


def stored_source(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, Operation) and value.owner.name in ("tt.trans", "ttg.convert_layout"):
        value = value.owner.operands[0]
    return value
