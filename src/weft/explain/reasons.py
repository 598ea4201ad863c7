"""Why a tile has its layout: what the operation that wanted it gets, and what it costs those who wanted another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

from weft.base import LayoutError, load
from weft.base.remarks import AccessWidth, Conversion, Remarks
from weft.base.remarks.remark import Site
from weft.ir.lane import ELEMENT_BITS

from .record import Access, Tile

__all__ = ["price_text", "reason_text"]

MEMORY = ("load", "store", "atomic", "descriptor")


def reason_text(tile: Tile) -> str:
    """What the operation that chose the layout gets by it."""
    r = tile.remark
    if tile.changes:
        return tile.changes[-1].why
    if r.chosen_by is None:
        return "no operation asked for any"
    what = r.chosen_by.what
    if "dot" in what:
        return "the matrix instruction leaves its sums so"
    if "reduce" in what or "scan" in what:
        return "a reduction leaves its result so, without a move"
    if any(word in what for word in MEMORY):
        return _run(tile)
    return "it is what its operands have"


def _run(tile: Tile) -> str:
    """Bytes that a thread has side by side."""
    elem = tile.remark.tile.split("x", len(tile.shape))[-1]
    elem = re.sub(r"^ptr<(.+)>$", r"\1", elem)  # of addresses, what is there
    elements = _in_a_row(tile)
    if not elements:
        return ""
    bytes = elements * max(1, ELEMENT_BITS.get(elem, 32) // 8)
    return f"a thread has {elements} element{'s' if elements > 1 else ''} in a row, {bytes} bytes"


def _in_a_row(tile: Tile) -> int:
    """Elements of a thread that are side by side in the tile, along the dimension in which its registers go first."""
    view: Any = load("weft.view")
    try:
        layout = view.as_linear(view.parse_layout(tile.layout, tile.shape), tile.shape)
    except (LayoutError, ValueError):
        return 0
    bases = layout.bases["register"]
    along = [axis for axis in range(len(tile.shape)) if bases and bases[0][axis]]
    size = 1
    while along and any(sum(basis) == basis[along[0]] == size for basis in bases):
        size *= 2
    return min(size, prod(tile.shape))


def price_text(remarks: Remarks, accesses: Sequence[Access], site: Site) -> str:
    """What it costs an operation that it did not get the layout that it wanted: a conversion, or an access that is
    narrower and touches more sectors than it could."""
    for r in remarks.of(Conversion):
        if any((s.what, s.span) == (site.what, site.span) for s in r.wanted_by):
            return f"a conversion of {r.cycles:.0f} cycles by {r.plan}" if r.cycles else "nothing moves"
    costs = []
    for access in accesses:
        remark = access.remark
        if isinstance(remark, AccessWidth) and remark.span == site.span:
            sectors, least = access.sectors
            if remark.bytes < remark.most:
                costs.append(f"{remark.bytes} bytes at a time, of {remark.most}")
            if sectors > MANY_TIMES * least > 0:
                costs.append(f"{sectors / least:.3g} times the fewest sectors")
            break
    return " and ".join(costs)


MANY_TIMES = 1.25
"""Sectors by the fewest from which on they are told."""
