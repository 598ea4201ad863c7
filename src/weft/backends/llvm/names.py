"""Values get further names where LLVM would take minutes: it looks for what follows from what, and tries all pairs.

    %x1 = add i64 %base, %row1                  %x1 = add i64 %base, %row1
    ...                                 ->      ...
    %x33 = add i64 %base, %row33                %named.1 = freeze i64 %base
                                                %x33 = add i64 %named.1, %row33

This stands between two of LLVM's own passes, and changes the text that they leave: nothing that Weft writes would
survive the first. No instruction changes its place. What a `freeze` gives is a name of its own to LLVM's analyses and
the value itself to the machine; the pass after next drops it. There are two reasons for one.

**Terms of many sums.** Straight-line strength reduction, before instructions are selected, tries every pair of sums
that have a term in common (since LLVM 22): does one follow from the other by something that is at hand? Tiles of many
elements have hundreds of addresses with one base. A mask of 512 x 512 elements in 128 threads took minutes, and takes
seconds. Pairs are tried across blocks too, and loads of rows at any address are in blocks of their own: after `RUN`
sums each block gets a name of its own.

**Long chains.** Before that LLVM writes each integer as an expression of what it was computed of (scalar evolution),
and asks of each sum whether it follows from another one. A sum of sums is one expression with all their terms, so that
an index which is computed in n steps takes n^2 of them: 300 steps, each a quotient and a remainder, took 2 s and take
0.6.
"""

from __future__ import annotations

import re

RUN = 64
"""Sums that have one name of a term in common: what is near each other is what follows from each other."""
DEEPEST = 48
"""Operations of one chain, from what is loaded, from a loop's variable or from another chain on."""
INTEGER = re.compile(
    r"  (?P<result>%\S+) = (?:"
    r"(?P<kind>add|sub|mul|shl|lshr|and|or|udiv|urem) (?:(?:nuw|nsw|exact|disjoint) )*(?P<type>i\d+) [^,]+, [^\s,]+"
    r"|(?:sext|zext|trunc) (?:(?:nneg|nuw|nsw) )*i\d+ \S+ to (?P<cast>i\d+)"
    r"|select i1 \S+, (?P<chosen>i\d+) [^,]+, i\d+ [^\s,]+"
    r"|(?:tail )?call (?P<called>i\d+) @llvm\.[us](?:min|max)\.i\d+\(i\d+ [^,]+, i\d+ [^\s,)]+\)"
    r")"
)
CANDIDATE = re.compile(r" = (?:add|sub|mul|shl|lshr|and|or|udiv|urem|[sz]ext|trunc|select|(?:tail )?call i\d+ @llvm)")
"""What every line has that `INTEGER` takes."""
NAME = re.compile(r"%[^\s,)]+")


def further_names(text: str) -> str | None:
    """The module with further names, or None where it needs none.

    >>> chain = [f"  %x{i} = sub nsw i32 %x{i - 1}, %a" for i in range(1, 60)]
    >>> [line for line in further_names("\\n".join(chain)).splitlines() if "named" in line]
    ['  %named.1 = freeze i32 %x48', '  %x49 = sub nsw i32 %named.1, %a']
    >>> further_names("\\n".join(chain[:48]))
    """
    if len(CANDIDATE.findall(text)) <= DEEPEST:
        return None
    out: list[str] = []
    types: dict[str, str] = {}
    depths: dict[str, int] = {}
    sums: dict[str, int] = {}
    named: dict[str, str] = {}
    count = 0
    for line in text.splitlines():
        match = INTEGER.match(line) if " = " in line else None
        if match is None:
            if line[:1] not in (" ", ""):  # another block, which the names may not reach
                named.clear()
            if line[:1] == "}":
                depths.clear()
                sums.clear()
            out.append(line)
            continue
        begin, end = match.end("result"), match.end()
        type, instead = match["type"] or match["cast"] or match["chosen"] or match["called"], dict[str, str]()
        terms, is_in_sum = dict.fromkeys(NAME.findall(line, begin, end)), match["kind"] == "add"
        for term in terms:
            is_deep, before = depths.get(term, 0) >= DEEPEST, sums.get(term, 0)
            is_common = is_in_sum and before >= RUN and (before % RUN == 0 or term not in named)
            if is_deep or is_common:
                count += 1
                named[term] = f"%named.{count}"
                out.append(f"  {named[term]} = freeze {types.get(term, type)} {term}")
            if is_deep or (is_in_sum and term in named):
                instead[term] = named[term]
            sums[term] = before + is_in_sum
        if instead:
            line = line[:begin] + NAME.sub(lambda name: instead.get(name[0], name[0]), line[begin:end]) + line[end:]
        depths[match["result"]] = 1 + max([depths.get(x, 0) for x in terms if x not in instead], default=0)
        types[match["result"]] = type
        out.append(line)
    return "\n".join(out) if count else None
