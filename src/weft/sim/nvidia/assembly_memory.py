"""Global memory in inline assembly: loads, stores and atomics of every thread by itself, checked like others.

    ld.acquire.gpu.global.b32 $0, [$1+4];     st.global.v2.f32 [$1], {$2, $3};     atom.add.release.gpu.u32 $0, [$1], 1;

Threads that hold copies of an element each do what the text says, as on a GPU: a counter is raised by all of them. An
address without a state space is taken for one of global memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..access import fetch, put, rounds
from ..contexts import Access
from .assembly_run import Run
from .ptx_table import atomic
from .ptx_text import Group, Operand, Place, PTXError
from .ptx_values import BITS, viewed

_SPACES = ("shared", "local", "const", "param", "shared::cta", "shared::cluster")


def touches_memory(text: str) -> bool:
    """Whether a text has an operand in memory."""
    return "[" in text


def _access(run: Run, name: tuple[str, ...], operands: Sequence[Operand], width: int) -> Access:
    """Who accesses what; `operands` decide how many calls there are."""
    place = next(x for x in operands if isinstance(x, Place))
    wrong = next((space for space in name if space in _SPACES), None)
    if wrong is not None:
        raise PTXError(f"memory in the space .{wrong}")
    registers = [x for x in operands if not isinstance(x, (Place, Group))]
    address = run.read(place.base, "b64").astype(np.int64) + place.offset
    shapes = [address.shape, *(run.read(x, "b64").shape for x in registers)]
    if run.guard is not None:
        shapes.append(run.guard.shape)
    shape = np.broadcast_shapes((run.context.count, run.lanes, 1), *shapes)
    active = np.broadcast_to(True if run.guard is None else run.guard.astype(np.bool_), shape)
    return Access(run.op, "global", np.broadcast_to(address, shape), active, width)


def _parts(name: tuple[str, ...], operand: Operand) -> list[Operand]:
    """The registers of a vector, or the one that there is."""
    count = next((int(part[1]) for part in name if part in ("v2", "v4", "v8")), 1)
    parts: list[Operand] = [*operand.parts] if isinstance(operand, Group) else [operand]
    if len(parts) != count:
        raise PTXError(f"`{'.'.join(name)}` with {len(parts)} registers")
    return parts


def _load(run: Run, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    parts, size = _parts(name, operands[0]), BITS[name[-1]] // 8
    access = _access(run, name, operands[1:], size * len(parts))
    raw, _ = run.context.batch.load(run.context, access)
    words = np.ascontiguousarray(raw).view(f"u{size}")
    for i, part in enumerate(parts):
        word = words[..., i]
        if name[-1][0] == "s":  # the rest of a wider register is the sign
            word = viewed(word, name[-1]).astype(np.int64).view(np.uint64)
        run.write(part, word)


def _store(run: Run, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    parts, size = _parts(name, operands[1]), BITS[name[-1]] // 8
    access = _access(run, name, [operands[0], *parts], size * len(parts))
    values = [np.broadcast_to(run.read(x, name[-1]), access.address.shape) for x in parts]
    raw = np.ascontiguousarray(np.stack(values, axis=-1)).view(np.uint8)
    run.context.batch.store(run.context, access, raw, None)


def _atomic(run: Run, name: tuple[str, ...], operands: tuple[Operand, ...]) -> None:
    """atom, which gives the old value, and red, which does not."""
    update, type = atomic(name), name[-1]
    if any(part in ("v2", "v4", "v8") for part in name):
        raise PTXError(f"`{'.'.join(name)}`")
    result, (place, *rest) = (None, operands) if name[0] == "red" else (operands[0], operands[1:])
    access = _access(run, name, [place, *rest], BITS[type] // 8)
    batch, shape = run.context.batch, access.address.shape
    active = batch.checked(run.context, access, True)
    at = access.address[active]
    values = [np.broadcast_to(run.read(x, type), shape)[active] for x in rest]
    old = np.zeros(len(at), f"u{access.width}")
    for chosen in rounds(at, batch.sequence(len(at))):
        before = np.ascontiguousarray(fetch(run.context, access, at[chosen])).view(old.dtype)[:, 0]
        old[chosen] = before
        after = update(before, *(x[chosen] for x in values)).astype(old.dtype)
        put(run.context, access, at[chosen], np.ascontiguousarray(after).view(np.uint8))
    if result is not None:
        before_each = np.zeros(shape, old.dtype)
        before_each[active] = old
        run.write(result, before_each)


INSTRUCTIONS = {"ld": _load, "ldu": _load, "st": _store, "atom": _atomic, "red": _atomic}
"""What each instruction does, by the first word of its name."""
