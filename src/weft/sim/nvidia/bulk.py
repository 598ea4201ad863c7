"""Bulk tensor copies: boxes that travel between global and shared memory while the program goes on.

A load lands when it is issued ("earliest"), or when nothing else can go on ("latest"): then the bytes that it brought
are counted at its mbarrier. A store, or a reduction, reads shared memory when it is issued or when its group has been
waited for, and writes global memory then or, after a wait for the reading alone, when the program ends. What is on its
way at the end was never waited for, which is an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod

import numpy as np

from weft.base import Unsupported
from weft.ir.lane import ELEMENT_BITS, LaneOp
from weft.targets.nvidia import MBarrierError, TensorMap, decode
from weft.targets.table import instruction

from ..access import combined, need_defined
from ..errors import BulkCopyError, BulkCopyWarning, OutOfBoundsError, UninitializedError
from ..machine import Batch, Context, Flight, Wait
from ..memory import LINE
from ..reach import Reach
from ..values import DTYPES, Array, Fragment, full
from .barriers import barrier_at, check_overtaken, misused, touch

ELEMS = {
    "u8": "i8", "u16": "i16", "u32": "i32", "i32": "i32", "u64": "i64", "i64": "i64", "f16": "f16", "f32": "f32",
    "f64": "f64", "bf16": "bf16", "f32.ftz": "f32", "tf32": "f32", "tf32.ftz": "f32",
}  # fmt: skip
COORDINATES = (
    "the hardware stops with an illegal instruction: loads may begin anywhere but for the innermost dimension, where "
    "they begin at multiples of 16 bytes; stores begin inside of the tensor"
)
NANS = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}


def bulk(context: Context, op: LaneOp) -> Iterator[Wait]:
    """cp.async.bulk.* and cp.reduce.async.bulk.*, for the lanes whose `active` holds."""
    batch, entry = context.batch, instruction(op.attrs["isa"])
    fragments = [context.env[v] for v in op.operands]
    counts = [max(1, f.data.shape[2] // o.count) for f, o in zip(fragments, entry.operands, strict=True)]
    batch.report.add_kind(op.span, entry.name, max(counts, default=1) * context.count)
    if batch.remembered is not None:
        batch.remembered.forget()
        if batch.launch.steady:
            _count_box(context, op, fragments)
        return
    if entry.name.endswith("commit_group"):
        batch.bulk_groups[context.warps] += 1
        return
    if "wait_group" in entry.name:
        _wait(context, int(fragments[0].data.flat[0]), entry.name.endswith(".read"))
        return
    shape = (context.count, batch.lanes)
    arrays = [full(f.data, *shape) for f in fragments]
    active = np.broadcast_to(arrays[-1], (*shape, max(counts)))
    for value, operand in zip(op.operands, entry.operands, strict=True):
        whole = np.repeat(active, operand.count, axis=2) if context.env[value].data.shape[2] > 1 else active[:, :, :1]
        need_defined(context, op, value, f"`{operand.name}` of a bulk copy", whole)
    for row, lane, at in zip(*(x.tolist() for x in np.nonzero(active)), strict=True):
        operands = [_one(a[row, lane], o.count, at) for a, o in zip(arrays, entry.operands, strict=True)]
        _issue(context, op, row, lane, operands)
    if len(batch.contexts) > 1 and batch.options.order == "random":
        yield Wait(lambda: True, "its turn", op.span)


def _count_box(context: Context, op: LaneOp, operands: list[Fragment]) -> None:
    """Bytes of the boxes that a copy moves, and lines of their rows, for estimates; where it is not known which lanes
    do it, one of a block."""
    program, entry = context.batch.program, instruction(op.attrs["isa"])
    parameters = dict(zip(program.body.arguments, program.parameters, strict=True))
    maps = [v for v, operand in zip(op.operands, entry.operands, strict=True) if operand.name == "map"]
    if not maps or maps[0] not in parameters:
        return
    p = parameters[maps[0]]
    row, *others = p.box
    row = row * ELEMENT_BITS.get(p.pointee, 8) // 8
    size, lines = row * prod(others), -(-row // LINE) * prod(others)
    active = operands[-1]
    copies = max(max(1, f.data.shape[2] // o.count) for f, o in zip(operands, entry.operands, strict=True))
    lanes = (context.warps % program.warps == 0).astype(np.int64) * copies
    if active.known:  # a row may stand for all warps, of all programs that are counted together
        shape = context.count, context.batch.lanes, copies
        lanes = np.count_nonzero(np.broadcast_to(active.data, shape), axis=(1, 2))
    verb = "load" if entry.stores else "store"  # `stores` is about shared memory: what is loaded is stored there
    moved = {f"global_{verb}_boxes": lanes * size, f"global_{verb}_lines_of_boxes": lanes * lines}
    context.batch.report.add_each(op.span, moved)


def _one(registers: Array, count: int, at: int) -> list[int]:
    """The operand of one of several instructions; one operand may be for all."""
    first = at * count if len(registers) > count else 0
    numbers: list[int] = registers[first : first + count].tolist()
    return numbers


def _issue(context: Context, op: LaneOp, row: int, lane: int, operands: list[list[int]]) -> None:
    kind = op.attrs["isa"].split(".")[5]
    copy = _Copy(context, op, row, lane)
    if kind == "load":
        (to,), (where,), at, (barrier,), *blocks, _ = operands
        offsets = blocks.pop(0) if ".im2col" in op.attrs["isa"] else None
        copy.prepare(where, at, to, offsets)
        if copy.boxed is not None and copy.reaches(blocks[0][0] if blocks else None):
            copy.load(barrier)
    else:
        (where,), at, (source,), _ = operands
        copy.prepare(where, at, source, stored=True)
        if copy.boxed is not None and copy.may_write(at):
            copy.store(op.attrs["isa"].split(".")[6] if kind == "reduce" else "")


@dataclass(frozen=True)
class _Box:
    """The elements of one transfer, flattened: global addresses, which are inside, bytes in shared memory [n, size]."""

    map: TensorMap
    address: Array
    inside: Array
    shared: Array


@lru_cache(maxsize=64)
def _decoded(raw: bytes) -> TensorMap:
    return decode(raw)


@lru_cache(maxsize=64)
def _plain(size: int, count: int) -> Array:
    return np.arange(count)[:, None] * size + np.arange(size)


class _Copy:
    """One transfer by one lane, from its issue to its end."""

    def __init__(self, context: Context, op: LaneOp, row: int, lane: int) -> None:
        self.batch, self.op = context.batch, op
        self.context, self.row, self.lane = context, row, lane
        self.warp = int(context.warps[row])
        self.block = self.warp // self.batch.program.warps
        self.blocks = [self.block]
        """Those whose memory it fills."""
        self.group = int(self.batch.bulk_groups[self.warp])
        self.boxed: _Box | None = None
        self.thread = context.thread(row, lane)
        self.data: Array | None = None
        self.combine: Callable[[Array, Array], Array] | None = None
        self.waited = False

    def fail(self, kind: type, message: str, address: int | None = None, space: str = "shared", hint: str = "") -> None:
        error = kind(message, self.op.span, thread=self.thread, address=address, space=space, hint=hint)
        self.batch.launch.error(error)

    def may_write(self, at: list[int]) -> bool:
        """Whether a store may begin there: a box may stick out behind a tensor's end, not before its beginning."""
        if min(at) < 0:
            text = f"a bulk copy to global memory begins at {tuple(reversed(at))}: no coordinate may be negative"
            self.fail(BulkCopyError, text, None, "global", COORDINATES)
        return min(at) >= 0

    def prepare(
        self, where: int, at: list[int], shared: int, offsets: list[int] | None = None, *, stored: bool = False
    ) -> None:
        """Read the tensor map, find the elements; leaves `boxed` None where something is wrong."""
        memory = self.batch.launch.memory
        place = np.array([where])
        if where % 64 or memory.outside(place, 128).any():
            self.fail(BulkCopyError, f"there is no tensor map at {where:#x}: {memory.describe(where)}", where, "global")
            return
        raw = memory.read(where + np.arange(8) * 16, 16).tobytes()
        try:
            tensor = _decoded(raw)
            if len(tensor.shape) != len(at):
                raise ValueError(f"the map has {len(tensor.shape)} dimensions, the copy gives {len(at)} coordinates")
            if bool(tensor.corners) != (offsets is not None):
                raise ValueError("a copy of images needs a map for images, and another copy one that is not for images")
        except ValueError as found:
            self.fail(
                BulkCopyError, f"the tensor map at {memory.describe(where)} is not valid: {found}", where, "global"
            )
            return
        if shared % 128:
            self.fail(BulkCopyError, f"bulk copies need shared memory aligned to 128 bytes, got byte {shared}", shared)
            return
        if shared < 0 or shared + tensor.bytes > self.batch.program.shared_bytes:
            size = self.batch.program.shared_bytes
            text = f"a bulk copy of {tensor.bytes} bytes at byte {shared} of shared memory, which has {size}"
            self.fail(OutOfBoundsError, text, shared)
            return
        if at[0] * tensor.element_bytes % 16:
            text = f"a bulk copy begins at element {at[0]} of the innermost dimension, at byte "
            text += f"{at[0] * tensor.element_bytes}: that must be a multiple of 16"
            self.fail(BulkCopyError, text, where, "global", COORDINATES)
            return
        if offsets is None:
            address, inside = tensor.elements(tuple(at), stored=stored)
        else:
            try:
                address, inside = tensor.image_elements(tuple(at), tuple(x & 0xFFFF for x in offsets))
            except ValueError as found:
                self.fail(BulkCopyError, str(found), where, "global")
                return
        size = tensor.element_bytes
        plain = shared + _plain(size, address.size)
        swizzled = plain ^ (plain >> 3 & (tensor.swizzle // 16 - 1) << 4)
        box = _Box(tensor, address.reshape(-1), inside.reshape(-1), swizzled)
        wrong = box.inside & memory.outside(box.address, size)
        if wrong.any():
            first = int(box.address[wrong][0])
            text = f"a bulk copy of elements outside of every array, at {first:#x}: {memory.describe(first)}"
            hint = (
                "bulk stores write whole runs of 16 bytes, also where a row of the tensor ends in one" if stored else ""
            )
            self.fail(OutOfBoundsError, text, first, "global", hint)
            box = _Box(tensor, box.address, box.inside & ~wrong, swizzled)
        self.boxed = box

    def reaches(self, ranks: int | None) -> bool:
        """Whether the blocks of the cluster with these ranks, given as bits, are there: it goes to all of them."""
        count = self.batch.program.blocks
        if ranks is None:
            return True
        ranks &= 0xFFFF
        if not ranks or ranks >> count:
            text = f"a bulk copy to the blocks {ranks:#x} of a cluster, which has {count}"
            self.fail(BulkCopyError, text)
            return False
        chosen = np.array([i for i in range(count) if ranks >> i & 1])
        self.blocks = self.batch.block_of_rank(np.full(len(chosen), self.block), chosen).tolist()
        return True

    @property
    def box(self) -> _Box:
        assert self.boxed is not None
        return self.boxed

    @property
    def place(self) -> Array:
        """The bytes in the shared memory of all blocks, [element, byte]."""
        return self.place_in(self.block)

    def place_in(self, block: int) -> Array:
        """The same for the memory of one block."""
        place: Array = self.box.shared + block * self.batch.stride
        return place

    def reach(self, block: int | None = None) -> Reach:
        place = self.place_in(self.block if block is None else block)
        return Reach(self.batch, self.op, self.thread, self.warp, self.lane, place)

    # -- loads --------------------------------------------------------------------------------------------------------

    def load(self, barrier: int) -> None:
        """Begin: memory must be free, the mbarrier must be there."""
        for block in self.blocks:
            try:
                barrier_at(self.context, self.row, barrier, block)
                far = block != self.block
                touch(self.context, self.op, self.row, self.lane, barrier, False, proxy=True, block=block, sends=far)
            except MBarrierError as found:
                misused(self.context, self.op, self.row, self.lane, barrier, found, block)
                return
            if self.batch.options.races:
                self.reach(block).write(pending=True)
        for block in self.blocks:
            key = (block, barrier)
            if self.batch.options.copies == "earliest":
                self.bring(key)
            else:
                to = int(self.box.shared.min())
                description = f"a bulk copy of {self.box.map.bytes} bytes to byte {to} of shared memory"
                self.batch.flights.append(Flight(description, partial(self.bring, key), self))

    def bring(self, key: tuple[int, int]) -> None:
        """The bytes arrive, and are counted."""
        box, batch = self.box, self.batch
        size = box.map.element_bytes
        data = np.zeros((len(box.address), size), np.uint8)
        if box.map.nan:
            data[:] = np.array([NANS[size]], f"<u{size}").view(np.uint8)
        if box.inside.any():
            data[box.inside] = box.map.loaded(batch.launch.memory.read(box.address[box.inside], size))
        place = self.place_in(key[0])
        batch.shared[place], batch.state[place] = data, 1
        barrier = batch.barriers.get(key)
        if barrier is None:
            self.fail(BulkCopyError, f"the mbarrier at byte {key[1]} was invalidated before this bulk copy was done")
            return
        phase = barrier.state.phase
        if batch.options.races:
            batch.shadow.arrived(self.reach(key[0]).granules, barrier.actor, phase)
        barrier.copied = self.op
        barrier.bytes_come += box.map.bytes
        barrier.state.complete_tx(box.map.bytes)
        barrier.changed(phase)
        if barrier.state.phase != phase and batch.options.races:
            check_overtaken(batch, self.op, self.thread, key[1], barrier)

    # -- stores -------------------------------------------------------------------------------------------------------

    def store(self, kind: str) -> None:
        """Begin: what is read must be written, fenced and ordered."""
        self.combine = _combination(kind, self.box.map.dtype, self) if kind else None
        if self.batch.options.races:
            reach = self.reach()
            reach.read(proxy=True)
            self.batch.shadow.fly(reach.granules, self.batch.shadow.site(self.op))
        if self.batch.options.copies == "earliest":
            self.fetch()
            self.write()
        self.batch.bulk_stores.append(self)

    def fetch(self) -> None:
        """Shared memory is read."""
        if self.data is not None:
            return
        place = self.place
        state = self.batch.state[place]
        wrong = (state != 1).any(axis=1) & self.box.inside
        if self.batch.options.uninitialized and wrong.any():
            first = int(self.box.shared[wrong][0, 0])
            reason = "was never written" if (state[wrong] == 0).any() else "holds an undefined value"
            self.fail(UninitializedError, f"a bulk copy reads byte {first} of shared memory, which {reason}", first)
        self.data = self.batch.shared[place]

    def write(self) -> None:
        """Global memory is written."""
        data, self.data = self.data, np.zeros((0, 0), np.uint8)
        if data is None or not data.size:
            return
        box, memory = self.box, self.batch.launch.memory
        address, new = box.address[box.inside], data[box.inside]
        if not len(address):
            return
        if self.combine is not None:
            dtype = DTYPES[ELEMS[box.map.dtype]]
            old = memory.read(address, box.map.element_bytes).view(dtype)
            new = np.ascontiguousarray(self.combine(old, new.view(dtype))).view(np.uint8)
        memory.write(address, new)

    def release(self) -> None:
        """Who issued it has waited until shared memory was read."""
        if self.waited:
            return
        self.waited = True
        self.fetch()
        if self.batch.options.races:
            self.batch.shadow.land(self.reach().granules, self.warp, self.batch.shadow.site(self.op))


def _counted_up(old: Array, limit: Array) -> Array:
    """One more, and 0 after the limit."""
    was, most = old.view(np.uint32), limit.view(np.uint32)
    return np.where(was >= most, np.uint32(0), was + np.uint32(1)).astype(np.uint32).view(old.dtype)


def _counted_down(old: Array, limit: Array) -> Array:
    """One less, and the limit after 0, or where it was exceeded."""
    was, most = old.view(np.uint32), limit.view(np.uint32)
    return np.where((was == 0) | (was > most), most, was - np.uint32(1)).astype(np.uint32).view(old.dtype)


def _combination(kind: str, dtype: str, copy: _Copy) -> Callable[[Array, Array], Array]:
    if kind in ("inc", "dec"):
        if dtype != "u32":
            raise Unsupported(f"reductions of {dtype} by `{kind}`", copy.batch.program.target, copy.op.span)
        return _counted_up if kind == "inc" else _counted_down
    if kind in ("min", "max") and dtype.startswith("u"):
        kind = f"u{kind}"
    return combined(kind, ELEMS[dtype])


def _wait(context: Context, pending: int, read: bool) -> None:
    """All groups of these warps but the last `pending` are done, or have at least read shared memory."""
    batch, left = context.batch, []
    mine = {int(w) for w in context.warps}
    for copy in batch.bulk_stores:
        if copy.warp not in mine or copy.group >= batch.bulk_groups[copy.warp] - pending:
            left.append(copy)
            continue
        copy.release()
        if read:
            left.append(copy)
        else:
            copy.write()
    batch.bulk_stores = left


def finish(batch: Batch) -> None:
    """The program has ended. A store that nobody has waited for is an error, a load is told; they are done anyhow."""
    for flight in batch.flights:
        if isinstance(flight.owner, _Copy):
            span = flight.owner.op.span
            end = f"when program {flight.owner.thread.program} ends, and is never waited for"
            text = f"{flight.what} is still in flight {end}"
            place = (span.file, span.line) if span is not None else ("<lane program>", 1)
            warnings.warn_explicit(BulkCopyWarning(text), BulkCopyWarning, *place)
        flight.land()
    batch.flights = []
    for copy in batch.bulk_stores:
        if not copy.waited:
            text = "a bulk copy that is never waited for may still read shared memory when the program ends"
            copy.fail(BulkCopyError, text, int(copy.box.shared.min()))
        copy.release()
        copy.write()
    batch.bulk_stores = []
