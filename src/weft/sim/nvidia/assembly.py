"""Inline assembly in the simulator: arithmetic, what passes between the lanes of a warp, and global memory.

Each call of the text works on `pack` elements in the registers that the constraints name, as the back end gives them;
here every warp, lane and call is done at once. Branches, barriers and shared memory in assembly are `Unsupported`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import numpy as np

from weft.base import Unsupported
from weft.ir import CLOCKS
from weft.ir.lane import LaneOp, Value

from ..machine import Context, Wait
from ..values import DTYPES, Array, Fragment, union
from .assembly_memory import INSTRUCTIONS
from .ptx_table import FOLDS, Registers, lane_masks, source_lanes
from .ptx_text import Number, Operand, PTXError, statements
from .ptx_values import as_bits, viewed

__all__ = ["assembly"]

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


class Run(Registers):
    """One execution of a text."""

    constants = (1, 1, 1)

    def __init__(self, context: Context, op: LaneOp, registers: dict[str, Array], widths: dict[str, int]) -> None:
        self.context, self.op, self.registers, self.widths = context, op, registers, widths
        self.guard: Array | None = None
        self.lanes = context.batch.lanes

    def run(self, text: str) -> None:
        for statement in statements(text):
            self.guard = None if statement.guard is None else self.read(statement.guard, "pred")
            if statement.name[0] in _SPECIAL:
                _SPECIAL[statement.name[0]](self, statement.name, statement.operands)
            elif statement.name[0] not in NOTHING:
                self.compute(statement)

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

    # -- between lanes ------------------------------------------------------------------------------------------------

    def _whole(self, operand: Operand, type: str) -> Array:
        """With every lane there."""
        x = self.read(operand, type)
        x = x.reshape((1,) * (3 - x.ndim) + x.shape)
        return np.broadcast_to(x, (x.shape[0], self.lanes, x.shape[2]))

    def shuffle(self, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
        """shfl.sync: the value of another lane, and whether there is one."""
        x = self._whole(operands[1], "b32")
        by, control = (self._whole(o, "b32").astype(np.int64) for o in operands[2:4])
        source, inside = source_lanes(name, np.arange(self.lanes)[None, :, None], by, control)
        shape = np.broadcast_shapes(x.shape, source.shape)
        shuffled = np.take_along_axis(np.broadcast_to(x, shape), np.broadcast_to(source, shape), axis=1)
        self.write_each(operands[0], (shuffled, np.broadcast_to(inside, shape)))

    def vote(self, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
        """vote.sync, over the whole warp."""
        votes = self._whole(operands[1], "pred")
        if "ballot" in name:
            weights = np.uint64(1) << np.arange(self.lanes, dtype=np.uint64)[None, :, None]
            self.write(operands[0], (votes * weights).sum(axis=1, keepdims=True).astype(np.uint32))
            return
        every, some = votes.all(axis=1, keepdims=True), votes.any(axis=1, keepdims=True)
        self.write(operands[0], np.asarray({"all": every, "any": some, "uni": every | ~some}[name[2]]))

    def reduce(self, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
        """redux.sync, over the whole warp."""
        x = viewed(self._whole(operands[1], name[-1]), name[-1])
        self.write(operands[0], as_bits(FOLDS[name[2]].reduce(x, axis=1, keepdims=True, dtype=x.dtype)))

    def active(self, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
        """activemask: all lanes, which are never apart here."""
        self.write(operands[0], np.full((1, 1, 1), 0xFFFFFFFF, np.uint32))


_SPECIAL: dict[str, Callable[[Run, tuple[str, ...], tuple[Operand, ...]], None]] = {
    "shfl": Run.shuffle, "vote": Run.vote, "redux": Run.reduce, "activemask": Run.active, **INSTRUCTIONS,
}  # fmt: skip


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
            run.run(str(op.attrs["text"]))
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
