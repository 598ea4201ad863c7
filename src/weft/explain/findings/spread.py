"""Accesses that touch many more sectors of 32 bytes than hold what they ask for, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from weft.base.remarks import AccessWidth
from weft.ir.lane import ELEMENT_BITS

from ..record import Access
from .rule import Facts

__all__ = ["MANY", "SECTOR", "Cure", "by_a_stride", "is_spread", "number_behind", "why_spread"]

SPREAD = 1.5
"""Sectors by the least that there could be, from which on an access is called spread."""
MANY = 1024
"""Sectors of a launch below which nothing is said: it takes no time."""
SECTOR = 32
"""Bytes."""
MOST_WARPS = 32
INTERLEAVED = 4
"""The most arrays that are taken to lie in one, element by element in turn."""


def is_spread(access: Access) -> bool:
    """Whether an access touches many more sectors than hold what it asks for."""
    sectors, least = access.sectors
    return sectors >= MANY and sectors > SPREAD * least


@dataclass(frozen=True)
class Cure:
    """Why an access is spread, what would help, and the option of the launch that is all of it, if there is one."""

    why: str
    fix: str
    change: Mapping[str, int | float | str] = field(default_factory=dict)


def number_behind(facts: Facts, r: AccessWidth) -> int | None:
    """What the value that spoils an access is in this launch, if it is an integer among the arguments."""
    number = facts.scalars.get(r.value)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def by_a_stride(facts: Facts, r: AccessWidth) -> tuple[str, str]:
    """How far apart neighbours are, and what would help."""
    number = int(r.value) if r.value.isdecimal() else number_behind(facts, r)
    if number == 1:
        fix = f"let `{r.value}` be specialised (do_not_specialize), or a tl.constexpr"
        return f"{r.fact}, although it is 1 here", fix
    if r.value.isdecimal():
        row = f"load the {number} that lie in turn as one row, and take them apart by tl.reshape and tl.split, or "
        return r.fact, f"{row if 1 < (number or 0) <= INTERLEAVED else ''}store an array for each of the {number}"
    at = f" (`{r.value}` = {number})" if number is not None else ""
    if len(r.tile.split("x")) == 2:
        return r.fact + at, "store the array so that the elements of a tile lie side by side"
    return r.fact + at, (
        "exchange the dimensions of the tile, so that lanes run along the contiguous one, or move the tile through "
        "shared memory"
    )


def why_spread(facts: Facts, access: Access) -> Cure | None:
    """Why the threads of a warp are far apart; None if that is not in the author's hands."""
    r = access.remark
    apart = "the threads of a warp access addresses that are far apart"
    if not isinstance(r, AccessWidth):
        return None
    if r.limit == "stride":
        why, fix = by_a_stride(facts, r)
        return Cure(f"{apart}: {why}", fix)
    if r.limit == "buffer":
        elements = max(1, r.most * 8 // ELEMENT_BITS.get(r.tile.split("x")[-1], 32))
        return Cure(r.fact, f"give the buffer a layout with runs of {elements} elements, the first number of a swizzle")
    if r.limit == "contiguity":
        if "from memory" in r.fact:
            return Cure(f"{apart}: {r.fact}", "let an index stand for a whole row of elements, or sort the indices")
        return Cure(f"{apart}: {r.fact}", "let neighbours in the tile have neighbouring addresses")
    return _of_rows(r, apart) or _of_warps(facts, access, apart) or _of_another(facts, access, apart)


def _of_rows(r: AccessWidth, apart: str) -> Cure | None:
    """Rows of the tile that are shorter than a sector."""
    bytes = max(1, ELEMENT_BITS.get(r.tile.split("x")[-1], 32) // 8)
    rows = max(int(size) for size in r.tile.split("x")[:-1]) * bytes
    if rows >= SECTOR:
        return None
    return Cure(f"{apart}, in rows of {rows} bytes", f"take a block whose rows have {SECTOR} bytes or more")


def _of_warps(facts: Facts, access: Access, apart: str) -> Cure | None:
    """Threads that have several elements side by side, which an access takes one by one: as many threads as elements
    have one each."""
    r, program = access.remark, facts.program
    if facts.is_gluon or program is None or not isinstance(r, AccessWidth) or r.bytes != r.most:
        return None
    if r.bytes * 8 > ELEMENT_BITS.get(r.tile.split("x")[-1], 32):  # several at a time, of two accesses or more
        return None
    warps = prod(access.shape) // program.lanes
    if not program.warps < warps <= MOST_WARPS:
        return None
    return Cure(
        f"{apart}: a thread has {warps // program.warps} elements side by side, and accesses them one by one",
        f"num_warps={warps}, by which each thread has one",
        {"num_warps": warps},
    )


def _of_another(facts: Facts, access: Access, apart: str) -> Cure | None:
    """A layout that another operation on the tile wanted, which costs less in all. A tile of one dimension has no other
    along which both could go."""
    if facts.is_gluon:
        return Cure(f"{apart} in its layout", "give the tile a layout whose threads lie along the contiguous dimension")
    if len(access.shape) < 2:
        return None
    r = access.remark
    for tile in facts.explanation.tiles:
        by = tile.remark.chosen_by
        if by is not None and by.span != r.span and any(wish.site.span == r.span for wish in tile.remark.others):
            why = f"{apart}: the tile has the layout that {by} wants, which costs less in all"
            return Cure(why, "let both go along one dimension of the arrays")
    return None
