"""The layout of a buffer in shared memory that would have the fewest bank conflicts, for what reads and writes it.

    advice = best_layout(accesses, machine)        # remarks of what goes to and from one buffer
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
from weft.base.remarks import SharedAccess
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


def best_layout(accesses: Sequence[SharedAccess], machine: Machine) -> Advice | None:
    """The layout for a buffer that is accessed in these ways; None where no layout has fewer wavefronts than it has."""
    shape, bits = _tile(accesses[0])
    if len(shape) != 2 or any(_tile(each) != (shape, bits) for each in accesses):
        return None
    view: Any = load("weft.view")
    registers = [view.as_linear(view.parse_layout(each.layout, shape), shape) for each in accesses]
    sides = list(zip(registers, [each.access == "store" for each in accesses], strict=True))
    now = sum(each.count * each.wavefronts for each in accesses)
    found: tuple[int, int, int] | None = None
    best = ""
    for number, candidate in enumerate(_candidates(shape, bits)):
        price = _price(candidate, sides, shape, bits, machine)
        if price is not None and (found is None or (*price, number) < found):
            found, best = (*price, number), _expression(candidate)
        if found is not None and found[0] <= _least(accesses):
            break  # wider accesses are tried first, so that the rest takes more instructions
    if found is None or found[0] >= now:
        return None
    return Advice(best, now, found[0], min(found[0], _least(accesses)))


def _least(accesses: Sequence[SharedAccess]) -> int:
    return sum(each.count * each.least for each in accesses)


def _tile(access: SharedAccess) -> tuple[tuple[int, ...], int]:
    *sizes, elem = access.tile.split("x")
    return tuple(map(int, sizes)), ELEMENT_BITS.get(elem, 32)


def _candidates(shape: Sequence[int], bits: int) -> Iterator[Candidate]:
    """Swizzles, the simplest first, then rows with padding."""
    vectors = [1 << i for i in range(int(log2(max(1, 128 // bits))) + 1)]
    phases = [1 << i for i in range(MOST_PHASES.bit_length())]
    for order in ([1, 0], [0, 1]):
        for vector, per_phase, most in product(reversed(vectors), phases[:4], phases):
            if vector * most <= shape[order[0]]:
                yield SwizzledSharedLayout(vector, per_phase, most, order)
    for padding in vectors:
        yield PaddedSharedLayout.with_identity_for([[shape[1], padding]], shape, [1, 0])


def _price(
    candidate: Candidate, sides: Sequence[tuple[LinearLayout, bool]], shape: Sequence[int], bits: int, machine: Machine
) -> tuple[int, int] | None:
    """Wavefronts and instructions of a warp; None where the layout does not fit the tile."""
    wavefronts = instructions = 0
    for registers, is_store in sides:
        try:
            plan = plan_local_access(registers, candidate, tuple(shape), bits, machine, store=is_store).access
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
