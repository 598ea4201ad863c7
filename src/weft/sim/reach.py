"""An access to shared memory by one thread on behalf of an asynchronous unit: is it ordered with all others?"""

from __future__ import annotations

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneOp

from .errors import FenceError, RaceError, SimulationError, Thread
from .machine import Batch
from .notes import note_of_read, note_of_write
from .values import Array


class Reach:
    """`place` are bytes in the shared memory of all blocks, in any shape."""

    def __init__(self, batch: Batch, op: LaneOp, thread: Thread, warp: int, lane: int, place: Array) -> None:
        self.batch, self.op, self.thread, self.warp, self.lane = batch, op, thread, warp, lane
        self.granules = np.unique(place // batch.granule)

    def _who(self) -> tuple[Array, Array]:
        count = len(self.granules)
        return np.full(count, self.warp), np.full(count, self.lane)

    def _report(
        self, kind: type[SimulationError], text: str, wrong: Array, earlier: tuple[Note, str], fence: str = ""
    ) -> None:
        note, hint = earlier
        if fence:
            note = Note(note.message.replace("the write by", "written by").split(", which")[0] + fence, note.span)
        granule = int(self.granules[wrong][0])
        address = granule * self.batch.granule % self.batch.stride
        self.batch.launch.error(
            kind(
                text.format(address),
                self.op.span,
                thread=self.thread,
                address=address,
                space="shared",
                others=(note,),
                hint=hint,
            )
        )

    def _first(self, wrong: Array) -> int:
        return int(self.granules[wrong][0])

    def _after_writes(self, verb: str, proxy: bool, late: str) -> None:
        """Whether earlier writes are ordered before; for the asynchronous proxy, with a fence on the way."""
        shadow = self.batch.shadow
        warp, lane = self._who()
        wrong = shadow.after_write(self.granules, warp, lane)
        if wrong.any():
            note = note_of_write(self.batch, self._first(wrong))
            self._report(RaceError, f"race: {verb} byte {{}} of shared memory", wrong, note)
            return
        unfenced = shadow.unfenced(self.granules, warp) if proxy else wrong
        if unfenced.any():
            note = note_of_write(self.batch, self._first(unfenced))
            text = f"the asynchronous proxy {verb} byte {{}} of shared memory, {late}"
            self._report(FenceError, text, unfenced, note, ", with no fence since")

    def write(self, pending: bool = False, proxy: bool = True) -> None:
        """Check and remember a write; with `proxy` it needs a fence after ordinary writes."""
        shadow = self.batch.shadow
        warp, lane = self._who()
        if not self.batch.check_flights(self.granules, self.op, self.thread):
            self._after_writes("writes", proxy, "and what was written may come later")
            readers = shadow.after_read(self.granules, warp, lane)
            late = readers >= 0
            if late.any():
                note = note_of_read(self.batch, self._first(late), int(readers[late][0]))
                self._report(RaceError, "race: writes byte {} of shared memory", late, (note, ""))
        shadow.record_write(self.granules, warp, lane, self.batch.shadow.site(self.op), pending)

    def see(self, proxy: bool) -> None:
        """Check whether what was written before can be seen; with `proxy` that needs a fence after ordinary writes."""
        self._after_writes("reads", proxy, "and may not see what was written")

    def read(self, proxy: bool) -> None:
        """Check and remember a read."""
        self.see(proxy)
        warp, lane = self._who()
        self.batch.shadow.record_read(self.granules, warp, lane, self.batch.shadow.site(self.op))
