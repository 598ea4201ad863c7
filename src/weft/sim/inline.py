"""Inline assembly in the simulator, what all vendors have in common: elements go into registers and come out of them.

    registers = given(context, op)          # {"$1": bits[warp, lane, call], ...}
    ...                                     # a vendor runs the text on them
    settle(context, op, registers)

Each call of the text works on `pack` elements in the registers that the constraints name, as the back end gives them;
here every warp, lane and call is done at once.
"""

from __future__ import annotations

import numpy as np

from weft.ir.lane import LaneOp, Value

from .contexts import AnyContext
from .values import DTYPES, Array, Fragment, union


def constraints_of(op: LaneOp) -> list[str]:
    """Those of all registers, results first, without what says that they are results.

    >>> constraints_of(LaneOp("assembly", (), (), {"constraints": "=&v,=s,v,0,~{vcc}"}))
    ['v', 's', 'v', '0']
    """
    parts = (c.strip() for c in str(op.attrs["constraints"]).split(","))
    return [c.lstrip("=&") for c in parts if not c.startswith("~")]


def _per_register(elem: str, pack: int) -> int:
    width = 1 if elem == "i1" else 8 * DTYPES[elem].itemsize
    return min(pack, max(1, 32 // width))


def _packed(data: Array, elem: str, pack: int) -> list[Array]:
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
            values.append(part.view(f"u{size}")[..., 0])
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


def _wide(x: Array, pack: int, count: int) -> Array:
    """With all its registers, and the last repeated until calls are full."""
    whole = np.broadcast_to(x, (*x.shape[:2], count)) if x.shape[2] == 1 else x
    missing = -count % pack
    return np.concatenate([whole, np.repeat(whole[..., -1:], missing, axis=2)], axis=2) if missing else whole


def _shape(op: LaneOp) -> tuple[int, int]:
    """(elements of a call, registers of the widest value)"""
    return int(op.attrs["pack"]), max(v.count for v in (*op.operands, *op.results))


def _sizes(op: LaneOp, pack: int) -> list[int]:
    """How many registers each result has in a call."""
    return [-(-pack // _per_register(v.elem, pack)) for v in op.results]


def given(context: AnyContext, op: LaneOp) -> dict[str, Array]:
    """The registers before the text is run: operands, and results that share theirs."""
    pack, count = _shape(op)
    context.batch.report.add_kind(op.span, op.name, -(-count // pack) * context.count)
    constraints = constraints_of(op)
    registers: dict[str, Array] = {}
    place = sum(_sizes(op, pack))
    for value in op.operands:
        for bits in _packed(_wide(context.env[value].data, pack, count), value.elem, pack):
            registers[f"${place}"] = bits
            if place < len(constraints) and constraints[place].isdigit():
                registers[f"${constraints[place]}"] = bits
            place += 1
    return registers


def settle(context: AnyContext, op: LaneOp, registers: dict[str, Array], *, outside: bool = False) -> None:
    """Take the results. `outside`: they hold what a launch that is only counted does not know."""
    pack, count = _shape(op)
    fragments = [context.env[v] for v in op.operands]
    undefined = union([None if f.undefined is None else _wide(f.undefined, pack, count) for f in fragments])
    known = all(f.known for f in fragments) and not (context.batch.launch.counting and outside)
    at = 0
    for value, size in zip(op.results, _sizes(op, pack), strict=True):
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
