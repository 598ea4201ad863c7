"""cp.async.bulk.prefetch.L2: bytes that are asked for. Nothing changes by it, but they must be bytes of an array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.ir.lane import LaneOp

from ..access import need_defined
from ..errors import MisalignedError, OutOfBoundsError
from ..machine import Context, Wait
from ..values import full

GRANULE, MOST = 16, 1 << 20
"""Bytes that a request begins at and has a multiple of, and those that it has fewer than: machine code has 16 bits for
how many times 16 they are."""


def ask(context: Context, op: LaneOp) -> Iterator[Wait]:
    """The request of the lanes whose `active` holds."""
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
    """What one lane asks for; of the first and the last 16 bytes one is enough that is an array's."""
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
