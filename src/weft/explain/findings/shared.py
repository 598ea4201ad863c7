"""Findings about layouts and shared memory: conversions in loops, bank conflicts, an author's layouts."""

from __future__ import annotations

from collections.abc import Iterator

from weft.base.remarks import AccessWidth, LayoutKept

from ..conflicts import conflicts_of
from ..record import Access, Finding
from .memory import is_spread
from .rule import Facts, rule

__all__ = ["author_layout", "bank_conflicts", "conversion_in_loop"]

MANY = 256
"""Wavefronts of a launch below which nothing is said: they take no time."""
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
        of = f"{made} makes it in one layout, and {', '.join(map(str, wanted))} wants another" if made else "a gather"
        yield Finding(
            "conversion-in-loop",
            r.span,
            f"{r.tile} is moved by {r.plan} in each iteration, {r.cycles:.0f} cycles of a warp",
            of,
            "move what is wanted otherwise out of the loop, or let both operations work along one dimension",
        )


@rule("bank-conflicts")
def bank_conflicts(facts: Facts) -> Iterator[Finding]:
    """Accesses of shared memory whose lanes meet in banks."""
    counts = facts.explanation.counts
    passes = counts["shared_load_wavefronts"] + counts["shared_store_wavefronts"]
    for span, lost in conflicts_of(facts.explanation):
        if lost >= MANY and lost > SOME * passes:
            yield Finding(
                "bank-conflicts",
                span,
                f"{lost:,} of {passes:,} wavefronts of shared memory",
                "lanes of a warp want different words of one bank",
                "give the buffer a swizzled layout (gl.SwizzledSharedLayout) or padding, or access along its rows",
            )


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
        yield Finding(
            "author-layout", r.span, f"{r.tile} keeps its author's layout", r.why, f"take {r.better}, or relayout=True",
            change={"relayout": True},
        )
