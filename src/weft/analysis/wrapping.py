"""Offsets of pointers that are known to wrap, before the kernel is run.

    o = tl.arange(0, 1024) * 4194304         # int32: at 512 it is 2^31, which wraps to -2^31
    tl.load(x + o)

Only what certainly happens is found: at a place of the tile whose mask is not known to be false, in program (0, 0, 0),
in code that is not known to be skipped. Where sizes are known only when the kernel runs, `debug=True` checks each
operation. How numbers are known: see `samples`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.base import Span
from weft.ir import argument_name, bit_width, element_of, shape_of, span_of, tt, walk

from .samples import Places, Samples, Wrap, some_places

__all__ = ["WrappedOffset", "wrapped_offsets"]

_ACCESSES = {
    "tt.load": "load",
    "tt.store": "store",
    "tt.atomic_load": "load",
    "tt.atomic_store": "store",
    "tt.atomic_rmw": "atomic",
    "tt.atomic_cas": "atomic",
}
_NAMES = {"arith.addi": "sum", "arith.subi": "difference", "arith.muli": "product", "arith.shli": "shift"}
_LARGEST = 1 << 16
"""Tiles of more elements are not searched for the first that wraps."""


@dataclass(frozen=True)
class WrappedOffset:
    """An operation that wraps, and an access that its result is an offset of."""

    span: Span | None
    operation: str
    """What wraps: sum, difference, product, shift."""
    type: str
    """The type that it wraps in: int32, uint16, ..."""
    exact: int
    """What it would be without an end to the type."""
    kernel: str
    access: str
    access_span: Span | None
    array: str | None
    """The parameter that is accessed, where that is known."""
    position: tuple[int, ...]
    shape: tuple[int, ...]
    masked: bool
    """Whether there is a mask, which may leave the place out."""
    last_iteration: bool
    """Whether it happens in the last iteration of a loop, not in the first."""


def wrapped_offsets(root: Operation) -> list[WrappedOffset]:
    """The offsets that wrap, once for each operation, in the order of the accesses."""
    offsets: dict[Operation, WrappedOffset] = {}
    function: tt.FuncOp | None = None
    accesses: list[tuple[Operation, tt.FuncOp]] = []
    loops = False
    for op in walk(root):
        if isinstance(op, tt.FuncOp):
            function = op
        elif op.name in _ACCESSES and function is not None:
            accesses.append((op, function))
        loops = loops or op.name == "scf.for"
    for last in (False, True) if loops else (False,):
        samples = Samples(last=last)
        for access, inside in accesses:
            for wrap in _certain(samples, access):
                if wrap.op not in offsets:
                    offsets[wrap.op] = _described(inside, access, wrap, last)
    return list(offsets.values())


def _mask_of(access: Operation) -> SSAValue | None:
    if isinstance(access, tt.LoadOp | tt.StoreOp | tt.AtomicRMWOp | tt.AtomicLoadOp | tt.AtomicStoreOp):
        return access.mask
    return None


def _certain(samples: Samples, access: Operation) -> Iterator[Wrap]:
    """The wraps of an access's pointer, at places that it may touch."""
    pointer = access.operands[0]
    wraps = samples.of(pointer).wraps
    if not wraps or not samples.reached(access):
        return
    shape = shape_of(pointer.type)
    touched = samples.may_hold(_mask_of(access), shape)
    seen: set[Operation] = set()
    for wrap in wraps:
        where = touched & wrap.where
        if where.any() and wrap.op not in seen:
            seen.add(wrap.op)
            yield Wrap(wrap.op, where, np.broadcast_to(wrap.exact, where.shape), wrap.signed)


def _described(function: tt.FuncOp, access: Operation, wrap: Wrap, last: bool) -> WrappedOffset:
    """All about a wrap; at the first place where it happens, if the tile is not too large to look."""
    shape = tuple(shape_of(access.operands[0].type))
    places: Places = some_places
    if 0 < prod(shape) <= _LARGEST:
        everywhere = Samples(range, last=last)
        wrap = next((w for w in _certain(everywhere, access) if w.op is wrap.op), wrap)
        if wrap.where.shape == shape:
            places = range
    at = tuple(int(i) for i in np.argwhere(wrap.where)[0])
    width = bit_width(element_of(wrap.op.results[0].type))
    mask = _mask_of(access)
    return WrappedOffset(
        span=span_of(wrap.op),
        operation=_NAMES[wrap.op.name],
        type=f"{'' if wrap.signed else 'u'}int{width}",
        exact=int(wrap.exact[at]),
        kernel=function.sym_name.data,
        access=_ACCESSES[access.name],
        access_span=span_of(access),
        array=_array_of(access.operands[0]),
        position=tuple(places(n)[i] for n, i in zip(shape, at, strict=True)),
        shape=shape,
        masked=mask is not None and Samples().of(mask).numbers is None,
        last_iteration=last,
    )


def _array_of(pointer: SSAValue) -> str | None:
    """The parameter that a pointer comes from by moving it and changing its shape."""
    while not isinstance(pointer, BlockArgument):
        owner = pointer.owner
        if not isinstance(owner, Operation) or owner.name not in _MOVES:
            return None
        pointer = owner.operands[0]
    parent = pointer.block.parent_op()
    if parent is not None and parent.name == "scf.for" and pointer.index > 0:
        return _array_of(parent.operands[2 + pointer.index])
    return argument_name(pointer) if isinstance(parent, tt.FuncOp) else None


_MOVES = frozenset(("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.bitcast"))
