"""Read LLVM's assembly text of an AMD GPU: kernels, instructions, the registers that they name, branches, loops.

    kernel = parse(compiled.asm["amdgcn"])["matmul"]
    [i for i in kernel.instructions if i.name.startswith("v_mfma")]

Only what the proofs in this folder need is read: which operand of an instruction is its destination is known for
accesses of memory (see waits.py), not for arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

REGISTERS = re.compile(
    r"(?<![\w.$])(?:([vsa])(\d+)|([vsa])\[(\d+):(\d+)\]|(vcc|exec)(_lo|_hi)?|(m0|ttmp\d+))(?![\w$(])"
)
BEYOND = re.compile(r"v(?:\d+|\[[\d:]+\]) /\*(v(?:\d+|\[[\d:]+\]))\*/")
"""A register above v255, of which an instruction has the low 8 bits: `v4 /*v260*/`."""
TARGET = re.compile(r'\.amdgcn_target\s+"[\w-]*?--(gfx\w+)')
FUNCTION = re.compile(r"\.type\s+(\S+),@function")
LABEL = re.compile(r"([.\w$]+):")
FIGURES = re.compile(r"^(?:    )?\.(\w+): +(\d+)$", re.MULTILINE)
ENDS = ("s_endpgm", "s_setpc_b64", "s_rfe_b64")


@dataclass(frozen=True)
class Instruction:
    """A line of assembly: `global_load_dwordx2 v[2:3], v[0:1], off offset:16`."""

    line: int
    """Of the text, from 1."""
    text: str

    @cached_property
    def name(self) -> str:
        """The mnemonic, of a pair the first."""
        return self.text.split(None, 1)[0]

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Between commas; modifiers stay with the last operand.

        >>> Instruction(1, "ds_read_b64 v[0:1], v2 offset:8").operands
        ('v[0:1]', 'v2 offset:8')
        """
        rest = self.text.split(None, 1)[1:]
        return tuple(part.strip() for part in re.split(r",(?![^\[]*\])", rest[0])) if rest else ()

    @cached_property
    def words(self) -> frozenset[str]:
        """Mnemonics, modifiers, everything between blanks and commas."""
        return frozenset(re.split(r"[\s,]+", self.text))

    @cached_property
    def registers(self) -> frozenset[str]:
        """All that are named, each of 32 bits.

        >>> sorted(Instruction(1, "v_add_u32_e32 v4, s[2:3], -v1").registers)
        ['s2', 's3', 'v1', 'v4']
        """
        return frozenset(named(self.text.split(None, 1)[-1]))

    def modifier(self, name: str, default: int = 0) -> int:
        """The number of `name:number`."""
        match = re.search(rf"\b{name}:(0x[\da-f]+|\d+)", self.text)
        return int(match[1], 0) if match else default

    @property
    def target(self) -> str | None:
        """The label that a branch goes to."""
        return self.operands[-1] if self.name.startswith(("s_branch", "s_cbranch")) else None

    @property
    def ends(self) -> bool:
        """Whether nothing follows."""
        return self.name.startswith(ENDS)


def named(text: str) -> Iterator[str]:
    """The registers of some operands, one by one."""
    for match in REGISTERS.finditer(text):
        kind, number, many, first, last, special, half, other = match.groups()
        if kind:
            yield f"{kind}{number}"
        elif many:
            yield from (f"{many}{i}" for i in range(int(first), int(last) + 1))
        elif special:
            yield from (f"{special}{half}",) if half else (f"{special}_lo", f"{special}_hi")
        else:
            yield other


@dataclass
class Kernel:
    """A function of an assembly text."""

    name: str
    processor: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    """Each label's place in `instructions`."""
    figures: dict[str, int] = field(default_factory=dict)
    """Numbers of the metadata: vgpr_count, vgpr_spill_count, group_segment_fixed_size ..."""

    def successors(self, at: int) -> tuple[int, ...]:
        """Where control can go after an instruction."""
        instruction = self.instructions[at]
        if instruction.ends:
            return ()
        following = (at + 1,) if at + 1 < len(self.instructions) else ()
        target = instruction.target
        if target is None:
            return following
        jump = self.labels[target]
        return (jump,) if instruction.name == "s_branch" else (*following, jump)

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """Where control can come from, by place."""
        before: list[list[int]] = [[] for _ in self.instructions]
        for at in range(len(self.instructions)):
            for to in self.successors(at):
                before[to].append(at)
        return before

    @cached_property
    def dominators(self) -> list[int]:
        """For each place the places that every path to it goes through, as bits."""
        everything = (1 << len(self.instructions)) - 1
        bits = [1, *[everything] * (len(self.instructions) - 1)]
        changed = True
        while changed:
            changed = False
            for at in range(1, len(bits)):
                meet = everything
                for place in self.predecessors[at]:
                    meet &= bits[place]
                meet |= 1 << at
                changed |= meet != bits[at]
                bits[at] = meet
        return bits

    @cached_property
    def loops(self) -> list[set[int]]:
        """The places of each natural loop, the shortest first; loops with one head are one."""
        bodies: dict[int, set[int]] = {}
        for at in range(len(self.instructions)):
            for head in self.successors(at):
                if self.dominators[at] >> head & 1:
                    body, todo = bodies.setdefault(head, {head}), [at]
                    while todo:
                        place = todo.pop()
                        if place not in body:
                            body.add(place)
                            todo += self.predecessors[place]
        return sorted(bodies.values(), key=len)


def parse(text: str) -> dict[str, Kernel]:
    """The functions of an assembly text, by name."""
    target = TARGET.search(text)
    processor = target[1] if target else ""
    code_part, _, metadata = text.partition(".amdgpu_metadata\n")
    kernels: dict[str, Kernel] = {}
    current: Kernel | None = None
    for number, line in enumerate(code_part.splitlines(), 1):
        code = line.split(";", 1)[0].split("//", 1)[0].strip()
        if function := FUNCTION.match(code):
            current = kernels[function[1]] = Kernel(function[1], processor)
        elif not code or current is None:
            continue
        elif label := LABEL.match(code):
            current.labels[label[1]] = len(current.instructions)
        elif code.startswith(".section"):
            current = None
        elif not code.startswith("."):
            code = BEYOND.sub(r"\1", code)
            current.instructions.append(Instruction(number, re.sub(r"\s+", " ", code)))
    for row in re.split(r"^  - (?=\.)", metadata.partition(".end_amdgpu_metadata")[0], flags=re.MULTILINE)[1:]:
        name = re.search(r"^    \.name: +'?([^'\n]+)", row, re.MULTILINE)
        if name and name[1] in kernels:
            kernels[name[1]].figures = {key: int(value) for key, value in FIGURES.findall(row)}
    return kernels
