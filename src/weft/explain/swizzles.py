"""The layout of a buffer in shared memory that would have the fewest bank conflicts, for what reads and writes it.

    advice = best_layout(access, remarks, machine) # for all that goes to and from its buffer
    advice.expression                              # gl.SwizzledSharedLayout(1, 1, 32, [1, 0])
    advice.now, advice.then, advice.least          # wavefronts of a warp: 260, 16, 16

Every swizzle that Gluon can write is tried, and rows with padding where no swizzle is free of conflicts: how the
accesses would be done is asked of the planner that the compiler asks (`plan_local_access`), so that wavefronts are
those that the compiled kernel would have, with the instructions that it would choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import log2
from typing import Any, TypeAlias

from weft.base import LayoutError, load
from weft.base.remarks import AccessWidth, Remarks, SharedAccess
from weft.ir.lane import ELEMENT_BITS
from weft.layouts import LinearLayout, PaddedSharedLayout, SwizzledSharedLayout
from weft.layouts.plan import plan_local_access
from weft.machines import Machine

__all__ = ["Advice", "best_layout", "numbers_text"]

MOST_PHASES = 32
Candidate: TypeAlias = SwizzledSharedLayout | PaddedSharedLayout


@dataclass(frozen=True)
class Advice:
    """A layout to write in the place of the one that a buffer has; wavefronts are those of a warp, of all accesses."""

    expression: str
    now: int
    then: int
    least: int


def best_layout(of: SharedAccess, remarks: Remarks, machine: Machine) -> Advice | None:
    """The layout for the buffer of an access, for all that accesses it; None where none has fewer wavefronts than it
    has, or where it is not known what else accesses it. Copies into it keep the width that they have."""
    shared = remarks.of(SharedAccess)
    if of.buffer:
        accesses = [each for each in shared if (each.buffer, each.gaps) == (of.buffer, of.gaps)]
    else:
        accesses = [each for each in shared if (each.tile, each.memory, each.gaps) == (of.tile, of.memory, of.gaps)]
    shape, bits = _tile(of)
    if len(shape) != 2 or any(len(_tile(each)[0]) != 2 for each in accesses):
        return None
    shape = _turned(shape, of.order)
    if any((_turned(_tile(each)[0], each.order), _tile(each)[1]) != (shape, bits) for each in accesses):
        return None
    run = max((r.bytes for r in remarks.of(AccessWidth) if _is_copy_into(r, of, shape)), default=0) * 8 // bits
    view: Any = load("weft.view")
    tiles = [_tile(each)[0] for each in accesses]
    registers = [
        view.as_linear(view.parse_layout(each.layout, tile), tile) for each, tile in zip(accesses, tiles, strict=True)
    ]
    sides = [(layout, each.access == "store", each.order) for layout, each in zip(registers, accesses, strict=True)]
    now = sum(each.count * each.wavefronts for each in accesses)
    found: tuple[int, int, int] | None = None
    best = ""
    for number, candidate in enumerate(_candidates(shape, bits, run)):
        price = _price(candidate, sides, shape, bits, machine)
        if price is not None and (found is None or (*price, number) < found):
            found, best = (*price, number), _expression(candidate)
        if found is not None and found[0] <= _least(accesses):
            break  # wider accesses are tried first, so that the rest takes more instructions
    if found is None or found[0] >= now:
        return None
    return Advice(best, now, found[0], min(found[0], _least(accesses)))


def _turned(sizes: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of a buffer by those of a view whose dimension i is its dimension order[i].

    >>> _turned((32, 64), (1, 0))
    (64, 32)
    """
    return tuple(size for _, size in sorted(zip(order, sizes, strict=True))) if order else sizes


def _is_copy_into(r: AccessWidth, of: SharedAccess, shape: tuple[int, ...]) -> bool:
    """Whether a copy may be one into a buffer."""
    *sizes, elem = r.tile.split("x")
    return r.access == "copy" and tuple(map(int, sizes)) == shape and elem == of.tile.split("x")[-1]


