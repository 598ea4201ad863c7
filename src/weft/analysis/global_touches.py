"""Accesses of global memory by one kernel, as far as they say whether two threads may meet.

Which bytes an address stands for is not known while compiling. What is known is the argument of the kernel that it was
computed from, and often how far it is from another address: as a sum

    %p + 4 * (64 * %i + lane) + 256        {%p: 1, %i: 256}, 256 and 0 .. 124 more from thread to thread

of numbers that all threads have alike, a constant, and what differs between threads: within bounds, and often made of
some bits only. Two accesses whose sums differ by a constant that is beyond those bounds, or no difference of two
numbers of those bits (the halves of rows: 128 is none of 0 .. 127 and multiples of 256), cannot meet, nor can those of
two iterations of a loop whose index moves them so. Through pointers of two arguments nothing is taken to meet, nor do
the iterations of a loop of one store.

Sums are about forms of addresses, which facts about single integers (`ops/bounds.py`) say nothing of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram, Value

from .lane_numbers import edges

__all__ = ["GlobalTouch", "GlobalTouches", "of_one_row", "of_one_store"]

INJECTIVE = ("linear", "constant", "rename", "join", "arith.addi", "arith.subi", "arith.muli", "arith.shli",
             "arith.xori", "arith.extsi", "arith.extui", "arith.index_cast")  # fmt: skip
"""Through these, numbers that differ from thread to thread mostly stay so; through a remainder they do not."""
ITERATIONS = 64
"""How many iterations of a loop are looked at one by one, until accesses are too far apart."""
SAME = ("rename", "arith.extsi", "arith.extui", "arith.index_cast")
MEMORY = ("load", "atomic", "compare_and_swap", "instruction", "shared", "remote", "assembly")


@dataclass(frozen=True, slots=True)
class GlobalTouch:
    """An access: what it does ("read", "write" or "atomic"), where, and how many bytes for each address."""

    op: LaneOp
    how: str
    roots: frozenset[Value]
    address: Value
    width: int
    """Of a vector, if the address is not one of a tile's that has the addresses of all its elements; else of one."""
    loops: frozenset[LaneOp] = frozenset()
    """The loops that have come round since, which compute the address anew."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A constant, multiples of what all threads have alike, and the bounds of what they do not, with the bits that it
    is made of (None: not known)."""

    terms: tuple[tuple[Value, int], ...] = ()
    constant: int = 0
    low: int = 0
    high: int = 0
    bits: int | None = 0

    def plus(self, other: Sum, sign: int = 1) -> Sum:
        """The sum, or difference, of two."""
        terms = dict(self.terms)
        for value, times in other.terms:
            terms[value] = terms.get(value, 0) + sign * times
        low, high = (other.low, other.high) if sign > 0 else (-other.high, -other.low)
        kept = tuple((v, n) for v, n in terms.items() if n)
        bits = None
        if self.bits is not None and other.bits is not None and not self.bits & other.bits:
            bits = self.bits | other.bits if sign > 0 or not other.bits else None
        return Sum(kept, self.constant + sign * other.constant, self.low + low, self.high + high, bits)

    def times(self, factor: int) -> Sum:
        """A multiple."""
        low, high = sorted((self.low * factor, self.high * factor))
        terms = tuple((v, n * factor) for v, n in self.terms if factor)
        power = factor > 0 and factor & (factor - 1) == 0
        bits = 0 if not self.bits and self.bits is not None else None
        if power and self.bits is not None:
            bits = self.bits * factor
        return Sum(terms, self.constant * factor, low, high, bits)


