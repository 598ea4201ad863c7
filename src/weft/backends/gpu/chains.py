"""Long chains of integer arithmetic are divided, as LLVM sees them.

    %x1 = add i32 %x0, %a                       %x1 = add i32 %x0, %a
    ...                                 ->      ...
                                                %link.1 = freeze i32 %x48
    %x49 = add i32 %x48, %z                     %x49 = add i32 %link.1, %z

Before it selects instructions LLVM writes each integer as an expression of what it was computed of (scalar evolution),
and asks of each sum whether it follows from another one. A sum of sums is one expression with all their terms, so that
an index which is computed in n steps takes n^2 of them: 300 steps, each a quotient and a remainder, took 2 s and take
0.6. What a `freeze` gives is a name of its own to this, and the value itself to the machine.

Not done here: sums that have a term in common, see `apart`.
"""

from __future__ import annotations

import re

__all__ = ["chains_divided"]

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
