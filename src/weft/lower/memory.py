"""Global memory: loads and stores, as wide as addresses, masks and layouts allow.

A vector runs along the dimension where addresses are consecutive, whichever that is; registers are renamed so that its
elements come one after the other. Where layouts are their author's, it is made of registers that follow each other in
the layout, from the first on, as in Triton: `BlockedLayout([2, 2], ..., order=[1, 0])` is two elements of a row at a
time, and of columns one. Of lanes and warps that hold copies one stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from weft.ir import int_value, is_tensor
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2

from .context import Context, elem_of, lowering, tile_shape
from .next_rows import ask_for_next
from .runs import alike
from .telling import tell_width

VECTOR_BYTES = 16


def access_order(
    c: Context, pointer: SSAValue, mask: SSAValue | None, bits: int, *, in_registers: bool = True
) -> tuple[list[int], int]:
    """(the registers to access, in order and without copies; how many of them one instruction takes).

    Where values do not come to lie `in_registers`, their order there is nothing that an author has chosen.
    """
    layout = c.layout(pointer)
    columns = layout.in_columns("register")
    copies = layout.free_variable_masks()["register"]
    kept = [i for i in range(len(columns)) if not copies >> i & 1]
    facts = c.facts.of(pointer)
    allowed = c.facts.of(mask) if mask is not None and is_tensor(mask.type) else None
    size = max(1, bits // 8)
    in_order = c.keeps_layouts and in_registers
    best: list[int] = []
    shift = 0
    for axis, extent in enumerate(tile_shape(pointer)):
        run = min(facts.contiguity[axis], facts.divisibility[axis] // size, VECTOR_BYTES // size, extent)
        if allowed is not None:
            run = min(run, allowed.constancy[axis])
        bases = _consecutive(layout, kept, shift, max(1, run).bit_length() - 1, in_order=in_order)
        if len(bases) > len(best):
            best = bases
        shift += extent.bit_length() - 1
    vectors = [sum(1 << kept[i] for i in f2.bits(v)) for v in best]
    rows = f2.Echelon(vectors)
    rest = [1 << i for i in kept if rows.add(1 << i)]
    return f2.span([*vectors, *rest]), 1 << len(vectors)


def runs_of(layout: LinearLayout, run: int) -> list[int]:
    """The registers of a layout of one dimension without copies, in runs of so many neighbouring elements."""
    copies = layout.free_variable_masks()["register"]
    kept = [i for i in range(layout.in_log("register")) if not copies >> i & 1]
    vectors = [sum(1 << kept[i] for i in f2.bits(v)) for v in _consecutive(layout, kept, 0, run.bit_length() - 1)]
    assert 1 << len(vectors) == run, layout
    rows = f2.Echelon(vectors)
    return f2.span([*vectors, *(1 << i for i in kept if rows.add(1 << i))])


def neighbours(c: Context, pointer: SSAValue, bits: int) -> int:
    """Elements that a lane has side by side along the best dimension, whatever is known of their addresses."""
    layout = c.layout(pointer)
    copies = layout.free_variable_masks()["register"]
    kept = [i for i in range(layout.in_log("register")) if not copies >> i & 1]
    most, shift = 1, 0
    for extent in tile_shape(pointer):
        run = min(extent, VECTOR_BYTES // max(1, bits // 8))
        most = max(most, 1 << len(_consecutive(layout, kept, shift, run.bit_length() - 1)))
        shift += extent.bit_length() - 1
    return most


def _consecutive(
    layout: LinearLayout, kept: Sequence[int], shift: int, most: int, *, in_order: bool = False
) -> list[int]:
    """Registers (in terms of those kept) that step by 1, 2, 4, ... along the dimension that begins at a bit; with
    `in_order`, only the first of those kept, the second, and so on."""
    flat = layout.columns
    columns = [flat[i] for i in kept]
    others = 0
    for column in flat[layout.in_log("register") :]:
        others |= column
    rows = f2.Echelon(columns)
    registers: list[int] = []
    for k in range(most):
        combination = rows.coefficients(1 << shift + k)
        if combination is None or others >> shift + k & 1 or (in_order and combination != 1 << k):
            break
        registers.append(combination)
    # What is left of the registers must be able to do without the vector's bits.
    while registers:
        mask = ((1 << len(registers)) - 1) << shift
        echelon = f2.Echelon(registers)
        rest = [1 << i for i in range(len(kept)) if echelon.add(1 << i)]
        if not any(f2.multiply(columns, r) & mask for r in rest):
            return registers
        registers.pop()
    return registers


def unique_registers(layout: LinearLayout) -> list[int]:
    """The registers of a layout without those that are copies of others."""
    copies = layout.free_variable_masks()["register"]
    return f2.span([1 << i for i in range(layout.in_log("register")) if not copies >> i & 1])


def _starts(order: Sequence[int], vector: int) -> list[int]:
    return [order[i] for i in range(0, len(order), vector)]


def _addresses(c: Context, pointer: SSAValue, registers: Sequence[int], bits: int) -> Value:
    """The addresses in some registers: of elements that lie in a row, the first one's and what is added to it.

    That they lie in a row nobody after this sees, where the sums of which they are made have 32 bits. It counts where
    they are accessed one by one, because each has a mask of its own: an access takes what is added as part of itself.
    """
    order, run = access_order(c, pointer, None, bits)
    place = {r: k for k, r in enumerate(order)}
    if run == 1 or all(place[r] % run == 0 for r in registers):
        return c.build.rename(c.whole(pointer), registers)
    first = c.build.rename(c.whole(pointer), [order[place[r] // run * run] for r in registers])
    distances = c.build.linear([place[r] % run * (bits // 8) for r in registers])
    return c.build.op("arith.addi", [first, c.build.op("arith.extsi", [distances], "i64")], "i64")


def mask_of(c: Context, mask: SSAValue, registers: Sequence[int]) -> Value:
    """The mask's registers for some of the layout's: of those that are known to be equal, the same one.

    Where 16 elements in a row have one mask, so have registers of one thread that lie 8 apart: a predicate less.
    """
    return c.build.rename(c.whole(mask), alike(c, [mask], registers))


CACHES = {2: "ca", 3: "cg", 4: "wb", 5: "cs", 6: "wt", 7: "cv"}
EVICTIONS = {2: "evict_first", 3: "evict_last"}


def hints_of(op: Operation) -> dict[str, Any]:
    """What is asked of the caches, for the attributes of an access."""
    hints: dict[str, Any] = {}
    for name, names in (("cache", CACHES), ("evict", EVICTIONS)):
        number = int_value(op.properties[name]) if name in op.properties else 0
        if number in names:
            hints[name] = names[number]
    if "isVolatile" in op.properties and int_value(op.properties["isVolatile"]):
        hints["volatile"] = True
    return hints


@lowering("tt.load")
def _load(c: Context, op: Operation) -> None:
    pointer, result = op.operands[0], op.results[0]
    mask = op.operands[1] if len(op.operands) > 1 else None
    other = op.operands[2] if len(op.operands) > 2 else None
    elem = elem_of(result.type)
    zero = c.build.constant(elem, 0) if mask is not None and other is None else None  # what masked-off lanes get
    if not is_tensor(pointer.type):
        instead = c[other] if other is not None else zero
        active = c[mask] if mask is not None else None
        hints = hints_of(op)
        fragment = c.build.load("global", c[pointer], elem, 1, active, instead, **hints)
        c[result] = _of_first_block(c, fragment) if hints.get("volatile") and c.program.blocks > 1 else fragment
        return
    order, vector = access_order(c, pointer, mask, ELEMENT_BITS[elem])
    _tell(c, "load", op, pointer, mask, ELEMENT_BITS[elem], vector)
    ask_for_next(c, op)
    starts = _starts(order, vector)
    place: Sequence[int] = range(len(order))
    if vector == 1 and not hints_of(op).get("volatile"):  # elements of one address are loaded once
        tiles = [x for x in (pointer, mask, other) if x is not None and is_tensor(x.type)]
        same = alike(c, tiles, order)
        starts = list(dict.fromkeys(same))
        place = [starts.index(r) for r in same]
    address = _addresses(c, pointer, starts, ELEMENT_BITS[elem])
    active = mask_of(c, mask, starts) if mask is not None else None
    instead = c.build.rename(c.whole(other), order if vector > 1 else starts) if other is not None else zero
    loaded = c.build.load("global", address, elem, vector, active, instead, **hints_of(op))
    c[result] = c.build.rename(loaded, [place[k] for k in back(c.layout(pointer), order)])


def _tell(
    c: Context, kind: str, op: Operation, pointer: SSAValue, mask: SSAValue | None, bits: int, vector: int
) -> None:
    kept = c.keeps_layouts and c.program.remarks
    apart = access_order(c, pointer, mask, bits, in_registers=False)[1] if kept else 0
    tell_width(c, kind, op, pointer, mask, bits, vector, apart=apart)


def _of_first_block(c: Context, value: Value) -> Value:
    """A scalar that others may change meanwhile: all blocks of a cluster go by what the first of them has read.

    Else they might go different ways, and wait for each other for ever.
    """
    stored = c.build.op("arith.extui", [value], "i8") if value.elem == "i1" else value
    base = c.allocate(max(8, ELEMENT_BITS[value.elem]) // 8, "load")
    c.build.store("shared", base, stored, 1, c.all_of(c.once(None)))
    shared = c.build.load("cluster", c.build.remote(base, c.number(0)), stored.elem)
    return c.build.op("arith.trunci", [shared], "i1") if value.elem == "i1" else shared


def back(layout: LinearLayout, order: Sequence[int]) -> list[int]:
    """For each register of the layout where among those accessed it, or what it is a copy of, is."""
    columns = layout.in_columns("register")
    place = {f2.multiply(columns, r): k for k, r in enumerate(order)}
    return [place[x] for x in f2.span(columns)]


@lowering("tt.store")
def _store(c: Context, op: Operation) -> None:
    pointer, value = op.operands[0], op.operands[1]
    mask = op.operands[2] if len(op.operands) > 2 else None
    c.has_stored = True
    if not is_tensor(pointer.type):
        active = c.all_of([*c.once(None, cluster=True), c[mask] if mask else None])
        c.build.store("global", c[pointer], c[value], 1, active, **hints_of(op))
        return
    bits = ELEMENT_BITS[elem_of(value.type)]
    order, vector = access_order(c, pointer, mask, bits)
    _tell(c, "store", op, pointer, mask, bits, vector)
    starts = _starts(order, vector)
    masks = mask_of(c, mask, starts) if mask is not None else None
    active = c.all_of([masks, *c.once(c.layout(pointer), cluster=True)])
    stored = c.build.rename(c.whole(value), order)
    addresses = _addresses(c, pointer, starts, bits)
    c.build.store("global", addresses, stored, vector, active, **hints_of(op))
