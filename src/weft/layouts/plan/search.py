"""The search for a trip through shared memory: what is consecutive there, and with which instructions both sides work.

Each candidate for the lowest bits of the offset has a least price, found by looking at vectors only. Candidates are
built, cheapest first, until none that is left can be cheaper than one that was built; and where a trip has to be
cheaper than something else, none is built whose least price is not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import NamedTuple

from weft.machines import Machine

from .. import f2
from ..linear import LinearLayout
from .access import Offsets, best_access, rearranged
from .swizzle import memory_basis
from .trip import Trip

CROWDED = 1e9
"""Cycles added to what must have bank conflicts, so that it comes last."""


FAR = 8
"""Bits between offsets in one block's memory and the number of the block: more than those of any vector."""


class _Candidate(NamedTuple):
    """The elements of the lowest offset bits, and for each side the elements that its phases of lanes make."""

    low: tuple[int, ...]
    a_phase: tuple[int, ...]
    b_phase: tuple[int, ...]


class _Side(NamedTuple):
    """One side, in coordinates of what a block holds; `free` registers may be part of a vector."""

    registers: tuple[int, ...]
    free: tuple[int, ...]
    lanes: tuple[int, ...]
    others: tuple[int, ...]
    matrix: bool
    """Whether there is ldmatrix or stmatrix, and it can move these elements."""
    away: tuple[int, ...] = ()
    """By how many blocks each register's element is away, if any is."""


