"""Findings about loops: loads that wait in each iteration, fewer stages than were asked for."""

from __future__ import annotations

from collections.abc import Iterator

from weft.base import Span
from weft.base.remarks import AccessWidth, NotPipelined, Pipelined

from ..record import Finding
from .narrow import padded, why_narrow
from .rule import Facts, rule

__all__ = ["fewer_stages", "not_pipelined"]

LEAST_COPY = 4
"""Bytes that a copy into shared memory takes at least."""


@rule("not-pipelined")
def not_pipelined(facts: Facts) -> Iterator[Finding]:
    """A loop of products that waits for memory in each iteration."""
    for r in facts.explanation.remarks.of(NotPipelined):
        because = f"{r.reason} ({r.because})" if r.because is not None else r.reason
        if facts.multiplies and NEVER not in r.reason:
            what = f"{r.what} waits for memory in each iteration"
            narrow = _narrow_at(facts, r.span) if "a copy takes" in r.reason else None
            fix = next((fix for reason, fix in FIXES.items() if reason in r.reason), DIRECTLY)
            fix = why_narrow(facts, narrow)[1] if narrow is not None else fix
            change = padded(facts, narrow) if narrow is not None else {}
            yield Finding("not-pipelined", r.span, what, because, fix, change=change)


def _narrow_at(facts: Facts, span: Span | None) -> AccessWidth | None:
    """An access of a place that is too narrow for a copy: a wider one could go ahead."""
    remarks = (access.remark for access in facts.explanation.accesses)
    narrow = (r for r in remarks if isinstance(r, AccessWidth) and r.span == span and r.bytes < LEAST_COPY)
    return next(narrow, None)


FIXES = {
    "where the mask is false": "let `other` of the load be 0, and mask afterwards with tl.where if it has to be more",
    "its elements have": "take operands of 32 bits or fewer, if they are precise enough",
    "addresses cannot be computed": "compute the addresses from the loop's counter, not from what the loop loads",
}
"""What helps, by a part of the reason."""
NEVER = "has no asynchronous copies"
"""A part of the reason on machines where no loop can be pipelined, whatever its author does."""
DIRECTLY = "use what is loaded as an operand of the product directly, with num_stages of 2 or more"


@rule("fewer-stages")
def fewer_stages(facts: Facts) -> Iterator[Finding]:
    """A loop with fewer iterations under way than were asked for."""
    for r in facts.explanation.remarks.of(Pipelined):
        if r.stages < r.asked and r.fewer != Pipelined.IN_REGISTERS:
            fix = next((fix for reason, fix in FOR_STAGES.items() if reason in r.fewer), "take smaller blocks")
            yield Finding(
                "fewer-stages",
                r.span,
                f"{r.stages} of the {r.asked} requested stages",
                r.fewer,
                f"{fix}, or request fewer stages",
                change={"num_stages": r.stages},
            )


FOR_STAGES = {
    "bytes for each thread": "take larger blocks, or fewer warps",
    "bytes in a row": "let rows begin at multiples of 16 bytes, and lanes load as many",
    "where its mask is false": "let `other` of the load be 0",
}
"""What helps, by a part of the reason."""
