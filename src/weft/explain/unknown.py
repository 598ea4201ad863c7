"""Accesses whose addresses depend on data, for the model of time: their sectors are taken to be as few, or as many, as
there can be.

The counter knows how often such an access is executed and how wide it is, not where it goes. At best its lanes are side
by side; at worst each has a sector, or a few, of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from .findings import Facts

__all__ = ["with_unknown"]

SECTOR = 32


def with_unknown(facts: Facts, spread: bool) -> Facts:
    """The facts with bytes and sectors for accesses that have none; the same facts where all have some."""
    program, e = facts.program, facts.explanation
    if program is None or e.counts.exact:
        return facts
    places, added = {}, Counter[str]()
    for place, counts in facts.places.items():
        more: Counter[str] = Counter()
        for verb in ("load", "store"):
            if not counts[f"global_{verb}_bytes"]:
                more.update(_supposed(counts, verb, program.lanes, spread))
        places[place] = counts + more if more else counts
        added.update(more)
    if not added:
        return facts
    total = Counter(e.counts.total)
    total.update(added)
    return replace(facts, explanation=replace(e, counts=replace(e.counts, total=dict(total))), places=places)


def _supposed(counts: Counter[str], verb: str, lanes: int, spread: bool) -> Counter[str]:
    """Bytes and sectors of accesses of a kind at a place."""
    more: Counter[str] = Counter()
    start = f"kind:{verb}.global."
    for name, number in counts.items():
        if name.startswith(start):
            each = int(name[len(start) :]) // 8
            more[f"global_{verb}_bytes"] += number * lanes * each
            sectors = max(1.0, each / SECTOR) if spread else each / SECTOR
            more[f"global_{verb}_sectors"] += round(number * lanes * sectors)
    return more