class GlobalTouches:
    """What there is to know of the addresses of a program."""

    def __init__(self, program: LaneProgram) -> None:
        self.program = program
        self.sources: dict[Value, list[Value]] = {}
        for value, operands in edges(program):
            self.sources.setdefault(value, []).extend(operands)
        pairs = zip(program.parameters, program.body.arguments, strict=True)
        self.pointers = {value for parameter, value in pairs if parameter.elem == "ptr"}
        loops = [op for op in program.body.walk() if op.name == "for"]
        self.carried = {v: (op, i) for op in loops for i, v in enumerate(op.regions[0].arguments) if i}
        self._roots = self._all_roots()
        self._varying: set[Value] | None = None
        self._warp_bits = program.warps.bit_length() - 1
        self._spread: dict[Value, int] | None = None
        self._tangled: set[Value] = set()
        self._sums: dict[Value, Sum | None] = {}

    def of(self, op: LaneOp) -> Sequence[GlobalTouch]:
        """The accesses that an operation makes."""
        if op.name in ("load", "store", "atomic", "compare_and_swap"):
            if op.attrs["space"] != "global":
                return ()
            how, address = {"load": "read", "store": "write"}.get(op.name, "atomic"), op.operands[0]
            value = op.results[0] if op.name == "load" else op.operands[1]
            width = max(8, ELEMENT_BITS[value.elem]) // 8
            width *= 1 if _is_of_all(address, int(op.attrs.get("vector", 1))) else int(op.attrs.get("vector", 1))
        elif op.name == "copy_async":
            how, address, width = "read", op.operands[1], int(op.attrs["bytes"])
        else:
            return ()
        return (GlobalTouch(op, how, self.roots(address), address, width),)

    def meet(self, earlier: GlobalTouch, later: GlobalTouch) -> bool:
        """Whether a barrier must come between two accesses, the second of them now."""
        if earlier.how == later.how and (earlier.how != "write" or of_one_store(earlier, later)):
            return False
        if not earlier.roots & later.roots or of_one_row(earlier, later):
            return False
        same = earlier.address is later.address and self.own(earlier.address)
        return not (same and self._stays(earlier)) and not self._apart(earlier, later)

    def _stays(self, touch: GlobalTouch) -> bool:
        """Whether an address is now what it was."""
        sum = self.sum(touch.address) if touch.loops else None
        return not touch.loops or (sum is not None and all(self._moved(sum, loop) == 0 for loop in touch.loops))

    # -- who has which address -----------------------------------------------------------------------------------------

    def _behind(self, value: Value) -> set[Value]:
        """All that a number depends on: what it is computed from, and what decides which branch or how many
        iterations.
        """
        values: set[Value] = set()
        rest = [value]
        while rest:
            number = rest.pop()
            if number not in values:
                values.add(number)
                rest += self.sources.get(number, ())
                if number.op is not None and number.op.regions:
                    rest += _deciding(number.op)
        return values

    def roots(self, address: Value) -> frozenset[Value]:
        """The pointers among the kernel's arguments that an address may have been computed from."""
        return self._roots.get(address, frozenset())

    def _all_roots(self) -> dict[Value, frozenset[Value]]:
        roots = {value: frozenset([value]) for value in self.pointers}
        changed = True
        while changed:
            changed = False
            for value, sources in self.sources.items():
                if value.elem != "i64":  # what is left of an address, its distance from an aligned one, is none
                    continue
                sets = [roots[v] for v in sources if v in roots]
                if sets and (value not in roots or any(not s <= roots[value] for s in sets)):
                    roots[value] = roots.get(value, frozenset()).union(*sets)
                    changed = True
        return roots

    def _all_varying(self) -> set[Value]:
        """What may differ from thread to thread."""
        varying: set[Value] = set()
        before = -1
        while before != len(varying):  # each time in the order of the program, so that loops alone ask for another
            before = len(varying)
            for op in self.program.body.walk():
                if op.name == "linear" and _highest(op):
                    varying.add(op.result)
                elif op.name in MEMORY:
                    uniform = op.name == "load" and op.attrs["space"] == "global"
                    if not uniform or not varying.isdisjoint(op.operands):
                        varying.update(op.results)
                for value in (*op.results, *(v for r in op.regions for v in r.arguments)):
                    if value not in varying and not varying.isdisjoint(self.sources.get(value, ())):
                        varying.add(value)
        return varying

    def own(self, address: Value) -> bool:
        """Whether no two warps (blocks of a cluster) have the same address, as far as layouts tell."""
        if self._spread is None:
            self._spread, self._tangled = {}, set()
            self._follow_layouts(self._spread, self._tangled)
        every = (1 << self._warp_bits + self.program.blocks.bit_length() - 1) - 1
        return address not in self._tangled and self._spread.get(address, 0) & every == every

    def _follow_layouts(self, spread: dict[Value, int], tangled: set[Value]) -> None:
        """For each number the bits of warp and block that it moves with, and whether two of them may give the same."""
        before = (-1, -1)
        while before != (sum(map(int.bit_count, spread.values())), len(tangled)):
            before = (sum(map(int.bit_count, spread.values())), len(tangled))
            for op in self.program.body.walk():
                for value in (*op.results, *(v for r in op.regions for v in r.arguments)):
                    sources = self.sources.get(value, ())
                    bits = self._bits(value)
                    for source in sources:
                        bits |= spread.get(source, 0)
                    spread[value] = bits
                    if not tangled.isdisjoint(sources) or not (self.alike(value) or self._keeps_apart(value)):
                        tangled.add(value)

    def _bits(self, value: Value) -> int:
        if value.op is None or value.op.name != "linear":
            return 0
        warps, blocks = value.op.attrs.get("warp", ()), value.op.attrs.get("block", ())
        bits = sum(1 << bit for bit, basis in enumerate(warps[: self._warp_bits]) if basis)
        return bits | sum(1 << bit + self._warp_bits for bit, basis in enumerate(blocks) if basis)

    def _keeps_apart(self, value: Value) -> bool:
        if value.op is None:
            return value in self.carried and self._growth(value) is not None
        return value.op.name in INJECTIVE

    def alike(self, value: Value) -> bool:
        """Whether all threads have the same, as far as is known."""
        if self._varying is None:
            self._varying = self._all_varying()
        return value not in self._varying

    # -- how far apart they are ----------------------------------------------------------------------------------------

    def _apart(self, earlier: GlobalTouch, later: GlobalTouch) -> bool:
        """Whether no byte of one access is one of the other, whichever threads they are of."""
        a, b = self.sum(earlier.address), self.sum(later.address)
        if a is None or b is None or len(earlier.loops) > 1:
            return False
        between = b.plus(a, -1)
        if between.terms:
            return False
        if not earlier.loops:
            return _cannot_meet(a, b, between, earlier.width, later.width)
        (loop,) = earlier.loops
        moved = self._moved(a, loop)
        if moved is None:
            return False
        for _ in range(ITERATIONS):
            between = replace(between, constant=between.constant + moved)
            if not _cannot_meet(a, b, between, earlier.width, later.width):
                return False
            least, most = between.constant + between.low, between.constant + between.high
            if (least >= earlier.width and moved >= 0) or (most <= -later.width and moved <= 0) or not moved:
                return True  # and ever farther
        return False

    def _moved(self, sum: Sum, loop: LaneOp) -> int | None:
        """By how much an address moves with each iteration of a loop; None where that is not known."""
        arguments = {v for r in loop.regions for v in r.arguments}
        computed = {v for r in loop.regions for op in r.walk() for v in op.results}
        total = 0
        for value, times in sum.terms:
            if value in arguments:
                step = self._step(value, loop)
                if step is None:
                    return None
                total += step * times
            elif value in computed and any(v in arguments or _is_read(v) for v in self._behind(value)):
                return None
        return total

    def _step(self, value: Value, loop: LaneOp) -> int | None:
        """By how much a number that a loop counts or carries grows with each iteration."""
        if loop.name != "for" or value not in loop.regions[0].arguments:
            return None
        if value in self.carried:
            return self._growth(value)
        step = self.sum(loop.operands[2])
        return step.constant if step is not None and _is_number(step) else None

    def _growth(self, value: Value) -> int | None:
        """The constant that each iteration adds to a number that a loop carries."""
        loop, index = self.carried[value]
        others = dict.fromkeys(loop.regions[0].arguments[1:])  # which do not cancel, and may change places with it
        before, self._sums = self._sums, {**others, value: Sum(((value, 1),))}
        again = self.sum(loop.regions[0].ops[-1].operands[index - 1])
        self._sums = before
        grown = again.plus(Sum(((value, 1),)), -1) if again is not None else None
        return grown.constant if grown is not None and _is_number(grown) else None

    def sum(self, value: Value) -> Sum | None:
        """A number as a sum; None where threads differ in an unknown way."""
        waiting = [value]
        while waiting:
            number = waiting[-1]
            missing = [v for v in _parts(number) if v not in self._sums]
            waiting += missing
            if not missing:
                waiting.pop()
                if number not in self._sums:
                    self._sums[number] = None  # as long as it is asked for
                    self._sums[number] = self._summed(number)
        return self._sums[value]

    def _first(self, value: Value) -> Sum | None:
        """A tile that a loop carries and adds a constant to: what it was at first, and what has been added."""
        loop, index = self.carried[value]
        first = self.sum(loop.operands[2 + index])
        return first.plus(Sum(((value, 1),))) if first is not None and self._growth(value) is not None else None

    def _summed(self, value: Value) -> Sum | None:
        op = value.op
        alone = Sum(((value, 1),)) if value.count == 1 and self.alike(value) else None
        if op is None:
            return self._first(value) if alone is None and value in self.carried else alone
        if op.name == "constant":
            number = op.attrs["value"]
            return Sum(constant=number) if isinstance(number, int) else None
        if op.name == "linear":
            return Sum(high=_highest(op), bits=_highest(op))
        parts = [self._sums[v] for v in _parts(value)]
        if not parts:
            return alone
        if op.name in SAME:
            return parts[0]
        a, b = parts
        if a is None or b is None:
            return None
        if op.name in ("arith.addi", "arith.subi"):
            return a.plus(b, 1 if op.name == "arith.addi" else -1)
        if op.name == "arith.shli":
            return a.times(1 << b.constant) if _is_number(b) and 0 <= b.constant < 64 else alone
        if _is_number(a):
            a, b = b, a
        return a.times(b.constant) if _is_number(b) else alone


