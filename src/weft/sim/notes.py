"""Who touched shared memory before, in words: for what an access is not ordered with."""

from __future__ import annotations

from weft.base import Note

from .turns import Turns


def note_of_write(batch: Turns, granule: int) -> tuple[Note, str]:
    """Who wrote last, and what would order it with a later access, where that is no barrier."""
    shadow = batch.shadow
    op = batch.shadow.sites[int(shadow.write_site[granule])]
    actor = shadow.name_of(*divmod(int(shadow.writer[granule]), shadow.lanes))
    if op.name == "copy_async":
        return Note(f"an asynchronous copy by {actor}, which is not ordered with it", op.span), ""
    special = batch.adds.written(op)
    if special is not None:
        return Note(special[0].format(actor), op.span), special[1]
    return Note(f"the write by {actor}, which is not ordered with it", op.span), ""


def note_of_read(batch: Turns, granule: int, reader: int) -> Note:
    """Who read last, of one warp."""
    shadow = batch.shadow
    lane = int(shadow.read_lane[granule, reader])
    actor = shadow.name_of(reader, lane if lane >= 0 else None)
    span = batch.shadow.sites[int(shadow.read_site[granule])].span
    return Note(f"the read by {actor}, which is not ordered with it", span)


def note_of_flight(batch: Turns, granule: int) -> tuple[Note, str]:
    """The asynchronous reader that is under way, and what waits for it."""
    op = batch.shadow.sites[int(batch.shadow.flight_site[granule])]
    description, hint = batch.adds.reading(op)
    return Note(f"{description} reads it and has not been waited for", op.span), hint
