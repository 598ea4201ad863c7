"""cp.async.bulk.prefetch.L2: a prefetch changes nothing, but the bytes that it requests must be those of an array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.ir.lane import LaneOp

from ..access import need_defined
from ..errors import MisalignedError, OutOfBoundsError
from ..machine import Context, Wait
from ..values import full

GRANULE, MOST = 16, 1 << 20
"""A request begins at a multiple of 16 bytes and has a multiple of them, and it has fewer than 1 MiB, because machine
code stores the size divided by 16 in 16 bits."""


def ask(context: Context, op: LaneOp) -> Iterator[Wait]:
    """Check the requests of the lanes for which `active` is true."""
    batch = context.batch
    batch.report.add_kind(op.span, op.attrs["isa"], context.count)
    source, size, active = op.operands
    if not batch.launch.counting and all(context.env[x].known for x in op.operands):
        shape = (context.count, batch.lanes, 1)
        there = np.broadcast_to(full(context.env[active].data, *shape[:2]), shape)
        for value, name in ((source, "the address"), (size, "the size"), (active, "`active`")):
            need_defined(context, op, value, f"{name} of a prefetch", there if value is not active else None)
        begin, count = (np.broadcast_to(full(context.env[x].data, *shape[:2]), shape) for x in (source, size))
        for row, lane, _ in np.argwhere(there).tolist():
            _check(context, op, (row, lane), int(begin[row, lane, 0]), int(count[row, lane, 0]))
    yield from ()


def _check(context: Context, op: LaneOp, asking: tuple[int, int], begin: int, size: int) -> None:
    """Check the request of one lane. Of its first and last 16 bytes, one byte each must belong to the array."""
    launch, thread = context.batch.launch, context.thread(*asking)
    if begin % GRANULE or size % GRANULE or not 0 < size < MOST:
        text = f"a prefetch of {size} bytes from {begin:#x} on: multiples of {GRANULE}, and fewer than {MOST} bytes"
        launch.error(MisalignedError(text, op.span, thread=thread, address=begin, space="global"))
        return
    first = begin + GRANULE - 1
    if launch.memory.outside(np.array([first]), max(1, size - 2 * GRANULE + 2)).any():
        text = f"a prefetch of {size} bytes that are not all of one array, from {begin:#x} on"
        text = f"{text}: {launch.memory.describe(first)}"
        launch.error(OutOfBoundsError(text, op.span, thread=thread, address=begin, space="global"))
