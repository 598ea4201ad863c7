"""What of a program the counter has to follow: what addresses, masks, branches and loops are made of.

    %5 = load ...                  followed: it is counted by its address
    %6 = arith.mulf %5, %5         only counted: no address is made of it
    %7 = arith.addi %1, %2         followed if an address is
    store %7, %6                   followed, but not %6

What works on registers alone counts the same each time that its block of operations is executed, followed or not, so
that it is counted by the block.
A value that passes through shared memory is followed if one that is loaded from there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, TypeAlias

from weft.base import Span
from weft.ir.lane import Block, LaneOp, LaneProgram, Value
from weft.targets.table import instruction

from .arithmetic import is_elementwise
from .patterns import Patterns
from .registers import words_of
from .values import Fragment, unknown

__all__ = ["Sliced"]

FREE = frozenset(("constant", "undefined", "zero", "keep", "program_id", "num_programs", "linear", "rename", "join"))
"""Operations that count nothing."""
MOVES = frozenset(("pack", "unpack", "permute", "shuffle", "ballot", "elect"))


Part: TypeAlias = tuple[list[LaneOp], list[tuple[Span | None, Counter[str]]]]
"""A part of a block that all warps that begin it go through: what is followed, and what work on registers counts."""


class Sliced:
    """A program taken apart for `count`: what addresses, masks and loops are made of, and what is only tallied.

    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 128)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> x = weft.like((128,), "fp32")
    >>> program = double.warmup(x, grid=(1,), target="sim:cuda:80").program
    >>> sliced = weft.sim.Sliced(program)                     # once, for several counts
    >>> [weft.sim.count(program, programs, sliced=sliced)["global_store_bytes"] for programs in (1, 2)]
    [512, 1024]
    """

    def __init__(self, program: LaneProgram) -> None:
        self.periods: dict[object, tuple[int, list[Any], int]] = {}
        """Of loops that have been followed (steady.py)."""
        self.proofs: dict[LaneOp, Any] = {}
        """Of loops what is known to move as it goes on; None where nothing is (proven.py)."""
        self.patterns = Patterns()
        self.branches = program.body.branches()
        self.products: dict[object, Mapping[str, int]] = {}
        """What the accesses of a matrix unit's instructions count, by their addresses."""
        self.needed: set[Value] = set()
        """What addresses, masks, branches and loops are made of."""
        self._open: list[Value] = []
        self._makers: dict[Value, list[Value]] = {}
        """What is needed where a value is."""
        self._stored: list[Value] = []
        """What goes into shared memory, needed where anything that comes from there is."""
        self._from_shared: set[Value] = set()
        self.blocks: dict[int, list[Part]] = {}
        """By the identity of each block: what is followed, and what work on registers counts for a warp, by place."""
        self.unknown: dict[Value, Fragment] = {}
        """What is not followed."""
        for op in program.body.walk():
            self._read(op)
        self._close()
        for block in (program.body, *(region for op in program.body.walk() for region in op.regions)):
            self.blocks[id(block)] = self._taken_apart(block)
        self.before: dict[int, list[LaneOp]] = {}
        """By the identity of a loop's body: what is the same in all iterations, followed before the first."""
        self._take_out(program.body)

    def again(self) -> Sliced:
        """The same for other arguments, with what is known whatever the arguments are."""
        fresh = copy(self)
        fresh.periods = {}
        self.proofs = {loop: proof for loop, proof in self.proofs.items() if proof is not None}
        fresh.proofs = self.proofs
        return fresh

    def _take_out(self, block: Block) -> None:
        """Take out of loops in a block, from the innermost on, what works on registers that they do not change."""
        for op in block.ops:
            for region in op.regions:
                self._take_out(region)
                if op.name == "for":
                    self.before[id(region)] = self._taken_out(region)

    def _taken_out(self, body: Block) -> list[LaneOp]:
        changing = {*body.arguments, *(value for op in body.walk() for value in op.results)}
        taken: list[LaneOp] = []

        def left(ops: list[LaneOp]) -> list[LaneOp]:
            kept = []
            for op in ops:
                if op.name == "for":
                    inner = id(op.regions[0])
                    self.before[inner] = left(self.before[inner])
                if _is_pure(op) and op.name != "instruction" and not changing.intersection(op.operands):
                    changing.difference_update(op.results)
                    taken.append(op)
                else:
                    kept.append(op)
            return kept

        self.blocks[id(body)] = [(left(ops), counted) for ops, counted in self.blocks[id(body)]]
        return taken

    def _read(self, op: LaneOp) -> None:
        name = op.name
        if _is_pure(op):
            self._from(op.results, op.operands)
        elif name == "load":
            masked = bool(op.attrs.get("masked"))
            self._need(op.operands[: 1 + masked])
            self._from(op.results, op.operands[1 + masked :])
            if op.attrs["space"] != "global":
                self._from_shared.update(op.results)
        elif name == "store":
            self._need((op.operands[0], *op.operands[2:]))
            if op.attrs["space"] != "global":
                self._stored.append(op.operands[1])
        elif name == "await":
            self._from(op.results, op.operands)
        elif name == "for":
            self._need(op.operands[:3])
            body = op.regions[0]
            for result, argument, first, last in zip(
                op.results, body.arguments[1:], op.operands[3:], _handed_on(body), strict=False
            ):
                for value in (result, argument):
                    self._from((value,), (first, last))
        elif name == "if":
            self._need(op.operands[:1])
            for region in op.regions:
                for result, value in zip(op.results, _handed_on(region), strict=False):
                    self._from((result,), (value,))
        elif name == "instruction" and "multiplies" in instruction(op.attrs["isa"]).params:
            entry = instruction(op.attrs["isa"])
            if entry.touches:
                self._need(v for v, o in zip(op.operands, entry.operands, strict=True) if o.constraint == "l")
        elif name == "instruction" and instruction(op.attrs["isa"]).touches == "shared":
            entry = instruction(op.attrs["isa"])
            for at, (value, operand) in enumerate(zip(op.operands, entry.operands, strict=True)):
                if at == 0 or operand.constraint == "l":  # an address
                    self._need((value,))
                else:
                    self._stored.append(value)
            self._from_shared.update(op.results)
        elif name not in ("yield", "condition"):  # which belong to the operation around them
            self._need(op.operands)
            self._need(v for region in op.regions for v in _handed_on(region))
            if name == "instruction":
                self._from_shared.update(op.results)

    def _need(self, values: Iterable[Value]) -> None:
        for value in values:
            if value not in self.needed:
                self.needed.add(value)
                self._open.append(value)

    def _from(self, results: Iterable[Value], values: Iterable[Value]) -> None:
        values = tuple(values)
        for result in results:
            self._makers.setdefault(result, []).extend(values)

    def _close(self) -> None:
        """All that is needed for what is."""
        while self._open:
            value = self._open.pop()
            self._need(self._makers.get(value, ()))
            if value in self._from_shared and self._stored:
                self._need(self._stored)
                self._stored = []

    def _taken_apart(self, block: Block) -> list[Part]:
        parts: list[Part] = []
        followed: list[LaneOp] = []
        counted: dict[Span | None, Counter[str]] = {}
        for op in block.ops:
            pure = _is_pure(op)
            if not pure or self.needed.intersection(op.results):
                followed.append(op)
            else:
                self.unknown.update({value: unknown(value.elem, value.count) for value in op.results})
            if pure and (followed[-1:] != [op] or op.name != "instruction"):
                _add(counted, op)
            if any(each.name == "return" for region in op.regions for each in region.walk()):
                parts.append((followed, list(counted.items())))  # fewer warps may go on
                followed, counted = [], {}
        return [*parts, (followed, list(counted.items()))]


