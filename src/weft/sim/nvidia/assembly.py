"""Inline assembly in the simulator: arithmetic, what passes between the lanes of a warp, and global memory.

Each call of the text works on `pack` elements in the registers that the constraints name, as the back end gives them;
here every warp, lane and call is done at once. Branches, barriers and shared memory in assembly are `Unsupported`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from weft.base import Unsupported
from weft.ir.lane import LaneOp, Value

from ..machine import Context, Wait
from ..values import DTYPES, Array, Fragment, union
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


def _per_register(elem: str, pack: int) -> int:
    return min(pack, max(1, 32 // _width(elem)))


def _width(elem: str) -> int:
    return 1 if elem == "i1" else 8 * DTYPES[elem].itemsize


def _given(data: Array, elem: str, pack: int) -> list[Array]:
    """The registers that hold `pack` elements, as bits: [warp, lane, call]."""
    each = _per_register(elem, pack)
    calls = data.reshape(*data.shape[:2], -1, pack)
    values = []
    for at in range(0, pack, each):
        part = np.ascontiguousarray(calls[..., at : at + each])
        if elem == "i1":
            values.append(part[..., 0])
        else:
            size = each * DTYPES[elem].itemsize
            bits = np.ascontiguousarray(as_bits(part)).view(f"u{size}")[..., 0]
            values.append(bits.astype(np.uint16) if size == 1 else bits)
    return values


def _taken(registers: list[Array], elem: str, pack: int) -> Array:
    """Elements from registers: [warp, lane, call * pack]."""
    each, dtype = _per_register(elem, pack), DTYPES[elem]
    shape = np.broadcast_shapes(*(r.shape for r in registers))
    if elem == "i1":
        return np.broadcast_to(registers[0], shape).astype(np.bool_)
    parts = []
    for register in registers:
        bits = np.broadcast_to(register, shape).astype(f"u{each * dtype.itemsize}")
        parts.append(np.ascontiguousarray(bits)[..., None].view(dtype))
    return np.concatenate(parts, axis=-1).reshape(*shape[:2], -1)


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


def _wide(x: Array, pack: int, count: int) -> Array:
    """With all its registers, and the last repeated until calls are full."""
    whole = np.broadcast_to(x, (*x.shape[:2], count)) if x.shape[2] == 1 else x
    missing = -count % pack
    return np.concatenate([whole, np.repeat(whole[..., -1:], missing, axis=2)], axis=2) if missing else whole


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
    pack, constraints = int(op.attrs["pack"]), str(op.attrs["constraints"])
    count = max(v.count for v in (*op.operands, *op.results))
    fragments = [context.env[v] for v in op.operands]
    context.batch.report.add_kind(op.span, op.name, -(-count // pack) * context.count)
    kinds = [re.sub(r"[=&]", "", c.strip()) for c in constraints.split(",") if not c.strip().startswith("~")]
    registers: dict[str, Array] = {}
    sizes = [-(-pack // _per_register(v.elem, pack)) for v in op.results]
    place = sum(sizes)
    for value, fragment in zip(op.operands, fragments, strict=True):
        for bits in _given(_wide(fragment.data, pack, count), value.elem, pack):
            registers[f"${place}"] = bits
            if place < len(kinds) and kinds[place].isdigit():
                registers[f"${kinds[place]}"] = bits
            place += 1
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
    undefined = union([None if f.undefined is None else _wide(f.undefined, pack, count) for f in fragments])
    counting = context.batch.launch.counting
    known = all(f.known for f in fragments) and not (counting and _OUTSIDE.search(str(op.attrs["text"])))
    at = 0
    for value, size in zip(op.results, sizes, strict=True):
        words = [registers.get(f"${i}") for i in range(at, at + size)]
        at += size
        context.env.values[value] = _result(words, value, pack, count, undefined, known)


def _result(
    words: list[Array | None], value: Value, pack: int, count: int, undefined: Array | None, known: bool
) -> Fragment:
    """One result; a register that the text never sets is undefined."""
    whole = [np.zeros((1, 1, 1), np.uint64) if x is None else x.reshape((1,) * (3 - x.ndim) + x.shape) for x in words]
    data = _taken(whole, value.elem, pack)
    if data.shape[2] == pack and count > pack:  # the same in every call
        data = np.tile(data, (1, 1, -(-count // pack)))
    data = data[..., : value.count]
    if any(x is None for x in words):
        undefined = np.ones((1, 1, 1), np.bool_)
    if undefined is None:
        return Fragment(data, None, known)
    wrong = undefined[..., : value.count]
    return Fragment(data, np.broadcast_to(wrong, np.broadcast_shapes(wrong.shape, data.shape)), known)
