"""Remarks of the lowering: how wide accesses are, how tiles are moved, what lies in shared memory, which warps wait.

Each function is called where the decision is made and has nothing to do unless the program has a collector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod

import numpy as np
from xdsl.ir import Operation, SSAValue

from weft.analysis import arguments_that_spoil, limit_of_run, touches_of
from weft.base.remarks import (
    AccessWidth,
    Alternative,
    Barrier,
    Combined,
    Conversion,
    Gathered,
    ProductBy,
    SharedAccess,
    SharedBuffer,
    Site,
)
from weft.ir import element_of, ints_of, pointee_of, shape_of, site_of, span_of, tile_text, type_text
from weft.ir.gpu import MemDescType, encoding_of, told_layout
from weft.ir.lane import ELEMENT_BITS, Allocation, LaneOp, LaneProgram
from weft.layouts import LinearLayout, f2, with_gaps
from weft.layouts.banks import meeting
from weft.layouts.plan import Gather, LocalAccess, Plan
from weft.targets.instruction import Instruction

from .context import Context, elem_of, tile_shape


def tell_width(
    c: Context,
    access: str,
    op: Operation,
    pointer: SSAValue,
    mask: SSAValue | None,
    bits: int,
    vector: int,
    most: int = 0,
    buffered: bool = False,
    apart: int = 0,
) -> None:
    """How many elements are accessed at a time, and what keeps it from more, up to `most`; `buffered` says that it is
    how the tile lies in shared memory, `apart` how many a thread has if their order in its registers does not count."""
    if not c.program.remarks:
        return
    size = max(1, bits // 8)
    most = most * size or c.machine.vector_bytes
    span, extents = span_of(op), tile_shape(pointer)
    tile = "x".join((*map(str, extents), type_text(pointee_of(element_of(pointer.type)))))
    limit, fact, value, where = "widest", "", "", None
    spoil: tuple[str, ...] = ()
    if vector * size < most:
        contiguity = c.facts.of(pointer).contiguity
        axis = max(range(len(extents)), key=lambda d: (min(contiguity[d], extents[d]), d))
        run = min(most // size, extents[axis])
        spoiler = limit_of_run(c.facts, pointer, mask, axis, run, size)
        if buffered:
            limit, fact = "buffer", f"the buffer in shared memory has {vector} of its elements in a row"
        elif apart > vector:
            of, more = _layout_of(pointer), "relayout=True would take them together"
            limit, fact = "layout", f"its author's {of} has {apart} in a row, in registers that are apart; {more}"
        elif spoiler is not None:
            limit, fact, value, where = spoiler.kind, spoiler.fact, spoiler.value, spoiler.span
            if limit in ("alignment", "mask", "wrap"):
                spoil = arguments_that_spoil(c.facts, pointer, mask, axis, run, size)
        elif run * size < most and vector == run:
            limit, fact = "tile", f"the tile has {run} element{'s' if run > 1 else ''} along dimension {axis}"
        elif vector >= (each := max(1, prod(extents) // (c.program.warps * c.program.lanes * c.program.blocks))):
            limit, fact = "tile", f"the tile has {each} element{'s' if each > 1 else ''} for each thread"
        else:
            elements = "1 element" if vector == 1 else f"{vector} elements"
            limit, fact = "layout", f"the layout gives a thread {elements} in a row, {_layout_of(pointer)}"
    c.program.remarks.add(AccessWidth(span, access, tile, vector * size, most, limit, fact, value, where, spoil))


def _layout_of(value: SSAValue) -> str:
    encoding = encoding_of(value.type)
    return told_layout(encoding.named) if encoding is not None else "none"


def tell_conversion(c: Context, plan: Plan, elem: str) -> None:
    """How a tile is moved between layouts, for the operation that is lowered now."""
    asked = c.op is not None and c.op.name == "ttg.convert_layout"
    if not c.program.remarks or c.op is None or (plan.kind in ("nothing", "registers") and not asked):
        return
    op = c.op
    source = op.operands[0].owner if op.operands else op
    users = [use.operation for use in op.results[0].uses] if asked else [op]
    # what was unrolled or inlined says the same again: its places are the same objects
    key = elem, *(id(x) for x in (plan, op.location, getattr(source, "location", None), *(u.location for u in users)))
    remark = c.conversions.get(key)
    if remark is None:
        layouts = told_layout(plan.src), told_layout(plan.dst)
        if asked:
            layouts = _layout_of(op.operands[0]), _layout_of(op.results[0])
        by = site_of(source) if isinstance(source, Operation) else Site("what the loop carries")
        wanted = tuple(dict.fromkeys(map(site_of, users)))[:4]
        tile = "x".join([*map(str, plan.src.out_dims.values()), elem])
        cycles, scratch, subject = plan.cost.cycles, plan.cost.scratch_bytes, (c.build.span, tile, *layouts, by, wanted)
        remark = c.conversions[key] = Conversion(*subject, plan.kind, cycles, scratch, _considered(plan))
    c.program.remarks.add(remark)


def tell_gather(c: Context, plan: Gather, elem: str) -> None:
    """How elements are looked up in a tile."""
    if c.program.remarks:
        tile = "x".join([*map(str, plan.source.out_dims.values()), elem])
        c.program.remarks.add(Gathered(c.build.span, tile, plan.kind, plan.cost.cycles, _considered(plan)))


def _considered(plan: Plan | Gather) -> tuple[Alternative, ...]:
    return tuple(Alternative(k, None if p == math.inf else p, note) for k, p, note in plan.considered)


def tell_combined(
    c: Context, kind: type[Combined], op: Operation, axis: int, sizes: Sequence[int], before: tuple[int, int]
) -> None:
    """How elements are combined: by each thread, lanes, warps and blocks, so many each; `before` says how many
    operations and buffers there were."""
    if c.program.remarks:
        each, lanes, warps, blocks = sizes
        added = c.build.block.ops[before[0] :] if lanes > 1 else []
        shuffles = sum(x.result.count for x in added if x.name == "shuffle")
        scratch = sum(b.bytes for b in c.program.shared[before[1] :] if b.what != "conversion")
        sent = blocks > 1 and any("awaited" in x.attrs for x in c.build.block.ops[before[0] :])
        facts = tile_text(op.operands[0].type), axis, each, lanes, shuffles, warps, blocks, scratch
        c.program.remarks.add(kind(span_of(op), *facts, sent))


def tell_shared(
    c: Context, access: str, elem: str, plan: LocalAccess, layouts: tuple[LinearLayout, LinearLayout], lanes: list[int]
) -> None:
    """By which instructions a tile goes to or from a buffer in shared memory; its layouts in registers and there, and
    the bytes that each bit of a lane's number adds to an address."""
    if not c.program.remarks:
        return
    by, met = plan.access, (0, tuple[int, ...]())
    tile = "x".join([*map(str, layouts[0].out_dims.values()), elem])
    size = max(1, ELEMENT_BITS[elem] // 8)
    gaps = tuple((interval * size, padding * size) for interval, padding in plan.gaps)
    if by.instruction == "shared" and by.excess and not c.machine.load_phase:
        met = meeting(with_gaps(np.array(f2.span(lanes)), gaps), by.bytes, c.machine)
    price = by.count, by.wavefronts, by.ideal
    registers, memory = map(told_layout, layouts)
    told = (c.build.span, access, tile, by.instruction, by.bytes, *price)
    c.program.remarks.add(SharedAccess(*told, registers, memory, gaps, *met, *_buffer_of(c.op)))


def _buffer_of(op: Operation | None) -> tuple[str, tuple[int, ...]]:
    """The buffer that an operation accesses, as it was allocated, and the order in which it has its dimensions."""
    sides = (*op.operands, *op.results) if op is not None else ()
    values = [x for x in sides if isinstance(x.type, MemDescType)]
    if not values:
        return "", ()
    value, order = values[0], tuple[int, ...]()
    while isinstance(value.owner, Operation) and value.owner.name in VIEWS:
        if value.owner.name == "ttg.memdesc_trans":
            before = tuple(ints_of(value.owner.properties["order"]))
            order = tuple(before[i] for i in order) if order else before
        elif order:  # fewer dimensions, or others
            return "", ()
        value = value.owner.operands[0]
    assert isinstance(value.type, MemDescType)
    return f"{memory_text(value.type)} {told_layout(value.type.data.layout.named)}", order


VIEWS = ("ttg.memdesc_trans", "ttg.memdesc_index", "ttg.memdesc_subslice")


def tell_product(c: Context, op: Operation, entry: Instruction | None, count: int, reason: str = "") -> None:
    """By which instruction a product is computed, and how many of it."""
    if not c.program.remarks:
        return
    tiles = [x.type for x in (op.operands[0], op.operands[1], op.results[0])]
    left, right, total = (type_text(x.element_type) if isinstance(x, MemDescType) else elem_of(x) for x in tiles)
    left_shape, shape = (tuple(x.shape) if isinstance(x, MemDescType) else shape_of(x) for x in (tiles[0], tiles[2]))
    name = entry.name if entry is not None else ""
    c.program.remarks.add(ProductBy(span_of(op), (*shape, left_shape[-1]), (left, right, total), name, count, reason))


def tell_buffers(program: LaneProgram) -> None:
    """Every buffer of shared memory that is used, now that all are placed."""
    for buffer in program.shared if program.remarks else ():
        if buffer.bytes:
            facts = buffer.span, buffer.bytes, buffer.offset or 0, _purpose(buffer)
            program.remarks.add(SharedBuffer(*facts, *(buffer.lines or ())))


def memory_text(type: MemDescType) -> str:
    """The shape and elements of a buffer: 3x64x64xf16."""
    return "x".join((*map(str, type.shape), type_text(type.element_type)))


def _purpose(buffer: Allocation) -> str:
    """What a buffer was made for, as people call it."""
    name = "tile" if buffer.what in ("", "local_alloc") else buffer.what
    return f"{name} of {buffer.tile}" if buffer.tile else name


Sides = tuple[LaneOp, LaneOp | None]
END = Site("the end of the kernel")
USERS = Site("the operations that use it")


def barrier_between(c: Context, memory: str, earlier: str, later: str, scope: str = "block") -> None:
    """A barrier that the operation which is lowered now cannot do without."""
    c.build.barrier(scope, inserted=False)
    c.program.between[c.build.block.ops[-1]] = memory, Site(earlier), Site(later)


def tell_barriers(
    program: LaneProgram, sides: Mapping[LaneOp, Sides], buffers: Callable[[LaneOp], Collection[int]] | None
) -> None:
    """Say of those that are left which two accesses each is between: of shared memory in the `buffers` of an
    operation, or of global memory."""
    if not program.remarks or not (program.shared or program.between if buffers is not None else sides):
        return
    for op in program.body.walk():
        if op.name != "barrier":
            continue
        scope = str(op.attrs["scope"])
        if op in program.between and buffers is not None:
            program.remarks.add(Barrier(op.span, scope, *program.between[op]))
        elif op in sides:
            earlier, later = sides[op]
            both = (earlier, later) if later is not None else (earlier,)
            if later is not None and any(touch.release for touch in touches_of(later)):
                both = (earlier,)  # it says that the memory is free, in an mbarrier that is elsewhere
            chosen = [sorted(buffers(x)) for x in both] if buffers is not None else []
            common = [b for b in chosen[0] if b in chosen[-1]] if chosen else []
            purposes = tuple(_purpose(program.shared[(common or c)[0]]) for c in chosen if c)
            memory, end = "global" if buffers is None else "shared", site_of_access(later) if later is not None else END
            program.remarks.add(Barrier(op.span, scope, memory, site_of_access(earlier), end, purposes))
        elif buffers is not None and op.attrs.get("made_barriers"):
            making = Site("the making of an mbarrier", op.span)
            program.remarks.add(Barrier(op.span, scope, "shared", making, USERS))


def site_of_access(op: LaneOp) -> Site:
    """An access as people call it."""
    if op.name == "instruction":
        return Site(str(op.attrs["isa"]), op.span)
    return Site({"atomic": "an atomic", "load": "a load", "store": "a store"}.get(op.name, op.name), op.span)
