"""Accesses whose addresses depend on data, for the model of time: their sectors are those that there would be if data
were random, at best as few as there can be.

The counter knows how often such an access is executed and how wide it is, not where it goes; a second count supposes it
(supposed.py). Where that says nothing either, lanes are taken to be side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from weft.base import Span

from .findings import Facts

__all__ = ["with_unknown"]

SECTOR, LINE = 32, 128


def _unknown(facts: Facts) -> set[tuple[Span | None, str]]:
    """The accesses whose bytes were not counted: their place, and load or store."""
    return {
        (place, verb)
        for place, counts in facts.places.items()
        for verb in ("load", "store")
        if not counts[f"global_{verb}_bytes"] and any(_widths(counts, verb))
    }


def with_unknown(facts: Facts, spread: bool) -> Facts:
    """The facts with bytes and sectors for accesses that have none; the same facts where all have some."""
    program, e = facts.program, facts.explanation
    unknown = _unknown(facts) if program is not None and not e.counts.exact else set()
    if program is None or not unknown:
        return facts
    places, added = dict(facts.places), Counter[str]()
    for place, verb in unknown:
        more = _bytes(facts.places[place], facts.supposed.get(place, Counter()), verb, program.lanes, spread)
        places[place] = places[place] + more
        added.update(more)
    total = Counter(e.counts.total)
    total.update(added)
    e = replace(e, counts=replace(e.counts, total=dict(total)))
    supposed = {(p, verb) for p, verb in unknown if facts.supposed.get(p, Counter())[f"global_{verb}_bytes"]}
    return replace(facts, explanation=e, places=places, unknown=frozenset(supposed))


def _widths(counts: Counter[str], verb: str) -> Iterable[tuple[int, int]]:
    """Bytes of a lane, and how often a warp executes that, of the accesses of a place."""
    starts = {"load": ("kind:load.global.", "kind:copy_async."), "store": ("kind:store.global.", "kind:atomic.global")}
    for name, number in counts.items():
        if name.startswith(starts[verb]):
            bits = name.rpartition(".")[2]
            yield int(bits) // 8 if bits.isdigit() else 4, number


def _bytes(counts: Counter[str], supposed: Counter[str], verb: str, lanes: int, spread: bool) -> Counter[str]:
    """Bytes and sectors of accesses of a kind at a place."""
    more: Counter[str] = Counter()
    names = [f"global_{verb}_{what}" for what in ("bytes", "sectors", "distinct", "lines")]
    if supposed[names[0]]:
        more.update({name: supposed[name] for name in names})
    else:
        for each, number in _widths(counts, verb):
            more[names[0]] += number * lanes * each
            more[names[1]] += round(number * lanes * each / SECTOR)
            more[names[3]] += round(number * max(1.0, lanes * each / LINE))
    if not spread:
        more[names[1]] = more[names[2]] = -(-more[names[0]] // SECTOR)
        more[names[3]] = -(-more[names[0]] // LINE)
    return more
