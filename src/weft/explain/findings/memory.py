"""Findings about global memory: accesses that are spread over it, loads that repeat, atomics that meet, masks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from weft.base import Span
from weft.base.remarks import AccessWidth
from weft.ir.lane import LaneOp, Value

from ..record import Finding
from .narrow import BY_A_VALUE
from .rule import EVERYWHERE, Facts, rule
from .spread import MANY, is_spread, why_spread

__all__ = [
    "idle_lanes", "masks_that_hold", "repeated_load", "uncoalesced_access", "wrapped_offsets",
]  # fmt: skip

IDLE = 0.6
"""The part of the threads of an access whose mask holds below which lanes are called idle."""


@rule("uncoalesced-access")
def uncoalesced_access(facts: Facts) -> Iterator[Finding]:
    """An access that touches many more sectors than hold what it asks for."""
    for access in facts.explanation.accesses:
        r = access.remark
        if not is_spread(access) or r.tile in facts.kept:
            continue
        if isinstance(r, AccessWidth) and r.limit in BY_A_VALUE and r.bytes < r.most:  # narrow-access says it
            continue
        cure = why_spread(facts, access)
        if cure is None:
            continue
        sectors, least = access.sectors
        yield Finding(
            "uncoalesced-access",
            r.span,
            f"it touches {sectors:,} sectors of 32 bytes",
            f"{least:,} would hold the elements, but {cure.why}",
            cure.fix,
            change=cure.change,
        )


def _of_memory(facts: Facts, *names: str) -> Iterator[LaneOp]:
    for op in facts.ops:
        if op.name in names and op.attrs.get("space") == "global":
            yield op


def _threads(facts: Facts, span: Span | None) -> tuple[int, int]:
    """Threads whose masks hold at a place, and all threads there, of accesses of global memory."""
    counts: Mapping[str, int] = facts.places.get(span, {})
    lanes = facts.program.lanes if facts.program is not None else 0
    held = sum(n for name, n in counts.items() if name.startswith(("threads:load.global", "threads:store.global")))
    every = sum(n for name, n in counts.items() if name.startswith(("kind:load.global", "kind:store.global")))
    return held, every * lanes


@rule("mask-always-true")
def masks_that_hold(facts: Facts) -> Iterator[Finding]:
    """A mask that leaves nothing out in the whole launch, in a loop."""
    e = facts.explanation
    in_loops = {op for loop in facts.loops for region in loop.regions for op in region.walk()}
    for op in _of_memory(facts, "load", "store"):
        held, every = _threads(facts, op.span)
        if e.counts.exact and op.attrs.get("masked") and op in in_loops and held == every > 0:
            yield Finding(
                "mask-always-true",
                op.span,
                "a mask is computed in each iteration",
                f"it is true for all {held:,} threads of this launch",
                "leave it out where sizes are multiples of the block: a constexpr by weft.heuristics, or two loops",
            )


def _accessed(op: LaneOp) -> Value:
    """What a load gives, or a store takes."""
    return op.results[0] if op.name == "load" else op.operands[1]


def _occupied(facts: Facts, op: LaneOp) -> float:
    """The part of the elements in a block's threads that are those of the tile that is accessed, each once; the
    author's mask is over these. Where no tile is known: all if a thread has several, and none of a number."""
    there = [each for each in _of_memory(facts, op.name) if each.span == op.span]
    count, program = sum(_accessed(each).count for each in there), facts.program
    elements = [prod(access.shape) for access in facts.explanation.accesses if access.remark.span == op.span]
    if program is None or not elements:
        return 1.0 if _accessed(op).count > 1 else 0.0
    return min(1.0, max(elements) / (count * program.machine.threads(program.warps)))


@rule("idle-lanes")
def idle_lanes(facts: Facts) -> Iterator[Finding]:
    """Accesses most of whose threads are masked off."""
    for op in _of_memory(facts, "load", "store"):
        held, every = _threads(facts, op.span)
        every = round(every * _occupied(facts, op))
        if op.attrs.get("masked") and facts.explanation.counts.exact and every >= MANY and held < IDLE * every:
            yield Finding(
                "idle-lanes",
                op.span,
                f"only {held / every:.0%} of the threads have an element to access",
                "the mask is false for the others, because the block is larger than the data",
                "take a smaller block, or a loop over parts of the row",
            )


@rule("repeated-load", on=EVERYWHERE)
def repeated_load(facts: Facts) -> Iterator[Finding]:
    """A load in a loop whose addresses are the same in each iteration."""
    for loop in facts.loops:
        inside = {value for region in loop.regions for value in region.arguments}
        for region in loop.regions:
            written = any(o.name in ("store", "atomic", "compare_and_swap") for o in region.walk())
            for op in region.walk():
                if op.name != "load" or op.attrs.get("space") != "global" or op.attrs.get("volatile") or written:
                    continue
                if not inside & facts.made_from(op.operands[0]):
                    yield Finding(
                        "repeated-load",
                        op.span,
                        "the same addresses are loaded in each iteration of a loop",
                        "nothing of the address depends on the loop",
                        "load before the loop",
                    )


@rule("colliding-atomics", on=EVERYWHERE)
def colliding_atomics(facts: Facts) -> Iterator[Finding]:
    """An atomic operation by which all programs go to the same addresses."""
    if facts.explanation.counts.programs < 2:
        return
    for op in _of_memory(facts, "atomic", "compare_and_swap"):
        made = facts.made_from(op.operands[0])
        makers = {value.op.name for value in made if value.op is not None}
        if not makers & {"program_id", "load", "atomic", "clock", "shared"}:
            yield Finding(
                "colliding-atomics",
                op.span,
                f"{facts.explanation.counts.programs:,} programs go to the same addresses",
                "the address does not depend on the program",
                "combine within the program first, and give programs places of their own that are summed afterwards",
            )


@rule("wrapped-offset", on=EVERYWHERE)
def wrapped_offsets(facts: Facts) -> Iterator[Finding]:
    """An offset that does not fit its integers."""
    for span, what in facts.wrapped:
        yield Finding(
            "wrapped-offset", span, "an offset wraps", what, "widen an operand first: x.to(tl.int64)"
        )  # fmt: skip
