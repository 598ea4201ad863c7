"""The registers of inline assembly while it runs, for all warps, lanes and calls of a text at once."""

from __future__ import annotations

import time

import numpy as np

from weft.ir import CLOCKS
from weft.ir.lane import LaneOp

from ..machine import Context
from ..values import Array
from .ptx_table import Registers, lane_masks


class Run(Registers):
    """One execution of a text."""

    constants = (1, 1, 1)

    def __init__(self, context: Context, op: LaneOp, registers: dict[str, Array], widths: dict[str, int]) -> None:
        self.context, self.op, self.registers, self.widths = context, op, registers, widths
        self.guard: Array | None = None
        self.lanes = context.batch.lanes

    def put(self, name: str, bits: Array) -> None:
        """Set a register, in the lanes that the guard lets through."""
        width = self.widths.get(name)
        if width is not None and width > 1:
            bits = bits.astype(f"u{width // 8}")
        if self.guard is not None:
            before = self.registers.get(name, np.zeros((1, 1, 1), bits.dtype))
            bits = np.where(self.guard, bits, before.astype(bits.dtype))
        self.registers[name] = bits

    def special(self, name: str) -> Array:
        context, program = self.context, self.context.batch.program
        lane = np.arange(self.lanes, dtype=np.uint32)[None, :, None]
        warp = (context.warps % program.warps).astype(np.uint32)[:, None, None]
        number = context.warps // program.warps
        if name in ("laneid", "warpid"):
            return lane if name == "laneid" else warp
        if name.startswith("lanemask_"):
            return lane_masks(lane)[name.removeprefix("lanemask_")]
        if name in CLOCKS:
            return np.full((1, 1, 1), time.monotonic_ns() >> CLOCKS[name], np.uint64)
        if name in ("smid", "nsmid"):  # one multiprocessor, which has everything
            return np.full((1, 1, 1), int(name == "nsmid"), np.uint32)
        base, _, axis = name.partition(".")
        where = "xyz".find(axis) if axis else -1
        if base == "tid" and where >= 0:
            return warp * np.uint32(self.lanes) + lane if where == 0 else np.zeros((1, 1, 1), np.uint32)
        if base == "ntid" and where >= 0:
            return np.full((1, 1, 1), program.warps * self.lanes if where == 0 else 1, np.uint32)
        if base == "ctaid" and where >= 0 and program.blocks == 1:
            ids = np.array([context.batch.index_of(int(b))[where] for b in number], np.uint32)
            return ids[:, None, None]
        if base == "nctaid" and where >= 0 and program.blocks == 1:
            return np.full((1, 1, 1), context.batch.launch.grid[where], np.uint32)
        if name == "cluster_ctarank" and program.blocks == 1:
            return np.zeros((1, 1, 1), np.uint32)
        return super().special(name)
