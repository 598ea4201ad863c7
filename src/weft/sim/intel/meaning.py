"""Intel's part of the simulator; see `sim/vendor.py`.

An instruction for a 2D block does what its entry says with memory; that all lanes say the same surface, and one as the
hardware takes it, is checked here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.ir.lane import LaneOp
from weft.machines.intel import BLOCKS
from weft.targets.instruction import Instruction
from weft.targets.intel.blocks import SURFACE

from ..access import need_defined
from ..errors import SimulationError
from ..machine import Context, Wait
from ..values import Array, full
from ..vendor import Meaning


class BlockError(SimulationError):
    """A 2D block of a surface that the hardware does not take."""

    hint = "launch with arrays whose rows begin at multiples of 16 bytes and have 64 bytes or more"


class Intel(Meaning):
    """What instructions do that is no matter of registers and memory alone."""

    def instruction(self, context: Context, op: LaneOp, entry: Instruction) -> Iterator[Wait] | None:
        if "block" in entry.params and not context.batch.launch.counting:
            _check(context, op, entry)
        return None


def _check(context: Context, op: LaneOp, entry: Instruction) -> None:
    """Report the first warp whose surface is none."""
    active: Array = np.ones((context.count, context.batch.lanes, 1), np.bool_)
    for value, name in zip(op.operands, SURFACE, strict=False):
        need_defined(context, op, value, f"`{name}` of a 2D block", active)
    given = [full(context.env[v].data, context.count, context.batch.lanes)[:, :, 0] for v in op.operands[:6]]
    size = entry.params["block"].bytes
    for row in range(context.count):
        for name, numbers in zip(SURFACE, given, strict=True):
            if (numbers[row] != numbers[row, 0]).any():
                _report(context, op, row, int(given[0][row, 0]), f"lanes do not agree on its `{name}`")
                return
        base, width, height, pitch, x, y = (int(numbers[row, 0]) for numbers in given)
        wrong = unfit(base, width, height, pitch, x, y, size)
        if wrong:
            _report(context, op, row, base, wrong)
            return


def unfit(base: int, width: int, height: int, pitch: int, x: int, y: int, size: int) -> str:
    """Why the hardware does not take a surface, or the place of a block in it; "" where it does.

    >>> unfit(0, 64, 1, 64, 0, 0, 2), unfit(16, 64, 1, 64, 0, 0, 2)
    ('', 'its address 0x10 is no multiple of 64')
    """
    b = BLOCKS
    for bad, text in (
        (base % b.base, f"its address {base:#x} is no multiple of {b.base}"),
        (not b.least <= width <= b.most, f"its rows have {width} bytes, not {b.least} to {b.most}"),
        (width % b.width, f"its rows have {width} bytes, which is no multiple of {b.width}"),
        (not 0 < height <= b.most, f"it has {height} rows, not 1 to {b.most}"),
        (not b.least <= pitch <= b.most, f"its pitch is {pitch}, not {b.least} to {b.most}"),
        (pitch % b.pitch, f"its pitch is {pitch}, which is no multiple of {b.pitch}"),
        (pitch < width, f"its rows have {width} bytes, more than its pitch, {pitch}"),
        (x * size % b.width, f"a block begins at byte {x * size} of a row, which is no multiple of {b.width}"),
    ):
        if bad:
            return text
    return ""


def _report(context: Context, op: LaneOp, row: int, address: int, why: str) -> None:
    text = f"a 2D block of a surface that the hardware does not take: {why}"
    error = BlockError(text, op.span, thread=context.thread(row, 0), address=address, space="global")
    context.batch.launch.error(error)
