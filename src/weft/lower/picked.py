"""Elements of shared memory that indices pick: gathered, scattered, and changed by atomic operations.

    result[i, j] = memory[index[i, j], j]            ttg.local_gather, axis 0
    memory[index[i, j], j] = value[i, j]             ttg.local_scatter, axis 0
    memory[index[i, j], j] op= value[i, j]           ttg.local_atomic_scatter_rmw, axis 0

Where an element lies is a linear function of its coordinates, one of which is the index: its offset, and in a cluster
the rank of the block in whose memory it is. Blocks read and write each other's memory as the indices say. Where several
blocks have copies of the memory each reads its own, and writes its own: what is stored is in all of them then.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from weft.base import Unsupported
from weft.base.remarks import AccessWidth
from weft.ir import int_value
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2

from .atomics import KINDS, to_all
from .blocks import in_each_block
from .context import Context, elem_of, lowering
from .convert import convert
from .gather import Wanted, wrapped
from .memory import back, unique_registers
from .padding import gaps_of, place_of_offset
from .shapes import settle
from .shared import memory_of
from .telling import memory_text


@dataclass(frozen=True)
class _Picked:
    """For each register of the indices the address of an element, and in whose memory it is."""

    space: str
    address: Value
    first_block: int
    """Bits of a block's rank that are 0 in the one of several blocks, with copies of the indices, that is to write."""


def _picked(c: Context, op: Operation, memory: SSAValue, layout: LinearLayout, index: Value) -> _Picked:
    """Which elements the indices pick, which have this layout."""
    type, places, width = memory_of(memory)
    access = "atomic" if "atomic" in op.name else op.name.rpartition("_")[2]
    subject = c.build.span, access, memory_text(type), width, c.machine.vector_bytes
    c.program.remarks.add(AccessWidth(*subject, "index", "each element is where its index says"))
    shape, names = places.out_dims, list(places.out_dims)
    axis = names[int_value(op.properties["axis"])]
    inverse = places.pseudoinvert()
    at_place = [
        inverse.apply({n: 1 << i if n == name else 0 for n in names})
        for name in names
        for i in range(shape[name].bit_length() - 1)
    ]
    wanted = Wanted(c, layout, shape, axis, wrapped(c, index, shape[axis]))
    offset = wanted.place([int(x["offset"]) * width for x in at_place])
    begin = c.offset_of(memory)
    if begin:
        offset = c.build.op("arith.xori", [offset, c.number(begin)], "i32")
    offset = place_of_offset(c, offset, gaps_of(type, width))
    copied = _copied(c, places)
    ranks = [int(x.get("block", 0)) for x in at_place]
    if not any(ranks) and not c.rank_of(memory):
        return _Picked("shared", c.plus(offset, c[memory]), 0)
    rank = wanted.place(ranks)
    mine = c.index("block", copied) if copied else None
    for more in (mine, c.number(c.rank_of(memory)) if c.rank_of(memory) else None):
        rank = c.build.op("arith.xori", [rank, more], "i32") if more is not None else rank
    copies = layout.free_variable_masks()["block"] if layout.has_in("block") else 0
    return _Picked("cluster", c.plus(offset, c.build.remote(c[memory], rank)), copies & ~copied)


def _copied(c: Context, places: LinearLayout) -> int:
    """The bits of a block's rank that make no difference to what is in its memory."""
    columns = places.in_columns("block") if places.has_in("block") else ()
    return sum(1 << i for i in range(c.program.blocks.bit_length() - 1) if i >= len(columns) or not columns[i])


def _where_copies_are(c: Context, memory: SSAValue, layout: LinearLayout) -> LinearLayout:
    """The layout in which every block with a copy of some memory has what is to be written there."""
    copied = _copied(c, memory_of(memory)[1])
    if c.program.blocks == 1 or not any(any(layout.bases["block"][i]) for i in f2.bits(copied)):
        return layout
    return in_each_block(layout)


@lowering("ttg.local_gather")
def _local_gather(c: Context, op: Operation) -> None:
    source, index = op.operands
    picked = _picked(c, op, source, c.layout(index), c.whole(index))
    c[op.results[0]] = c.build.load(picked.space, picked.address, elem_of(op.results[0].type))


@lowering("ttg.local_scatter")
def _local_scatter(c: Context, op: Operation) -> None:
    target, index, values = op.operands
    layout = c.layout(values)
    wanted = _where_copies_are(c, target, layout)
    at, value = (x if wanted == layout else convert(c, x, layout, wanted) for x in (c.whole(index), c.whole(values)))
    picked = _picked(c, op, target, wanted, at)
    c.build.store(picked.space, picked.address, value, 1, c.all_of([*c.once(wanted), *_first(c, picked)]))


def _first(c: Context, picked: _Picked) -> list[Value]:
    return [c.is_zero(c.index("block", picked.first_block))] if picked.first_block else []


@lowering("ttg.local_atomic_scatter_rmw")
def _local_atomic(c: Context, op: Operation) -> None:
    """Each element once, by the first of the lanes that hold copies of it; what was there is handed to the others."""
    target, values, index, *masks = op.operands
    layout, elem = c.layout(values), elem_of(values.type)
    kind = KINDS[int_value(op.properties["atomic_rmw_op"])]
    if ELEMENT_BITS[elem] < 16 or (ELEMENT_BITS[elem] < 32 and kind != "fadd"):
        raise Unsupported(
            f"an atomic operation on elements of {ELEMENT_BITS[elem]} bits of shared memory",
            c.program.target,
            c.build.span,
            hint="use elements of 32 bits",
        )
    wanted = _where_copies_are(c, target, layout)
    operands = [c.whole(x) for x in (values, index, *(m for m in masks if not c.is_true(m)))]
    value, at, *asked = operands if wanted == layout else [convert(c, x, layout, wanted) for x in operands]
    order = unique_registers(wanted)
    picked = _picked(c, op, target, wanted, at)
    chosen = [c.build.rename(x, order) for x in (picked.address, value)]
    conditions = [c.build.rename(x, order) for x in asked]
    active = c.all_of([*conditions, *c.once(wanted), *_first(c, picked)])
    if active is not None:
        chosen.append(active)
    scope = "cta" if picked.space == "shared" else "cluster"
    attrs = {"space": picked.space, "kind": kind, "order": "relaxed", "scope": scope, "masked": active is not None}
    old = c.build.add("atomic", chosen, [(elem, len(order))], attrs).result
    result = op.results[0]
    if not result.uses:
        c[result] = c.build.rename(old, [0] * c.count(result.type))
        return
    settle(c, result, to_all(c, c.build.rename(old, back(wanted, order)), wanted), wanted)
