"""Terms of many sums are given several names.

    %x1 = add i64 %base, %row1                  %x1 = add i64 %base, %row1
    ...                                 ->      ...
    %x33 = add i64 %base, %row33                %apart.1 = freeze i64 %base
                                                %x33 = add i64 %apart.1, %row33

LLVM's straight-line strength reduction, which comes before instructions of PTX are selected, tries every pair of sums
that have a term in common (since LLVM 22): does one follow from the other by something that is at hand? Tiles of many
elements have hundreds of addresses with one base. A mask of 512 x 512 elements in 128 threads took minutes, and takes
seconds. A `freeze` of what is no poison is the value itself; that pass takes it for another, the next one drops it.
Pairs are tried across blocks too, and loads of rows at any address are in blocks of their own: after `RUN` sums each
block gets a name of its own.

Not done here: sums of constants, which are few in what the emitter writes, and products.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["terms_apart"]

MOST = 64
"""Sums that may have a term in common before it gets further names."""
RUN = 32
"""Sums that have one name of such a term in common: what is near each other is what follows from each other."""
SUM = re.compile(r"  %\S+ = add (?:nuw )?(?:nsw )?(i32|i64) (%[^\s,]+|-?\d+), (%[^\s,]+|-?\d+)")


def terms_apart(text: str) -> str | None:
    """The module with such terms named anew, or None where none is one of so many sums.

    >>> rows = [f"  %x{i} = add i64 %p, %r{i}" for i in range(65)]
    >>> [line for line in terms_apart("\\n".join(rows)).splitlines() if "freeze" in line]
    ['  %apart.1 = freeze i64 %p', '  %apart.2 = freeze i64 %p']
    >>> terms_apart("\\n".join(rows[:64]))
    """
    if text.count("= add ") <= MOST:
        return None
    lines = text.splitlines()
    sums = {i: found for i, line in enumerate(lines) if " = add " in line and (found := SUM.match(line))}
    common = _common(sums.values())
    if not common:
        return None
    out: list[str] = []
    used: Counter[str] = Counter()
    named: dict[str, str] = {}
    count = 0
    for i, line in enumerate(lines):
        if line[:1] not in (" ", ""):  # another block, which the names may not reach
            named.clear()
        if line[:1] == "}":
            used.clear()
        if i in sums:
            for term in _terms(sums[i]):
                if term not in common:
                    continue
                if used[term] >= RUN and (used[term] % RUN == 0 or term not in named):
                    count += 1
                    named[term] = f"%apart.{count}"
                    out.append(f"  {named[term]} = freeze {sums[i][1]} {term}")
                used[term] += 1
            line = _renamed(line, sums[i], named)
        out.append(line)
    return "\n".join(out)


def _terms(sum: re.Match[str]) -> list[str]:
    """What is added, but numbers; a value that is added to itself once."""
    return [term for term in dict.fromkeys((sum[2], sum[3])) if term[0] == "%"]


def _common(sums: Iterable[re.Match[str]]) -> set[str]:
    """What is a term of more than `MOST` sums."""
    uses = Counter(term for sum in sums for term in _terms(sum))
    return {term for term, count in uses.items() if count > MOST}


def _renamed(line: str, sum: re.Match[str], named: dict[str, str]) -> str:
    first, second = (named.get(term, term) for term in (sum[2], sum[3]))
    return f"{line[: sum.start(2)]}{first}, {second}{line[sum.end() :]}"
