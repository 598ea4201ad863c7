"""The price of a layout, in cycles of a multiprocessor for each warp, so that accesses, conversions and work add up.

    access        an instruction for each vector, its address, and the lines of 128 bytes that its lanes touch
    conversion    the cost of its plan (layouts/plan)
    operand       the same, for the store to shared memory from which a product reads it
    reduction     the same
    work          an instruction for each register of a tile, copies of elements left out
    registers     stores and loads of spilled words (layout_registers.py)
    trips         the factor for all of these: iterations of the loops around, or `SOME_TRIPS` for each unknown number

A line costs the same however little of it the lanes access (on NVIDIA's GPUs, the time of a pass over the banks of
shared memory), but a store to a small part of a line costs twice as much. Each sector that loads fetch costs half as
much as a line, and that time hides repeated lookups of the same lines. Parts of sectors that a warp does not use cost
the same in addition, because other warps fetch these sectors again. Rows of a tile are assumed to lie in different
lines.

A transposing copy of 64x64 halves by 4 warps stores rows of 128 bytes. From [8, 1] elements of a thread, whose rows are
columns of what was loaded, an instruction takes 16 bytes of each lane and touches four lines, and there are four; from
[1, 8], an instruction takes 2 bytes of each lane, 8 bytes of each of eight lines, and there are 32. Where rows begin at
multiples of 16 bytes, that is 47 and 1,219 cycles; a conversion before the store takes 137.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from weft.analysis import AxisFacts
from weft.base import LayoutError
from weft.ir import bit_width, element_of, int_value, is_pointer, shape_of
from weft.layouts import (
    BlockedLayout,
    LinearLayout,
    SharedLayout,
    f2,
    plan_conversion,
    plan_local_access,
    plan_reduction,
)
from weft.machines import Machine

from .buffered_tiles import is_thin
from .natural_layouts import AnyLayout, linear_of

FETCHED = 0.5
"""What a sector takes that is fetched from the L2 cache, 64 bytes in a cycle, by what a line takes that is looked up.
"""
APART = 1.5
"""Bytes of sectors by bytes that are moved, from which on the lanes of an access lie apart."""
WAITED = 200.0
"""What an instruction costs more that a product waits for, as its threads have too little in a row to have it copied
ahead."""
COPIED = 8
"""Instructions that a copy takes besides: both of its places go on from iteration to iteration, and have a mask; most
are loaded back from shared memory. Copies of less than 16 bytes of a thread go through the L1 cache on their way."""
PIECE = 3
"""Instructions that it takes to put a piece of a thread's number in its place in an address."""
REPEATED = 12.0
"""What an instruction costs more that several lanes or warps do for the same elements: each has their addresses to
compute, and waits for memory. So up to five of them are cheaper than a trip of a small tile through shared memory. By
prediction, attention backward takes 6 % longer where eight small loads are done so, and sums of columns a third less
where one store is."""
SOME_TRIPS = 8
"""Iterations of a loop of which it is not known how many it has."""
IMPOSSIBLE = 1e6
"""A store to shared memory that cannot be made."""
MOST_TRIPS = 1 << 12
"""Iterations of all loops around an operation, at most: more make no other choice."""


