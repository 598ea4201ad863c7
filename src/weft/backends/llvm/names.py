"""Values get further names where LLVM would take minutes: it looks for what follows from what, and tries all pairs.

    %x1 = add i64 %base, %row1                  %x1 = add i64 %base, %row1
    ...                                 ->      ...
    %x33 = add i64 %base, %row33                %apart.1 = freeze i64 %base
                                                %x33 = add i64 %apart.1, %row33

Both passes below stand between two of LLVM's own, which leave the text that they change: nothing that Weft writes would
survive the first. No instruction changes its place. What a `freeze` gives is a name of its own to LLVM's analyses and
the value itself to the machine; the pass after next drops it.

`terms_apart`: straight-line strength reduction, before instructions are selected, tries every pair of sums that have a
term in common (since LLVM 22): does one follow from the other by something that is at hand? Tiles of many elements have
hundreds of addresses with one base. A mask of 512 x 512 elements in 128 threads took minutes, and takes seconds. Pairs
are tried across blocks too, and loads of rows at any address are in blocks of their own: after `RUN` sums each block
gets a name of its own. Sums of constants are few in what is written here, and stay.

`chains_divided`: before that LLVM writes each integer as an expression of what it was computed of (scalar evolution),
and asks of each sum whether it follows from another one. A sum of sums is one expression with all their terms, so that
an index which is computed in n steps takes n^2 of them: 300 steps, each a quotient and a remainder, took 2 s and take
0.6.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["chains_divided", "terms_apart"]

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


DEEPEST = 48
"""Operations of one chain, from what is loaded, from a loop's variable or from another chain on."""
LINK = re.compile(
    r"  (?P<result>%\S+) = (?:"
    r"(?:add|sub|mul|shl|lshr|and|or|udiv|urem) (?:(?:nuw|nsw|exact|disjoint) )*(?P<binary>i\d+) (?P<ab>[^,]+, [^\s,]+)"
    r"|(?:sext|zext|trunc) (?:(?:nneg|nuw|nsw) )*i\d+ (?P<inner>\S+) to (?P<cast>i\d+)"
    r"|select i1 \S+, (?P<chosen>i\d+) (?P<first>[^,]+), i\d+ (?P<second>[^\s,]+)"
    r"|(?:tail )?call (?P<called>i\d+) @llvm\.[us](?:min|max)\.i\d+\(i\d+ (?P<least>[^,]+), i\d+ (?P<most>[^\s,)]+)\)"
    r")"
)
NAME = re.compile(r"%[^\s,)]+")


def chains_divided(text: str) -> str | None:
    """The module with such chains divided, or None where none is as long.

    >>> rows = [f"  %x{i} = add nsw i32 %x{i - 1}, %a" for i in range(1, 60)]
    >>> [line for line in chains_divided("\\n".join(rows)).splitlines() if "link" in line]
    ['  %link.1 = freeze i32 %x48', '  %x49 = add nsw i32 %link.1, %a']
    >>> chains_divided("\\n".join(rows[:48]))
    """
    lines = text.splitlines()
    if len(lines) <= DEEPEST:
        return None
    out: list[str] = []
    depths: dict[str, int] = {}
    types: dict[str, str] = {}
    count = 0
    for line in lines:
        found = LINK.match(line) if " = " in line else None
        if found is None:
            if line[:1] == "}":
                depths.clear()
            out.append(line)
            continue
        begin, end = found.end("result"), found.end()
        terms = [term for term in dict.fromkeys(NAME.findall(line, begin, end)) if term in depths]
        deepest = max((depths[term] for term in terms), default=0)
        if deepest >= DEEPEST:
            rest = line[begin:end]
            for term in terms:
                if depths[term] >= DEEPEST:
                    count += 1
                    out.append(f"  %link.{count} = freeze {types[term]} {term}")
                    rest = re.sub(re.escape(term) + r"(?![^\s,)])", f"%link.{count}", rest)
            line = line[:begin] + rest + line[end:]
            deepest = 0
        depths[found["result"]] = deepest + 1
        types[found["result"]] = found["binary"] or found["cast"] or found["chosen"] or found["called"]
        out.append(line)
    return "\n".join(out) if count else None
