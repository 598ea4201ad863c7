"""Operations on memory: loads, stores, atomics, asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from weft.ir.lane import LaneOp, Value
from weft.ops.integers import unsigned
from weft.ops.rounding import round_to

from .errors import OutOfBoundsError, UninitializedError
from .machine import Access, Context
from .maps import SCRATCH
from .values import DTYPES, Array, Fragment, full, unknown


def need_defined(context: Context, op: LaneOp, value: Value, subject: str, where: Array | None = None) -> None:
    """Report registers that were never given a value and now decide something."""
    undefined = context.env[value].undefined
    if undefined is None or not context.batch.options.uninitialized:
        return
    wrong = full(undefined != 0, context.count, context.batch.lanes)
    if where is not None:
        wrong = wrong & where
    if wrong.any():
        row, lane, register = (int(x[0]) for x in np.nonzero(wrong))
        error = UninitializedError(
            f"{subject} is undefined in register {register}: nothing was written to it",
            op.span,
            thread=context.thread(row, lane),
        )
        error.count = int(wrong.sum())
        context.batch.launch.error(error)


def _known(context: Context, *values: Value | None) -> bool:
    """Whether all are known; counts are not exact if not."""
    known = all(context.env[v].known for v in values if v is not None)
    if not known:
        context.batch.report.exact = False
    return known


def _access(
    context: Context, op: LaneOp, address: Value, mask: Value | None, width: int, space: str | None = None
) -> Access:
    """Who accesses what."""
    batch = context.batch
    shape = (context.count, batch.lanes)
    place = full(context.env[address].data, *shape).astype(np.int64)
    active = np.ones(place.shape, np.bool_)
    if _is_supposed(context, mask):
        context.batch.launch.report.exact, mask = False, None
    if mask is not None:
        need_defined(context, op, mask, "the mask")
        active = np.broadcast_to(full(context.env[mask].data, *shape), place.shape)
    need_defined(context, op, address, "the address", active)
    space = space or op.attrs["space"]
    home = None
    if space == "cluster":
        rank = np.clip((place >> CLUSTER_BITS) - 1, 0, batch.program.blocks - 1)
        home = batch.block_of_rank((context.warps // batch.program.warps)[:, None, None], rank)
        place = place & (1 << CLUSTER_BITS) - 1
    return Access(op, space, place, active, width, _known(context, address, mask), home=home)


CLUSTER_BITS = 24
"""An address in the space `cluster` is one in a block's shared memory, and above these bits the rank, from 1 on."""


def _remote(context: Context, op: LaneOp) -> None:
    place, rank = (context.env[v] for v in op.operands)
    need_defined(context, op, op.operands[1], "the rank of a block")
    wrong = (rank.data < 0) | (rank.data >= context.batch.program.blocks)
    if rank.known and wrong.any():
        blocks = context.batch.program.blocks
        text = f"there is no block {int(rank.data[wrong][0])} in a cluster of {blocks}"
        context.batch.launch.error(OutOfBoundsError(text, op.span, thread=context.thread(0)))
    data = place.data + (rank.data + 1 << CLUSTER_BITS)
    context.env.values[op.results[0]] = Fragment(data.astype(np.int32), place.undefined, place.known and rank.known)


def _is_supposed(context: Context, mask: Value | None) -> bool:
    """Whether a mask is not known, and taken to hold: where lengths of loops are supposed, masks at their ends are."""
    return mask is not None and context.batch.launch.turns is not None and not context.env[mask].known


def _issued(context: Context, kind: str, access: Access, mask: Value | None) -> None:
    """Count an access by its kind, and the threads whose mask holds."""
    known = mask is None or context.env[mask].known or _is_supposed(context, mask)
    threads = np.count_nonzero(access.active, axis=(1, 2)) if known else np.zeros(context.count, np.int64)
    context.batch.report.add_kind(access.op.span, kind, access.address.shape[2] * context.count, threads)


def _item(elem: str) -> int:
    return DTYPES[elem].itemsize


