"""Clusters: the barrier at which all warps of its blocks arrive and go on when all have; and how blocks may end.

A block's shared memory is gone when the block has ended. So whatever other blocks do to it has to be ordered, by a
barrier of the cluster as a rule, before the end of one of its warps at least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneOp

from .errors import RaceError, Thread
from .machine import Batch, Context, Wait
from .notes import note_of_read, note_of_write
from .values import Array


@dataclass
class _Cluster:
    """What the warps that have arrived know, phases that have ended, and for each warp the phase it waits for."""

    known: dict[int, Array] = field(default_factory=dict)
    phase: int = 0
    wanted: dict[int, int] = field(default_factory=dict)
    learned: dict[int, list[Array]] = field(default_factory=dict)
    """What each warp comes to know when it goes on."""


def _cluster_of(batch: Batch, warp: int, op: LaneOp) -> _Cluster:
    """The barrier of a cluster that a warp is at: that of all warps, or of its partition in all blocks."""
    number = int(batch.numbers[warp // batch.program.warps]) // batch.program.blocks
    cluster: _Cluster = batch.clusters.setdefault((number, op.attrs.get("id")), _Cluster())
    return cluster


def cluster_arrive(context: Context, op: LaneOp) -> None:
    """Each warp has come so far."""
    batch = context.batch
    per_block = int(op.attrs.get("warps", batch.program.warps))
    for warp in (int(w) for w in context.warps):
        cluster = _cluster_of(batch, warp, op)
        cluster.known[warp] = batch.shadow.clocks.release(warp)
        cluster.wanted[warp] = cluster.phase + 1
        if len(cluster.known) < per_block * batch.program.blocks:
            continue
        together = np.zeros((3, max(clocks_of_block.shape[1] for clocks_of_block in cluster.known.values())), np.int32)
        for clocks_of_block in cluster.known.values():
            clocks = together[:, : clocks_of_block.shape[1]]
            np.maximum(clocks, clocks_of_block, out=clocks)
        for other in cluster.wanted:
            cluster.learned.setdefault(other, []).append(together)
        cluster.known.clear()
        cluster.phase += 1


def cluster_wait(context: Context, op: LaneOp) -> Iterator[Wait]:
    """Until all warps have arrived in the phase that these have."""
    batch = context.batch
    pairs = []
    for warp in (int(w) for w in context.warps):
        cluster = _cluster_of(batch, warp, op)
        pairs.append((cluster, cluster.wanted.get(warp, cluster.phase + 1)))
    if not all(c.phase >= wanted for c, wanted in pairs):
        event = "all warps of the cluster to arrive"
        yield Wait(lambda: all(c.phase >= wanted for c, wanted in pairs), event, op.span)
    for warp, (cluster, _) in zip((int(w) for w in context.warps), pairs, strict=True):
        for clocks in cluster.learned.pop(warp, []):
            batch.shadow.clocks.acquire(warp, clocks)


def check_ends(batch: Batch) -> None:
    """All have ended: no block may have done so while another could still use its shared memory."""
    blocks, warps, shadow = batch.program.blocks, batch.program.warps, batch.shadow
    if blocks == 1 or not batch.options.races or not len(shadow.writer):
        return
    each = batch.stride // batch.granule
    for block in range(len(batch.numbers)):
        cluster, rank = divmod(block, blocks)
        members = slice(rank * warps, (rank + 1) * warps)
        # what some warp of the block has heard of
        known = shadow.clocks.seen[cluster, members].max(axis=0)
        seen = known[: shadow.warps]
        part = slice(block * each, (block + 1) * each)
        late = shadow.read_clock[part] >= np.maximum(seen, 0)
        late[:, members] = False
        if late.any():
            granule, reader = (int(x[0]) for x in np.nonzero(late))
            _ended_early(batch, block, granule, note_of_read(batch, block * each + granule, reader), "reads")
        writer = shadow.writer[part]
        actor = np.maximum(writer, 0) // shadow.lanes % shadow.warps
        outside = (actor < members.start) | (actor >= members.stop)
        foreign = (writer >= 0) & outside & (shadow.write_actor[part] < shadow.warps)
        late = foreign & (shadow.write_clock[part] >= seen[actor])
        mark = shadow.write_actor[part]  # what was sent, and has arrived: has somebody waited for it?
        sent = (writer >= 0) & outside & (mark >= shadow.warps)
        late |= sent & (shadow.write_clock[part] >= known[np.minimum(mark, len(known) - 1)])
        if late.any():
            granule = int(np.nonzero(late)[0][0])
            _ended_early(batch, block, granule, note_of_write(batch, block * each + granule)[0], "writes")


def _ended_early(batch: Batch, block: int, granule: int, note: Note, verb: str) -> None:
    address = granule * batch.granule
    text = f"race: a block of a cluster may end while another {verb} byte {address} of its shared memory"
    hint = "a barrier of the cluster (cluster.arrive, cluster.wait) after the last access"
    thread = Thread(batch.index_of(block), 0)
    batch.launch.error(
        RaceError(text, None, thread=thread, address=address, space="cluster", others=(note,), hint=hint)
    )
