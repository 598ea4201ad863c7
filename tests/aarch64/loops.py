"""The innermost loops of machine code, and which of them work on one element at a time.

    python -m aarch64.loops          # from tests/: all kernels of tests/kernels, for x86-64 and AArch64

A loop counts as one of vectors if any of its instructions works on several elements (`vaddps %ymm0`, `fadd v0.4s`), as
a scalar loop if none does although it loads, stores or computes with floats. Loops that call a function (the one over
the programs of the grid) and those of atomic operations are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import weft
from fuzz.compare import AVX2
from kernels import load_cases
from kernels.case import Case

X86_VECTOR = re.compile(
    r"%[yz]mm|^v?(mov[au]p[sd]|movdq|p(?!op|ush|refetch|ause)[a-z]+\d?\b.*%xmm|[a-z0-9]+p[sd]\b(?!.*\bcvt)|lddqu)"
)
X86_MEMORY = re.compile(r"\(%?r|\(%e|\(,|%rip")
X86_SCALAR_FLOAT = re.compile(r"^v?[a-z0-9]+s[sd]\b.*%xmm")
X86_JUMP = re.compile(r"^j([a-z]+)\s+(\.?L[\w$.]+)")
ARM_VECTOR = re.compile(r"\bv\d+\.(16b|8b|8h|4h|4s|2s|2d)\b(?!\[)|\bz\d+\.[bhsd]\b|\bq\d+\b")
ARM_MEMORY = re.compile(r"^(ld|st)")
ARM_SCALAR_FLOAT = re.compile(r"^f[a-z]+\s+[hsd]\d+")
ARM_JUMP = re.compile(r"^(b|b\.\w+|cbn?z|tbn?z)\s+(?:[^.]*,\s*)?(\.?L[\w$.]+)$")
ARM_PAIR = re.compile(r"^stp xzr, xzr")
"""Sixteen bytes of zeros."""
ATOMIC = re.compile(r"^(lock|cas|swp|ld(add|clr|eor|set|[su]max|[su]min)|ld[a]?xr|st[l]?xr|cmpxchg)")
"""Loops with these are for one place in memory at a time, by their nature."""
X86_OF_SCALARS = re.compile(
    r"^v?(p?(and|andn|or|xor)([dq]|p[sd])?|p?broadcast\w+|cvtps2ph|cvtph2ps|movddup)\b(?!.*%[yz]mm)"
    r"|^v?mova(ps|pd) %xmm\d+, %xmm\d+$"
)
"""What single numbers are computed with too: the sign of a number, its half, a copy."""
MOVES_ONE = re.compile(r"^(ld1|st1|mov|dup|ins|umov|smov|fmov)\b.*\]|^v?p(ins|ext)r")
"""What takes one element into a vector or out of it."""


@dataclass(frozen=True)
class Machine:
    """A processor that is compiled for: its options, and whether it is of AArch64."""

    options: dict[str, Any]
    arm: bool


LINUX = {"triple": "aarch64-unknown-linux-gnu"}
MACHINES = {
    "x86-64-v3": Machine(AVX2, False),
    "x86-64-v4": Machine({"cpu": "x86-64-v4", "features": "+avx,+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512vl"}, False),
    "neoverse-v1": Machine({"cpu": "neoverse-v1", **LINUX}, True),
    "apple-m1": Machine({"cpu": "apple-m1", **LINUX}, True),
}


@dataclass
class Block:
    """A basic block: its instructions, and the labels it may go to."""

    label: str
    lines: list[str] = field(default_factory=list)
    to: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Loops:
    """What the innermost loops of a kernel are."""

    vector: int
    scalar: int
    lanes: int
    """Scalar loads and stores, and moves of one lane, within the loops of vectors."""


def count(assembly: str, arm: bool) -> Loops:
    """Count the innermost loops of a text of assembly."""
    vector = scalar = lanes = 0
    for function in _functions(assembly, arm):
        for body in _innermost(function):
            lines = [line for label in body for line in function[label].lines]
            if any(re.match(r"(callq?|blr?)\b", line) or ATOMIC.match(line) for line in lines):
                continue
            if any(_is_vector(line, arm) for line in lines):
                vector += 1
                lanes += sum(_moves_one(line, arm) for line in lines)
            elif any(_works(line, arm) for line in lines):
                scalar += 1
    return Loops(vector, scalar, lanes)


def _is_vector(line: str, arm: bool) -> bool:
    if arm:
        return bool(ARM_VECTOR.search(line) or ARM_PAIR.match(line)) and not MOVES_ONE.match(line)
    return bool(X86_VECTOR.search(line)) and not MOVES_ONE.match(line) and not X86_OF_SCALARS.match(line)


def _moves_one(line: str, arm: bool) -> bool:
    if MOVES_ONE.match(line):
        return True
    if (ARM_MEMORY if arm else X86_MEMORY).search(line) is None or _is_vector(line, arm):
        return False
    return re.search(r"\bsp\b|rsp|rip|^lea|^prf", line) is None


def _works(line: str, arm: bool) -> bool:
    """Whether an instruction of a loop without vectors loads, stores or computes with floats."""
    if arm:
        return bool(ARM_MEMORY.match(line) or ARM_SCALAR_FLOAT.match(line))
    return bool((X86_MEMORY.search(line) and not line.startswith("lea")) or X86_SCALAR_FLOAT.match(line))


def _functions(assembly: str, arm: bool) -> list[dict[str, Block]]:
    """The blocks of every function, in order."""
    jump = ARM_JUMP if arm else X86_JUMP
    functions: list[dict[str, Block]] = []
    block: Block | None = None
    for raw in assembly.splitlines():
        line = raw.split("//" if arm else "#")[0].strip().replace("\t", " ")
        if not line or (line.startswith(".") and not line.endswith(":")):
            continue
        if line.endswith(":"):
            label = line[:-1].strip('"')
            local = label.startswith((".LBB", "LBB"))
            if not local and label.startswith((".L", "L", "l")):
                continue
            following = Block(label)
            if local and functions and block is not None:
                if not _leaves(block, arm):
                    block.to.add(label)
                functions[-1][label] = following
            else:
                functions.append({label: following})
            block = following
            continue
        if block is None:
            continue
        block.lines.append(line)
        match = jump.match(line)
        if match:
            block.to.add(match[2])
            if not _leaves(block, arm):  # what follows a branch is a block of its own
                following = Block(f"{block.label}+")
                block.to.add(following.label)
                functions[-1][following.label] = following
                block = following
    return functions


def _leaves(block: Block, arm: bool) -> bool:
    """Whether the end of a block is not reached by falling through."""
    last = block.lines[-1] if block.lines else ""
    return re.match(r"(b|ret|br|brk)\b(?!\.)" if arm else r"(jmp|ret|ud2)", last) is not None


def _innermost(blocks: Mapping[str, Block]) -> list[set[str]]:
    """The bodies of the loops that have no other loop in them."""
    loops: dict[str, set[str]] = {}
    before: dict[str, set[str]] = {label: set() for label in blocks}
    for label, block in blocks.items():
        block.to &= set(blocks)
        for to in block.to:
            before[to].add(label)
    for header in blocks:
        dominated = _dominated(blocks, header)
        ends = [label for label in before[header] if label in dominated]
        if ends:
            body, todo = {header}, list(ends)
            while todo:
                label = todo.pop()
                if label not in body:
                    body.add(label)
                    todo += before[label]
            loops[header] = body
    return [body for header, body in loops.items() if not any(h in body for h in loops if h != header)]


def _dominated(blocks: Mapping[str, Block], header: str) -> set[str]:
    """The blocks that are reached by way of `header` only."""
    entry = next(iter(blocks))
    seen, todo = {header}, [] if entry == header else [entry]
    while todo:
        label = todo.pop()
        if label not in seen:
            seen.add(label)
            todo += blocks[label].to
    return (set(blocks) - seen) | {header}


def loops_of(case: Case) -> dict[str, Loops]:
    """The loops of a kernel on every machine."""
    types, values, attributes = case.signature(case.make_inputs())
    source = weft.ASTSource(case.kernel, types, values, attributes)
    found = {}
    for name, machine in MACHINES.items():
        text = weft.compile(source, options={**case.options, **machine.options}).asm["asm"]
        found[name] = count(text, machine.arm)
    return found


def main() -> None:
    """Print the loops of all kernels: those of vectors, scalar ones, and single lanes moved in the former."""
    total = dict.fromkeys(MACHINES, (0, 0, 0))
    print(f"{'':40s}" + "".join(f"{name:>18s}" for name in MACHINES))
    for name, case in load_cases("weft").items():
        row = {m: (x.vector, x.scalar, x.lanes) for m, x in loops_of(case).items()}
        total = {m: (a + row[m][0], b + row[m][1], c + row[m][2]) for m, (a, b, c) in total.items()}
        print(f"{name:40s}" + "".join(f"{' '.join(map(str, r)):>18s}" for r in row.values()), flush=True)
    print(f"{'all':40s}" + "".join(f"{' '.join(map(str, r)):>18s}" for r in total.values()))


if __name__ == "__main__":
    main()
