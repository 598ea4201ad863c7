"""The barrier of a cluster: all warps of its blocks arrive, each goes on when all have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from weft.ir.lane import LaneOp

from .machine import Batch, Context, Wait
from .values import Array

__all__ = ["cluster_arrive", "cluster_wait"]


@dataclass
class _Cluster:
    """What the warps that have arrived know, phases that have ended, and for each warp the phase it waits for."""

    known: dict[int, Array] = field(default_factory=dict)
    turn: int = 0
    wanted: dict[int, int] = field(default_factory=dict)
    learned: dict[int, list[Array]] = field(default_factory=dict)
    """What each warp comes to know when it goes on."""


def _cluster_of(batch: Batch, warp: int) -> _Cluster:
    number = int(batch.numbers[warp // batch.program.warps]) // batch.program.blocks
    found: _Cluster = batch.clusters.setdefault(number, _Cluster())
    return found


def cluster_arrive(context: Context) -> None:
    """Each warp has come so far."""
    batch = context.batch
    per_block = batch.program.warps
    for warp in (int(w) for w in context.warps):
        cluster = _cluster_of(batch, warp)
        cluster.known[warp] = batch.shadow.clocks.release(warp)
        cluster.wanted[warp] = cluster.turn + 1
        if len(cluster.known) < per_block * batch.program.blocks:
            continue
        for other in cluster.known:  # clocks are those of one block: others touch other memory
            same = [what for one, what in cluster.known.items() if one // per_block == other // per_block]
            cluster.learned.setdefault(other, []).extend(same)
        cluster.known.clear()
        cluster.turn += 1


def cluster_wait(context: Context, op: LaneOp) -> Iterator[Wait]:
    """Until all warps have arrived in the phase that these have."""
    batch = context.batch
    pairs = []
    for warp in (int(w) for w in context.warps):
        cluster = _cluster_of(batch, warp)
        pairs.append((cluster, cluster.wanted.get(warp, cluster.turn + 1)))
    if not all(c.turn >= wanted for c, wanted in pairs):
        what = "all warps of the cluster to arrive"
        yield Wait(lambda: all(c.turn >= wanted for c, wanted in pairs), what, op.span)
    for warp, (cluster, _) in zip((int(w) for w in context.warps), pairs, strict=True):
        for known in cluster.learned.pop(warp, []):
            batch.shadow.clocks.acquire(warp, known)
