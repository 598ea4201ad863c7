"""The target's own instructions, barriers, printing and assertions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.base import DeviceAssertionError, Unsupported
from weft.ir.findings import explained
from weft.ir.lane import LaneOp, Value
from weft.machines import oldest_with
from weft.targets.instruction import Instruction
from weft.targets.table import first_with, has, instruction

from .access import need_defined
from .clusters import cluster_arrive, cluster_wait
from .debugger import assembled
from .errors import TrapError
from .machine import Access, Context, Wait
from .printing import print_op
from .report import Report
from .values import DTYPES, Array, Fragment, full, unknown

# -- instructions -----------------------------------------------------------------------------------------------------


class _Memory:
    """Shared memory as the meaning of an instruction sees it; its warps may be repeated."""

    def __init__(self, context: Context, op: LaneOp, known: bool, known_data: bool, proxy: bool) -> None:
        self.context, self.op, self.known, self.known_data, self.proxy = context, op, known, known_data, proxy
        self.undefined: Array | None = None
        """Which warps have read what is undefined."""
        self.number = 0
        """Of accesses so far."""
        self.reads: list[Array] = []
        """What the asynchronous proxy reads, as bytes in the shared memory of all blocks."""

    def _access(self, space: str, address: Array, active: Array, width: int) -> Access:
        """[repeat * warp, lane] as [warp, lane, repeat]."""
        warps = self.context.count

        def spread(x: Array) -> Array:
            return np.moveaxis(x.reshape(-1, warps, x.shape[1]), 0, 2)

        place = spread(address).astype(np.int64)
        if self.proxy and not self.context.batch.launch.counting:
            flat = place + self.context.batch.base(self.context)
            self.reads.append(flat[spread(active)][:, None] + np.arange(0, width, self.context.batch.granule))
        self.number += 1
        return Access(self.op, space, place, spread(active), width, self.known, self.proxy, number=self.number)

    def read(self, space: str, address: Array, width: int, active: Array) -> Array:
        access = self._access(space, address, active, width)
        access.known = not self.context.batch.launch.counting
        data, undefined = self.context.batch.load(self.context, access)
        self.known_data &= access.known
        if undefined is not None:
            self.undefined = np.asarray(undefined.any(axis=(1, 2, 3)))
        return np.moveaxis(data, 2, 0).reshape(*address.shape, width)

    def write(self, space: str, address: Array, data: Array, active: Array) -> None:
        access = self._access(space, address, active, data.shape[2])
        access.known = self.known_data
        spread = np.moveaxis(data.reshape(-1, self.context.count, *data.shape[1:]), 0, 2)
        self.context.batch.store(self.context, access, spread)


def run_instruction(context: Context, op: LaneOp, entry: Instruction, proxy: bool = False) -> list[Array]:
    """What an instruction does by its meaning, on registers and memory. With `proxy` the asynchronous proxy accesses
    shared memory; given are then the bytes that it reads, in the shared memory of all blocks.
    """
    if entry.semantics is None:
        raise Unsupported(f"the instruction `{entry.name}` as `instruction`", context.batch.program.target, op.span)
    fragments = [context.env[v] for v in op.operands]
    if context.batch.launch.counting and "multiplies" in entry.params:
        return _counted_product(context, op, entry, fragments)
    repeats = max(f.data.shape[2] // o.count for f, o in zip(fragments, entry.operands, strict=True))
    arrays = [
        _repeated(full(f.data, context.count, context.batch.lanes), o.count, repeats)
        for f, o in zip(fragments, entry.operands, strict=True)
    ]
    known = all(f.known for f in fragments)
    context.batch.report.add_kind(op.span, entry.name, repeats * context.count)
    addresses = [f for f, o in zip(fragments, entry.operands, strict=True) if o.constraint == "l"]
    placed = all(f.known for f in addresses or fragments[:1])  # descriptors; else the address comes first
    if entry.touches and not placed:
        context.batch.report.exact = False
    memory = _Memory(context, op, placed, known, proxy) if entry.touches else None
    if entry.touches == "shared":
        need_defined(context, op, op.operands[0], "the address")
    results = entry.run(*arrays, memory=memory)
    wrong = _undefined_warps(fragments, context.count)
    if memory is not None and memory.undefined is not None:
        wrong = memory.undefined if wrong is None else wrong | memory.undefined
    known = known and (memory is None or memory.known_data)
    for value, operand, data in zip(op.results, entry.results, results, strict=True):
        whole = _joined(data, repeats, context.count).reshape(context.count, context.batch.lanes, -1)
        assert whole.shape[2] == value.count == operand.count * repeats
        undefined = None if wrong is None else np.broadcast_to(wrong[:, None, None], whole.shape)
        context.env.values[value] = Fragment(_typed_as(whole, value.elem), undefined, known)
    return memory.reads if memory is not None else []


def _counted_product(context: Context, op: LaneOp, entry: Instruction, fragments: list[Fragment]) -> list[Array]:
    """Count an instruction of a matrix unit: of what it computes nothing is known, but which memory it reads.

    The same addresses count the same again, also in another block.
    """
    batch = context.batch
    repeats = max(v.count // o.count for v, o in zip(op.operands, entry.operands, strict=True))
    batch.report.add_kind(op.span, entry.name, repeats * context.count)
    if entry.touches:
        places = {o.name: f for f, o in zip(fragments, entry.operands, strict=True) if o.constraint == "l"}
        if not all(f.known for f in places.values()):
            batch.report.exact = False
        parts = context.by_program()
        if all(_is_repeated(f.data, parts) for f in places.values()):
            counts = _known_reads(context, op, entry, places, repeats, parts[0])
            batch.report.add(op.span, **{name: n * context.count // len(parts[0]) for name, n in counts.items()})
        else:
            of_warps: dict[str, Array] = {}
            for rows in parts:
                for name, n in _known_reads(context, op, entry, places, repeats, rows).items():
                    of_warps.setdefault(name, np.zeros(context.count, np.int64))[rows[0]] = n
            batch.report.add_each(op.span, of_warps)
    for value in op.results:
        context.env.values[value] = unknown(value.elem, value.count)
    return []


def _is_repeated(data: Array, parts: Sequence[Array]) -> bool:
    """Whether a value is the same in all of these parts of the warps, which follow each other."""
    warps = len(parts[0])
    if len(data) == 1 or len(parts) == 1:
        return True
    return all(len(rows) == warps for rows in parts) and bool(
        (data.reshape(len(parts), warps, *data.shape[1:]) == data[:warps]).all()
    )


def _known_reads(
    context: Context, op: LaneOp, entry: Instruction, places: Mapping[str, Fragment], repeats: int, rows: Array
) -> Mapping[str, int]:
    """What the accesses of an instruction by some of the warps count, which is remembered by the places."""
    products = context.batch.launch.sliced.products
    of_rows = {name: f.rows(rows) for name, f in places.items()}
    key = (entry.name, len(rows), repeats, *(f.data.tobytes() for f in of_rows.values()))
    counts: Mapping[str, int] | None = products.get(key)
    if counts is None:
        counts = products[key] = _reads(context.part(rows), op, entry, of_rows, repeats)
    return counts


def _reads(
    context: Context, op: LaneOp, entry: Instruction, places: Mapping[str, Fragment], repeats: int
) -> Mapping[str, int]:
    """What the accesses of an instruction count, whose operands are at these places."""
    assert entry.fetch is not None, entry.name
    shape = context.count, context.batch.lanes
    arrays = {name: _repeated(full(f.data, *shape), 1, repeats) for name, f in places.items()}
    known = all(f.known for f in places.values())
    report, context.batch.report = context.batch.report, Report()
    try:
        entry.fetch(_Memory(context, op, known, False, False), **arrays)
        return context.batch.report.total
    finally:
        context.batch.report = report


def _typed_as(x: Array, elem: str) -> Array:
    """The same bits under the type that the program gives them, as f16 for 16 bits."""
    return x if x.dtype == DTYPES[elem] else np.ascontiguousarray(x).view(DTYPES[elem])


def _check_machine(context: Context, op: LaneOp) -> None:
    """Unsupported where the machine of the program does not have the instruction."""
    isa, machine = op.attrs["isa"], context.batch.program.machine
    if not has(machine, isa):
        raise Unsupported(f"the instruction `{isa}`", machine.name, op.span, works_on=first_with(isa))


def _repeated(x: Array, count: int, repeats: int) -> Array:
    """Registers of several instructions, one after the other: [repeat * warp, lane, register of one]."""
    warps, lanes, registers = x.shape
    if registers == count:
        wide = np.broadcast_to(x, (repeats, *x.shape))
    else:
        wide = np.moveaxis(x.reshape(warps, lanes, repeats, count), 2, 0)
    return np.ascontiguousarray(wide.reshape(repeats * warps, lanes, count))


def _joined(x: Array, repeats: int, warps: int) -> Array:
    """The inverse of `_repeated`."""
    return np.moveaxis(x.reshape(repeats, warps, *x.shape[1:]), 0, 2)


def _undefined_warps(fragments: list[Fragment], warps: int) -> Array | None:
    """Warps of which some operand is undefined somewhere: then all of the results are."""
    undefined: Array | None = None
    for f in fragments:
        if f.undefined is not None:
            rows = np.broadcast_to(f.undefined.any(axis=(1, 2)), (warps,))
            undefined = rows if undefined is None else undefined | rows
    return undefined


# -- barriers ---------------------------------------------------------------------------------------------------------


def _barrier(context: Context, op: LaneOp) -> Iterator[Wait]:
    scope = op.attrs["scope"]
    context.batch.report.add_kind(op.span, f"barrier.{scope}", context.count)
    context.batch.report.add(op.span, barriers=context.count)
    if scope == "warp":
        if not context.batch.launch.counting:
            context.batch.shadow.clocks.warp_barrier(context.warps)
    elif scope == "block" or context.batch.program.blocks == 1:
        yield from context.batch.block_barrier(context, op)
    else:
        cluster_arrive(context, op)
        yield from cluster_wait(context, op)


def _fence(context: Context, op: LaneOp) -> None:
    context.batch.report.add_kind(op.span, f"fence.{op.attrs['kind']}", context.count)
    if op.attrs["kind"].startswith("async"):
        machine = context.batch.program.machine
        if not machine.async_proxy:
            feature = "a fence for the asynchronous proxy"
            raise Unsupported(feature, machine.name, op.span, works_on=oldest_with("async_proxy"))
        if not context.batch.launch.counting:
            context.batch.shadow.clocks.fence(context.warps)


# -- the rest ---------------------------------------------------------------------------------------------------------


def _assert(context: Context, op: LaneOp) -> None:
    batch = context.batch
    batch.report.add_kind(op.span, op.name, context.count)
    if batch.launch.counting:
        return
    need_defined(context, op, op.operands[0], "the condition of an assertion")
    shape = (context.count, batch.lanes)
    failed = ~full(context.env[op.operands[0]].data, *shape)
    if len(op.operands) > 1:
        failed = failed & full(context.env[op.operands[1]].data, *shape)
    if failed.any():
        thread = context.thread(int(np.nonzero(failed)[0][0]))
        raise DeviceAssertionError(op.attrs.get("message", ""), op.span, thread.program, kernel=batch.program.name)


def _check(context: Context, op: LaneOp) -> None:
    """A check that debugging has added, or an assertion: the first place, in the order of elements, where it fails."""
    batch = context.batch
    batch.report.add_kind(op.span, op.name, context.count)
    if batch.launch.counting:
        return
    if op.attrs["what"] == "assert":
        need_defined(context, op, op.operands[0], "the condition of an assertion")
    for block, rows in context.by_block():
        each = zip(op.operands, op.attrs["layouts"], strict=True)
        tiles = [_tile_of(context, value, layout, rows) for value, layout in each]
        condition = np.ma.filled(tiles[0], True).astype(np.bool_)
        if condition.all():
            continue
        place = tuple(int(i) for i in np.unravel_index(int(np.argmin(condition)), condition.shape))
        values = [int(np.ma.getdata(tile)[place]) for tile in tiles[1:]]
        told = explained(op.attrs, values, op.span)
        position: dict[str, Any] = {"position": place, "shape": condition.shape} if condition.shape else {}
        raise DeviceAssertionError(**told, **position, program=batch.index_of(block), kernel=batch.program.name)


def _tile_of(context: Context, value: Value, layout: Any, rows: Array) -> Array:
    """A value as the tile that it is, or an array without dimensions; elements that mean nothing are masked."""
    batch = context.batch
    fragment = context.env[value]
    data = full(fragment.data, context.count, batch.lanes)[rows]
    undefined = None if fragment.undefined is None else full(fragment.undefined, context.count, batch.lanes)[rows]
    if layout is None:
        whole = data[0, 0, 0]
        return np.ma.masked_array(whole, undefined[0, 0, 0] != 0 if undefined is not None else False)
    return assembled(layout, data, undefined, context.warps[rows] % batch.program.warps)


def _trap(context: Context, op: LaneOp) -> None:
    if not context.batch.launch.counting:
        context.batch.launch.error(TrapError("the program stopped itself", op.span, thread=context.thread(0)))


def _await(context: Context, op: LaneOp) -> None:
    context.batch.adds.await_(context, op)


def _assembly(context: Context, op: LaneOp) -> Iterator[Wait]:
    yield from context.batch.adds.assembly(context, op)


HANDLERS: dict[str, Callable[[Context, LaneOp], None]] = {
    "fence": _fence,
    "await": _await,
    "print": print_op,
    "assert": _assert,
    "check": _check,
    "trap": _trap,
}


def _instruction(context: Context, op: LaneOp) -> Iterator[Wait]:
    _check_machine(context, op)
    entry = instruction(op.attrs["isa"])
    special = context.batch.adds.instruction(context, op, entry)
    if special is not None:
        yield from special
    else:
        run_instruction(context, op, entry)


WAITING: dict[str, Callable[[Context, LaneOp], Iterator[Wait]]] = {
    "assembly": _assembly,
    "barrier": _barrier,
    "instruction": _instruction,
}
