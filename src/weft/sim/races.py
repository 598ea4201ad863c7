"""Which accesses to shared memory are ordered: vector clocks of warps, and who touched each granule of memory last.

Each warp has a clock that a barrier moves on. `seen[w, v]` is the clock of warp v up to which v's accesses are known to
be before those of w: a barrier of the block sets it for all pairs, one of a warp only for w itself, which is what lanes
of one warp go by. An access is a race if it and an earlier one of another thread touch the same granule, one of the two
writes, and the earlier one's clock is not below what was seen. (Lamport's happens-before, as in FastTrack: Flanagan and
Freund, 2009, with the lanes of a warp sharing a clock.)

What an asynchronous copy writes has the clock NEVER until its group was waited for: not even the thread that issued it
may touch it before.
"""

from __future__ import annotations

import numpy as np

from .values import Array

__all__ = ["NEVER", "Clocks", "Shadow"]

NEVER = np.iinfo(np.int32).max


class Clocks:
    """What each warp of each block has seen of the others."""

    def __init__(self, blocks: int, warps: int) -> None:
        self.warps = warps
        self.seen = np.zeros((blocks, warps, warps), np.int32)
        self._all = np.arange(warps)
        self.seen[:, self._all, self._all] = 1

    def now(self, warp: Array) -> Array:
        """The clocks of warps, numbered over all blocks."""
        block, local = warp // self.warps, warp % self.warps
        found: Array = self.seen[block, local, local]
        return found

    def warp_barrier(self, warp: Array) -> None:
        """Lanes of each of these warps wait for each other."""
        block, local = warp // self.warps, warp % self.warps
        self.seen[block, local, local] += 1

    def block_barrier(self, block: Array, members: Array | None = None) -> None:
        """Warps of each of these blocks, all or some, wait for each other."""
        local = self._all if members is None else members
        self.seen[block[:, None], local, local] += 1
        joined = self.seen[block[:, None], local].max(axis=1)
        for w in local:
            self.seen[block, w] = joined

    def release(self, warp: int) -> Array:
        """What a warp knows, for others to acquire; its later accesses are not part of it."""
        block, local = divmod(warp, self.warps)
        self.seen[block, local, local] += 1
        known: Array = self.seen[block, local].copy()
        return known

    def acquire(self, warp: int, known: Array) -> None:
        """A warp comes to know what another released."""
        block, local = divmod(warp, self.warps)
        np.maximum(self.seen[block, local], known, out=self.seen[block, local])


class Shadow:
    """For each granule of the shared memory of all blocks: the last write, and each warp's last read."""

    def __init__(self, granules: int, blocks: int, warps: int, lanes: int) -> None:
        self.clocks = Clocks(blocks, warps)
        self.warps, self.lanes = warps, lanes
        self.writer = np.full(granules, -1, np.int32)
        self.write_clock = np.zeros(granules, np.int32)
        self.write_site = np.zeros(granules, np.int32)
        self.atomic = np.zeros(granules, np.bool_)
        """Whether the last write was an atomic one: those do not race with each other."""
        self.fences = np.zeros(blocks * warps, np.int32)
        """How many fences for the asynchronous proxy each warp has passed."""
        self.write_fence = np.zeros(granules, np.int32)
        self.read_clock = np.full((granules, warps), -1, np.int32)
        self.read_lane = np.zeros((granules, warps), np.int16)
        self.read_site = np.zeros(granules, np.int32)

    def after_write(self, granule: Array, warp: Array, lane: Array) -> Array:
        """Which of these accesses race with an earlier write."""
        writer, clock = self.writer[granule], self.write_clock[granule]
        other = np.maximum(writer, 0) // self.lanes % self.warps
        seen = self.clocks.seen[warp // self.warps, warp % self.warps, other]
        foreign = (writer != warp * self.lanes + lane) | (clock == NEVER)
        found: Array = (writer >= 0) & foreign & (clock >= seen)
        return found

    def after_read(self, granule: Array, warp: Array, lane: Array) -> Array:
        """The warp in the block whose earlier read each of these writes races with, or -1."""
        clock = self.read_clock[granule]
        open_ = (clock >= 0) & (clock >= self.clocks.seen[warp // self.warps, warp % self.warps])
        rows, own = np.arange(len(granule)), warp % self.warps
        open_[rows, own] &= self.read_lane[granule, own] != lane
        return np.where(open_.any(axis=1), open_.argmax(axis=1), -1)

    def record_read(self, granule: Array, warp: Array, lane: Array, site: int) -> None:
        """Remember reads; a warp's reads of one granule by several lanes since its last barrier are one of lane -1."""
        own, now = warp % self.warps, self.clocks.now(warp)
        several = (self.read_clock[granule, own] == now) & (self.read_lane[granule, own] != lane)
        self.read_clock[granule, own] = now
        self.read_lane[granule, own] = np.where(several, -1, lane)
        several |= self.read_lane[granule, own] != lane
        self.read_lane[granule[several], own[several]] = -1
        self.read_site[granule] = site

    def record_write(self, granule: Array, warp: Array, lane: Array, site: int, pending: bool = False) -> None:
        """Remember writes; those of a copy on its way are pending."""
        self.writer[granule] = warp * self.lanes + lane
        self.write_clock[granule] = NEVER if pending else self.clocks.now(warp)
        self.write_site[granule] = site
        self.write_fence[granule] = self.fences[warp]
        self.atomic[granule] = False

    def unfenced(self, granule: Array) -> Array:
        """Which granules were written by a warp that has passed no fence since."""
        writer = self.writer[granule]
        found: Array = (writer >= 0) & (self.write_fence[granule] == self.fences[np.maximum(writer, 0) // self.lanes])
        return found

    def landed(self, granule: Array, warp: Array, lane: Array) -> None:
        """Pending writes are done, for the thread that issued them."""
        mine = self.writer[granule] == warp * self.lanes + lane
        self.write_clock[granule[mine]] = self.clocks.now(warp[mine])
        self.write_fence[granule[mine]] = self.fences[warp[mine]]
