"""PTX text to a kernel: its parameters, its tables, its instructions.

    program = Program.parse(text)
    program.instructions[7]       # the statement "@%p1 bra $L__BB0_2"

Read is what LLVM writes of a kernel: one `.entry`, its parameters, tables in `.global`, arrays in `.shared` and
`.local`. Other functions of the text are not read; a call of them is an instruction that is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from weft.sim.nvidia.ptx_text import Statement, body as statements

TABLE = re.compile(
    r"\.(?:global|const)\s+\.align\s+(\d+)\s+\.(\w+)\s+([\w$]+)\[(\d*)\](?:\s*=\s*\{([^}]*)\})?;"
)  # .global .align 64 .b8 name[168] = {0, 17};
SHARED = re.compile(r"\.shared\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[(\d*)\];")
LOCAL = re.compile(r"\.local\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[(\d+)\];")
PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)[^,\[]*?([\w$]+)(?:\[(\d+)\])?\s*$")
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}

__all__ = ["Parameter", "Program", "Table"]


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel: where it lies in the parameter space, in bytes."""

    name: str
    start: int
    size: int


@dataclass(frozen=True)
class Table:
    """An array in global memory that the text fills."""

    name: str
    bits: int
    values: tuple[int, ...]
    count: int

    def bytes(self) -> np.ndarray:
        """What it holds; zero beyond the values."""
        data = np.zeros(self.count or len(self.values), f"u{self.bits // 8}")
        data[: len(self.values)] = np.array([v % (1 << self.bits) for v in self.values], np.uint64).astype(data.dtype)
        return data.view(np.uint8)


@dataclass(frozen=True)
class Program:
    """A kernel: its instructions in order, and where in them each label stands."""

    threads: int
    instructions: tuple[Statement, ...]
    labels: dict[str, int]
    parameters: tuple[Parameter, ...] = ()
    tables: tuple[Table, ...] = ()
    shared: tuple[str, ...] = ()
    local: dict[str, int] = field(default_factory=dict)
    """Bytes that each thread has, by name."""

    @classmethod
    def parse(cls, text: str) -> Program:
        """The kernel in a text of PTX. ValueError where there is none."""
        text = re.sub(r"//[^\n]*", "", text)
        tables = tuple(
            Table(m[3], int(m[2][1:]), tuple(int(v, 0) for v in (m[5] or "").split(",") if v.strip()), int(m[4] or 0))
            for m in TABLE.finditer(text)
        )
        shared = tuple(m[1] for m in SHARED.finditer(text))
        entry = re.search(r"\.entry\s+[\w$]+\s*", text)
        if entry is None:
            raise ValueError("there is no .entry in the text")
        opening = text.index("{", entry.end())
        signature, body = text[entry.end() : opening], text[opening + 1 : _closing(text, opening)]
        threads = re.search(r"\.reqntid\s+(\d+)", signature)
        if threads is None:
            raise ValueError("the kernel does not say by .reqntid how many threads it has")
        local = {m[1]: int(m[2]) for m in LOCAL.finditer(body)}
        body = re.sub(r"^\s*\.(loc|file|section|pragma|local)\b[^\n]*$", "", body, flags=re.M)
        instructions, labels = statements(body)
        return cls(int(threads[1]), instructions, labels, _parameters(signature), tables, shared, local)


def _closing(text: str, opening: int) -> int:
    depth = 0
    for m in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if m[0] == "{" else -1
        if depth == 0:
            return m.start()
    raise ValueError("a brace is not closed")


def _parameters(signature: str) -> tuple[Parameter, ...]:
    result: list[Parameter] = []
    end = 0
    inside = signature[signature.find("(") + 1 : signature.rfind(")")] if "(" in signature else ""
    for text in filter(str.strip, inside.split(",")):
        m = PARAMETER.search(text)
        if m is None:
            raise ValueError(f"parameter {text.strip()!r}")
        each = SIZES[m[2][1:]]
        align, size = int(m[1] or each), each * int(m[4] or 1)
        start = -(-end // align) * align
        end = start + size
        result.append(Parameter(m[3], start, size))
    return tuple(result)
