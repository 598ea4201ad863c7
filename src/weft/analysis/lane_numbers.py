"""Integers of a lane program as far as they are known while compiling: for every lane of every warp at once.

A number that follows from constants and from the indices of lane and warp is an array [warp, lane, register]; of any
other nothing is known, but for the buffers of shared memory that it was computed from.

>>> from weft.ir.lane import Block, Builder, LaneProgram
>>> body = Block()
>>> build = Builder(body)
>>> lane = build.linear((0,), lane=(1, 2, 4, 8, 16))
>>> twice = build.op("arith.muli", [lane, build.constant("i32", 2)], "i32")
>>> from weft.machines import DEFAULT
>>> numbers = LaneNumbers(LaneProgram("kernel", DEFAULT, (), body, warps=1), [twice])
>>> for op in body.ops:
...     numbers.evaluate(op)
>>> numbers[twice].ravel()[:4].tolist()
[0, 2, 4, 6]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram, Value
from weft.ops.casts import COMPARISONS, INTEGER_PREDICATES, predicate_of
from weft.ops.table import ROWS

Array = npt.NDArray[Any]

MODULUS = 24
"""What loop indices are known by, once a loop has had that many iterations: i % n is known for every n that divides
it.
"""

PASSED_ON = ("arith.extsi", "arith.trunci", "arith.index_cast")


class LaneNumbers:
    """What is known now of those values that `wanted` depend on."""

    def __init__(self, program: LaneProgram, wanted: Iterable[Value]) -> None:
        self.program = program
        self.known: dict[Value, Array] = {}
        self.partial: set[Value] = set()
        """Those of which only the remainder by MODULUS is known (and that they are not negative)."""
        self.needed = _slice(program, wanted)
        self._results: dict[tuple[object, ...], tuple[list[Array | None], Array | None, bool]] = {}
        """What operations gave for the very arrays that are kept beside it: iterations of loops repeat themselves."""

    def forget(self) -> None:
        """Begin anew; what operations give is remembered."""
        self.known.clear()
        self.partial.clear()

    def __getitem__(self, value: Value) -> Array | None:
        """The numbers, or None; what is only known as a remainder is not known."""
        return None if value in self.partial else self.known.get(value)

    def set(self, value: Value, array: Array | None, partial: bool = False) -> None:
        """Say what a value is; None is unknown."""
        self.partial.discard(value)
        if array is None:
            self.known.pop(value, None)
        else:
            self.known[value] = array
            if partial:
                self.partial.add(value)

    def evaluate(self, op: LaneOp) -> None:
        """Find what the result of an operation without regions is, if anyone wants to know."""
        if len(op.results) != 1 or op.results[0] not in self.needed:
            return
        result = op.results[0]
        operands = [self.known.get(v) for v in op.operands]
        partial = [v for v in op.operands if v in self.partial] if self.partial else []
        key = (op, *map(id, operands), *partial)
        found = self._results.get(key)
        if found is None:
            found = self._results[key] = (operands, *self._evaluated(op, operands, bool(partial)))
        self.set(result, found[1], found[2])

    def _evaluated(self, op: LaneOp, operands: list[Array | None], partial: bool) -> tuple[Array | None, bool]:
        """What the result is for these operands, and whether it is known only in part."""
        numbers: Array | None = None
        if op.name == "select":
            numbers = _chosen(operands)
        elif all(x is not None for x in operands):
            arrays = [x for x in operands if x is not None]
            if partial:
                numbers, partial = self._partially(op, arrays)
            else:
                numbers = self._computed(op, arrays)
        numbers = _within(numbers, op.results[0].elem)
        return numbers, partial and numbers is not None

    def _computed(self, op: LaneOp, arrays: list[Array]) -> Array | None:
        row = ROWS.get(op.name)
        if row is not None and row.of_integers is not None:
            if row.is_unsigned and any((x < 0).any() for x in arrays):
                return None
            computed: Array = row.of_integers(arrays[0], arrays[1], ELEMENT_BITS[op.results[0].elem])
            return computed
        if op.name in PASSED_ON:
            return arrays[0] if op.operands[0].elem != "i1" else None
        if op.name == "arith.extui":
            return arrays[0] if (arrays[0] >= 0).all() else None
        if op.name == "arith.cmpi":
            predicate = predicate_of(op.attrs, INTEGER_PREDICATES)
            return None if predicate[0] == "u" else COMPARISONS[predicate](*arrays).astype(np.int64)
        return self._rearranged(op, arrays)

    def _rearranged(self, op: LaneOp, arrays: list[Array]) -> Array | None:
        if op.name == "constant":
            value = op.attrs["value"]
            return np.full((1, 1, op.results[0].count), int(value), np.int64) if isinstance(value, int) else None
        if op.name == "shared":
            offset = self.program.shared[op.attrs["allocation"]].offset
            return None if offset is None else np.full((1, 1, 1), offset, np.int64)
        if op.name == "rename":
            return np.broadcast_to(arrays[0], (*arrays[0].shape[:2], op.operands[0].count))[
                ..., list(op.attrs["table"])
            ]
        if op.name == "join":
            shape = np.broadcast_shapes(*(x.shape[:2] for x in arrays))
            parts = [np.broadcast_to(x, (*shape, v.count)) for x, v in zip(arrays, op.operands, strict=True)]
            return np.concatenate(parts, axis=2)
        if op.name == "linear":
            return self._linear(op)
        if op.name == "elect":
            first: Array = (np.arange(self.program.lanes) == 0).astype(np.int64)[None, :, None]
            return first
        return None

    def _linear(self, op: LaneOp) -> Array | None:
        if any(op.attrs["block"]):
            return None
        numbers = np.array(op.attrs["registers"], np.int64)[None, None, :]
        for axis, name, size in ((1, "lane", self.program.lanes), (0, "warp", self.program.warps)):
            index, part = np.arange(size), np.zeros(size, np.int64)
            for i, base in enumerate(op.attrs[name]):
                part ^= (index >> i & 1) * base
            if part.any():
                numbers = numbers ^ np.expand_dims(part, [a for a in range(3) if a != axis])
        return numbers

    def _partially(self, op: LaneOp, arrays: list[Array]) -> tuple[Array | None, bool]:
        """Arithmetic with remainders by MODULUS of numbers that are not negative: (what is known, whether partly)."""
        if op.name in ("arith.addi", "arith.muli"):
            numbers = self._computed(op, arrays)
            return (numbers, True) if all((x >= 0).all() for x in arrays) else (None, False)
        if len(arrays) != 2 or op.operands[1] in self.partial:
            return None, False
        modulus = int(arrays[1].flat[0]) if arrays[1].size == 1 else 0
        if op.name in ("arith.remsi", "arith.remui") and modulus > 0 and MODULUS % modulus == 0:
            return arrays[0] % modulus, False
        if op.name == "arith.andi" and modulus >= 0 and modulus & modulus + 1 == 0 and MODULUS % (modulus + 1) == 0:
            return arrays[0] % (modulus + 1), False
        return None, False


def _within(numbers: Array | None, elem: str) -> Array | None:
    """Numbers that the type has; others wrap, and are taken to be unknown."""
    if numbers is None or elem == "i1":
        return None if numbers is None else numbers & 1
    limit = 1 << min(31, ELEMENT_BITS[elem] - 1)
    return numbers if ((-limit <= numbers) & (numbers < limit)).all() else None


def _chosen(operands: list[Array | None]) -> Array | None:
    """`select`, where the chosen side is known."""
    condition, a, b = operands
    if condition is None:
        return None
    if condition.all():
        return a
    if not condition.any():
        return b
    return np.where(condition, a, b) if a is not None and b is not None else None


def edges(program: LaneProgram) -> Iterable[tuple[Value, tuple[Value, ...]]]:
    """(a value, those that it is computed from), through loops and branches; what is loaded is from nowhere."""
    for op in program.body.walk():
        if not op.regions:
            if op.name not in ("load", "atomic", "compare_and_swap", "instruction"):
                for value in op.results:
                    yield value, op.operands
            continue
        ends = [r.ops[-1].operands if r.ops and r.ops[-1].name in ("yield", "condition") else () for r in op.regions]
        if op.name == "for":
            for i, (argument, first) in enumerate(zip(op.regions[0].arguments[1:], op.operands[3:], strict=True)):
                again = ends[0][i : i + 1]
                yield argument, (first, *again)
                yield op.results[i], (first, *again)
            yield op.regions[0].arguments[0], tuple(op.operands[:3])
        elif op.name == "while":
            for i, argument in enumerate(op.regions[0].arguments):
                yield argument, (op.operands[i], *ends[1][i : i + 1])
            for i, value in enumerate((*op.results, *op.regions[1].arguments)):
                k = i % max(1, len(op.results))
                yield value, tuple(ends[0][1 + k : 2 + k])
        else:
            for i, value in enumerate(op.results):
                yield value, tuple(v for end in ends for v in end[i : i + 1])


def origins(program: LaneProgram) -> dict[Value, frozenset[int]]:
    """For each value the buffers of shared memory that it may have been computed from the address of."""
    buffers: dict[Value, frozenset[int]] = {
        op.result: frozenset([op.attrs["allocation"]]) for op in program.body.walk() if op.name == "shared"
    }
    pairs = list(edges(program))
    changed = True
    while changed:
        changed = False
        for value, sources in pairs:
            of_sources = [buffers[s] for s in sources if s in buffers]
            if not of_sources:
                continue
            before = buffers.get(value, frozenset())
            after = before.union(*of_sources)
            if after != before:
                buffers[value], changed = after, True
    return buffers


def _slice(program: LaneProgram, wanted: Iterable[Value]) -> set[Value]:
    """All values that these depend on, themselves included."""
    sources: dict[Value, list[Value]] = {}
    slice: set[Value] = set()
    rest = list(wanted)
    for value, operands in edges(program) if rest else ():
        sources.setdefault(value, []).extend(operands)
    while rest:
        value = rest.pop()
        if value not in slice:
            slice.add(value)
            rest += sources.get(value, [])
    return slice
