"""Findings about global memory: accesses that are narrow or spread, loads that repeat, atomics that meet, masks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from weft.base import Span
from weft.base.remarks import AccessWidth
from weft.ir.lane import ELEMENT_BITS, LaneOp

from ..record import Access, Finding
from .rule import EVERYWHERE, Facts, rule

__all__ = [
    "idle_lanes", "is_spread", "masks_that_hold", "narrow_access", "repeated_load", "uncoalesced_access",
    "wrapped_offsets",
]  # fmt: skip

SPREAD = 1.5
"""Sectors by the least that there could be, from which on an access is called uncoalesced."""
IDLE = 0.6
"""The part of the threads of an access whose mask holds below which lanes are called idle."""
MANY = 1024
"""Sectors of a launch below which nothing is said: it takes no time."""
OF_GLOBAL = ("load", "store", "copy", "atomic")
LIMITS = ("alignment", "contiguity", "mask", "layout")
"""What can be fixed of what makes an access narrow; a tile that is small is as its author wants it."""
OF_LAYOUT = ("contiguity", "layout")
"""Those of which an access that is spread over memory is another sign."""


@rule("narrow-access")
def narrow_access(facts: Facts) -> Iterator[Finding]:
    """An access of fewer bytes at a time than an instruction could have."""
    for access in facts.explanation.accesses:
        r = access.remark
        if not isinstance(r, AccessWidth) or r.access not in OF_GLOBAL or r.limit not in LIMITS:
            continue
        if r.bytes >= r.most or _is_small(access):
            continue
        if r.limit in OF_LAYOUT and (is_spread(access) or r.tile in facts.kept):  # another finding says it
            continue
        why, fix = why_narrow(facts, r)
        what = f"a {r.access} of {_bytes(r.bytes)} at a time, of {r.most}"
        yield Finding("narrow-access", r.span, what, why, fix, change=_padded(facts, r))


def why_narrow(facts: Facts, r: AccessWidth) -> tuple[str, str]:
    """Why an access has fewer bytes than an instruction could have, and what would help."""
    if r.limit == "alignment":
        return _alignment(facts, r)
    if r.limit == "mask":
        return r.fact, "mask whole vectors: let the bound of the mask be a multiple of a vector, or pad the row"
    if r.limit == "layout":
        return r.fact, "give the tile a layout that has more elements of a row in each thread, or a larger block"
    return r.fact, "let consecutive threads access consecutive elements along the tile's last dimension"


def _bytes(number: int) -> str:
    return f"{number} byte{'s' if number != 1 else ''}"


def _elements(r: AccessWidth) -> int:
    """Of the widest access."""
    return max(1, r.most * 8 // ELEMENT_BITS.get(r.tile.split("x")[-1], 8 * r.bytes))


def _number(facts: Facts, r: AccessWidth) -> int | None:
    """What the value that spoils an access is in this launch, if it is an integer among the arguments."""
    number = facts.scalars.get(r.value)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _padded(facts: Facts, r: AccessWidth) -> dict[str, int | float | str]:
    """The argument that spoils an access as it would be with padded rows."""
    number = _number(facts, r) if r.limit == "alignment" else None
    if number is None or not number % _elements(r):
        return {}
    return {r.value: number + -number % _elements(r)}


def _alignment(facts: Facts, r: AccessWidth) -> tuple[str, str]:
    """The value that spoils it, and what would help."""
    elements, number = _elements(r), _number(facts, r)
    if number is None:
        named = f"`{r.value}`" if r.value else "the offset"
        return r.fact, f"if {named} is a multiple of {elements}, say so: tl.multiple_of(..., {elements})"
    rest = number % elements
    if rest:
        padded = number + elements - rest
        why = f"{r.fact} (`{r.value}` = {number}, and {number} % {elements} = {rest})"
        return why, f"pad it to {padded}, and mask the rest"
    why = f"{r.fact}, although it is {number} here"
    return why, f"let it be specialised (do_not_specialize), or tl.multiple_of({r.value}, {elements})"


def _is_small(access: Access) -> bool:
    """Whether an access moves so little that its form does not matter; what is not counted may be large."""
    sectors, _ = access.sectors
    return 0 < sectors < MANY


def is_spread(access: Access) -> bool:
    """Whether an access touches many more sectors than hold what it asks for."""
    sectors, least = access.sectors
    return sectors >= MANY and sectors > SPREAD * least


@rule("uncoalesced-access")
def uncoalesced_access(facts: Facts) -> Iterator[Finding]:
    """An access that touches many more sectors than hold what it asks for."""
    for access in facts.explanation.accesses:
        if is_spread(access) and access.remark.tile not in facts.kept:
            sectors, least = access.sectors
            yield Finding(
                "uncoalesced-access",
                access.remark.span,
                f"it touches {sectors:,} sectors of 32 bytes",
                f"{least:,} would hold the elements, but the threads of a warp access addresses that are far apart",
                "exchange the dimensions of the tile, so that lanes run along the contiguous one, or move the tile "
                "through shared memory",
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


def _occupied(facts: Facts, op: LaneOp) -> float:
    """The part of a block's threads that have elements of the tile that is accessed; the author's mask is over these.
    None do, if no tile is known: one thread accesses a number."""
    value = op.results[0] if op.name == "load" else op.operands[1]
    program = facts.program
    if value.count > 1:
        return 1.0
    elements = [prod(access.shape) for access in facts.explanation.accesses if access.remark.span == op.span]
    if program is None or not elements:
        return 0.0
    return min(1.0, max(elements) / program.machine.threads(program.warps))


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
