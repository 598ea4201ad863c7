"""Small lane programs by hand: each line of the kernel that they pretend to come from is one call of `at`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.base import Span
from weft.ir.lane import Allocation, Block, Builder, LaneOp, LaneProgram, Parameter, Value, verify
from weft.machines import machine_of
from weft.targets.nvidia import instruction

SIZES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}


@dataclass
class Case:
    """A program with arguments, and what the arrays should be after it."""

    program: LaneProgram
    grid: Any
    arguments: dict[str, Any]
    expected: dict[str, np.ndarray] = field(default_factory=dict)


class Kit(Builder):
    """A builder for a whole program. `parameters` are "x:f32*" (an array) or "n:i32"."""

    def __init__(self, *parameters: str, warps: int = 1, target: str = "cuda:90") -> None:
        self.parameters = []
        for text in parameters:
            name, _, elem = text.partition(":")
            pointer = elem.endswith("*")
            self.parameters.append(Parameter(name, "ptr" if pointer else elem, elem.rstrip("*") if pointer else ""))
        self.body = Block(tuple(Value("i64" if p.elem == "ptr" else p.elem, 1) for p in self.parameters))
        super().__init__(self.body)
        self.warps, self.target = warps, target
        self.allocations: list[Allocation] = []
        self.at(1)

    def at(self, line: int) -> None:
        """What follows comes from this line."""
        self.span = Span("kernel.py", line, 4)

    def arg(self, name: str) -> Value:
        """A parameter's value."""
        return self.body.arguments[[p.name for p in self.parameters].index(name)]

    def thread(self, registers: Sequence[int] = (0,), step: int = 1) -> Value:
        """The thread's number in the block times a power of two, for each register plus a constant."""
        warp = tuple(32 * step << i for i in range((self.warps - 1).bit_length()))
        return self.linear(registers, lane=tuple(step << i for i in range(5)), warp=warp)

    def int(self, value: int) -> Value:
        """An i32 constant."""
        return self.constant("i32", value)

    def add2(self, a: Value, b: Value | int) -> Value:
        return self.op("arith.addi", [a, self.int(b) if isinstance(b, int) else b], "i32")

    def mul(self, a: Value, b: Value | int) -> Value:
        return self.op("arith.muli", [a, self.int(b) if isinstance(b, int) else b], "i32")

    def instruction(
        self, isa: str, operands: Sequence[Value], results: Sequence[tuple[str, int]] = (), active: Value | None = None
    ) -> LaneOp:
        """An instruction; those for some lanes are for lane 0 of each warp, unless it is said for which."""
        if any(o.name == "active" for o in instruction(isa).operands):
            operands = [*operands, active or self.equal(self.linear((0,), lane=(1, 2, 4, 8, 16)), 0)]
        return super().instruction(isa, operands, results)

    def less(self, a: Value, b: Value | int) -> Value:
        return self.op("arith.cmpi", [a, self.int(b) if isinstance(b, int) else b], "i1", predicate="slt")

    def equal(self, a: Value, b: Value | int) -> Value:
        return self.op("arith.cmpi", [a, self.int(b) if isinstance(b, int) else b], "i1", predicate="eq")

    def place(self, name: str, index: Value) -> Value:
        """The address of an element of an array."""
        pointee = next(p.pointee for p in self.parameters if p.name == name)
        offset = self.op("arith.extsi", [self.mul(index, SIZES[pointee])], "i64")
        return self.op("arith.addi", [self.arg(name), offset], "i64")

    def shared(self, size: int, offset: int | None = None) -> Value:
        """A buffer of so many bytes, after those before it; the value is where it begins."""
        if offset is None:
            offset = max((a.offset + a.bytes for a in self.allocations), default=0)
        self.allocations.append(Allocation(size, 16, offset, self.span))
        return self.add("shared", (), [("i32", 1)], {"allocation": len(self.allocations) - 1}).result

    def within(
        self, name: str, operands: Sequence[Value], results: Sequence[tuple[str, int]], *regions: Any
    ) -> tuple[Value, ...]:
        """An operation with regions: each is (elements of the arguments, function that fills it and returns values)."""
        blocks = []
        outer = self.block
        for elems, fill, ending in regions:
            self.block = Block(tuple(Value(e, c) for e, c in elems))
            values = fill(*self.block.arguments)
            self.add(ending, values or ())
            blocks.append(self.block)
        self.block = outer
        return self.add(name, operands, results, {}, blocks).results

    def when(
        self, condition: Value, then: Callable[[], Any], other: Callable[[], Any] | None = None, results: Any = ()
    ) -> Any:
        """if, with both regions."""
        return self.within("if", [condition], results, ((), then, "yield"), ((), other or (lambda: ()), "yield"))

    def loop(self, bounds: Sequence[Value], initial: Sequence[Value], body: Callable[..., Any]) -> Any:
        """for, over i32."""
        carried = [(v.elem, v.count) for v in initial]
        return self.within("for", [*bounds, *initial], carried, ([("i32", 1), *carried], body, "yield"))

    def repeat(self, initial: Sequence[Value], before: Callable[..., Any], after: Callable[..., Any]) -> Any:
        """while."""
        carried = [(v.elem, v.count) for v in initial]
        return self.within("while", initial, carried, (carried, before, "condition"), (carried, after, "yield"))

    def program(self) -> LaneProgram:
        """The program, verified."""
        made = LaneProgram(
            "kernel", machine_of(self.target), tuple(self.parameters), self.body, self.warps, shared=self.allocations
        )
        verify(made)
        return made