def of_one_store(earlier: GlobalTouch, later: GlobalTouch) -> bool:
    """Whether both are of one store, perhaps in iterations of a loop, perhaps parts of what it stores
    (lower/rows.py).
    """
    part = earlier.op.attrs.get("part")
    return earlier.op is later.op or (part is not None and part == later.op.attrs.get("part"))


def of_one_row(earlier: GlobalTouch, later: GlobalTouch) -> bool:
    """Whether both are of one row, of which each warp accesses its own elements and no others (lower/rows.py)."""
    row = earlier.op.attrs.get("row")
    return row is not None and row == later.op.attrs.get("row") and not earlier.loops


def _is_of_all(address: Value, vector: int) -> bool:
    """Whether the first addresses of vectors are chosen from those of all elements."""
    op = address.op
    return op is not None and op.name == "rename" and op.operands[0].count >= address.count * vector


def _cannot_meet(a: Sum, b: Sum, between: Sum, first: int, second: int) -> bool:
    """Whether accesses of so many bytes at `a` and `b`, which is `between` farther, have no byte in common."""
    least, most = between.constant + between.low, between.constant + between.high
    if least >= first or most <= -second:
        return True
    if a.bits is None or b.bits is None or a.bits & (first - 1) or b.bits & (second - 1):
        return False
    return not _is_difference(between.constant, a.bits | first - 1, b.bits | second - 1)


