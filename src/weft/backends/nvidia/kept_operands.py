"""Left operands of wgmma in registers that ptxas would give to something else while a loop still needs them.

    loop:                                              loop:
      wgmma {%acc...}, {%a0, ..., %a3}, %b               wgmma {%acc...}, {%a0, ..., %a3}, %b
      ...                                   becomes      ...
      @%p bra loop                                       @%p bra loop
                                                         @%never st.shared.v4 [%t], {%a0, ..., %a3}

if the loop does not write %a0 to %a3. ptxas (12.8 and 13.0) forgets that the next iteration reads them once more:
behind the first wgmma it may overwrite them (docs/reference/ptxas.md). A use of the registers behind the loop keeps
them. It is a store, since ptxas computes anything else before the loop already, and its predicate is false, which ptxas
does not know: no grid has 2^31 blocks along x. It costs an instruction for four registers, once, and no register.

What Weft lays out itself reads such operands from shared memory (Note [operands that outlive an iteration] in
passes/nvidia/warpgroup_products.py); here are those of Gluon's authors and of inline assembly.

Not done here: loops that are not left behind or by a branch in them, as none are that LLVM writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from weft.base.remarks import NO_REMARKS, InstructionDeclined, RemarkCollector

LABEL = re.compile(r"(\$L\w+):")
BRANCH = re.compile(r"\t(@!?%p\d+ +\t?)?bra(?:\.uni)? \t?(\$L\w+);")
LEFT = re.compile(r"wgmma\.mma_async[\w.]* \{[^}]*\}, \{([^}]*)\}")
WRITTEN = re.compile(r"\t(?:@!?%p\d+ +)?[a-z][\w.:]* +\t?(\{[^}]*\}|%\w+),")
TOGETHER = 4
"""Registers that one store takes."""


def keep_operands(ptx: str, remarks: RemarkCollector = NO_REMARKS) -> str:
    """The module in which registers that a loop multiplies, and does not write, are used behind the loop."""
    if LEFT.search(ptx) is None:
        return ptx
    lines = ptx.split("\n")
    uses: dict[int, list[str]] = {}
    found: list[tuple[int, int, set[str]]] = []
    for first, last in sorted(_loops(lines), key=lambda span: span[0] - span[1]):  # the outer ones first
        around = [kept for begin, end, kept in found if begin <= first and last <= end]
        kept = [r for r in _unchanged(lines[first : last + 1]) if not any(r in registers for registers in around)]
        if kept:
            found.append((first, last, set(kept)))
            for place in _exits(lines, first, last):
                uses.setdefault(place, []).append(_use(kept))
    if not uses:
        return ptx
    why = "ptxas gives a left operand's registers away while the loop still needs them; a use behind it keeps them"
    remarks.add(InstructionDeclined(None, "the usual PTX (a left operand that a loop does not change)", why))
    return "\n".join(text for i, line in enumerate(lines) for text in (line, *uses.get(i, ())))


def _loops(lines: Sequence[str]) -> set[tuple[int, int]]:
    """The lines of loops: from the label that a later line branches to, to the last one that does."""
    labels: dict[str, int] = {}
    loops: dict[int, int] = {}
    for i, line in enumerate(lines):
        if (label := LABEL.match(line)) is not None:
            labels[label[1]] = i
        elif (branch := BRANCH.match(line)) is not None and branch[2] in labels:
            loops[labels[branch[2]]] = i
    return set(loops.items())


def _unchanged(body: Sequence[str]) -> list[str]:
    """The registers of left operands that a loop does not write."""
    read = [r for line in body if (left := LEFT.search(line)) is not None for r in left[1].split(", ")]
    if not read:
        return []
    written = {r for line in body if (m := WRITTEN.match(line)) for r in re.findall(r"%\w+", m[1])}
    return [r for r in dict.fromkeys(read) if r not in written]


def _exits(lines: Sequence[str], first: int, last: int) -> list[int]:
    """The lines behind which a loop has ended: its last branch if that is conditional, labels that others go to."""
    ends = {m[2] for line in lines[first : last + 1] if (m := BRANCH.match(line)) is not None}
    outside = [i for i, x in enumerate(lines) if not first <= i <= last and (m := LABEL.match(x)) and m[1] in ends]
    branch = BRANCH.match(lines[last])
    return [*([last] if branch is not None and branch[1] else []), *outside]


def _use(registers: Sequence[str]) -> str:
    """Stores of registers that never happen."""
    groups = [registers[i : i + TOGETHER] for i in range(0, len(registers), TOGETHER)]
    stores = [
        f"@%never st.shared.v4.b32 [%blocks], {{{', '.join(group)}}};"
        if len(group) == TOGETHER
        else " ".join(f"@%never st.shared.b32 [%blocks], {r};" for r in group)
        for group in groups
    ]
    known = "mov.u32 %blocks, %nctaid.x; setp.lt.s32 %never, %blocks, 0;"
    return f"\t{{ .reg .b32 %blocks; .reg .pred %never; {known} {' '.join(stores)} }}"
