"""AMD's part of the simulator; see `sim/vendor.py`.

An exchange between lanes moves with each element whether it is defined, as `shuffle` does: lanes that are masked off
may hold nothing, and others must not be told that they read it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.ir.lane import LaneOp
from weft.targets.amd import INSTRUCTIONS
from weft.targets.instruction import Instruction

from ..machine import Batch, Context, Wait
from ..special import run_instruction
from ..values import Array, Fragment
from ..vendor import Meaning
from . import tensors
from .assembly import assembly
from .barriers import mbarrier

EXCHANGES = frozenset(n for n, entry in INSTRUCTIONS.items() if not entry.products and not entry.touches)


class Amd(Meaning):
    """What instructions do that is no matter of registers and memory alone."""

    def instruction(self, context: Context, op: LaneOp, entry: Instruction) -> Iterator[Wait] | None:
        if entry.touches == "barrier":
            return mbarrier(context, op, entry)
        if entry.touches == "bulk":
            return tensors.copy(context, op, entry)
        if entry.touches == "sync":
            return tensors.wait(context, op)
        if not entry.results and not entry.touches:  # for LLVM's scheduler
            return iter(())
        return _exchange(context, op, entry) if entry.name in EXCHANGES else None

    def finish(self, batch: Batch) -> None:
        tensors.finish(batch)

    def written(self, op: LaneOp) -> tuple[str, str] | None:
        if not op.attrs.get("isa", "").startswith("tensor_"):
            return None
        hint = "mbarrier.wait, for the phase of the copy," if op.attrs["isa"].endswith("arriving") else "tdm.async_wait"
        return "a copy of a tile by {}, which has not been waited for", f"{hint} waits for it"

    def reading(self, op: LaneOp) -> tuple[str, str]:
        return "a copy of a tile", "tdm.async_wait waits for it"

    def assembly(self, context: Context, op: LaneOp) -> Iterator[Wait]:
        assembly(context, op)
        yield from ()

    def touches_memory(self, op: LaneOp) -> bool:
        return False


def _exchange(context: Context, op: LaneOp, entry: Instruction) -> Iterator[Wait]:
    """By the instruction's meaning, once for the data and once for what of it is undefined."""
    run_instruction(context, op, entry)
    fragments = [context.env[v] for v in op.operands]
    moves = [f for f, o in zip(fragments, entry.operands, strict=True) if o.name in ("a", "b")]
    if entry.cost:  # one that only says where a value is taken up is no exchange
        context.batch.report.add(op.span, shuffles=op.results[0].count * context.count)
    whole = [f for f in moves if f.undefined is not None]
    results: list[Array | None] = [None] * len(op.results)
    if whole:
        results = list(_flags(context, fragments, entry, op.results[0].count))
    for value, undefined in zip(op.results, results, strict=True):
        made = context.env[value]
        context.env.values[value] = Fragment(made.data, undefined, made.known)
    yield from ()


def _flags(context: Context, fragments: list[Fragment], entry: Instruction, count: int) -> Iterator[Array]:
    """What is undefined of each result: what was of the elements that came there, register by register."""
    shape = context.count, context.batch.lanes, count
    kinds = [f.undefined.dtype for f in fragments if f.undefined is not None]
    kind = np.uint8 if any(k != np.bool_ for k in kinds) else np.bool_
    arrays = []
    for fragment, operand in zip(fragments, entry.operands, strict=True):
        if operand.name in ("a", "b"):
            flags: Array = np.zeros((1, 1, 1), kind) if fragment.undefined is None else fragment.undefined.astype(kind)
            arrays.append(np.broadcast_to(flags, shape))
        else:
            arrays.append(np.broadcast_to(fragment.data, shape))
    results: list[Array] = [np.empty(shape, kind) for _ in entry.results]
    for register in range(count):
        made = entry.run(*(x[:, :, register : register + 1] for x in arrays))
        for result, part in zip(results, made, strict=True):
            result[:, :, register : register + 1] = part
    yield from results
