"""Programs as lists of statements, each of which can be written down and can be done.

    Simple("v3 = v1 + v2", run)     run(state) changes state.env or memory
    Loop, Branch, While             hold further statements

Executing a statement whose variables are missing raises KeyError: that is how the reducer learns what cannot go.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from .elements import DTYPES, Array

INDENT = "    "


class Returned(Exception):
    """The program has ended early."""


@dataclass
class State:
    """One program of the grid while it runs."""

    pid: int
    programs: int
    memory: dict[str, Array]
    values: dict[str, Any]  # scalars and constants given at the launch
    env: dict[str, Array] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.env[name]


Run = Callable[[State], None]


@dataclass(eq=False)
class Simple:
    """A line, or several that belong together, and what they do."""

    text: str
    run: Run

    def lines(self, depth: int) -> Iterator[str]:
        for line in self.text.split("\n"):
            yield INDENT * depth + line

    def blocks(self) -> list[list[Any]]:
        return []


@dataclass(eq=False)
class Loop:
    """`for name in range(...)`; `span` gives Python's range."""

    name: str
    header: str
    span: Callable[[State], range]
    body: list[Any]

    def lines(self, depth: int) -> Iterator[str]:
        yield f"{INDENT * depth}for {self.name} in {self.header}:"
        yield from written(self.body, depth + 1)

    def run(self, state: State) -> None:
        for i in self.span(state):
            state.env[self.name] = np.asarray(i, DTYPES["i32"])
            execute(self.body, state)

    def blocks(self) -> list[list[Any]]:
        return [self.body]


@dataclass(eq=False)
class While:
    """`while condition:`"""

    text: str
    test: Callable[[State], bool]
    body: list[Any]

    def lines(self, depth: int) -> Iterator[str]:
        yield f"{INDENT * depth}while {self.text}:"
        yield from written(self.body, depth + 1)

    def run(self, state: State) -> None:
        rounds = 0
        while self.test(state):
            execute(self.body, state)
            rounds += 1
            if rounds > 1000:
                raise KeyError("a loop that does not end (its counter was taken away)")

    def blocks(self) -> list[list[Any]]:
        return [self.body]


@dataclass(eq=False)
class Branch:
    """`if condition:` and perhaps `else:`"""

    text: str
    test: Callable[[State], bool]
    then: list[Any]
    other: list[Any]

    def lines(self, depth: int) -> Iterator[str]:
        yield f"{INDENT * depth}if {self.text}:"
        yield from written(self.then, depth + 1)
        if self.other:
            yield f"{INDENT * depth}else:"
            yield from written(self.other, depth + 1)

    def run(self, state: State) -> None:
        execute(self.then if self.test(state) else self.other, state)

    def blocks(self) -> list[list[Any]]:
        return [self.then, self.other]


def written(body: Sequence[Any], depth: int) -> Iterator[str]:
    """The lines of a block."""
    if not body:
        yield INDENT * depth + "pass"
    for statement in body:
        yield from statement.lines(depth)


def execute(body: Sequence[Any], state: State) -> None:
    """Do every statement of a block."""
    for statement in body:
        statement.run(state)


@dataclass
class Array1D:
    """An array parameter: its element, how many elements it needs (known at the end), and what it holds."""

    name: str
    elem: str
    kind: (
        str  # "in", "out", "inout" (a slice for each program), "atomic" (shared), "sunk" (what the copy engine writes)
    )
    lo: int
    hi: int
    size: int = 1  # for one program where it is sliced
    tight: bool = True
    special: bool = False  # floats that may be anything

    @property
    def stride_name(self) -> str:
        return f"S_{self.name}"


HELPERS = """import weft
import weft.language as tl


@weft.jit
def multiply(a, b):
    return a * b


@weft.jit
def greater(a, b):
    return tl.maximum(a, b)


@weft.jit
def lesser_if(a, b):
    if a < b:
        r = a
    else:
        r = b
    return r


@weft.jit
def both(a, b):
    return a & b


@weft.jit
def first_greatest(v0, i0, v1, i1):
    take = (v0 > v1) | ((v0 == v1) & (i0 < i1))
    return tl.where(take, v0, v1), tl.where(take, i0, i1)


@weft.jit
def affine(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1
"""


