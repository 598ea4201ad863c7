"""Rotate rows that begin at any address, so that each thread loads aligned vectors of memory.

    %i = tt.make_range {end = 1024, start = 0} : tensor<1024xi32, #one_each>
    %p = tt.addptr (tt.splat %row), %i                              // %row = %x + program * 1001, bf16
    %m = arith.cmpi slt, %i, (tt.splat %n)
    %v = tt.load %p, %m : tensor<1024x!tt.ptr<bf16>, #one_each>
becomes
    %shift = arith.andi (program * 1001), 7
    %end = min(%n, 1024)
    %v = weft.load_row %row, %shift, %end, 0 {run = 8, aligned} : !tt.ptr<bf16> -> tensor<1024xbf16, #eight_each>
    %i = (tt.make_range - tt.splat %shift) & 1023                   // for other uses

A row of 1,001 elements of 2 bytes begins at any even address. Element by element, 32 lanes load 64 bytes at a time, not
aligned to the 32 bytes in which memory is accessed; the mask is a predicate for each element. Instead the tile is
rotated: place p has element p - shift, so that places 8, 16, ... begin at multiples of 16 bytes. The first `shift`
places get elements from the end of the tile. The tile then has the same elements, only in other threads, and a thread
has runs of 8 with one predicate each. The first run and the one in which the row ends, two of hundreds, are accessed
element by element, so nothing outside of the row is read.

All rows of a program get the same shift. The store decides it, because two threads cannot share one vector of a store.
Other rows, such as weights, begin at an aligned address but are rotated too. They are read by the aligned vectors that
contain a thread's elements, and threads exchange the parts that are in their neighbours' vectors.

This is done if no operation depends on which thread has which element (as in `recoalesce`, which gives these tiles
their layouts) and sums may be taken in any order. `lower/rows.py` says how such rows are loaded, computed and stored,
and decision 26 (docs/explanation/decisions) what it gains. Not done here: tiles of more dimensions, and stores to rows
that are aligned otherwise than the first store's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts, Row, Term, commutes, limit_of_run, row_at, scalar_of
from weft.base.remarks import NO_REMARKS, LayoutChanged, RemarkCollector, RowAligned
from weft.ir.gpu import LayoutAttr, encoding_for, encoding_of
from weft.ir.gpu.rows import LoadRowOp, StoreRowOp
from weft.ir.types import i32, i64, is_float

from . import recoalesce
from .effects import shareable
from .removal import remove

NARROW = 4
"""Bytes of an element, at most, for which this is done: longer ones are 256 bytes for 32 lanes."""
LEAST_RUN_BYTES = 4
MOST_RUN = 8
"""Elements: the ends of a row, two runs each, are one element a lane."""
MOST_SHIFTED = 4
"""Bytes of an element, at most, that is read from vectors that are not aligned: words are what is shifted."""


@dataclass
class _Row(Row):
    """A load or store of a row."""

    op: Operation
    other: Term | None
    size: int
    vector: int
    """Elements of one access, as it is."""
    key: tuple[object, ...] = ()
    """What its misalignment comes from."""
    loose: list[SSAValue] = field(default_factory=list)
    """The terms that are not known to keep the alignment."""
    is_based: bool = True
    """Whether the base is aligned."""

    @property
    def is_store(self) -> bool:
        return self.op.name == "tt.store"


def align_rows(module: ModuleOp, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rotate the rows of each function that are better read and written by aligned vectors."""
    for function in module.body.block.ops:
        if function.name == "tt.func":
            users = recoalesce.users_of_rows(function)
            for layout in list(users):
                rows = _rows(layout, users.get(layout, ()))
                if rows is not None and _rotate(function, layout, rows, remarks):
                    users = recoalesce.users_of_rows(function)


# -- finding -----------------------------------------------------------------------------------------------------------


