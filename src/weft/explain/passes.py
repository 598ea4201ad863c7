"""What a CPU does beside what a kernel's source says: tiles that it keeps, reductions, products; how accesses go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from weft.base import Span
from weft.base.remarks import InMemory, LoopNest, VectorAccess
from weft.ir.lane import ELEMENT_BITS
from weft.targets.table import instruction

if TYPE_CHECKING:
    from .findings import Facts

__all__ = ["carries_tiles", "kept_bytes", "product_operations", "reduces_rows", "reductions", "runs_of"]


def _turns(facts: Facts, span: Span | None) -> float:
    """How often what stands at a place is done in a launch."""
    programs = facts.explanation.counts.programs
    innermost = [loop for loop in facts.loops if loop.span == span]
    innermost = innermost or [
        loop for loop in facts.loops if any(op.span == span for region in loop.regions for op in region.walk())
    ]
    if not innermost:
        return programs
    counts = facts.places.get(innermost[-1].span, Counter())
    return max(programs, counts[f"kind:{innermost[-1].name}"])


def kept_bytes(facts: Facts) -> tuple[float, float]:
    """Bytes that are written and read of tiles that are kept in memory, in a launch; and their bytes, of a program."""
    total = once = 0.0
    for r in facts.explanation.remarks.of(InMemory):
        *sizes, element = r.tile.split("x")
        bytes = prod(map(int, sizes)) * ELEMENT_BITS.get(element, 32) / 8
        total += 2 * bytes * _turns(facts, r.span)
        once += bytes
    return total, once


def carries_tiles(facts: Facts) -> bool:
    """Whether loops that load also carry tiles, which are kept in memory."""
    loops = {loop.span for loop in facts.loops}
    return any(r.span in loops for r in facts.explanation.remarks.of(InMemory))


def reduces_rows(facts: Facts) -> bool:
    """Whether tiles are kept, outside of loops, for what comes after their reduction."""
    if facts.loops or not reductions(facts):
        return False
    return bool(facts.explanation.remarks.of(InMemory))


def reductions(facts: Facts) -> float:
    """Reductions of a tile in the whole launch."""
    sites = {site.span for r in facts.explanation.remarks.of(LoopNest) for site in r.does if site.what == "tt.reduce"}
    return sum(_turns(facts, span) for span in sites)


def product_operations(facts: Facts) -> dict[bool, float]:
    """Multiplications and additions of products in a launch, by whether their elements have 16 bits or fewer."""
    found: Counter[bool] = Counter()
    for key, n in facts.explanation.counts.total.items():
        try:
            entry = instruction(key.removeprefix("kind:"))
        except KeyError:
            continue
        if "multiplies" in entry.params and "shape" in entry.params:
            found["f16" in key or "8" in key.rpartition(".m")[2].partition(".")[2]] += (
                2 * prod(entry.params["shape"]) * n
            )
    return dict(found)


def runs_of(facts: Facts, page: int) -> Mapping[tuple[Span | None, str], float | None]:
    """Bytes that an access moves before it goes on at another page, by place and "load" or "store"; None where it does
    not, or where it is not known.
    """
    found: dict[tuple[Span | None, str], float | None] = {}
    for r in facts.explanation.remarks.of(VectorAccess):
        if r.access not in ("load", "store") or not r.run:
            continue
        size = ELEMENT_BITS.get(r.tile.rpartition("x")[2], 32) / 8
        apart, turn = (_elements(facts, each) for each in (r.apart, r.turn))
        if apart is None or turn is None or turn == r.run:
            length = None
        elif apart:
            length = r.run * size if apart * size >= page else None
        else:
            length = r.run * size if turn * size >= page else None
        found.setdefault((r.span, r.access), length)
    return found


def _elements(facts: Facts, distance: tuple[int, str]) -> int | None:
    """A distance in this launch; None where it is not known."""
    number, by = distance
    if number < 0:
        return None
    if not by:
        return number
    value = facts.scalars.get(by)
    return number * value if isinstance(value, int) else None
