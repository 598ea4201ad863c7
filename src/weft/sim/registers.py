"""Operations on registers and between lanes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from weft.base import Unsupported
from weft.ir.lane import LaneOp

from .arithmetic import elementwise, is_elementwise
from .machine import Context
from .values import DTYPES, Array, Fragment, full, union, unknown


def _operands(context: Context, op: LaneOp) -> list[Fragment]:
    return [context.env[v] for v in op.operands]


def _set(context: Context, op: LaneOp, data: Array, undefined: Array | None = None, known: bool = True) -> None:
    context.env.values[op.results[0]] = Fragment(data, undefined, known)


def _count(context: Context, op: LaneOp, registers: int) -> None:
    if context.batch.launch.sliced is not None:  # it is counted by the block that it stands in
        return
    context.batch.report.add_kind(op.span, op.name, registers * context.count)


def elementwise_op(context: Context, op: LaneOp) -> None:
    """Any of arith, math, libdevice, and select."""
    if not is_elementwise(op.name):
        raise Unsupported(f"`{op.name}` in the simulator", context.batch.program.target, op.span)
    operands = _operands(context, op)
    known = all(f.known for f in operands)
    if not known and context.batch.launch.counting:
        _count(context, op, op.results[0].count)
        for value in op.results:
            context.env.values[value] = unknown(value.elem, value.count)
        return
    undefined: Array | None = None
    for f in operands:
        if f.undefined is not None:
            undefined = union([each.undefined for each in operands])
    _count(context, op, op.results[0].count)
    if op.name == "select" and undefined is not None:
        undefined = _select_undefined(operands)
    elif undefined is not None:
        undefined = undefined != 0
    computed = elementwise(op.name, [f.data for f in operands], op.results[0].elem, op.attrs)
    for value, data in zip(op.results, computed if len(op.results) > 1 else (computed,), strict=True):
        context.env.values[value] = Fragment(data, _same_registers(undefined, data), known)


def _same_registers(undefined: Array | None, data: Array) -> Array | None:
    """With as many registers as the value has."""
    if undefined is None or undefined.shape[2] == data.shape[2]:
        return undefined
    return np.broadcast_to(undefined, (*undefined.shape[:2], data.shape[2]))


def _select_undefined(operands: list[Fragment]) -> Array | None:
    """Only the chosen side counts."""
    condition = operands[0].data
    sides = [np.asarray(False) if f.undefined is None else f.undefined for f in operands[1:]]
    chosen = np.where(condition, *sides)
    return union([chosen, operands[0].undefined])


def _constant(context: Context, op: LaneOp) -> None:
    value, result = op.attrs["value"], op.results[0]
    dtype = DTYPES[result.elem]
    if dtype.kind == "i":
        bits = 8 * dtype.itemsize
        number = int(value) & ((1 << bits) - 1)
        data = np.array(number, f"u{dtype.itemsize}").view(dtype)
    elif result.elem == "i1":
        data = np.array(bool(value))
    else:
        data = np.asarray(np.float64(value)).astype(dtype)
    _set(context, op, np.broadcast_to(data, (1, 1, result.count)))


def _undefined(context: Context, op: LaneOp) -> None:
    shape = (1, 1, op.results[0].count)
    _set(context, op, np.zeros(shape, DTYPES[op.results[0].elem]), np.ones(shape, np.bool_))


def _zero(context: Context, op: LaneOp) -> None:
    _set(context, op, np.zeros((1, 1, 1), np.int32))


def _clock(context: Context, op: LaneOp) -> None:
    _set(context, op, np.full((1, 1, 1), time.monotonic_ns(), np.int64), None, not context.batch.launch.counting)


def _program_id(context: Context, op: LaneOp) -> None:
    batch = context.batch
    ids = np.array([batch.index_of(b)[op.attrs["axis"]] for b in range(len(batch.numbers))], np.int32)
    data = ids[context.warps // batch.program.warps][:, None, None]
    _set(context, op, data[:1] if (ids == ids[0]).all() else data)


def _num_programs(context: Context, op: LaneOp) -> None:
    _set(context, op, np.full((1, 1, 1), context.batch.launch.grid[op.attrs["axis"]], np.int32))


def _spread(bases: tuple[int, ...], index: Array) -> Array:
    mixed = np.zeros(index.shape, np.int32)
    for i, base in enumerate(bases):
        mixed ^= (index >> i & 1).astype(np.int32) * np.int32(base)
    return mixed


def _linear(context: Context, op: LaneOp) -> None:
    batch, attrs = context.batch, op.attrs
    data = np.array(attrs["registers"], np.int32)[None, None, :]
    if any(attrs["lane"]):
        data = data ^ _spread(attrs["lane"], np.arange(batch.lanes))[None, :, None]
    if any(attrs["warp"]):
        data = data ^ _spread(attrs["warp"], context.warps % batch.program.warps - context.first)[:, None, None]
    if any(attrs["block"]):
        block = batch.numbers[context.warps // batch.program.warps] % batch.program.blocks
        data = data ^ _spread(attrs["block"], block)[:, None, None]
    _set(context, op, data)


def _mapped(context: Context, op: LaneOp, fn: Callable[[Array], Array]) -> None:
    """The same rearrangement of data and of what is undefined."""
    f = context.env[op.operands[0]]
    _set(context, op, fn(f.data), None if f.undefined is None else fn(f.undefined), f.known)


def _rename(context: Context, op: LaneOp) -> None:
    table = list(op.attrs["table"])
    _mapped(context, op, lambda x: x[:, :, table])


def _join(context: Context, op: LaneOp) -> None:
    operands = _operands(context, op)

    def joined(parts: list[Array]) -> Array:
        shape = np.broadcast_shapes(*(p.shape[:2] for p in parts))
        return np.concatenate([np.broadcast_to(p, (*shape, p.shape[2])) for p in parts], axis=2)

    undefined = None
    if any(f.undefined is not None for f in operands):
        undefined = joined(
            [np.zeros((1, 1, f.data.shape[2]), np.bool_) if f.undefined is None else f.undefined for f in operands]
        )
    _set(context, op, joined([f.data for f in operands]), undefined, all(f.known for f in operands))


def _pack(context: Context, op: LaneOp) -> None:
    """Of a word bit j of `undefined` says that its element j is: a shuffle must not spoil the others."""
    f, result = context.env[op.operands[0]], op.results[0]
    each = f.data.shape[2] // result.count
    data = f.data.astype(np.uint8) if f.data.dtype == np.bool_ else f.data
    packed = np.ascontiguousarray(data).view(DTYPES[result.elem])
    undefined: Array | None = None
    if f.undefined is not None:
        u = (f.undefined != 0).reshape(*f.undefined.shape[:2], result.count, each)
        undefined = np.asarray((u * (1 << np.arange(each))).sum(axis=3).astype(np.uint8))
    _count(context, op, result.count)
    _set(context, op, packed, undefined, f.known)


def _unpack(context: Context, op: LaneOp) -> None:
    f, result = context.env[op.operands[0]], op.results[0]
    each = result.count // f.data.shape[2]
    data = np.ascontiguousarray(f.data).view(DTYPES[result.elem])
    undefined = f.undefined
    if undefined is not None:
        if undefined.dtype == np.bool_:
            undefined = np.repeat(undefined, each, axis=2)
        else:
            undefined = (undefined[..., None] >> np.arange(each) & 1 != 0).reshape(*undefined.shape[:2], -1)
    _count(context, op, result.count)
    _set(context, op, data, undefined, f.known)


def _permute(context: Context, op: LaneOp) -> None:
    """Bytes of two words; of what is undefined the bits of elements move with them."""
    a, b, selector = _operands(context, op)
    each = int(op.attrs["each"])
    data = np.concatenate([_bytes(np.asarray(x)) for x in np.broadcast_arrays(a.data, b.data)], axis=3)
    select = selector.data.view(np.uint32)[..., None] >> (4 * np.arange(4, dtype=np.uint32)) & np.uint32(7)
    place = np.broadcast_to(select.astype(np.int64), np.broadcast_shapes(select.shape, (*data.shape[:3], 4)))
    wide = np.broadcast_to(data, (*place.shape[:3], 8))
    words = np.ascontiguousarray(np.take_along_axis(wide, place, axis=3)).view(np.int32)[..., 0]
    undefined: Array | None = None
    if a.undefined is not None or b.undefined is not None:
        sides = np.broadcast_arrays(*(_undefined_bytes(f, each) for f in (a, b)))
        taken = np.take_along_axis(np.broadcast_to(np.concatenate(sides, axis=3), wide.shape), place, axis=3)
        elements = taken.reshape(*taken.shape[:3], each, 4 // each).any(axis=4)
        undefined = np.asarray((elements * (1 << np.arange(each))).sum(axis=3).astype(np.uint8))
    _count(context, op, op.results[0].count)
    _set(context, op, words, undefined, a.known and b.known and selector.known)


def _bytes(words: Array) -> Array:
    """The bytes of words, lowest first, in a further dimension."""
    return np.ascontiguousarray(words)[..., None].view(np.uint8)


def _undefined_bytes(fragment: Fragment, each: int) -> Array:
    """Which bytes of each word are undefined."""
    undefined = fragment.undefined
    if undefined is None:
        return np.zeros((1, 1, 1, 4), np.bool_)
    if undefined.dtype == np.bool_:
        return np.repeat(undefined[..., None], 4, axis=3)
    elements = undefined[..., None] >> np.arange(each) & 1 != 0
    return np.repeat(elements, 4 // each, axis=3)


def words_of(elem: str) -> int:
    """Instructions that a shuffle of one register takes: it moves 32 bits."""
    return 2 if DTYPES[elem].itemsize == 8 else 1


def _shuffle(context: Context, op: LaneOp) -> None:
    f, lanes = context.env[op.operands[0]], context.batch.lanes
    count = f.data.shape[2]
    numbers = np.arange(lanes)[None, :, None]
    known, wrong = f.known, f.undefined
    if op.attrs["kind"] == "xor":
        masks = np.array(op.attrs["masks"], np.int64)
        if len(masks) == 1:
            masks = np.repeat(masks, count)
        source = numbers ^ masks
    else:
        lane = context.env[op.operands[1]]
        known = known and lane.known
        source = lane.data.astype(np.int64) % lanes
        if lane.undefined is not None:
            wrong = union([wrong, lane.undefined])

    def moved(x: Array) -> Array:
        warps = max(x.shape[0], source.shape[0])
        wide = np.broadcast_to(x, (warps, lanes, count))
        return np.take_along_axis(wide, np.broadcast_to(source, (warps, lanes, count)), axis=1)

    instructions = count * words_of(op.operands[0].elem) * context.count
    if context.batch.launch.sliced is None:
        context.batch.report.add_kind(op.span, "shuffle", instructions)
        context.batch.report.add(op.span, shuffles=instructions)
    _set(context, op, moved(f.data), None if wrong is None else moved(wrong), known)


def _elect(context: Context, op: LaneOp) -> None:
    _count(context, op, 1)
    _set(context, op, (np.arange(context.batch.lanes) == 0)[None, :, None])


def _ballot(context: Context, op: LaneOp) -> None:
    f, lanes = context.env[op.operands[0]], context.batch.lanes
    x = full(f.data, f.data.shape[0], lanes)
    weights = np.uint64(1) << np.arange(lanes, dtype=np.uint64)[None, :, None]
    data = (x * weights).sum(axis=1, keepdims=True).astype(DTYPES[op.results[0].elem])
    undefined = None if f.undefined is None else np.asarray(f.undefined.any(axis=1, keepdims=True))
    _count(context, op, op.results[0].count)
    _set(context, op, data, undefined, f.known)


HANDLERS: dict[str, Callable[[Context, LaneOp], None]] = {
    "constant": _constant,
    "undefined": _undefined,
    "zero": _zero,
    "clock": _clock,
    "keep": lambda context, op: None,
    "program_id": _program_id,
    "num_programs": _num_programs,
    "linear": _linear,
    "rename": _rename,
    "join": _join,
    "pack": _pack,
    "unpack": _unpack,
    "permute": _permute,
    "shuffle": _shuffle,
    "ballot": _ballot,
    "elect": _elect,
}