class Prices:
    """Prices for one function on one machine."""

    def __init__(self, machine: Machine, facts: AxisFacts) -> None:
        self.machine, self.facts = machine, facts
        self._trips: dict[Operation | None, float] = {}

    def conversion(self, source: AnyLayout, result: AnyLayout, shape: Sequence[int], bits: int) -> float:
        """A tile with elements of so many bits, from one layout to another."""
        if source == result:
            return 0.0
        a, b = linear_of(source, shape), linear_of(result, shape)
        return 0.0 if a == b else plan_conversion(a, b, shape, bits, self.machine).cost.cycles

    def stored(self, source: AnyLayout, forms: Sequence[SharedLayout], shape: Sequence[int], bits: int) -> float:
        """A tile that is stored to shared memory, in the best of some layouts there."""
        linear = linear_of(source, shape)
        try:
            return min(plan_local_access(linear, x, shape, bits, self.machine, store=True).cycles for x in forms)
        except LayoutError:  # those that have no place in it
            return IMPOSSIBLE

    def reduction(self, op: Operation, layout: AnyLayout) -> float:
        """A reduction, or a scan, of operands in a layout."""
        shape, axis = shape_of(op.operands[0].type), int_value(op.properties["axis"])
        linear = linear_of(layout, shape)
        bits = [max(8, bit_width(element_of(x.type))) for x in op.operands]
        costs = [plan_reduction(linear, shape, axis, b, self.machine).cost for b in bits]
        more = max(0, sum(1 for _ in op.regions[0].block.ops) - 1 - len(costs))  # than one for each operand
        cycles = sum(cost.cycles for cost in costs)
        cycles += more * self.machine.select * costs[0].instructions.get("combine", 0)
        return cycles * self._runs(linear, axis) if op.name == "tt.scan" else cycles

    @staticmethod
    def _runs(linear: LinearLayout, axis: int) -> int:
        """How many runs along an axis a thread has, with elements of other threads between them: a scan moves each."""
        others = [basis[axis] for dim in ("lane", "warp", "block") for basis in linear.bases.get(dim, ())]
        nearest = min(filter(None, others), default=1 << 31)
        return 1 << len({basis[axis] for basis in linear.bases["register"] if basis[axis] > nearest})

    def work(self, layout: AnyLayout, shape: Sequence[int], instructions: float) -> float:
        """The price of `instructions` for each element, once for registers that hold copies of one element."""
        linear = linear_of(layout, shape)
        return instructions * self.machine.select * (1 << f2.rank(linear.in_columns("register")))

    def trips(self, op: Operation | None) -> float:
        """How often an operation is done in each program."""
        loop = op.parent_op() if op is not None else None
        if loop is None:
            return 1.0
        known = self._trips.get(loop)
        if known is None:
            times = self._iterations(loop) if loop.name in ("scf.for", "scf.while") else 1.0
            known = self._trips[loop] = min(MOST_TRIPS, times * self.trips(loop))
        return known

    def _iterations(self, loop: Operation) -> float:
        """How many iterations a loop has."""
        if loop.name == "scf.for":
            first, end, step = (self.facts.of(x).value for x in loop.operands[:3])
            if first is not None and end is not None and step:
                return max(1, -(-(end - first) // step))
        return SOME_TRIPS

    def access(self, op: Operation, layout: AnyLayout, is_copied: bool = False) -> float:
        """An access of global memory in a layout; with `is_copied`, a load that is begun iterations ahead if it can."""
        pointer, machine = op.operands[0], self.machine
        shape, element, known = shape_of(pointer.type), element_of(pointer.type), self.facts.of(pointer)
        bytes = max(8, bit_width(element.pointee)) // 8 if is_pointer(element) else 8  # type: ignore[attr-defined]
        runs = [min(run, size) for run, size in zip(known.contiguity, shape, strict=True)]
        along = max(range(len(shape)), key=lambda d: (runs[d], d))
        most = min(runs[along], known.divisibility[along] // bytes, machine.vector_bytes // bytes)
        for mask in op.operands[2:3] if op.name == "tt.store" else op.operands[1:2] if op.name == "tt.load" else ():
            most = min(most, self.facts.of(mask).constancy[along])
        linear = linear_of(layout, shape)
        vector = self._vector(linear, along, most)
        count = max(1, self._different(linear, known.constancy) // vector)
        divisibility, sector = known.divisibility[along], machine.sector_bytes
        touched = _touched(linear, along, vector * bytes, bytes, runs, known.constancy, divisibility, machine)
        lines = count * touched.lines
        if op.name == "tt.load":
            fetched = self._fetched(linear, along, bytes, runs[along], count * vector, divisibility, sector)
            least = count * touched.bytes / sector
            lines = max(lines, FETCHED * fetched) + FETCHED * max(0.0, fetched - least)
        elif touched.sectors * sector > APART * touched.bytes:
            lines *= 2
        copies = linear.free_variable_masks()
        repeated = REPEATED if copies["lane"] or copies["warp"] else 0.0
        fits = isinstance(layout, BlockedLayout) or is_thin(shape)  # as copies put tiles into shared memory
        if is_copied and not (fits and any(vector * bytes >= least for least in machine.async_copies[:1])):
            repeated += WAITED
        elif is_copied:
            repeated += COPIED * machine.select
            if vector * bytes < machine.async_copies[-1]:
                lines *= 2
        each = machine.access + machine.address + repeated
        return count * each + machine.line * lines + PIECE * machine.select * _pieces(linear)

    @staticmethod
    def _fetched(
        linear: LinearLayout, along: int, bytes: int, run: int, registers: int, divisibility: int, sector_bytes: int
    ) -> float:
        """Sectors that all loads of a warp together fetch: of elements in a row, as far as a warp has them, and runs
        go."""
        own: set[tuple[int, ...]] = {*linear.bases["register"], *linear.bases["lane"]}
        unit, row = [0] * len(linear.out_dims), 1
        while row < run:
            unit[along] = row
            if tuple(unit) not in own:
                break
            row *= 2
        lanes = 1 << f2.rank(linear.in_columns("lane"))
        cut = _cut(divisibility, sector_bytes) if run > 1 else 0.0
        return registers * lanes / row * (max(1.0, row * bytes / sector_bytes) + cut)

    @staticmethod
    def _different(linear: LinearLayout, constancy: Sequence[int]) -> int:
        """How many registers of a thread hold elements of different addresses."""
        if max(constancy) == 1:
            return 1 << f2.rank(linear.in_columns("register"))
        places = {(0,) * len(constancy)}
        for basis in linear.bases["register"]:
            apart = [x // c for x, c in zip(basis, constancy, strict=True)]
            if any(apart):
                places |= {tuple([x ^ y for x, y in zip(place, apart, strict=True)]) for place in places}
        return len(places)

    @staticmethod
    def _vector(linear: LinearLayout, along: int, most: int) -> int:
        """How many elements in a row along a dimension a thread has, of so many at most."""
        own: set[tuple[int, ...]] = set(linear.bases["register"])
        others = 0
        for dim in ("lane", "warp", "block"):
            for basis in linear.bases.get(dim, ()):
                others |= basis[along]
        vector = 1
        unit = [0] * len(linear.out_dims)
        while vector < most and not others & vector:
            unit[along] = vector
            if tuple(unit) not in own:
                break
            vector *= 2
        return vector


def _pieces(linear: LinearLayout) -> int:
    """The number of pieces into which a thread's number is cut to compute its place in a tile: runs of bits that are
    consecutive in both."""
    pieces, last = 0, [0]
    for dim in ("lane", "warp"):
        for basis in linear.bases[dim]:
            pieces += any(basis) and list(basis) != [2 * x for x in last]
            last = list(basis)
    return pieces


def _cut(divisibility: int, sector_bytes: int) -> float:
    """How many sectors a run touches more, as it begins at a multiple of so many bytes, on average."""
    return 1 - min(1.0, divisibility / sector_bytes)


@dataclass(frozen=True)
class _Touched:
    """What one instruction of a warp touches."""

    lines: float
    sectors: float
    bytes: int
    """The bytes that it moves, each counted once."""


def _touched(
    linear: LinearLayout,
    along: int,
    taken: int,
    bytes: int,
    runs: Sequence[int],
    constancy: Sequence[int],
    divisibility: int,
    machine: Machine,
) -> _Touched:
    """What the lanes of a warp touch, of which each takes so many bytes; rows lie apart, and so do runs."""
    sector_bytes = machine.sector_bytes
    run = max(runs[along], constancy[along])
    places = [(0,) * len(runs)]
    for basis in linear.bases["lane"]:
        if any(basis):
            places += [tuple([x ^ y for x, y in zip(place, basis, strict=True)]) for place in places]
    begun: set[tuple[int, ...]] = set()
    sectors: set[tuple[int, ...]] = set()
    for place in places:
        row = [x // c for x, c in zip(place, constancy, strict=True)]
        row[along] = place[along] // run
        begun.add(tuple(row))
        first = place[along] % run // constancy[along] * bytes
        sectors.update((*row, x) for x in range(first // sector_bytes, (first + taken - 1) // sector_bytes + 1))
    lines = {(*sector[:-1], sector[-1] * sector_bytes // machine.line_bytes) for sector in sectors}
    cut = _cut(divisibility, sector_bytes) * len(begun) if runs[along] > 1 else 0.0
    return _Touched(len(lines) + cut * sector_bytes / machine.line_bytes, len(sectors) + cut, len(places) * taken)