def _load(context: Context, op: LaneOp) -> None:
    result, vector = op.results[0], op.attrs["vector"]
    mask = op.operands[1] if op.attrs.get("masked") else None
    other = op.operands[2] if mask is not None and len(op.operands) > 2 else None
    access = _access(context, op, op.operands[0], mask, vector * _item(result.elem))
    _issued(context, f"load.{access.space}.{access.width * 8}", access, mask)
    access.known = not context.batch.launch.counting
    wrong: Array | None = None
    if not access.known and access.space == "global":
        context.batch.checked(context, access, False)
        read = _of_data(context, access, result)
        if read is None:
            context.env.values[result] = unknown(result.elem, result.count)
            return
        raw, access.known = read, True
    else:
        raw, wrong = context.batch.load(context, access)
        if not access.known:
            context.env.values[result] = unknown(result.elem, result.count)
            return
    shape = (context.count, context.batch.lanes, result.count)
    data = _typed(raw, result.elem).reshape(shape)
    active = np.repeat(access.active, vector, axis=2)
    undefined: Array | None = None
    if wrong is not None:
        undefined = np.asarray(wrong.reshape(*shape, _item(result.elem)).any(axis=3))
    if mask is not None and not active.all():
        undefined = _masked_off(context, other, active, undefined)
        if other is not None:
            data = np.where(active, data, context.env[other].data).astype(data.dtype)
    known = access.known and (other is None or context.env[other].known)
    context.env.values[result] = Fragment(data, undefined, known)


def _of_data(context: Context, access: Access, result: Value) -> Array | None:
    """Counting: the bytes that are loaded, if they decide about anything and are among those that were given."""
    launch = context.batch.launch
    if not launch.memory.segments or not access.counted:
        return None
    if launch.sliced is not None and result not in launch.sliced.needed:
        return None
    where = access.address[access.active]
    if launch.memory.outside(where, access.width).any() or (where % access.width).any():
        return None
    raw = np.zeros((*access.address.shape, access.width), np.uint8)
    raw[access.active] = launch.memory.read(where, access.width)
    return raw


def _masked_off(context: Context, other: Value | None, active: Array, undefined: Array | None) -> Array | None:
    """What is undefined where the mask does not hold: all of it, or what `other` has undefined."""
    if other is None:
        return ~active if undefined is None else undefined | ~active
    missing = context.env[other].undefined
    if missing is None:
        return undefined
    undefined_lanes: Array = ~active & (missing != 0)
    return undefined_lanes if undefined is None else undefined | undefined_lanes


def _typed(raw: Array, elem: str) -> Array:
    """Bytes as elements; an i1 is a byte that is not zero."""
    if elem == "i1":
        return np.asarray(raw != 0)
    return np.ascontiguousarray(raw).view(DTYPES[elem])


def _raw(data: Array) -> Array:
    """Elements [warp, lane, register] as bytes [warp, lane, register, width]."""
    if data.dtype == np.bool_:
        data = data.astype(np.uint8)
    return np.ascontiguousarray(data).view(np.uint8).reshape(*data.shape, data.dtype.itemsize)


def _store(context: Context, op: LaneOp) -> None:
    value, vector = op.operands[1], op.attrs["vector"]
    mask = op.operands[2] if op.attrs.get("masked") else None
    access = _access(context, op, op.operands[0], mask, vector * _item(value.elem))
    _issued(context, f"store.{access.space}.{access.width * 8}", access, mask)
    if context.batch.launch.counting and not context.env[value].known:
        context.batch.checked(context, access, True)
        if access.space != "global":
            context.batch.remember(context, access, None)
        return
    shape = (context.count, context.batch.lanes)
    raw = _raw(full(context.env[value].data, *shape)).reshape(*access.address.shape, access.width)
    undefined = context.env[value].undefined
    if undefined is not None and access.space == "global":
        need_defined(context, op, value, "the value stored", np.repeat(access.active, vector, axis=2))
    wrong = None
    if undefined is not None:
        wrong = np.repeat(full(undefined, *shape), _item(value.elem), axis=2).reshape(raw.shape)
    access.known = context.env[value].known
    context.batch.store(context, access, raw, wrong)


# -- atomics ----------------------------------------------------------------------------------------------------------

COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda old, new: old + new,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "exch": lambda old, new: new,
    "max": np.maximum,
    "min": np.minimum,
    "umax": lambda old, new: np.maximum(unsigned(old), unsigned(new)).view(old.dtype),
    "umin": lambda old, new: np.minimum(unsigned(old), unsigned(new)).view(old.dtype),
    "load": lambda old, new: old,
    "store": lambda old, new: new,
}


def combined(kind: str, elem: str) -> Callable[[Array, Array], Array]:
    """What an atomic of some kind makes of old and new values."""
    if kind == "fadd" or (kind == "add" and elem[0] != "i"):
        if elem in ("f32", "f64"):
            return lambda old, new: old + new
        return lambda old, new: round_to(old.astype(np.float32) + new.astype(np.float32), elem)
    return COMBINE[kind]


def _atomic(context: Context, op: LaneOp) -> None:
    mask = op.operands[2] if op.attrs.get("masked", len(op.operands) > 2) else None
    update = combined(op.attrs["kind"], op.operands[1].elem)
    _each(context, op, mask, (op.operands[1],), lambda old, new: update(old, new[0]))


def _compare_and_swap(context: Context, op: LaneOp) -> None:
    def swapped(old: Array, new: list[Array]) -> Array:
        same = unsigned(old) == unsigned(new[0])
        return np.where(same, new[1], old).astype(old.dtype)

    mask = op.operands[3] if op.attrs.get("masked") else None
    _each(context, op, mask, (op.operands[1], op.operands[2]), swapped)


def _each(
    context: Context,
    op: LaneOp,
    mask: Value | None,
    values: tuple[Value, ...],
    update: Callable[[Array, list[Array]], Array],
) -> None:
    """One indivisible step for each lane; those at one address one after the other."""
    elem, vector = values[0].elem, int(op.attrs.get("vector", 1))
    access = _access(context, op, op.operands[0], mask, vector * _item(elem))
    batch = context.batch
    _issued(context, f"atomic.{access.space}", access, mask)
    for value in values:
        need_defined(context, op, value, "the value", access.active)
    active = batch.checked(context, access, op.attrs.get("kind") != "load")
    if batch.remembered is not None and access.space != "global":
        batch.remember(context, access, None)
    if vector > 1:  # each element for itself
        steps = np.tile(np.arange(vector) * _item(elem), access.address.shape[2])
        active = np.repeat(active, vector, axis=2)
        address = np.repeat(access.address, vector, axis=2) + steps
        home = None if access.home is None else np.repeat(access.home, vector, axis=2)
        access = Access(op, access.space, address, active, _item(elem), access.counted, access.proxy, home=home)
    shape = access.address.shape
    result = np.zeros(shape, DTYPES[elem])
    if active.any():
        flat = access.address if access.space == "global" else batch.flat(context, access)
        if access.space != "global":
            batch.atomic(context, access, active, flat)
        place = flat[active]
        new = [np.broadcast_to(full(context.env[v].data, *shape[:2]), shape)[active] for v in values]
        old = np.zeros(len(place), DTYPES[elem])
        for chosen in rounds(place, batch.sequence(len(place))):
            before = _typed(fetch(context, access, place[chosen]), elem)[:, 0]
            old[chosen] = before
            if op.attrs.get("kind") != "load":  # the array may be read-only
                put(context, access, place[chosen], _raw(update(before, [n[chosen] for n in new])))
        result[active] = old
    if op.results:
        context.env.values[op.results[0]] = Fragment(result, None, not batch.launch.counting)


def rounds(place: Array, order: Array | None) -> list[Array]:
    """Indices in groups without an address twice; of one address in the order asked for."""
    indices = np.arange(len(place)) if order is None else order
    by_place = indices[np.argsort(place[indices], kind="stable")]
    sorted_places = place[by_place]
    first = np.ones(len(place), np.bool_)
    first[1:] = sorted_places[1:] != sorted_places[:-1]
    starts = np.maximum.accumulate(np.where(first, np.arange(len(place)), 0))
    rounds = np.arange(len(place)) - starts
    by_round = np.argsort(rounds, kind="stable")
    return [by_place[part] for part in np.split(by_round, np.flatnonzero(np.diff(rounds[by_round])) + 1)]