def _add(counted: dict[Span | None, Counter[str]], op: LaneOp) -> None:
    kind, number = _counts(op)
    if number:
        counts = counted.setdefault(op.span, Counter())
        counts["instructions"] += number
        counts[f"kind:{kind}"] += number
        if kind == "shuffle":
            counts["shuffles"] += number


def _handed_on(block: Block) -> tuple[Value, ...]:
    """What the last operation of a region hands on."""
    last = block.ops[-1] if block.ops else None
    return last.operands if last is not None and last.name in ("yield", "condition") else ()


def _is_pure(op: LaneOp) -> bool:
    """Whether an operation makes its results of its operands, and counts the same whatever these are."""
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        return not entry.touches and entry.semantics is not None and bool(op.results)
    return op.name in FREE or op.name in MOVES or is_elementwise(op.name)


def _counts(op: LaneOp) -> tuple[str, int]:
    """The kind that an operation counts as, and how often, for each warp."""
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        pairs = zip(op.operands, entry.operands, strict=True)
        return entry.name, max(value.count // operand.count for value, operand in pairs)
    if op.name in FREE:
        return op.name, 0
    if op.name == "shuffle":
        return "shuffle", op.operands[0].count * words_of(op.operands[0].elem)
    return op.name, 1 if op.name == "elect" else op.results[0].count
