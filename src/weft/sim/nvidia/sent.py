"""st.async: words on their way to the shared memory of a block of the cluster, counted at an mbarrier of that block.

They arrive when they are sent ("earliest"), or when nothing else can go on ("latest").
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from weft.ir.lane import LaneOp
from weft.targets.nvidia import MBarrierError
from weft.targets.table import instruction

from ..access import CLUSTER_BITS, need_defined
from ..errors import BarrierMisuseError, BulkCopyError, OutOfBoundsError
from ..machine import Context, Flight, Wait
from ..reach import Reach
from ..values import Array, full
from .barriers import barrier_at, check_overtaken, misused, touch


def send(context: Context, op: LaneOp) -> Iterator[Wait]:
    """st.async of the lanes whose `active` holds."""
    batch, entry = context.batch, instruction(op.attrs["isa"])
    words = entry.operands[1].count
    to, data, barrier, active = op.operands
    count = max(context.env[to].data.shape[2], context.env[data].data.shape[2] // words)
    batch.report.add_kind(op.span, entry.name, count * context.count)
    if batch.remembered is not None:
        batch.remembered.forget()
        return
    shape = (context.count, batch.lanes)
    sends = np.broadcast_to(full(context.env[active].data, *shape), (*shape, count))
    for value, name in ((to, "the address"), (barrier, "the mbarrier"), (active, "`active`")):
        need_defined(context, op, value, f"{name} of st.async", sends if context.env[value].data.shape[2] > 1 else None)
    place, at = (np.broadcast_to(full(context.env[v].data, *shape), (*shape, count)) for v in (to, barrier))
    whole = np.ascontiguousarray(full(context.env[data].data, *shape)).view(np.uint8)
    raw = np.broadcast_to(whole.reshape(*shape, -1, entry.width), (*shape, count, entry.width))
    for row, lane in np.argwhere(sends.any(axis=2)).tolist():
        chosen = sends[row, lane]
        _send(context, op, (row, lane), place[row, lane][chosen], at[row, lane][chosen], raw[row, lane][chosen])
    if len(batch.contexts) > 1 and batch.options.order == "random":
        yield Wait(lambda: True, "its turn", op.span)


def _send(context: Context, op: LaneOp, sender: tuple[int, int], to: Array, at: Array, raw: Array) -> None:
    """What one lane sends, by the block that it goes to and the mbarrier that it counts at."""
    batch, (row, lane) = context.batch, sender
    thread = context.thread(row, lane)
    own_block = np.full(len(to), int(context.warps[row]) // batch.program.warps)
    ranks, marks = (to >> CLUSTER_BITS) - 1, (at >> CLUSTER_BITS) - 1
    if (ranks != marks).any():
        text = "st.async to the memory of one block of the cluster, counted at an mbarrier of another"
        batch.launch.error(BarrierMisuseError(text, op.span, thread=thread))
        return
    to, at = to & (1 << CLUSTER_BITS) - 1, at & (1 << CLUSTER_BITS) - 1
    outside = (to < 0) | (to + raw.shape[1] > batch.program.shared_bytes) | (to % raw.shape[1] != 0)
    if outside.any():
        first = int(to[outside][0])
        text = f"st.async of {raw.shape[1]} bytes to byte {first} of shared memory, which has "
        text += f"{batch.program.shared_bytes}; the address must be a multiple of what is sent"
        batch.launch.error(OutOfBoundsError(text, op.span, thread=thread, address=first, space="cluster"))
        return
    blocks = batch.block_of_rank(own_block, np.clip(ranks, 0, batch.program.blocks - 1))
    for block, mark in sorted(set(zip(blocks.tolist(), at.tolist(), strict=True))):
        try:
            barrier_at(context, row, mark, block)
            touch(context, op, row, lane, mark, False, block=block, sends=True)
        except MBarrierError as found:
            misused(context, op, row, lane, mark, found, block)
            return
        chosen = (blocks == block) & (at == mark)
        place = to[chosen][:, None] + np.arange(raw.shape[1]) + block * batch.stride
        reach = Reach(batch, op, thread, int(context.warps[row]), lane, place)
        if batch.options.races:
            reach.write(pending=True, proxy=False)
        arrive = partial(_arrive, reach, (block, mark), place, raw[chosen].copy())
        if batch.options.copies == "earliest":
            arrive()
        else:
            description = f"st.async of {place.size} bytes to byte {int(to[chosen].min())} of shared memory"
            batch.flights.append(Flight(description, arrive))


def _arrive(reach: Reach, key: tuple[int, int], place: Array, raw: Array) -> None:
    """The words are there, and are counted."""
    batch, op = reach.batch, reach.op
    batch.shared[place], batch.state[place] = raw, 1
    barrier = batch.barriers.get(key)
    if barrier is None:
        text = f"the mbarrier at byte {key[1]} was invalidated before what st.async sent was there"
        batch.launch.error(BulkCopyError(text, op.span, thread=reach.thread, space="shared"))
        return
    phase = barrier.state.phase
    if batch.options.races:
        batch.shadow.arrived(reach.granules, barrier.actor, phase)
    barrier.copied = op
    barrier.bytes_come += place.size
    barrier.state.complete_tx(place.size)
    barrier.changed(phase)
    if barrier.state.phase != phase and batch.options.races:
        check_overtaken(batch, op, reach.thread, key[1], barrier)