class Planner:
    """Finds the trip of a conversion; `src` is where elements are, `conversion` says where each is wanted from.

    Elements are vectors in coordinates of what a block holds: `a` are those of the writer's registers, lanes and warps,
    `b` of the reader's.
    """

    def __init__(self, src: LinearLayout, conversion: LinearLayout, bits: int, machine: Machine) -> None:
        self.machine, self.bits = machine, bits
        self.banks_log, self.bank_log = machine.banks.bit_length() - 1, machine.bank_bytes.bit_length() - 1
        self.bytes_log = max(0, bits.bit_length() - 4)
        self.word = max(0, 2 - self.bytes_log)
        self.most = max(0, machine.vector_bytes.bit_length() - 1 - self.bytes_log)
        bases = src.columns[: len(src.columns) - src.in_log("block")]
        inside, self.size = _inside(bases)
        self.a: dict[str, Sequence[int]] = {}
        at = 0
        for dim in ("register", "lane", "warp"):
            log = src.in_log(dim)
            self.a[dim] = inside[at : at + log]
            at += log
        self.b: dict[str, Sequence[int]] = {}
        self.b_block: dict[str, Sequence[int]] = {}
        low = (1 << at) - 1
        for dim in conversion.in_dims:
            columns = conversion.in_columns(dim)
            if self.size == at:  # the coordinates are those of the writer's bits
                self.b[dim] = [c & low for c in columns]
            else:
                self.b[dim] = [f2.multiply(inside, c & low) for c in columns]
            self.b_block[dim] = [c >> at for c in columns]
        self._bytes = max(8, bits) // 8 << self.size
        self.units = f2.are_units([c for side in (self.a, self.b) for columns in side.values() for c in columns])
        self.masks = _masks(self.a)
        self.scope = self._scope(conversion, at - src.in_log("warp"))
        self.writer, self.reader = self._writer(), self._reader()
        self._compare()

    def _writer(self) -> _Side:
        return self._side(self.a, {}, bool(self.machine.matrix_stores), self.masks["register"])

    def _reader(self) -> _Side:
        registers = zip(self.b["register"], self.b_block["register"], strict=True)
        copies = f2.dependent([x | y << self.size for x, y in registers])
        matrix = bool(self.machine.matrix_loads) and self.scope != "cluster"
        return self._side(self.b, self.b_block, matrix, sum([1 << i for i in copies]))

    def _side(
        self, parts: Mapping[str, Sequence[int]], block: Mapping[str, Sequence[int]], matrix: bool, copies: int
    ) -> _Side:
        registers = free = tuple(parts["register"])
        away: tuple[int, ...] = ()
        if copies:
            registers = free = tuple([x for i, x in enumerate(registers) if not copies >> i & 1])
        if block and any(block["register"]):
            away = tuple([x for i, x in enumerate(block["register"]) if not copies >> i & 1])
            free = tuple([x for x, there in zip(registers, away, strict=True) if not there])
        lanes = tuple(parts["lane"])
        matrix = matrix and len(lanes) == 5 and self.bytes_log <= 2
        return _Side(registers, free, lanes, (*parts["warp"], *parts.get("block", ())), matrix, away)

    def _compare(self) -> None:
        """What both sides together tell."""
        writer, reader = self.writer, self.reader
        # The elements of what moves on either side: no vector may cut into them.
        self.apart = [c for c in (*writer.lanes, *writer.others, *reader.lanes, *reader.others) if c]
        self.common = self._common(writer.free, reader.free)

    def _scope(self, conversion: LinearLayout, inside: int) -> str:
        """Who has to wait; `inside` is how many bits number the places within a warp of the source."""
        blocks = self.b_block
        crossing = any(any(blocks[d]) for d in ("register", "lane", "warp"))
        if crossing or any(c != 1 << i for i, c in enumerate(blocks["block"])):
            return "cluster"
        if self.masks["warp"]:  # of warps that hold copies one stores: the others read what it wrote
            return "block"
        warps = (1 << conversion.out_log("warp")) - 1
        for dim in ("register", "lane", "warp", "block"):
            for i, column in enumerate(conversion.in_columns(dim)):
                if column >> inside & warps != (1 << i if dim == "warp" else 0):
                    return "block"
        return "warp"

    def best(self, below: float = math.inf) -> Trip | None:
        """The cheapest trip, or None if it cannot be cheaper than `below` cycles.

        Candidates for what is consecutive in memory are tried in the order of what they cost at least; one that
        needs more memory than there is, or has bank conflicts, is taken only if all do.
        """
        if below < math.inf and self.units and self.least(len(self.common)) >= below:
            return None
        best: Trip | None = None
        for bound, candidate in self.candidates():
            if bound >= below or (best is not None and not any(best.faults) and bound >= best.cycles):
                break
            trip = self.trip(candidate)
            if best is None or (*trip.faults, trip.cycles) < (*best.faults, best.cycles):
                best = trip
        return best

    def exchanged(self, side: str, bits: Sequence[tuple[int, int]]) -> Planner:
        """The planner of what is left when pairs of register and lane bits were exchanged "before" or are "after"."""
        planner = copy(self)
        parts = {d: list(columns) for d, columns in (self.a if side == "before" else self.b).items()}
        for register, lane in bits:
            parts["register"][register], parts["lane"][lane] = parts["lane"][lane], parts["register"][register]
        if side == "before":
            planner.a, planner.masks = {**parts}, _masks(parts) if any(self.masks.values()) else self.masks
            planner.writer = planner._writer()
        else:
            planner.b = {**parts}
            planner.reader = planner._reader()
        planner._compare()
        return planner

    def least(self, common: int) -> float:
        """What a trip costs at least where both sides have that many register bits in common.

        One side may be as wide as there is; the other is as wide as what is common, or, where the first has a matrix
        instruction, as far as registers of the other go on in its rows. The same holds when one register bit and one
        lane bit of a side have changed places, where what is common is counted afterwards: an exchange never brings a
        lane of one side among the registers of the other.
        """
        least = math.inf
        for mine, other in ((self.writer, self.reader), (self.reader, self.writer)):
            width = common
            if mine.matrix and width < self.most:
                rows = _leading(mine.lanes[:2], other.free)
                width = max(width, self.word + rows if common >= self.word else common)
                if self.bytes_log == 1:
                    width = max(width, _leading(mine.lanes[2:], other.free))
                if other.matrix and any(
                    x == y for rows in (mine.lanes[:2], mine.lanes[3:]) for x, y in zip(rows, other.lanes)
                ):
                    width = self.most
            least = min(least, self._moved(mine, self.most) + self._moved(other, min(self.most, width)))
        return least + self.machine.waiting(self.scope)

    # -- candidates: which elements are the lowest bits of the offset -----------------------------------------------

    def candidates(self) -> list[tuple[float, _Candidate]]:
        """Candidates with the least that they can cost, cheapest first."""
        bounds: dict[_Candidate, float] = {}
        for low in dict.fromkeys([tuple(low) for low in self._lows()]):
            (cost, a_phase), (other, b_phase) = self._plain(self.writer, low), self._plain(self.reader, low)
            bounds[_Candidate(low, a_phase, b_phase)] = cost + other
        for mine, other_side in ((self.writer, self.reader), (self.reader, self.writer)):
            if not mine.matrix:
                continue
            for low, rows in self._matrix_rows(mine, other_side):
                if self._is_matrix(other_side, low):
                    bound, phase = self._matrix_cost(other_side), other_side.lanes[2:]
                    bound += self._rearranging(other_side, low[: self.word])
                else:
                    bound, phase = self._plain(other_side, low)
                word = rows[:1] if low == mine.lanes[2:] else low[: self.word]
                bound += self._matrix_cost(mine) + self._rearranging(mine, word)
                candidate = _Candidate(low, rows, phase) if mine is self.writer else _Candidate(low, phase, rows)
                bounds[candidate] = min(bound, bounds.get(candidate, bound))
        fixed = self.machine.waiting(self.scope)
        priced = [(bound + fixed + CROWDED * self._is_crowded(c), c) for c, bound in bounds.items()]
        return sorted(priced, key=lambda pair: pair[0])

    def _lows(self) -> list[list[int]]:
        """What may be the lowest bits of the offset for instructions that take any vectors."""
        most, word, common = self.most, self.word, self.common[: self.most]
        if len(common) == most and most >= word and self._bytes <= self.machine.shared_bytes:
            return [common]
        # Of other registers those first that the other side's lanes tell apart: words that its lanes share.
        writer, reader = self.writer, self.reader
        a = sorted(writer.free, key=lambda c: c not in reader.lanes)
        b = sorted(reader.free, key=lambda c: c not in writer.lanes)
        lows = [self._extended(common, a, word), self._extended(common, b, word)]
        if len(lows[0]) < word or len(lows[1]) < word:  # then lanes share words
            shared = [c for c in writer.lanes if c in reader.lanes]
            by = [*shared, *writer.lanes, *reader.lanes, *f2.identity(self.size)]
            lows = [self._extended(low, by, word) for low in lows]
        if len(common) < most:
            lows += [self._extended(common, a, most), self._extended(common, b, most)]
        if self._bytes > self.machine.shared_bytes:  # what is in a vector cannot be moved one after the other
            lows += [self._extended(common[:n], a, min(word, most)) for n in range(len(common))]
        return lows

    def _is_crowded(self, candidate: _Candidate) -> bool:
        """Whether the lowest bits and a phase of lanes make more than the banks can tell apart: conflicts for sure."""
        low, a_phase, b_phase = candidate
        room = max(len(low), self.banks_log + self.bank_log - self.bytes_log)
        if self.size <= room or len(low) + max(len(a_phase), len(b_phase)) <= room:
            return False
        return len({*low, *a_phase}) > room or len({*low, *b_phase}) > room

    def _plain(self, side: _Side, low: Sequence[int]) -> tuple[float, tuple[int, ...]]:
        """What ld.shared or st.shared costs without conflicts, and the elements of the lanes of a phase."""
        width = 0
        rows: f2.Echelon | None = None
        for v in low:
            if v not in side.free:
                if self.units:
                    break
                rows = rows or f2.Echelon(side.free)
                if v not in rows:
                    break
            width += 1
        words = width + self.bytes_log - self.bank_log
        lanes = side.lanes
        if self.machine.load_phase and side is self.reader and width + self.bytes_log == 4:
            lanes = tuple(self.machine.served(lanes))
        lanes = lanes[: max(0, self.banks_log - words) if words > 0 else self.banks_log]
        price = self._moved(side, width) + self._rearranging(side, low[:width])
        return price, lanes if all(lanes) else tuple([x for x in lanes if x])

    def _rearranging(self, side: _Side, vector: Sequence[int]) -> float:
        """What it costs that instructions move vectors that are not of a side's lowest registers."""
        registers = side.registers
        if vector == registers[: len(vector)]:
            return 0.0
        permutes, waiting = rearranged(vector, registers, len(registers), self.bytes_log, side is self.writer)
        return self.machine.permute * permutes + self.machine.wait * waiting

    def _moved(self, side: _Side, width: int) -> float:
        """What ld.shared or st.shared of at most 2 ** width elements costs without conflicts."""
        rest = len(side.registers) - width  # no calls of max: this is called often
        if rest < 0:
            width, rest = width + rest, 0
        words = width + self.bytes_log - self.bank_log
        phase = self.banks_log - words if words > 0 else self.banks_log
        phases = len(side.lanes) - phase if phase > 0 else len(side.lanes)
        passes = 1 << phases if phases > 0 else 1
        narrow = self.machine.narrow(1 << width + self.bytes_log)
        return float(1 << rest) * (self.machine.access + self.machine.wavefront * passes + narrow)

    def _matrix_cost(self, side: _Side) -> float:
        """What ldmatrix or stmatrix costs without conflicts."""
        rest = max(0, len(side.registers) - self.word)
        matrices = min(2, rest)
        return float(1 << rest - matrices) * (self.machine.access + self.machine.wavefront * (1 << matrices))

    def _is_matrix(self, side: _Side, low: Sequence[int]) -> bool:
        """Whether rows made of these elements are rows of the other side's matrix instruction too."""
        word = self.word
        return side.matrix and low[word:] == side.lanes[:2] and all(x in side.free for x in low[:word])

    def _matrix_rows(self, side: _Side, other: _Side) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Rows of 16 bytes as the side's matrix instruction sees them, plain and transposed; and what chooses a row."""
        ordered = [c for c in side.free if c in other.free] + [c for c in side.free if c not in other.free]
        rows = []
        plain = (*self._extended([], ordered, self.word), *side.lanes[:2])
        if len(plain) == self.word + 2 and self._independent(plain):
            rows.append((plain, side.lanes[2:]))
        if self.bytes_log == 1:
            trans = side.lanes[2:]
            first = next((c for c in ordered if c not in trans), None)
            if first is not None and self._independent(trans):
                rows.append((trans, (first, *side.lanes[:2])))
        return rows

    def _independent(self, vectors: Sequence[int]) -> bool:
        if self.units:
            return all(vectors) and len(set(vectors)) == len(vectors)
        return f2.rank(vectors) == len(vectors)

    def _common(self, a: Sequence[int], b: Sequence[int]) -> list[int]:
        """A basis of what both spans have in common, without what lanes or warps have a part in."""
        if self.units:
            return [c for c in a if c in b]
        rows = f2.Echelon()
        shared = [c for c in a if c in b and rows.add(c)]
        mixed = not f2.are_units((*a, *b))
        if mixed:
            shared += [c for c in f2.intersection(a, b) if rows.add(c)]
        if mixed or not f2.are_units(self.apart):
            rows = f2.Echelon(self.apart)
            shared = [c for c in shared if rows.add(c)]
        return shared

    def _extended(self, low: Sequence[int], by: Sequence[int], size: int) -> list[int]:
        extended = list(low)
        if self.units:
            for c in by:
                if len(extended) < size and c and c not in extended:
                    extended.append(c)
            return extended
        if len(low) >= size:
            return extended
        rows = f2.Echelon(low)
        for c in by:
            if len(extended) < size and rows.add(c):
                extended.append(c)
        return extended

    # -- one candidate ----------------------------------------------------------------------------------------------

    def _round_bits(self, low: Sequence[int]) -> list[int]:
        """Elements to be moved one after the other if memory is short, in rounds.

        Those first that registers of both sides tell apart: each register is then of one round. Of others there are
        lanes or warps that have none of a round's elements: best whole warps, and on one side only.
        """
        bits: list[int] = []
        if self._bytes <= self.machine.shared_bytes:
            return bits
        rows = f2.Echelon([*self.apart, *low])
        for c in self.common:
            if self._bytes >> len(bits) <= self.machine.shared_bytes:
                break
            others = [x for s in (self.writer, self.reader) for x in s.registers if x != c]
            if c not in f2.Echelon([*self.apart, *low, *others]) and rows.add(c):
                bits.append(c)
        rows = f2.Echelon([*low, *bits])
        for c in self._partial():
            if self._bytes >> len(bits) <= self.machine.shared_bytes:
                break
            if rows.add(c):
                bits.append(c)
        return bits

    def _partial(self) -> list[int]:
        """Elements that may be moved one after the other, the best first."""
        sides = ((self.writer, self.reader), (self.reader, self.writer))
        by_warps = [c for mine, other in sides for c in mine.free if c in other.others]
        registers = [c for mine, _ in sides for c in mine.free]
        return [c for c in (*by_warps, *registers, *f2.identity(self.size)) if c]

    def trip(self, candidate: _Candidate) -> Trip:
        """The whole trip with these lowest bits."""
        rounds = self._round_bits(candidate.low)
        memory = memory_basis(
            candidate.low,
            candidate.a_phase,
            candidate.b_phase,
            self.apart,
            rounds,
            self.size,
            self.bytes_log,
            self.machine,
        )
        rows = f2.Echelon(memory)
        place = [rows.coefficients(unit) or 0 for unit in f2.identity(self.size)]  # the offset of each element
        sides, scope = [], self.scope
        for side, store in ((self.writer, True), (self.reader, False)):
            registers, lanes, others = (
                tuple([place[v.bit_length() - 1] if v and not v & v - 1 else f2.multiply(place, v) for v in vectors])
                for vectors in (side.registers, side.lanes, side.others)
            )
            if not store and side.away:  # what is in another block is far away: in no vector with what is here
                far = self.size + FAR
                registers = tuple([x | y << far for x, y in zip(registers, side.away, strict=True)])
            whole, log = True, self.size - len(rounds)
            if rounds:
                if scope == "warp" and any(x >> log for x in others):
                    scope = "block"  # other warps use the same memory in other rounds
                lanes, others, whole = _in_one_round(lanes, others, log)
            offsets = Offsets(registers, lanes, others)
            log = log if rounds else 0
            # ldmatrix reads its own block's memory only, and every lane its part of what one of them names
            whole = whole and (store or self.scope != "cluster")
            sides.append(best_access(offsets, self.bytes_log, self.machine, store=store, whole=whole, round_log=log))
        return Trip(
            scope,
            self.a,
            self.b,
            self.b_block,
            self.masks,
            sides[0],
            sides[1],
            tuple(memory),
            self.bits,
            1 << len(rounds),
            self.machine,
        )


