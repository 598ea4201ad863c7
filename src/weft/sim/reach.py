"""An access to shared memory by one thread on behalf of an asynchronous unit: is it ordered with all others?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneOp

from .errors import FenceError, RaceError, SimulationError, Thread
from .values import Array

if TYPE_CHECKING:
    from .machine import Batch

__all__ = ["Reach", "note_of_flight", "note_of_read", "note_of_write"]


def note_of_write(batch: Batch, granule: int) -> Note:
    """Who wrote last."""
    shadow = batch.shadow
    op = batch.sites[int(shadow.write_site[granule])]
    writer = int(shadow.writer[granule])
    who = f"warp {writer // shadow.lanes % shadow.warps}, lane {writer % shadow.lanes}"
    if op.name == "copy_async":
        return Note(f"an asynchronous copy by {who}, which is not ordered with it", op.span)
    if op.name == "instruction" and op.attrs["isa"].startswith("cp.async.bulk"):
        return Note(f"a bulk copy by {who}, whose mbarrier has not been waited for", op.span)
    return Note(f"the write by {who}, which is not ordered with it", op.span)


def note_of_read(batch: Batch, granule: int, reader: int) -> Note:
    """Who read last, of one warp."""
    shadow = batch.shadow
    lane = int(shadow.read_lane[granule, reader])
    who = f"warp {reader}" + (f", lane {lane}" if lane >= 0 else "")
    span = batch.sites[int(shadow.read_site[granule])].span
    return Note(f"the read by {who}, which is not ordered with it", span)


def note_of_flight(batch: Batch, granule: int) -> Note:
    """The asynchronous reader that is under way."""
    op = batch.sites[int(batch.shadow.flight_site[granule])]
    kind = "wgmma" if op.attrs.get("isa", "").startswith("wgmma") else "a bulk copy"
    return Note(f"{kind} reads it and has not been waited for", op.span)


class Reach:
    """`place` are bytes in the shared memory of all blocks, in any shape."""

    def __init__(self, batch: Batch, op: LaneOp, thread: Thread, warp: int, lane: int, place: Array) -> None:
        self.batch, self.op, self.thread, self.warp, self.lane = batch, op, thread, warp, lane
        self.granules = np.unique(place // batch.granule)

    def _who(self) -> tuple[Array, Array]:
        count = len(self.granules)
        return np.full(count, self.warp), np.full(count, self.lane)

    def _report(self, kind: type[SimulationError], text: str, wrong: Array, note: Note) -> None:
        granule = int(self.granules[wrong][0])
        address = granule * self.batch.granule % self.batch.stride
        error = kind(
            text.format(address), self.op.span, thread=self.thread, address=address, space="shared", others=(note,)
        )
        self.batch.launch.error(error)

    def _first(self, wrong: Array) -> int:
        return int(self.granules[wrong][0])

    def write(self, pending: bool = False, proxy: bool = True) -> None:
        """Check and remember a write; with `proxy` it needs a fence after ordinary writes."""
        shadow = self.batch.shadow
        warp, lane = self._who()
        wrong = shadow.after_write(self.granules, warp, lane)
        if wrong.any():
            self._report(
                RaceError, "race: writes byte {} of shared memory", wrong, note_of_write(self.batch, self._first(wrong))
            )
        elif proxy:
            unfenced = shadow.unfenced(self.granules, warp)
            if unfenced.any():
                note = note_of_write(self.batch, self._first(unfenced))
                note = Note(note.message.split(", which")[0] + ", with no fence since", note.span)
                text = "the asynchronous proxy writes byte {} of shared memory, where an ordinary write may come later"
                self._report(FenceError, text, unfenced, note)
        readers = shadow.after_read(self.granules, warp, lane)
        late = readers >= 0
        if late.any():
            note = note_of_read(self.batch, self._first(late), int(readers[late][0]))
            self._report(RaceError, "race: writes byte {} of shared memory", late, note)
        self.batch.check_flights(self.granules, self.op, self.thread)
        shadow.record_write(self.granules, warp, lane, self.batch.site(self.op), pending)

    def read(self, proxy: bool) -> None:
        """Check a read; with `proxy` it needs a fence after ordinary writes."""
        shadow = self.batch.shadow
        warp, lane = self._who()
        wrong = shadow.after_write(self.granules, warp, lane)
        if wrong.any():
            self._report(
                RaceError, "race: reads byte {} of shared memory", wrong, note_of_write(self.batch, self._first(wrong))
            )
        elif proxy:
            unfenced = shadow.unfenced(self.granules, warp)
            if unfenced.any():
                note = note_of_write(self.batch, self._first(unfenced))
                note = Note(
                    note.message.replace("the write", "written").split(", which")[0] + ", with no fence since",
                    note.span,
                )
                text = "the asynchronous proxy reads byte {} of shared memory, and may not see what was written"
                self._report(FenceError, text, unfenced, note)
        shadow.record_read(self.granules, warp, lane, self.batch.site(self.op))