def fetch(context: Context, access: Access, place: Array) -> Array:
    if access.space == "global":
        return context.batch.launch.memory.read(place, access.width)
    return context.batch.shared[place[:, None] + np.arange(access.width)]


def put(context: Context, access: Access, place: Array, raw: Array) -> None:
    raw = raw.reshape(len(place), access.width)
    if access.space == "global":
        context.batch.launch.memory.write(place, raw)
    else:
        at = place[:, None] + np.arange(access.width)
        context.batch.shared[at], context.batch.state[at] = raw, 1


# -- shared memory and asynchronous copies ----------------------------------------------------------------------------


def _shared(context: Context, op: LaneOp) -> None:
    offset = context.batch.program.shared[op.attrs["allocation"]].offset
    assert offset is not None, "memory has not been placed"
    context.env.values[op.results[0]] = Fragment(np.full((1, 1, 1), offset, np.int32))


def _scratch(context: Context, op: LaneOp) -> None:
    batch = context.batch
    first = batch.launch.memory.addresses.get(SCRATCH, 0)
    number = batch.numbers[context.warps // batch.program.warps].astype(np.int64)
    place = first + number * batch.program.scratch + int(op.attrs["offset"])
    context.env.values[op.results[0]] = Fragment(place[:, None, None])


def _copy_async(context: Context, op: LaneOp) -> None:
    """Where the mask does not hold, or behind the first bytes, zeros are written and nothing is read."""
    width, batch = op.attrs["bytes"], context.batch
    mask = op.operands[2] if len(op.operands) > 2 else None
    to = _access(context, op, op.operands[0], None, width, "shared")
    batch.report.add_kind(op.span, f"copy_async.{width * 8}", to.address.shape[2] * context.count)
    if mask is not None and mask.elem == "i32":
        data = _first_bytes(context, op, mask)
    else:
        data, _ = batch.load(context, _access(context, op, op.operands[1], mask, width, "global"))
    active = batch.checked(context, to, True)
    if batch.remembered is not None:
        batch.remember(context, to, None)
    elif active.any():
        batch.issue_copy(context, to, active, data, None)


def _first_bytes(context: Context, op: LaneOp, size: Value) -> Array:
    """What an asynchronous copy reads that takes the first bytes of its width: those of which all are wanted at once,
    the others in the largest parts that divide every number of bytes."""
    source = _access(context, op, op.operands[1], None, op.attrs["bytes"], "global")
    if not context.env[size].known:  # where lengths of loops are supposed
        context.batch.launch.report.exact = False
        return context.batch.load(context, source)[0]
    need_defined(context, op, size, "the number of bytes")
    shape = (context.count, context.batch.lanes)
    wanted = np.broadcast_to(full(context.env[size].data, *shape), source.address.shape)
    source.active = wanted >= source.width
    data, _ = context.batch.load(context, source)
    some = (wanted > 0) & ~source.active
    step = int(np.gcd.reduce(wanted[some], initial=source.width))
    for at in range(0, source.width if some.any() else 0, step):
        part = replace(source, address=source.address + at, active=some & (wanted > at), width=step)
        data[..., at : at + step] |= context.batch.load(context, part)[0]
    return data


def _commit_async(context: Context, op: LaneOp) -> None:
    context.batch.report.add_kind(op.span, op.name, context.count)
    context.batch.groups[context.warps] += 1


def _wait_async(context: Context, op: LaneOp) -> None:
    context.batch.report.add_kind(op.span, op.name, context.count)
    context.batch.await_copies(context, int(op.attrs["pending"]))


HANDLERS: dict[str, Callable[[Context, LaneOp], None]] = {
    "load": _load,
    "store": _store,
    "atomic": _atomic,
    "compare_and_swap": _compare_and_swap,
    "remote": _remote,
    "shared": _shared,
    "scratch": _scratch,
    "copy_async": _copy_async,
    "commit_async": _commit_async,
    "wait_async": _wait_async,
}
