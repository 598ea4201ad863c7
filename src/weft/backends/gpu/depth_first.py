"""What a block alone on its multiprocessor loads is used up vector by vector, where two blocks fit in then.

    a0 = load ...                 a0 = load ...
    a1 = load ...                 b0 = load ...
    b0 = load ...                 s0 = f(a0, b0)
    b1 = load ...       becomes   a1 = load ...
    s0 = f(a0, b0)                b1 = load ...
    s1 = f(a1, b1)                s1 = f(a1, b1)

A program is emitted operation by operation, each for all registers: all loads of a turn come first, and most of what
they give is held until the last operation. ptxas goes by the order that it finds. That is good for memory, as long as
other blocks compute meanwhile. Of 512 threads with 91 registers each there is one block at a time, and while it
computes nothing is loaded: a sum over two arrays took 284 us on an H200 so, where memory takes 251 us.

So where the values that are held at a time, as they are counted here, leave room for one block only, what lies between
two effects (stores, barriers, exchanges, branches) is written depth first, if that makes room for a second. Loads
change places with each other and with arithmetic, never with effects; volatile ones are effects. Not done in programs
with matrix instructions and copies, whose order is made elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.lane import LaneProgram
from weft.machines import DEFAULT

__all__ = ["depth_first", "is_crowded", "may_be_alone"]

LEAST_THREADS = 256
"""Of a block: smaller ones have others beside them with as many registers as there may be."""
SPARE = 12
"""Registers of a thread that are to be left for what is not counted, if two blocks are to fit."""
DEFINED = re.compile(r"^  (%[\w.]+) = ")
NAMES = re.compile(r"%[\w.]+")
PURE = re.compile(
    r"(?:f?(?:add|sub|mul|div|neg|cmp|rem)|icmp|[suf]?div|[su]rem|and|or|xor|shl|[la]shr|select|[sz]ext|trunc|bitcast"
    r"|fpext|fptrunc|[su]itofp|fpto[su]i|inttoptr|ptrtoint|getelementptr|insertelement|extractelement|insertvalue"
    r"|extractvalue|shufflevector) "
)
PURE_CALL = re.compile(r"(?:contract )?call (?:contract )?[\w ]+ @(?:weft\.|llvm\.(?:fma|maxnum|minnum|maximum|minimum|fabs|copysign|sqrt|nvvm\.(?:ex2|lg2|rcp|rsqrt|sqrt|div)))")  # fmt: skip  # noqa: E501
LOAD = re.compile(r'call [^"]*asm sideeffect "@\$\d+ ld\.global(?:\.(?:ca|cg|cs|L1::\w+))*(?:\.v\d)?\.b\d+ |load (?!volatile|atomic).*addrspace\(1\)')  # fmt: skip  # noqa: E501
WIDE = re.compile(r"= (?:[a-z ]*)?(?:i64|double|ptr|inttoptr|getelementptr)\b|to i64|to double")


@dataclass
class _Node:
    """Lines that stay together: what is loaded, and its parts; the names that they define and that they use."""

    lines: list[str]
    defined: list[str]
    used: list[str]
    is_load: bool = False


def may_be_alone(program: LaneProgram) -> bool:
    """Whether blocks of a program are so large that registers may leave room for one, and it does not multiply."""
    if program.warps * program.lanes < LEAST_THREADS or program.registers:
        return False
    return not any(op.name == "instruction" for op in program.body.walk())


def depth_first(lines: list[str], threads: int) -> list[str]:
    """The lines of a function, in another order where that lets two blocks of so many threads run at a time."""
    uses = Counter(name for line in lines for name in NAMES.findall(line))
    found: list[str] = []
    part: list[str] = []
    carried = 0
    for line in [*lines, ""]:
        if _is_movable(line):
            part.append(line)
            continue
        found += _arranged(part, uses, carried, threads)
        part = []
        carried = carried + 1 if " = phi " in line else carried if line.startswith("  ") else 0
        found.append(line)
    return found[:-1]


def _is_movable(line: str) -> bool:
    """Whether a line has no effects, or is a load that nobody writes meanwhile."""
    made = DEFINED.match(line)
    if made is None:
        return False
    text = line[made.end() :]
    return bool(PURE.match(text) or PURE_CALL.match(text) or LOAD.match(text))


def is_crowded(words: int, threads: int) -> bool:
    """Whether registers for so many words leave no room for a second block.

    >>> is_crowded(72, 512), is_crowded(64, 512), is_crowded(72, 256)
    (True, False, False)
    """
    return 2 * threads * words > DEFAULT.registers


def _arranged(part: list[str], uses: Counter[str], carried: int, threads: int) -> list[str]:
    """The lines between two effects, depth first if they need it and it helps."""
    if not is_crowded(len(part), threads):
        return part
    nodes = _nodes(part)
    owner = {name: i for i, node in enumerate(nodes) for name in node.defined}
    here = Counter(name for line in part for name in NAMES.findall(line))
    roots = [i for i, n in enumerate(nodes) if any(uses[x] > here[x] for x in n.defined) or n.is_load]
    wanted = _depth_first([i for i in roots if not nodes[i].is_load], nodes, owner)
    wanted = _depth_first([*wanted, *roots], nodes, owner)
    outside = len({x for i in wanted for x in nodes[i].used if x not in owner})
    through = carried + min(outside, carried + SPARE)
    if not is_crowded(_held(nodes, sorted(wanted), owner) + through, threads):
        return part
    if is_crowded(_held(nodes, wanted, owner) + through + SPARE, threads):
        return part
    order = _depth_first([*wanted, *range(len(nodes))], nodes, owner)  # with what nobody uses, which LLVM drops
    return [line for i in order for line in nodes[i].lines]


def _nodes(part: list[str]) -> list[_Node]:
    """The lines one by one, but for parts of what is loaded, which stay with the load."""
    nodes: list[_Node] = []
    loads: dict[str, _Node] = {}
    for line in part:
        made = DEFINED.match(line)
        assert made is not None
        text = line[made.end() :]
        used = NAMES.findall(text)
        source = loads.get(used[-1]) if text.startswith("extract") and used else None
        if source is not None:
            source.lines.append(line)
            source.defined.append(made[1])
            continue
        nodes.append(_Node([line], [made[1]], used, bool(LOAD.match(text))))
        if nodes[-1].is_load:
            loads[made[1]] = nodes[-1]
    return nodes


def _depth_first(roots: Sequence[int], nodes: Sequence[_Node], owner: dict[str, int]) -> list[int]:
    """The roots, in their order, and what they are made of, each after what it uses, and that as late as can be.

    Of what an operation uses, what takes the longest way comes first: sums one after the other begin with the first.
    """
    ways = list[int]()
    for node in nodes:
        ways.append(1 + max((ways[owner[x]] for x in node.used if owner.get(x, len(ways)) < len(ways)), default=0))
    order = list[int]()
    done = set[int]()
    stack = [(i, 0) for i in reversed(roots)]
    while stack:
        i, at = stack.pop()
        if i in done:
            continue
        used = sorted(nodes[i].used, key=lambda x: -ways[owner[x]] if x in owner else 0)
        while at < len(used) and (owner.get(used[at], i) == i or owner[used[at]] in done):
            at += 1
        if at < len(used):
            stack += [(i, at + 1), (owner[used[at]], 0)]
        else:
            done.add(i)
            order.append(i)
    return order


def _held(nodes: Sequence[_Node], order: Sequence[int], owner: dict[str, int]) -> int:
    """The most words of 32 bits that are held at a time, of what is defined and used here."""
    left = Counter(name for i in order for name in nodes[i].used)
    words = {name: _words(line) for i in order for name, line in zip(nodes[i].defined, nodes[i].lines, strict=True)}
    now = most = 0
    for i in order:
        now += sum(words[name] for name in nodes[i].defined if left[name])
        most = max(most, now)
        for name in nodes[i].used:
            left[name] -= 1
            if not left[name]:
                now -= words.get(name, 0)
    return most


def _words(line: str) -> int:
    text = line.partition(" = ")[2]
    if text.startswith(("icmp", "fcmp", "call {", "call %", "load <")) or " i1 " in text[:12]:
        return 0
    return 2 if WIDE.search(line) else 1