def _rows(layout: LayoutAttr, users: recoalesce.Users) -> list[_Row] | None:
    """The rows that are accessed in a layout; None where they are good as they are, or cannot be rotated."""
    if recoalesce.blocks_of(layout) == 0:
        return None
    facts, rows = AxisFacts(), list[_Row]()
    for op, tiles in users:
        if op.name not in recoalesce.CONTROL and not recoalesce.is_blind(op, tiles, layout):
            return None
        if op.name == "tt.reduce" and not commutes(op.regions[0].blocks[0]):
            return None
        if op.name == "tt.make_range" and ir.int_value(op.properties["start"]):
            return None
        if op.name in ("tt.load", "tt.store") and facts.of(op.operands[0]).contiguity[0] > 1:
            row = _row(op, facts)
            if row is None:
                return None
            rows.append(row)
    return rows or None


def _row(op: Operation, facts: AxisFacts) -> _Row | None:
    """A load or store as one of a row; None where it is not one."""
    found = row_at(op.operands[0], recoalesce.masks_of(op))
    bits = ir.bit_width(ir.pointee_of(ir.element_of(op.operands[0].type)))
    if found is None or bits not in (8, 16, 32, 64):
        return None
    if "isVolatile" in op.properties and ir.int_value(op.properties["isVolatile"]):
        return None
    vector = recoalesce.vector_of(op, facts, bits)
    row = _Row(found.base, found.terms, found.ends, found.conditions, op, None, bits // 8, vector)
    if op.name == "tt.load" and len(op.operands) > 2:
        row.other = scalar_of(op.operands[2])
        if row.other is None:
            return None
    return row


def _note_alignment(row: _Row, run: int, facts: AxisFacts) -> None:
    """Note what a row's misalignment comes from."""
    row.is_based = min(facts.of(row.base).divisibility) >= recoalesce.RUN_BYTES
    row.loose = [t for t in row.terms if not isinstance(t, int) and facts.of(t).divisibility[0] < run]
    constant = sum(t for t in row.terms if isinstance(t, int)) % run
    row.key = (*sorted(id(t) for t in row.loose), constant, *(() if row.is_based else (id(row.base), row.size)))


# -- rotation ----------------------------------------------------------------------------------------------------------


def _rotate(function: Operation, layout: LayoutAttr, rows: Sequence[_Row], remarks: RemarkCollector) -> bool:
    """Lay out a function's tiles of a layout anew, rotated by what the first of its stores asks for, where it pays."""
    size = layout.data.shape[0]
    linear = layout.linear
    assert linear is not None
    lanes, warps, blocks = linear.in_dims["lane"], linear.in_dims["warp"], recoalesce.blocks_of(layout)
    parts = warps * blocks
    narrowest = min(row.size for row in rows)
    run = min(MOST_RUN, recoalesce.RUN_BYTES // narrowest, lanes // 4, max(1, size // (lanes * parts)))
    if narrowest > NARROW or run * narrowest < LEAST_RUN_BYTES or size < run * lanes * parts:
        return False
    facts = AxisFacts()
    for row in rows:
        _note_alignment(row, run, facts)
    stores = [row for row in rows if row.is_store]
    first = (stores or list(rows))[0]
    if any(row.key != first.key for row in stores) or all(
        row.vector >= min(run, recoalesce.RUN_BYTES // row.size) for row in rows
    ):
        return False
    if any(row.key != first.key and row.size > MOST_SHIFTED for row in rows) or _come_back(rows):
        return False
    entry = function.regions[0].blocks[0]
    ranges = [op for op in ir.find(function, ir.tt.MakeRangeOp) if encoding_of(op.results[0].type) == layout]
    needed = [*first.loose, *(() if first.is_based else (first.base,))]
    slice = _slice(needed, entry)
    if slice is None:
        return False
    for row in rows if remarks else ():
        _tell(row, run, row.key != first.key, facts, remarks)
    rounds = (
        recoalesce.ROUNDS
        if any(recoalesce.ends_early(m, facts) for row in rows for m in recoalesce.masks_of(row.op))
        else 1
    )
    piece = max(run * lanes, min(size // (parts * rounds), recoalesce.PIECE_BYTES // max(row.size for row in rows)))
    rotated = encoding_for(recoalesce.in_pieces(size, run, piece, lanes, warps, blocks), layout.data.shape)
    recoalesce.tell_layout(function, layout, rotated, remarks, LayoutChanged)
    recoalesce.replace_layout(function, layout, rotated)
    for op in slice:
        op.detach()
    start = ir.Builder.at_start(entry, ranges[0].location)
    for op in slice:
        start.insert(op)
    shift = _shift(start, first, run)
    numbers = _number(start, ranges, shift, size)
    masks = [(row, mask) for row in rows for mask in recoalesce.masks_of(row.op)]
    for row in rows:
        _rewrite(row, first, shift, run, size)
    for row, mask in masks:
        _name(row, mask, numbers, size)
    return True


def _tell(row: _Row, run: int, shifted: bool, facts: AxisFacts, remarks: RemarkCollector) -> None:
    """Say how a row is accessed, and what keeps it from being accessed so as it is written."""
    op, pointer, masks = row.op, row.op.operands[0], recoalesce.masks_of(row.op)
    wanted = min(run, recoalesce.RUN_BYTES // row.size)
    limit = limit_of_run(facts, pointer, masks[0] if masks else None, 0, wanted, row.size)
    fact = (limit.fact, limit.value, limit.span) if limit is not None else ("",)
    tile = ir.tile_text((*op.results, *op.operands[1:])[0].type)
    access = "store" if row.is_store else "load"
    remarks.add(RowAligned(ir.span_of(op), access, tile, wanted * row.size, shifted, *fact))


def _come_back(rows: Sequence[_Row]) -> bool:
    """Whether a stored row may overlap another access such that their order may be lost.

    The lowering loads a row where its elements are used, maybe after a store that follows the load. That changes
    nothing if both access the same elements, each thread its own, nor if they are in different loops or branches, which
    no load leaves. Barriers between these, and between iterations, follow from addresses (lower/order_globals.py).
    """

    def argument(row: _Row) -> SSAValue | None:
        place = row.base
        while isinstance(place.owner, Operation):
            if place.owner.name != "tt.addptr":
                return None
            place = place.owner.operands[0]
        return place

    accesses = [(argument(row), (row.base, *row.terms), row.op) for row in rows]
    for written, place, store in accesses:
        if store.name != "tt.store":
            continue
        is_outside = getattr(store.parent_op(), "name", "") == "tt.func"
        for other, where, op in accesses:
            is_same = where == place and (is_outside or op.parent is store.parent)
            if written is None or other is None or (other is written and not is_same and not _are_apart(op, store)):
                return True
    return False


def _are_apart(one: Operation, two: Operation) -> bool:
    """Whether they are in different loops or branches, neither of which is in the other."""
    return not any(a.parent is None or a.parent.is_ancestor(b) for a, b in ((one, two), (two, one)))


def _slice(values: Sequence[SSAValue], entry: Block) -> list[Operation] | None:
    """The operations that scalars are computed by, in order; None where they cannot come first."""
    wanted: set[Operation] = set()
    todo = list(values)
    while todo:
        op = todo.pop().owner
        if isinstance(op, Block):
            if op is not entry:
                return None
        elif op not in wanted:
            if op.parent is not entry or not shareable(op):
                return None
            wanted.add(op)
            todo += op.operands
    return [op for op in entry.ops if op in wanted]


def _shift(b: ir.Builder, row: _Row, run: int) -> SSAValue:
    """How far into its aligned vector a row begins, in elements."""
    constant = sum(t for t in row.terms if isinstance(t, int)) % run
    total: SSAValue | None = b.constant(constant, i32) if constant else None
    for term in row.loose:
        part = term if term.type == i32 else b.cast(arith.TruncIOp, term, i32)
        total = part if total is None else b.binary(arith.AddiOp, total, part)
    if not row.is_based:
        address = b.create(ir.tt.PtrToIntOp, (row.base,), (i64,)).results[0]
        element = b.binary(arith.ShRUIOp, address, b.constant(row.size.bit_length() - 1, i64))
        part = b.cast(arith.TruncIOp, element, i32)
        total = part if total is None else b.binary(arith.AddiOp, total, part)
    if total is None:
        return b.constant(0, i32)
    return b.binary(arith.AndIOp, total, b.constant(run - 1, i32))


def _number(b: ir.Builder, ranges: Sequence[Operation], shift: SSAValue, size: int) -> SSAValue:
    """Give those who look at the numbers of the elements those that are at the places of a tile now: these numbers."""
    number = getattr(shift.owner, "value", None)
    if isinstance(number, IntegerAttr) and not number.value.data:
        return ranges[0].results[0]
    kind = ranges[0].results[0].type
    places = b.create(ir.tt.MakeRangeOp, (), (kind,), dict(ranges[0].properties)).results[0]
    splat = b.create(ir.tt.SplatOp, (shift,), (kind,)).results[0]
    elements = b.binary(arith.AndIOp, b.binary(arith.SubiOp, places, splat), b.constant(size - 1, kind))
    for op in ranges:
        elements.name_hint = elements.name_hint or op.results[0].name_hint
        op.results[0].replace_all_uses_with(elements)
        remove(op)
    return elements


def _name(row: _Row, mask: SSAValue, numbers: SSAValue, size: int) -> None:
    """Write a mask that others want with the row's end, so that it is seen that it says which elements are there."""
    if mask.uses and isinstance(mask.owner, Operation) and mask.owner.name != "arith.constant":
        b = ir.Builder.after(mask.owner)
        end = b.create(ir.tt.SplatOp, (_end(b, row, size),), (numbers.type,)).results[0]
        mask.replace_all_uses_with(b.cmpi("slt", numbers, end))


def _rewrite(row: _Row, first: _Row, shift: SSAValue, run: int, size: int) -> None:
    """A load or store of a row in the place of one of a tile of addresses."""
    op, b = row.op, ir.Builder.before(row.op)
    place = row.base
    for term in row.terms:
        place = b.addptr(place, b.constant(term, i32) if isinstance(term, int) else term)
    element = ir.pointee_of(ir.element_of(op.operands[0].type))
    properties = {k: v for k, v in op.properties.items() if k in ("cache", "evict")} | {"run": ir.i32_attr(run)}
    end = _end(b, row, size)
    if row.is_store:
        b.create(StoreRowOp, (place, shift, end, op.operands[1]), (), properties)
    else:
        if row.key == first.key:
            properties["aligned"] = UnitAttr()
        zero: Term = 0 if row.other is None else row.other
        other = zero if isinstance(zero, SSAValue) else _constant(b, zero, element)
        load = b.create(LoadRowOp, (place, shift, end, other), (op.results[0].type,), properties)
        load.results[0].name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(load.results[0])
    remove(op)


def _constant(b: ir.Builder, value: Term, element: object) -> SSAValue:
    assert not isinstance(value, SSAValue)
    return b.constant(float(value) if is_float(element) else value, element)  # type: ignore[arg-type]


def _end(b: ir.Builder, row: _Row, size: int) -> SSAValue:
    """How many elements of a row are there, of those that the tile has places for."""

    def wide(term: Term) -> SSAValue:
        if isinstance(term, int):
            return b.constant(term, i64)
        return term if term.type == i64 else b.cast(arith.ExtSIOp, term, i64)

    last = b.constant(size, i64)
    for limit, added, more in row.ends:
        end = wide(limit)
        for term in added:
            end = b.binary(arith.SubiOp, end, wide(term))
        if more:
            end = b.binary(arith.AddiOp, end, b.constant(more, i64))
        last = b.binary(arith.MinSIOp, last, end)
    if row.ends:
        last = b.binary(arith.MaxSIOp, last, b.constant(0, i64))
    for condition in row.conditions:
        last = b.select(condition, last, b.constant(0, i64))
    return b.cast(arith.TruncIOp, last, i32)
