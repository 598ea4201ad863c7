"""Atomic operations on global memory: each element once, by one of the lanes that hold copies of it.

What was there before is handed to the other copies: by a shuffle within the warp, through shared memory beyond it. A
scalar is such a tile, of which every lane of the block has a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import Operation, SSAValue

from weft.ir import int_value, is_tensor
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2

from .context import Context, elem_of, lowering
from .memory import access_order, back, unique_registers
from .shared import load_tile, store_tile
from .telling import barrier_between, tell_width

_NAMES = ("and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch")
KINDS = dict(enumerate(_NAMES, 1))
ORDERS = {1: "relaxed", 2: "acquire", 3: "release", 4: "acq_rel"}
SCOPES = {1: "gpu", 2: "cta", 3: "sys"}


@lowering("tt.atomic_rmw")
def _read_modify_write(c: Context, op: Operation) -> None:
    pointer, value = op.operands[0], op.operands[1]
    mask = op.operands[2] if len(op.operands) > 2 else None
    attrs = {"kind": KINDS[int_value(op.properties["atomic_rmw_op"])]}
    _each(c, op, "atomic", [pointer, value], mask, attrs)


@lowering("tt.atomic_load")
def _load(c: Context, op: Operation) -> None:
    _each(c, op, "atomic", [op.operands[0]], op.operands[1] if len(op.operands) > 1 else None, {"kind": "load"})


@lowering("tt.atomic_store")
def _store(c: Context, op: Operation) -> None:
    _each(c, op, "atomic", op.operands[:2], op.operands[2] if len(op.operands) > 2 else None, {"kind": "store"})


@lowering("tt.atomic_cas")
def _compare_and_swap(c: Context, op: Operation) -> None:
    _each(c, op, "compare_and_swap", list(op.operands), None, {})


def _each(
    c: Context, op: Operation, name: str, operands: Sequence[SSAValue], mask: SSAValue | None, attrs: dict[str, Any]
) -> None:
    elem = elem_of(op.results[0].type if op.results else operands[1].type)
    used = bool(op.results and op.results[0].uses)
    layout = c.layout(operands[0]) if is_tensor(operands[0].type) else None
    order = unique_registers(layout) if layout is not None else [0]
    vector = 1
    if attrs.get("kind") == "fadd" and not used:
        order, vector = _together(c, operands[0], mask, elem, order)
    if layout is not None:
        most = _added_together(c, elem) if attrs.get("kind") == "fadd" and not used else 1
        tell_width(c, "atomic", op, operands[0], mask, ELEMENT_BITS[elem], vector, most)
    starts = order[::vector]
    chosen = [c.build.rename(c.whole(operands[0]), starts), *(c.build.rename(c.whole(x), order) for x in operands[1:])]
    if len(chosen) == 1:  # a load, of which the value is not looked at
        chosen.append(c.build.rename(c.build.constant(elem, 0), [0] * len(starts)))
    asked = c.build.rename(c.whole(mask), starts) if mask is not None and not c.is_true(mask) else None
    active = c.all_of([asked, *c.once(layout, cluster=True)])
    if active is not None:
        chosen.append(active)
    sem = ORDERS[int_value(op.properties["sem"])]
    scope = SCOPES[int_value(op.properties["scope"])]
    if layout is None and sem in ("release", "acq_rel") and c.has_stored:  # one lane releases what all have stored
        threads = "block" if c.program.blocks == 1 else "cluster"
        barrier_between(c, "global", "the stores before it", "an atomic that releases them", threads)
    if vector > 1:
        attrs = {**attrs, "vector": vector}
    whole = {**attrs, "space": "global", "order": sem, "scope": scope, "masked": active is not None}
    old = c.build.add(name, chosen, [(elem, len(order))], whole).result
    if not op.results:
        return
    if not used:
        c[op.results[0]] = old if layout is None else c.build.rename(old, back(layout, order))
    elif layout is None:
        c[op.results[0]] = to_all(c, old, LinearLayout.from_bases(everywhere(c), {"dim0": 1}))
    else:
        c[op.results[0]] = to_all(c, c.build.rename(old, back(layout, order)), layout)


def _together(
    c: Context, pointer: SSAValue, mask: SSAValue | None, elem: str, order: list[int]
) -> tuple[list[int], int]:
    """(registers, how many of them side by side) as far as the machine adds several at once."""
    most = _added_together(c, elem)
    if not is_tensor(pointer.type) or most == 1:
        return order, 1
    registers, vector = access_order(c, pointer, mask, ELEMENT_BITS[elem])
    return registers, min(vector, most)


def _added_together(c: Context, elem: str) -> int:
    """How many elements the machine adds at once."""
    return dict(c.program.machine.atomic_adds).get(elem, 1)


def everywhere(c: Context) -> dict[str, list[tuple[int]]]:
    """Every lane holds the one element."""
    counts = {"register": 1, "lane": c.program.lanes, "warp": c.program.warps, "block": c.program.blocks}
    return {d: [(0,)] * (n.bit_length() - 1) for d, n in counts.items()}


def to_all(c: Context, value: Value, layout: LinearLayout) -> Value:
    """What the first of several copies has, for all of them."""
    copies = layout.free_variable_masks()
    if copies["block"]:
        return _to_all_blocks(c, value, layout)
    if not copies["lane"] and not copies["warp"]:
        return value
    if not copies["warp"]:
        bases = [1 << i & ~copies["lane"] for i in range(layout.in_log("lane"))]
        order = unique_registers(layout)
        lane = c.build.linear([0] * len(order), bases)
        moved = c.build.shuffle(c.build.rename(value, order), lane)
        return c.build.rename(moved, back(layout, order))
    shape = tuple(layout.out_dims.values())
    width = max(8, ELEMENT_BITS[value.elem]) // 8
    names = list(layout.out_dims)
    flat = LinearLayout.identity_1d(prod(shape), "offset", "x")
    memory = flat.reshape_outs({n: layout.out_dims[n] for n in reversed(names)}).transpose_outs(names)
    base = c.allocate(width * prod(shape), "atomic")
    store_tile(c, value, layout, memory, base, width, first_only=True)  # what the others have is nothing
    return load_tile(c, value.elem, layout, memory, base, width)


def _to_all_blocks(c: Context, value: Value, layout: LinearLayout) -> Value:
    """The same where copies are in several blocks of a cluster: from the memory of the block that has the first."""
    elem, order = value.elem, unique_registers(layout)
    if elem == "i1":
        value = c.build.op("arith.extui", [value], "i8")
    copies, flat = layout.free_variable_masks(), layout.flatten_outs()
    width = max(8, ELEMENT_BITS[value.elem]) // 8
    columns = {d: [x * width for x in flat.in_columns(d)] for d in ("register", "lane", "warp", "block")}
    starts = [f2.multiply(columns["register"], r) for r in order]
    address = c.build.linear(starts, columns["lane"], columns["warp"], columns["block"])
    base = c.allocate(width << flat.total_out_log, "atomic")
    chosen = c.build.rename(value, order)
    c.build.store("shared", c.plus(address, base), chosen, 1, c.all_of(c.once(layout)))
    first = [1 << i & ~copies["block"] for i in range(layout.in_log("block"))]
    home = c.build.remote(base, c.build.linear([0], block=first))
    loaded = c.build.load("cluster", c.plus(address, home), value.elem)
    if elem == "i1":
        loaded = c.build.op("arith.trunci", [loaded], "i1")
    return c.build.rename(loaded, back(layout, order))
