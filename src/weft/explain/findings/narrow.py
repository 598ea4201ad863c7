"""Findings about accesses that move fewer bytes at a time than an instruction could, and what spoils them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from weft.base.remarks import AccessWidth
from weft.base.remarks.remark import with_article
from weft.ir.lane import ELEMENT_BITS

from ..record import Access, Finding
from .rule import Facts, rule
from .spread import MANY, SECTOR, by_a_stride, is_spread, number_behind

__all__ = ["BY_A_VALUE", "narrow_access", "padded", "why_narrow"]

BY_A_VALUE = ("alignment", "mask", "wrap")
"""What makes an access narrow because some number is not known to be a multiple of the vector."""
SPECIALISED = 4
"""The least number of whose multiples the compiler takes note of itself, if they are arguments."""
OF_GLOBAL = ("load", "store", "copy", "atomic")


@rule("narrow-access")
def narrow_access(facts: Facts) -> Iterator[Finding]:
    """An access of fewer bytes at a time than an instruction could have."""
    for access in facts.explanation.accesses:
        r = access.remark
        if not isinstance(r, AccessWidth) or r.access not in OF_GLOBAL or r.bytes >= r.most or _is_small(facts, access):
            continue
        if not is_fixable(facts, access):
            continue
        why, fix = why_narrow(facts, r)
        what = f"{with_article(r.access)} of {_bytes(r.bytes)} at a time, of {r.most}"
        if is_spread(access):
            sectors, least = access.sectors
            what += f", which touches {sectors:,} sectors of 32 bytes, where {least:,} hold the elements"
        yield Finding("narrow-access", r.span, what, why, fix, change=padded(facts, r))


def is_fixable(facts: Facts, access: Access) -> bool:
    """Whether what makes an access narrow is in the author's hands. A tile that is small is as its author wants it,
    and the layouts of a kernel without layouts are those that cost the least together."""
    r = access.remark
    assert isinstance(r, AccessWidth)
    if r.limit in BY_A_VALUE:
        return True
    if is_spread(access) or r.tile in facts.kept:  # another finding says it
        return False
    return r.limit in ("contiguity", "stride") or (r.limit == "layout" and facts.is_gluon)


def why_narrow(facts: Facts, r: AccessWidth) -> tuple[str, str]:
    """Why an access has fewer bytes than an instruction could have, and what would help."""
    if r.limit in BY_A_VALUE:
        return _by_a_value(facts, r)
    if r.limit == "layout":
        return r.fact, "give the tile a layout that has more elements of a row in each thread, or a larger block"
    if r.limit == "stride":
        return by_a_stride(facts, r)
    if "from memory" in r.fact:
        return r.fact, "let an index stand for a whole row, whose elements are consecutive, or sort the indices"
    return r.fact, "let consecutive threads access consecutive elements along the tile's last dimension"


def _bytes(number: int) -> str:
    return f"{number} byte{'s' if number != 1 else ''}"


def _divisor(r: AccessWidth) -> int:
    """What would have to divide the value that spoils an access: usually the elements of the widest access."""
    told = re.search(r"a multiple of (\d+)$", r.fact)
    return int(told[1]) if told else _widest(r)


def _widest(r: AccessWidth) -> int:
    """Elements of the widest access."""
    return max(1, r.most * 8 // ELEMENT_BITS.get(r.tile.split("x")[-1], 8 * r.bytes))


def padded(facts: Facts, r: AccessWidth) -> dict[str, int | float | str]:
    """The arguments that spoil an access, as they would be with padded rows; empty if that is not all it takes."""
    if r.limit not in BY_A_VALUE or number_behind(facts, r) is None:
        return {}
    elements = max(_divisor(r), _widest(r))
    change: dict[str, int | float | str] = {}
    for name in dict.fromkeys((r.value, *r.spoil)):
        number = facts.scalars.get(name)
        if not isinstance(number, int) or isinstance(number, bool):
            return {}
        if number % elements:
            change[name] = number + -number % elements
    return change if r.value in change else {}


def _by_a_value(facts: Facts, r: AccessWidth) -> tuple[str, str]:
    """The value of which a vector is no divisor, and what would help."""
    elements, number = _divisor(r), number_behind(facts, r)
    if number is None:
        named = f"`{r.value}`" if r.value else "the offset"
        return r.fact, f"if {named} is a multiple of {elements}, say so: tl.multiple_of(..., {elements})"
    rest = number % elements
    if not rest:
        why, hint = f"{r.fact}, although it is {number} here", f"tl.multiple_of({r.value}, {elements})"
        if number % SPECIALISED:
            return why, f"say so: {hint}"
        return why, f"let it be specialised (do_not_specialize), or {hint}"
    why = f"{r.fact} (`{r.value}` = {number}, and {number} % {elements} = {rest})"
    change = padded(facts, r)
    to = change.get(r.value, number + elements - rest)
    others = ", ".join(f"`{name}` to {more}" for name, more in change.items() if name != r.value)
    others = f"; it takes {others} as well" if others else ""
    if r.limit == "mask":
        return why, f"pad the row, so that the mask ends between vectors: {to} in place of {number}{others}"
    if r.limit == "wrap":
        return why, f"pad the row to {to}, or mask what is behind its end in place of beginning anew{others}"
    return why, f"pad it to {to}, and mask the rest{others}"


def _is_small(facts: Facts, access: Access) -> bool:
    """Whether an access moves so little that its form does not matter; what is not counted, as all programs do once."""
    sectors, _ = access.sectors
    if not sectors and not access.in_loop:
        size = max(1, ELEMENT_BITS.get(access.remark.tile.split("x")[-1], 32) // 8)
        sectors = facts.explanation.counts.programs * prod(access.shape) * size // SECTOR
    return 0 < sectors < MANY