def _least(accesses: Sequence[SharedAccess]) -> int:
    return sum(each.count * each.least for each in accesses)


def _tile(access: SharedAccess) -> tuple[tuple[int, ...], int]:
    *sizes, elem = access.tile.split("x")
    return tuple(map(int, sizes)), ELEMENT_BITS.get(elem, 32)


def _candidates(shape: Sequence[int], bits: int, run: int) -> Iterator[Candidate]:
    """Swizzles, the simplest first, then rows with padding; of those that have runs of so many elements in a row, if
    something is copied in by such."""
    vectors = [1 << i for i in range(int(log2(max(1, 128 // bits))) + 1)]
    phases = [1 << i for i in range(MOST_PHASES.bit_length())]
    for order in ([1, 0], [0, 1])[: 1 if run > 1 else 2]:
        for vector, per_phase, most in product(reversed(vectors), phases[:4], phases):
            if vector * most <= shape[order[0]] and vector >= run:
                yield SwizzledSharedLayout(vector, per_phase, most, order)
    for padding in vectors:
        if padding >= run:
            yield PaddedSharedLayout.with_identity_for([[shape[1], padding]], shape, [1, 0])


def _viewed(candidate: Candidate, order: tuple[int, ...]) -> Candidate:
    """A layout of a buffer as a view has it whose dimension i is the buffer's dimension order[i]."""
    if not order:
        return candidate
    if isinstance(candidate, SwizzledSharedLayout):
        turned = [order.index(d) for d in candidate.order]
        return SwizzledSharedLayout(candidate.vec, candidate.per_phase, candidate.max_phase, turned)
    shape, turned = [candidate.shape[d] for d in order], [order.index(d) for d in (1, 0)]
    return PaddedSharedLayout.with_identity_for(candidate.interval_padding_pairs, shape, turned)


Side: TypeAlias = tuple[LinearLayout, bool, tuple[int, ...]]


def _price(
    candidate: Candidate, sides: Sequence[Side], shape: Sequence[int], bits: int, machine: Machine
) -> tuple[int, int] | None:
    """Wavefronts and instructions of a warp; None where the layout does not fit the tile."""
    wavefronts = instructions = 0
    for registers, is_store, order in sides:
        tile = tuple(shape[d] for d in order) if order else tuple(shape)
        try:
            seen = _viewed(candidate, order)
            plan = plan_local_access(registers, seen, tile, bits, machine, store=is_store).access
        except LayoutError:
            return None
        wavefronts += plan.count * plan.wavefronts
        instructions += plan.count
    return wavefronts, instructions


def _expression(candidate: Candidate) -> str:
    if isinstance(candidate, SwizzledSharedLayout):
        numbers = candidate.vec, candidate.per_phase, candidate.max_phase
        return f"gl.SwizzledSharedLayout({', '.join(map(str, numbers))}, {list(candidate.order)})"
    pairs = [list(pair) for pair in candidate.interval_padding_pairs]
    return f"gl.PaddedSharedLayout.with_identity_for({pairs}, {list(candidate.shape)}, [1, 0])"


def numbers_text(numbers: Sequence[int]) -> str:
    """Numbers as people say them.

    >>> numbers_text((0, 1, 2, 3)), numbers_text((0, 4, 8, 12)), numbers_text((0, 1, 5, 7, 30, 31))
    ('0 to 3', '0, 4, ... 12', '0, 1, 5, 7, ...')
    """
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) > 2 and steps == {1}:
        return f"{numbers[0]} to {numbers[-1]}"
    if len(numbers) > 3 and len(steps) == 1:
        return f"{numbers[0]}, {numbers[1]}, ... {numbers[-1]}"
    return ", ".join(map(str, numbers[:4])) + (", ..." if len(numbers) > 4 else "")