def _is_difference(number: int, of: int, less: int) -> bool:
    """Whether a number is x - y, where x has some of the bits `of` and y some of `less`.

    >>> _is_difference(128, 0xF7F, 0xF7F), _is_difference(129, 0xF7F, 0xF7F)
    (False, True)
    """
    borrows = {0}
    for bit in range(64):
        wanted, borrows = borrows, set()
        for x in (0, 1) if of >> bit & 1 else (0,):
            for y in (0, 1) if less >> bit & 1 else (0,):
                borrows |= {int(x < y + c) for c in wanted if (x - y - c - (number >> bit)) % 2 == 0}
    return bool(borrows)


def _parts(value: Value) -> tuple[Value, ...]:
    """What a number is made of, where its sum is made of theirs."""
    op = value.op
    if op is None or op.name not in (*SAME, "arith.addi", "arith.subi", "arith.muli", "arith.shli"):
        return ()
    return op.operands


def _is_read(value: Value) -> bool:
    return value.op is not None and value.op.name in MEMORY


def _deciding(op: LaneOp) -> tuple[Value, ...]:
    """What says which region of a branch is taken, or how many iterations a loop has."""
    if op.name == "while":
        end = op.regions[0].ops[-1:]
        return tuple(v for last in end for v in last.operands[:1])
    return op.operands[:3] if op.name == "for" else op.operands


def _is_number(sum: Sum) -> bool:
    return not sum.terms and sum.low == sum.high == 0


def _highest(op: LaneOp) -> int:
    """No less than any number that a linear layout gives."""
    bits = 0
    for name in ("registers", "lane", "warp", "block"):
        for basis in op.attrs.get(name, ()):
            bits |= int(basis)
    return bits
