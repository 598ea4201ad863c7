"""Findings about layouts and shared memory: conversions in loops, bank conflicts, an author's layouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from weft.base import Span, load
from weft.base.remarks import AccessWidth, Conversion, LayoutKept, SharedAccess
from weft.ir.lane import ELEMENT_BITS

from ..conflicts import conflicts_of
from ..record import Access, Finding
from ..swizzles import best_layout, numbers_text
from .rule import Facts, rule
from .spread import is_spread

__all__ = ["author_layout", "bank_conflicts", "conversion_in_loop"]

MANY = 256
"""Wavefronts of a launch below which nothing is said: they take no time."""
ROW = 128
"""Bytes of a row that has every bank once."""
OF_A_WARP = 16
"""Rows of a product that a warp has at least."""
AS_LOADED = ("load", "trans", "fp_to_fp", "ext", "sitofp", "uitofp", "trunci")
"""What operands of products come from."""
ELSEWHERE = "move one of the two operations out of the loop, or let both work along the same dimension"
SOME = 0.1
"""The part of all wavefronts that may be lost to conflicts without a word."""


@rule("conversion-in-loop")
def conversion_in_loop(facts: Facts) -> Iterator[Finding]:
    """A tile that is moved to another layout in each iteration."""
    for each in facts.explanation.conversions:
        r = each.remark
        if not each.in_loop or each.is_free or r.cycles < 1:
            continue
        made, wanted = getattr(r, "made_by", None), getattr(r, "wanted_by", ())
        fix = _apart(facts, r) if isinstance(r, Conversion) else ELSEWHERE
        if not fix:
            continue
        of = f"{made} makes it in one layout, and {', '.join(map(str, wanted))} needs another" if made else "a gather"
        way = {"shared": "through shared memory"}.get(r.plan, f"by {r.plan}")
        yield Finding(
            "conversion-in-loop",
            r.span,
            f"{r.tile} is converted {way} in each iteration, {r.cycles:.0f} cycles of a warp",
            of,
            fix,
        )


def _apart(facts: Facts, r: Conversion) -> str:
    """What would leave a conversion out; nothing for an operand that is loaded or cast before a product, which
    takes its operands as it does. A product of another product's result has it as it is if each warp has whole rows."""
    if not r.wanted_by or any("dot" not in site.what for site in r.wanted_by):
        return ELSEWHERE
    rows, warps = int(r.tile.split("x")[0]), facts.program.warps if facts.program is not None else 1
    fewer = rows // OF_A_WARP
    if any(word in r.made_by.what for word in AS_LOADED) or not 0 < fewer < warps:
        return ""
    return f"a block of {warps * OF_A_WARP} rows, or num_warps={fewer}, by which each warp has whole rows"


@rule("bank-conflicts")
def bank_conflicts(facts: Facts) -> Iterator[Finding]:
    """Accesses of shared memory whose lanes meet in banks."""
    counts = facts.explanation.counts
    passes = counts["shared_load_wavefronts"] + counts["shared_store_wavefronts"]
    for span, lost in conflicts_of(facts.explanation):
        if lost >= MANY and lost > SOME * passes:
            r = _access_at(facts, span)
            yield Finding("bank-conflicts", span, _lost(facts, span, lost), _who_meet(r), _without_conflicts(facts, r))


def _access_at(facts: Facts, span: Span | None) -> SharedAccess | None:
    """The access of a place that has conflicts, if it is one of a tile."""
    there = [r for r in facts.explanation.remarks.of(SharedAccess) if r.span == span and r.wavefronts > r.least]
    return max(there, key=lambda r: r.count * (r.wavefronts - r.least), default=None)


def _lost(facts: Facts, span: Span | None, lost: int) -> str:
    counts = facts.places.get(span, Counter())
    passes = counts["shared_load_wavefronts"] + counts["shared_store_wavefronts"]
    if passes - counts["shared_ideal"] != lost:
        return f"{lost:,} wavefronts of shared memory are lost"
    times = passes / max(1, counts["shared_ideal"])
    return f"{passes:,} wavefronts of shared memory, {times:.3g} times as many as needed"


def _who_meet(r: SharedAccess | None) -> str:
    if r is None or not (r.lanes or r.instruction != "shared"):
        return "lanes of a warp want different words of one bank"
    if r.instruction != "shared":
        return f"rows of the matrices of {r.instruction} lie in the same banks: {r.wavefronts} wavefronts for {r.least}"
    return (
        f"lanes {numbers_text(r.lanes)} of a {r.access} want {len(r.lanes)} words of bank {r.bank} at once: "
        f"{r.wavefronts} wavefronts for {r.least}"
    )


def _without_conflicts(facts: Facts, r: SharedAccess | None) -> str:
    """What the author can do: write another layout, in Gluon; store or compute something otherwise, in Triton."""
    if facts.is_gluon:
        return _another_layout(facts, r)
    if r is None:
        return "the compiler chose how tiles are exchanged here: let both operations work along one dimension"
    *sizes, elem = r.tile.split("x")
    bytes_of_row = int(sizes[-1]) * max(1, ELEMENT_BITS.get(elem, 32) // 8)
    if facts.multiplies and ELEMENT_BITS.get(elem, 32) == 32:
        return (
            "store this operand so that its rows run along the dimension that is summed over, or take 16-bit operands, "
            "which matrix instructions can load turned"
        )
    if bytes_of_row < ROW:
        return f"take a block whose rows have {ROW} bytes or more; these have {bytes_of_row}"
    return "take more elements of a row in each program, or another num_warps: the compiler chooses the layout by them"


def _another_layout(facts: Facts, r: SharedAccess | None) -> str:
    """The layout for all accesses of the buffer, as the source has it."""
    program = facts.program
    if r is None or program is None:
        return "let both operations work along one dimension, so that nothing goes through shared memory"
    advice = best_layout(r, facts.explanation.remarks, program.machine)
    if advice is None:
        return "no swizzle or padding has fewer: read and write the buffer by layouts whose lanes run along its rows"
    less = f"{advice.now} wavefronts of a warp become {advice.then}"
    only = "" if advice.then <= advice.least else f" ({advice.least} would be without conflicts)"
    matrix = "; not if wgmma or the copy engine uses the buffer, too" if facts.multiplies else ""
    return f"{advice.expression} in place of its layout: {less}{only}{matrix}"


def _is_narrow(access: Access) -> bool:
    r = access.remark
    return isinstance(r, AccessWidth) and r.limit == "layout" and r.bytes < r.most


@rule("author-layout")
def author_layout(facts: Facts) -> Iterator[Finding]:
    """A layout that a Gluon author chose, where the compiler knows a better one for an access that is not good."""
    for r in facts.explanation.remarks.of(LayoutKept):
        there = [access for access in facts.explanation.accesses if access.remark.tile == r.tile]
        if not any(is_spread(access) or _is_narrow(access) for access in there):
            continue
        better = _as_source(r.better, r.tile)
        yield Finding(
            "author-layout", r.span, f"{r.tile} keeps its author's layout", r.why, f"take {better}, or relayout=True",
            change={"relayout": True},
        )


def _as_source(layout: str, tile: str) -> str:
    """A layout of layout IR as Gluon source has it."""
    view: Any = load("weft.view")
    return f"gl.{view.parse_layout(layout, tuple(int(size) for size in tile.split('x')[:-1]))!r}"
