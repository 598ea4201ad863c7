"""Findings about loops: loads that wait in each iteration, fewer stages than were asked for."""

from __future__ import annotations

from collections.abc import Iterator

from weft.base.remarks import AccessWidth, NotPipelined, Pipelined

from ..record import Finding
from .memory import why_narrow
from .rule import Facts, rule

__all__ = ["fewer_stages", "not_pipelined"]

LEAST_COPY = 4
"""Bytes that a copy into shared memory takes at least."""


@rule("not-pipelined")
def not_pipelined(facts: Facts) -> Iterator[Finding]:
    """A loop of products that waits for memory in each iteration."""
    for r in facts.explanation.remarks.of(NotPipelined):
        because = f"{r.reason} ({r.because})" if r.because is not None else r.reason
        if facts.multiplies:
            yield Finding(
                "not-pipelined",
                r.span,
                f"{r.what} waits for memory in each iteration",
                because,
                _fix(facts, r),
            )


def _fix(facts: Facts, r: NotPipelined) -> str:
    """What would let a load go ahead: wider copies, where the same line has an access that is too narrow for one."""
    for access in facts.explanation.accesses:
        narrow = access.remark
        if isinstance(narrow, AccessWidth) and narrow.span == r.span and narrow.bytes < LEAST_COPY:
            return why_narrow(facts, narrow)[1]
    return "use what is loaded as an operand of the product directly, with num_stages of 2 or more"


@rule("fewer-stages")
def fewer_stages(facts: Facts) -> Iterator[Finding]:
    """A loop with fewer iterations under way than were asked for."""
    for r in facts.explanation.remarks.of(Pipelined):
        if r.stages < r.asked:
            yield Finding(
                "fewer-stages",
                r.span,
                f"{r.stages} of the {r.asked} requested stages",
                r.fewer,
                "take smaller blocks, or request fewer stages",
                change={"num_stages": r.stages},
            )
