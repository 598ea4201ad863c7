"""Inline assembly in the simulator: arithmetic, what passes between the lanes of a warp, and global memory.

Every warp, lane and call is done at once. Branches, barriers and shared memory in assembly are `Unsupported`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from weft.base import Unsupported
from weft.ir.lane import LaneOp

from ..inline import constraints_of, given, settle
from ..machine import Context, Wait
from ..values import DTYPES, Array, Fragment
from .assembly_memory import INSTRUCTIONS
from .assembly_run import Run
from .ptx_table import FOLDS, source_lanes
from .ptx_text import Number, Operand, PTXError, Statement, statements
from .ptx_values import as_bits, viewed

NOTHING = ("griddepcontrol", "membar", "fence", "nanosleep", "prefetch", "discard", "applypriority", "pragma")
"""What orders memory or gives hints: in the simulator there is nothing to do."""
BARRIERS = ("bar.sync", "barrier.sync", "bar.cta.sync", "barrier.cta.sync")
_OUTSIDE = re.compile(r"%(?:globaltimer|clock|smid)")
"""Registers that a launch that is only counted does not know."""
SIZES = {"h": 16, "c": 16, "r": 32, "f": 32, "l": 64, "d": 64}


def _whole(run: Run, operand: Operand, type: str) -> Array:
    """With every lane there."""
    x = run.read(operand, type)
    x = x.reshape((1,) * (3 - x.ndim) + x.shape)
    return np.broadcast_to(x, (x.shape[0], run.lanes, x.shape[2]))


def _shuffle(run: Run, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """shfl.sync: the value of another lane, and whether there is one."""
    x = _whole(run, operands[1], "b32")
    by, control = (_whole(run, o, "b32").astype(np.int64) for o in operands[2:4])
    source, inside = source_lanes(name, np.arange(run.lanes)[None, :, None], by, control)
    shape = np.broadcast_shapes(x.shape, source.shape)
    values = np.take_along_axis(np.broadcast_to(x, shape), np.broadcast_to(source, shape), axis=1)
    run.write_each(operands[0], (values, np.broadcast_to(inside, shape)))


def _vote(run: Run, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """vote.sync, over the whole warp."""
    predicate = _whole(run, operands[1], "pred")
    if "ballot" in name:
        weights = np.uint64(1) << np.arange(run.lanes, dtype=np.uint64)[None, :, None]
        run.write(operands[0], (predicate * weights).sum(axis=1, keepdims=True).astype(np.uint32))
        return
    every, some = predicate.all(axis=1, keepdims=True), predicate.any(axis=1, keepdims=True)
    run.write(operands[0], np.asarray({"all": every, "any": some, "uni": every | ~some}[name[2]]))


def _reduce(run: Run, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """redux.sync, over the whole warp."""
    x = viewed(_whole(run, operands[1], name[-1]), name[-1])
    run.write(operands[0], as_bits(FOLDS[name[2]].reduce(x, axis=1, keepdims=True, dtype=x.dtype)))


def _active(run: Run, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """activemask: all lanes, which are never apart here."""
    run.write(operands[0], np.full((1, 1, 1), 0xFFFFFFFF, np.uint32))


_SPECIAL: dict[str, Callable[[Run, tuple[str, ...], tuple[Operand, ...]], None]] = {
    "shfl": _shuffle, "vote": _vote, "redux": _reduce, "activemask": _active, **INSTRUCTIONS,
}  # fmt: skip


def _step(run: Run, statement: Statement) -> None:
    run.guard = None if statement.guard is None else run.read(statement.guard, "pred")
    if statement.name[0] in _SPECIAL:
        _SPECIAL[statement.name[0]](run, statement.name, statement.operands)
    elif statement.name[0] not in NOTHING:
        run.compute(statement)


# -- the operation ----------------------------------------------------------------------------------------------------


def assembly(context: Context, op: LaneOp) -> Iterator[Wait]:
    """Run a text; one that is nothing but the barrier of all threads waits there."""
    if _is_barrier(str(op.attrs["text"])):
        context.batch.report.add(op.span, barriers=context.count)
        yield from context.batch.block_barrier(context, op)
        for value in op.results:
            shape = (1, 1, value.count)
            context.env.values[value] = Fragment(np.zeros(shape, DTYPES[value.elem]), np.ones(shape, np.bool_))
        return
    _run_text(context, op)


def _is_barrier(text: str) -> bool:
    try:
        parsed = statements(text)
    except PTXError:
        return False  # said where it is run
    return (
        len(parsed) == 1
        and str(parsed[0]).removesuffix(".aligned") in BARRIERS
        and parsed[0].guard is None
        and parsed[0].operands == (Number(0),)
    )


def _run_text(context: Context, op: LaneOp) -> None:
    """All calls at once."""
    registers = {n: x.astype(np.uint16) if x.dtype == np.uint8 else x for n, x in given(context, op).items()}
    kinds = constraints_of(op)
    widths = {f"${i}": SIZES.get(k, 1 if k == "b" else 32) for i, k in enumerate(kinds) if not k.isdigit()}
    run = Run(context, op, registers, widths)
    try:
        with np.errstate(all="ignore"):
            for statement in statements(str(op.attrs["text"])):
                _step(run, statement)
    except PTXError as error:
        raise Unsupported(
            f"inline assembly with {error} in the simulator",
            context.batch.program.target,
            op.span,
            hint="the simulator runs arithmetic on registers, what passes between lanes of a warp, and global memory",
        ) from error
    settle(context, op, registers, outside=bool(_OUTSIDE.search(str(op.attrs["text"]))))
