"""Which accesses to shared memory are ordered: vector clocks of warps, and who touched each granule of memory last.

Each warp has a clock that a barrier moves on. `seen[w, v]` is the clock of warp v up to which v's accesses are known to
be before those of w: a barrier of the block sets it for all pairs, one of a warp only for w itself, which is what lanes
of one warp go by. An access is a race if it and an earlier one of another thread touch the same granule, one of the two
writes, and the earlier one's clock is not below what was seen. (Lamport's happens-before, as in FastTrack: Flanagan and
Freund, 2009, with the lanes of a warp sharing a clock.)

What an asynchronous copy writes has the clock NEVER until its group was waited for: not even the thread that issued it
may touch it before. What a bulk copy has written belongs to the phase of its mbarrier: who has seen that phase end, or
has heard of it from one who has, may touch it. What asynchronous readers (wgmma, bulk stores) have not been waited for
may not be written by anybody.
"""

from __future__ import annotations

import numpy as np

from weft.ir.lane import LaneOp

from .values import Array

NEVER = np.iinfo(np.int32).max


class Clocks:
    """What each warp of each cluster has seen of the others, and of what arrives at mbarriers.

    Three matrices [cluster, warp, actor]; warps count through all `cluster` blocks of a cluster. Actors are the warps,
    then a column for each mbarrier, whose clock is the number of phases that have ended. `seen` is as said above;
    `epochs` counts everything that a warp does to order its accesses, fences for the asynchronous proxy included, and
    `fenced` says up to which epoch of another's writes there was such a fence on the way. That way may lead through any
    number of warps: a fence at either end, or between.
    """

    def __init__(self, blocks: int, warps: int, cluster: int = 1) -> None:
        self.cluster, self.each = cluster, warps
        blocks, warps = blocks // cluster, warps * cluster
        self.warps = warps
        self.state = np.zeros((3, blocks, warps, warps), np.int32)
        self._all = np.arange(self.each)
        every = np.arange(warps)
        self.state[:2, :, every, every] = 1
        self.lanes = np.zeros((blocks, warps), np.int64)
        """The lanes of each warp, a bit each, that have accessed memory since the last barrier of the warp."""

    def accessed(self, warp: Array, lane: Array) -> None:
        """These lanes access memory; -1 is all of a warp."""
        bits = np.where(lane < 0, -1, 1 << np.maximum(lane, 0).astype(np.int64))
        np.bitwise_or.at(self.lanes, (warp // self.warps, warp % self.warps), bits)

    @property
    def seen(self) -> Array:
        """[block, warp, actor]: the actor's accesses with clocks below are before what the warp does next."""
        seen: Array = self.state[0]
        return seen

    def column(self, index: int) -> int:
        """The actor of the index-th mbarrier."""
        actor = self.warps + index
        if actor >= self.state.shape[3]:
            more = np.zeros((*self.state.shape[:3], max(8, actor + 1 - self.state.shape[3])), np.int32)
            self.state = np.concatenate([self.state, more], axis=3)
        return actor

    def now(self, warp: Array) -> Array:
        """The clocks of warps, numbered over all blocks."""
        block, local = warp // self.warps, warp % self.warps
        now: Array = self.state[0, block, local, local]
        return now

    def epoch(self, warp: Array) -> Array:
        """The epochs of warps."""
        block, local = warp // self.warps, warp % self.warps
        epoch: Array = self.state[1, block, local, local]
        return epoch

    def fenced(self, warp: Array, actor: Array) -> Array:
        """The epoch up to which an actor's writes are seen by asynchronous accesses of warps."""
        fenced: Array = self.state[2, warp // self.warps, warp % self.warps, actor]
        return fenced

    def warp_barrier(self, warp: Array) -> None:
        """Lanes of each of these warps wait for each other."""
        block, local = warp // self.warps, warp % self.warps
        self.state[:2, block, local, local] += 1
        self.lanes[block, local] = 0

    def fence(self, warp: Array) -> None:
        """All that these warps have seen is from here on seen by asynchronous accesses too."""
        block, local = warp // self.warps, warp % self.warps
        self.state[1, block, local, local] += 1
        self.state[2, block, local] = np.maximum(self.state[2, block, local], self.state[1, block, local])

    def block_barrier(self, block: Array, members: Array | None = None) -> None:
        """Warps of each of these blocks, all or some, wait for each other."""
        for rank in range(self.cluster):
            chosen = block[block % self.cluster == rank] // self.cluster
            self._together(chosen, (self._all if members is None else members) + rank * self.each)

    def _together(self, cluster: Array, local: Array) -> None:
        self.state[:2, cluster[:, None], local, local] += 1
        self.lanes[cluster[:, None], local] = 0
        joined = self.state[:, cluster[:, None], local].max(axis=2)
        for w in local:
            self.state[:, cluster, w] = joined

    def release(self, warp: int, lane: int | None = None) -> Array:
        """What a warp knows, for others to acquire; its later accesses are not part of it.

        A lane alone does not know what the others have done since the last barrier of the warp.
        """
        block, local = divmod(warp, self.warps)
        alone = lane is not None and int(self.lanes[block, local]) & ~(1 << lane)
        if not alone:
            self.state[:2, block, local, local] += 1
        clocks: Array = self.state[:, block, local].copy()
        return clocks

    def acquire(self, warp: int, known: Array) -> None:
        """A warp comes to know what another released."""
        block, local = divmod(warp, self.warps)
        clocks = self.state[:, block, local, : known.shape[1]]
        np.maximum(clocks, known, out=clocks)

    def phases(self, warp: int, actor: int, ended: int) -> None:
        """A warp has seen that so many phases of an mbarrier have ended."""
        block, local = divmod(warp, self.warps)
        self.state[0, block, local, actor] = max(self.state[0, block, local, actor], ended)


class Shadow:
    """For each granule of the shared memory of all blocks: the last write, and each warp's last read."""

    def __init__(self, granules: int, blocks: int, warps: int, lanes: int, cluster: int = 1) -> None:
        self.clocks = Clocks(blocks, warps, cluster)
        self.each = warps
        warps *= cluster
        self.warps, self.lanes = warps, lanes
        self.writer = np.full(granules, -1, np.int32)
        self.write_actor = np.zeros(granules, np.int32)
        self.write_clock = np.zeros(granules, np.int32)
        self.write_site = np.zeros(granules, np.int32)
        self.write_epoch = np.zeros(granules, np.int32)
        self.atomic = np.zeros(granules, np.bool_)
        """Whether the last write was an atomic one: those do not race with each other."""
        self.read_clock = np.full((granules, warps), -1, np.int32)
        self.read_lane = np.zeros((granules, warps), np.int16)
        self.read_site = np.zeros(granules, np.int32)
        self.flights = np.zeros(granules, np.int16)
        """How many asynchronous readers, which nobody has waited for, each granule has."""
        self.flight_site = np.zeros(granules, np.int32)
        self.sites: list[LaneOp] = []
        """Operations by the numbers that they have here."""
        self._site_of: dict[int, int] = {}

    def site(self, op: LaneOp) -> int:
        """A number for an operation."""
        number = self._site_of.get(id(op))
        if number is None:
            number = self._site_of[id(op)] = len(self.sites)
            self.sites.append(op)
        return number

    def name_of(self, warp: int, lane: int | None) -> str:
        """Who a warp is, in words: of a cluster with the rank of its block."""
        rank, warp = divmod(warp % self.warps, self.each)
        name = f"warp {warp}" + (f", lane {lane}" if lane is not None else "")
        return name if self.warps == self.each else f"{name} of block {rank} of the cluster"

    def after_write(self, granule: Array, warp: Array, lane: Array) -> Array:
        """Which of these accesses race with an earlier write."""
        writer, clock, actor = self.writer[granule], self.write_clock[granule], self.write_actor[granule]
        seen = self.clocks.seen[warp // self.warps, warp % self.warps, actor]
        foreign = (writer != warp * self.lanes + lane) | (clock == NEVER) | (actor >= self.warps)
        racing: Array = (writer >= 0) & foreign & (clock >= seen)
        return racing

    def after_read(self, granule: Array, warp: Array, lane: Array) -> Array:
        """The warp in the block whose earlier read each of these writes races with, or -1."""
        clock = self.read_clock[granule]
        seen = self.clocks.seen[warp // self.warps, warp % self.warps, : self.warps]
        open_ = (clock >= 0) & (clock >= seen)
        rows, column = np.arange(len(granule)), warp % self.warps
        open_[rows, column] &= self.read_lane[granule, column] != lane
        return np.where(open_.any(axis=1), open_.argmax(axis=1), -1)

    def record_read(self, granule: Array, warp: Array, lane: Array, site: int) -> None:
        """Remember reads; a warp's reads of one granule by several lanes since its last barrier are one of lane -1."""
        self.clocks.accessed(warp, lane)
        column, now = warp % self.warps, self.clocks.now(warp)
        several = (self.read_clock[granule, column] == now) & (self.read_lane[granule, column] != lane)
        self.read_clock[granule, column] = now
        self.read_lane[granule, column] = np.where(several, -1, lane)
        several |= self.read_lane[granule, column] != lane
        self.read_lane[granule[several], column[several]] = -1
        self.read_site[granule] = site

    def record_write(self, granule: Array, warp: Array, lane: Array, site: int, pending: bool = False) -> None:
        """Remember writes; those of a copy on its way are pending."""
        if not pending:
            self.clocks.accessed(warp, lane)
        self.writer[granule] = warp * self.lanes + lane
        self.write_actor[granule] = warp % self.warps
        self.write_clock[granule] = NEVER if pending else self.clocks.now(warp)
        self.write_site[granule] = site
        self.write_epoch[granule] = self.clocks.epoch(warp)
        self.atomic[granule] = False

    def unfenced(self, granule: Array, warp: Array) -> Array:
        """Which granules hold ordinary writes that asynchronous accesses of these warps may not see."""
        fenced = self.clocks.fenced(warp, self.write_actor[granule])
        unfenced: Array = (self.writer[granule] >= 0) & (self.write_epoch[granule] >= fenced)
        return unfenced

    def landed(self, granule: Array, warp: Array, lane: Array) -> None:
        """Pending writes are done, for the thread that issued them."""
        mine = self.writer[granule] == warp * self.lanes + lane
        self.write_clock[granule[mine]] = self.clocks.now(warp[mine])
        self.write_epoch[granule[mine]] = self.clocks.epoch(warp[mine])

    def arrived(self, granule: Array, actor: int, phase: int) -> None:
        """Pending writes of a bulk copy are done, for who sees that this phase of an mbarrier has ended."""
        self.write_actor[granule] = actor
        self.write_clock[granule] = phase
        self.write_epoch[granule] = -1  # by the asynchronous proxy: no fence is needed

    def fly(self, granule: Array, site: int) -> None:
        """An asynchronous reader begins."""
        self.flights[granule] += 1
        self.flight_site[granule] = site

    def land(self, granule: Array, warp: int, site: int) -> None:
        """An asynchronous reader is done, and a warp that issued it knows."""
        self.flights[granule] -= 1
        warps = np.full(len(granule), warp)
        self.record_read(granule, warps, np.full(len(granule), -1), site)
