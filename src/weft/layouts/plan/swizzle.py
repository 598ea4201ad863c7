"""The memory layout of a conversion: where each element lies in shared memory, so that neither side has bank conflicts.

Offsets, from the lowest bit, are made of a vector (consecutive elements of one lane on both sides), the banks, and
segments of 128 bytes. Which elements share a bank is the subspace of the segments. It must meet the span of the vector
and the lanes of a phase in nothing, on both sides: such a subspace exists in all dimensions that are needed if a vector
fills at least a word. Zhou et al., Linear Layouts (arXiv 2505.23819v5), section 5.4, lemmas 9.4 to 9.6; vectors smaller
than a word are filled up from the registers of one side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.machines import Machine

from .. import f2


def memory_basis(
    low: Sequence[int],
    a_lanes: Sequence[int],
    b_lanes: Sequence[int],
    apart: Sequence[int],
    rounds: Sequence[int],
    size: int,
    bytes_log: int,
    machine: Machine,
) -> list[int]:
    """The element (a vector of `size` bits) at each power of two of the offset.

    `low` are the elements of the lowest offset bits; `a_lanes` and `b_lanes` those that the lane bits of one phase
    of the writer and of the reader make; `apart` those of all lanes and warps of both;
    `rounds` become the highest bits: they are moved one after the other through the same memory, in rounds. All other
    offset bits are of elements of one round, and free of conflicts within it.
    """
    flat = _without(rounds, [*low, *rounds, *apart, *f2.identity(size)], len(low)) if rounds else None
    whole = (machine.banks * machine.bank_bytes).bit_length() - 1
    banks = whole - bytes_log - len(low)  # bits of the bank beside those of the vector
    segments = max(0, size - len(low) - len(rounds) - max(0, banks))
    rows = f2.Echelon([*low, *rounds])
    chosen: list[int] = []
    if segments:
        sides = [[*low, *a_lanes], [*low, *b_lanes]]
        if flat is not None:
            sides = [_independent([*low, *rounds, *map(flat, lanes)]) for lanes in (a_lanes, b_lanes)]
        for v in f2.common_complement(sides[0], sides[1], size):
            if len(chosen) < segments and rows.add(v):
                chosen.append(v)
        for v in (*a_lanes, *b_lanes, *f2.identity(size)):  # conflicts that cannot be avoided
            if len(chosen) < segments and rows.add(v):
                chosen.append(v)
    banked = [v for v in f2.identity(size) if rows.add(v)]
    if flat is not None:
        banked, chosen = [*map(flat, banked)], [*map(flat, chosen)]
    # Offsets of what moves must leave the lowest bits alone: take the part of `low` out of all others.
    if f2.are_units((*low, *apart)):
        others = ~sum(low)
        return [*low, *(v & others for v in banked), *(v & others for v in chosen), *rounds]
    place = f2.Echelon([*low, *apart])
    for unit in f2.identity(size):
        place.add(unit)
    mask = (1 << len(low)) - 1
    rest = (v ^ f2.multiply(low, (place.coefficients(v) or 0) & mask) for v in (*banked, *chosen, *rounds))
    return [*low, *rest]


def _independent(vectors: Sequence[int]) -> list[int]:
    rows = f2.Echelon()
    return [v for v in vectors if rows.add(v)]


def _without(rounds: Sequence[int], basis: Sequence[int], first: int) -> Callable[[int], int]:
    """The projection along `rounds`, which are those of the basis from `first` on; what depends on others is left out.

    As the elements of lanes and warps come next in the basis, they take part in one round, as far as that is possible.
    """
    rows = f2.Echelon(_independent(basis))
    mask = (1 << len(rounds)) - 1

    def flat(v: int) -> int:
        return v ^ f2.multiply(rounds, (rows.coefficients(v) or 0) >> first & mask)

    return flat
