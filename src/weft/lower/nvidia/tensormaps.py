"""Tensor maps that a kernel makes: written to shared memory field by field, then copied to global memory."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.ir import int_value
from weft.ir.lane import Value

from ..context import Context
from ..telling import barrier_between
from .mbarriers import elected
from .table import lowering

BYTES = 128
LISTS = ("box_dim", "global_dim", "global_stride", "element_stride")


@lowering("ttg.global_scratch_alloc")
def _scratch(c: Context, op: Operation) -> None:
    size, alignment = (
        int_value(op.properties[n] if n in op.properties else op.attributes[n]) for n in ("nbytes", "alignment")
    )
    offset = -(-c.program.scratch // alignment) * alignment
    c.program.scratch = -(-(offset + size) // BYTES) * BYTES
    c[op.results[0]] = c.build.add("scratch", (), [("i64", 1)], {"offset": offset}).result


@lowering("ttng.tensormap_create")
def _create(c: Context, op: Operation) -> None:
    segments = [int(x) for x in op.properties["operandSegmentSizes"].get_values()]  # type: ignore[attr-defined]
    operands = [c[x] for x in op.operands]
    pointer, address = operands[:2]
    rest = operands[2:]
    lists: dict[str, list[Value]] = {}
    for name, size in zip(LISTS, segments[2:], strict=True):
        lists[name], rest = rest[:size], rest[size:]
    base = c.allocate(BYTES, "tensor map", BYTES)
    first = c.all_of(c.once(None)[1:])  # the first warp
    lane = c.build.linear((0,), lane=(4, 8, 16, 32, 64))
    c.build.store("shared", c.plus(lane, base), c.number(0), 1, first)
    active = elected(c)

    def replace(field: str, *values: Value) -> None:
        c.build.instruction(f"tensormap.replace.{field}", [base, *values, active])

    replace("global_address", address)
    replace("rank", c.number(len(lists["box_dim"]) - 1))
    for name in LISTS:
        for i, value in enumerate(lists[name]):
            replace(name, c.number(i), value)
    for field, name in (
        ("elemtype", "elem_type"),
        ("interleave_layout", "interleave_layout"),
        ("swizzle_mode", "swizzle_mode"),
        ("fill_mode", "fill_mode"),
    ):
        replace(field, c.number(int_value(op.properties[name])))
    publishing = first if first is not None else c.build.constant("i1", 1)
    c.build.instruction("tensormap.publish", [pointer, base, publishing])


@lowering("ttng.tensormap_fenceproxy_acquire")
def _acquire(c: Context, op: Operation) -> None:
    """The first warp has written the map: the others wait for it."""
    barrier_between(c, "global", "the making of a tensor map", "its use")
    c.build.instruction("tensormap.acquire", [c[op.operands[0]]])


@lowering("ttng.reinterpret_tensor_descriptor")
def _reinterpret(c: Context, op: Operation) -> None:
    c[op.results[0]] = c[op.operands[0]]