def _in_one_round(
    lanes: Sequence[int], others: Sequence[int], log: int
) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """What lanes and others add to the offsets of those that take part in one round; whether all of a warp do.

    Offsets from 2 ** log on are the round. A bit that changes it does so together with earlier ones, or stays as it is.
    """
    pivots = f2.Echelon()
    used: list[int] = []
    within = []
    for x in (*lanes, *others):
        number = x >> log
        if number not in pivots:
            pivots.add(number)
            used.append(x)
            within.append(0)
            continue
        combination = pivots.coefficients(number) or 0
        within.append(x ^ f2.multiply(used, combination))
    return tuple(within[: len(lanes)]), tuple(within[len(lanes) :]), not used


def _leading(vectors: Sequence[int], among: Sequence[int]) -> int:
    """How many of the first vectors are among others."""
    count = 0
    while count < len(vectors) and vectors[count] in among:
        count += 1
    return count


def _masks(parts: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """For each dimension the bits that hold copies."""
    free = set(f2.dependent([c for columns in parts.values() for c in columns]))
    if not free:
        return dict.fromkeys(parts, 0)
    masks, at = {}, 0
    for dim, columns in parts.items():
        masks[dim] = sum([1 << i for i in range(len(columns)) if at + i in free])
        at += len(columns)
    return masks


def _inside(columns: Sequence[int]) -> tuple[list[int], int]:
    """The bits of a block's places as elements, in coordinates of those that hold no copies; how many these are."""
    free = set(f2.dependent(columns))
    size = len(columns) - len(free)
    if not free:
        return f2.identity(size), size
    rows = f2.Echelon([c for i, c in enumerate(columns) if i not in free])
    inside, at = [], 0
    for i, column in enumerate(columns):
        if i in free:
            inside.append(rows.coefficients(column) or 0)
        else:
            inside.append(1 << at)
            at += 1
    return inside, size
