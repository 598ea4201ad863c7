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

__all__ = [
    "carried_tiles", "is_turned", "kept_bytes", "product_operations", "reduced_rows", "reductions", "roundings",
    "runs_of", "stored_apart",
]  # fmt: skip


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
    return max(programs, counts[f"kind:{innermost[-1].counted_as}"])


def kept_bytes(facts: Facts) -> tuple[float, float]:
    """Bytes that are written and read of tiles that are kept in memory, in a launch; and their bytes, of a program."""
    total = once = 0.0
    for r in facts.explanation.remarks.of(InMemory):
        bytes = _tile_bytes(r)
        total += 2 * bytes * _turns(facts, r.span)
        once += bytes
    return total, once


def carried_tiles(facts: Facts) -> int:
    """How many tiles loops carry, which are kept in memory."""
    loops = {loop.span for loop in facts.loops}
    return sum(r.span in loops for r in facts.explanation.remarks.of(InMemory))


def reduced_rows(facts: Facts) -> float:
    """Bytes of the largest tile that is kept, outside of loops, for what comes after its reduction; 0 if none is."""
    if facts.loops or not reductions(facts):
        return 0.0
    return max(map(_tile_bytes, facts.explanation.remarks.of(InMemory)), default=0.0)


def _tile_bytes(r: InMemory) -> float:
    *sizes, element = r.tile.split("x")
    return prod(map(int, sizes)) * ELEMENT_BITS.get(element, 32) / 8


def roundings(facts: Facts) -> float:
    """Elements that are rounded to bfloat16 in the whole launch: by a conversion, or as the result of an operation."""
    if facts.program is None:
        return 0.0
    total, told = 0.0, set()
    for op in facts.ops:
        rounds = op.name.startswith(("arith.", "math.")) and any(v.elem == "bf16" for v in op.results)
        if rounds and op.name not in ("arith.select", "arith.constant") and (op.span, op.name) not in told:
            told.add((op.span, op.name))
            total += facts.places.get(op.span, Counter())[f"kind:{op.name}"]
    return total * facts.program.lanes


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


def runs_of(facts: Facts, far: int) -> Mapping[tuple[Span | None, str], float | None]:
    """Bytes that an access moves before it goes on so many bytes or more further, by place and "load" or "store"; None
    where it does not, or where it is not known.
    """
    found: dict[tuple[Span | None, str], float | None] = {}
    for r in facts.explanation.remarks.of(VectorAccess):
        if r.access not in ("load", "store") or not r.run:
            continue
        size = ELEMENT_BITS.get(r.tile.rpartition("x")[2], 32) / 8
        apart, turn = (_elements(facts, each) for each in (r.apart, r.turn))
        if apart is None or turn is None or r.run in (turn, apart):  # one goes on where the other ends
            length = None
        elif apart:
            length = r.run * size if apart * size >= far else None
        else:
            length = r.run * size if turn * size >= far else None
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


def stored_apart(facts: Facts) -> float:
    """Bytes from one row of what is stored to the next; 0 where there is but one row, 1 where it is not known."""
    for r in facts.explanation.remarks.of(VectorAccess):
        if r.access == "store" and r.run:
            apart = _elements(facts, r.apart)
            return 1.0 if apart is None else apart * ELEMENT_BITS.get(r.tile.rpartition("x")[2], 32) / 8
    return 1.0


def is_turned(facts: Facts) -> bool:
    """Whether what is loaded along one dimension is stored along another one."""
    accesses = [r for r in facts.explanation.remarks.of(VectorAccess) if r.access in ("load", "store") and r.run > 1]
    return any(r.form != "whole vectors" for r in accesses) and len({r.access for r in accesses}) == 2