def _apart(mine: Array, theirs: Array) -> Array:
    """Where floats have other bits; one NaN is as good as another."""
    bits = f"u{mine.dtype.itemsize}"
    with np.errstate(invalid="ignore"):  # ml_dtypes takes a signalling NaN for an error
        both = np.isnan(mine) & np.isnan(theirs)
    return np.asarray((mine.view(bits) != theirs.view(bits)) & ~both)


@dataclass
class Program:
    """A kernel: parameters, statements, and how it is launched."""

    seed: int
    arrays: list[Array1D]
    scalars: dict[str, int]  # run-time integers
    constants: dict[str, int]  # constexprs
    body: list[Any]
    programs: int
    overlaps: list[tuple[str, str, int]]  # (array, array that it shares memory with, offset in elements)

    helpers: ClassVar[str] = HELPERS
    decorator: ClassVar[str] = "@weft.jit"

    def source(self) -> str:
        """The kernel in the Triton language."""
        return f"{self.helpers}\n\n{self.decorator}\ndef kernel({self.parameters()}):\n{self.statements()}"

    def parameters(self) -> str:
        """The parameters of the kernel."""
        names = [a.name for a in self.arrays]
        names += [f"{a.stride_name}: tl.constexpr" for a in self.arrays if a.kind in ("out", "inout")]
        return ", ".join(names + list(self.scalars) + [f"{c}: tl.constexpr" for c in self.constants])

    def statements(self) -> str:
        """The body of the kernel."""
        return "\n".join([f"{INDENT}pid = tl.program_id(0)", *written(self.body, 1)]) + "\n"

    def told(self) -> str:
        """The kernel's source, and how it is launched."""
        arrays = {a.name: (a.elem, self.elements(a)) for a in self.arrays}
        return (
            f"{self.source()}\n# arrays {arrays}\n# values {self.launch_values()}, programs {self.programs}\n"
            f"# overlaps {self.overlaps}, options on a GPU {self.options()}"
        )

    def elements(self, array: Array1D) -> int:
        """How many elements an array has for all programs."""
        return array.size * (self.programs if array.kind in ("out", "inout") else 1)

    def launch_values(self) -> dict[str, int]:
        strides = {a.stride_name: a.size for a in self.arrays if a.kind in ("out", "inout")}
        return {**strides, **self.scalars, **self.constants}

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """What is passed for the arrays, which lie on the host or on a GPU."""
        return given

    def options(self) -> dict[str, Any]:
        """Options of a launch on a GPU, a simulated one too, drawn from the seed."""
        draw = random.Random(f"options of {self.seed}")
        return {"num_warps": draw.choice((1, 2, 4, 4, 8)), "num_stages": draw.choice((1, 2, 3, 4))}

    def schedule(self) -> dict[str, Any]:
        """How a simulated GPU runs it: the order of warps and programs, and when copies land."""
        draw = random.Random(f"schedule of {self.seed}")
        order = draw.choice(("forward", "backward", "random"))
        return {"order": order, "copies": draw.choice(("latest", "earliest")), "seed": self.seed % 1000}

    def compared(self, expected: dict[str, Array], given: dict[str, Array]) -> str:
        """Where a launch gave something else; "" where it gave the same."""
        for array in self.arrays:
            mine, theirs = expected[array.name], given[array.name]
            at = np.flatnonzero(_apart(mine, theirs) if array.special else mine != theirs)
            if len(at):
                show = ", ".join(f"[{i}] {theirs[i]} for {mine[i]}" for i in at[:5])
                return f"{array.name} differs at {len(at)} of {len(mine)} places: {show}"
        return ""

    def interpret(self, memory: dict[str, Array]) -> None:
        """Run every program, one after the other, on the arrays."""
        for pid in range(self.programs):
            state = State(pid, self.programs, memory, self.launch_values())
            state.env["pid"] = np.asarray(pid, np.int32)
            for name, value in self.scalars.items():
                state.env[name] = np.asarray(value, np.int32)
            with np.errstate(all="ignore"):
                try:
                    execute(self.body, state)
                except Returned:
                    continue
