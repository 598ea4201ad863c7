"""A trip through shared memory: where elements lie, the instructions on both sides, and what they cost.

Only one of several copies is stored; every copy is loaded. `store_map` gives for (register, lane, warp) the offset in
the memory of the writer's block, `load_map` for (register, lane, warp, block) the offset and the block that is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError

from .. import f2
from ..linear import LinearLayout
from .access import Access, Offsets, best_access
from .machine import Machine
from .swizzle import memory_basis

__all__ = ["Planner", "Trip"]


@dataclass(frozen=True)
class Trip:
    """One conversion through shared memory."""

    scope: str
    """Who has to wait: "warp", "block" or "cluster"."""
    stored: Mapping[str, Sequence[int]]
    """The element of each bit of register, lane and warp, in coordinates of what one block holds."""
    wanted: Mapping[str, Sequence[int]]
    """The same of those who load; and of each bit of block."""
    home: Mapping[str, Sequence[int]]
    """What each of those adds to the block that is read."""
    store_masks: Mapping[str, int]
    """Bits of registers, lanes and warps that hold copies: who has one of them set stores nothing."""
    store: Access
    load: Access
    memory: tuple[int, ...]
    """The element at each power of two of the offset, in coordinates of what one block holds."""
    element_bits: int
    repetitions: int
    machine: Machine

    @cached_property
    def store_map(self) -> LinearLayout:
        """(register, lane, warp) -> offset, in elements."""
        columns = [x for vectors in self.stored.values() for x in self._offsets(vectors)]
        return LinearLayout._make(((d, len(v)) for d, v in self.stored.items()), [self._memory], columns)

    @cached_property
    def load_map(self) -> LinearLayout:
        """(register, lane, warp, block) -> offset, block."""
        size, columns = len(self.memory), []
        for dim, vectors in self.wanted.items():
            columns += [x | y << size for x, y in zip(self._offsets(vectors), self.home[dim], strict=True)]
        outs = [self._memory, ("block", len(self.wanted["block"]))]
        return LinearLayout._make(((d, len(v)) for d, v in self.wanted.items()), outs, columns)

    @property
    def _memory(self) -> tuple[str, int]:
        return "offset", len(self.memory)

    def _offsets(self, vectors: Sequence[int]) -> list[int]:
        place = f2.Echelon(self.memory)
        return [place.coefficients(v) or 0 for v in vectors]

    @property
    def scratch_bytes(self) -> int:
        """Bytes of shared memory in each block."""
        return (1 << len(self.memory)) // self.repetitions * max(8, self.element_bits) // 8

    @property
    def rounds(self) -> tuple[int, int]:
        """How often each store, and each load, is done: more than once where lanes or warps take part in turns."""
        if self.repetitions == 1:
            return 1, 1
        size = len(self.memory) - (self.repetitions.bit_length() - 1)
        low = (1 << len(self.memory)) - 1
        found = []
        for side in (self.store_map, self.load_map):
            moving = [c for d in side.in_dims if d != "register" for c in side.in_columns(d)]
            found.append(1 << f2.rank([(c & low) >> size for c in moving]))
        return found[0], found[1]

    @property
    def wavefronts(self) -> int:
        """Passes over the banks of each warp, both ways."""
        store, load = self.rounds
        return store * self.store.count * self.store.wavefronts + load * self.load.count * self.load.wavefronts

    @property
    def excess(self) -> int:
        """Wavefronts of each warp that are lost to bank conflicts."""
        return self.store.count * self.store.excess + self.load.count * self.load.excess

    @property
    def faults(self) -> tuple[bool, bool]:
        """Whether it needs more memory than there is, and whether it has bank conflicts."""
        return self.scratch_bytes > self.machine.shared_bytes, self.excess > 0

    @property
    def instructions(self) -> dict[str, int]:
        """Instructions of each warp, by kind."""
        width = max(8, self.element_bits)
        found: dict[str, int] = {}
        for access, word, rounds in zip((self.store, self.load), ("st", "ld"), self.rounds, strict=True):
            name = access.instruction
            if name == "shared":
                name = f"{word}.shared.b{width << access.vector}"
            found[name] = found.get(name, 0) + access.count * rounds
        return found

    @property
    def barriers(self) -> dict[str, int]:
        """Barriers by scope: one between storing and loading, one more between repetitions."""
        return {self.scope: 2 * self.repetitions - 1}

    @property
    def fixed(self) -> float:
        """What barriers and latency cost, whatever is moved."""
        return self.machine.waiting(self.scope, self.repetitions)

    @property
    def cycles(self) -> float:
        """What it costs each warp."""
        store, load = self.rounds
        return store * self.store.cost(self.machine) + load * self.load.cost(self.machine) + self.fixed

    def run(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Execute on values indexed [block, warp, lane, register]."""
        blocks, warps, lanes, registers = values.shape
        shape = (warps, lanes, registers)
        offsets = self.store_map.table().reshape(shape)
        w, x, r = np.indices(shape)
        masks = self.store_masks
        writes = ((w & masks["warp"]) | (x & masks["lane"]) | (r & masks["register"])) == 0
        where = self.load_map.table()
        log = self.load_map.out_log("offset")
        home, wanted = where >> log, where & (1 << log) - 1
        size = (1 << len(self.memory)) // self.repetitions
        found = np.zeros(where.shape, values.dtype)
        for turn in range(self.repetitions):  # the same memory again, after a barrier
            memory = np.zeros((blocks, size), values.dtype)
            stored, loaded = writes & (offsets // size == turn), wanted // size == turn
            memory[:, offsets[stored] % size] = values[:, stored]
            found[loaded] = memory[home[loaded], wanted[loaded] % size]
        return found.reshape(tuple(1 << self.load_map.in_log(d) for d in ("block", "warp", "lane", "register")))

    def check(self) -> None:
        """Prove that no two elements share a place: bits that are not copies go to independent offsets.

        LayoutError where they do, or where an instruction would take part in several rounds at once.
        """
        used = [
            column
            for dim in ("register", "lane", "warp")
            for i, column in enumerate(self.store_map.in_columns(dim))
            if not self.store_masks[dim] >> i & 1
        ]
        if f2.rank(used) != len(used):
            raise LayoutError("two elements would be stored at the same offset")
        turn = (1 << len(self.memory)) // self.repetitions
        for access, rounds in zip((self.store, self.load), self.rounds, strict=True):
            if rounds > 1 and access.instruction != "shared":
                raise LayoutError(f"some lanes alone would take part in a round of {access.instruction}")
            kept = self._kept(access)
            if any(f2.multiply(kept, r) >= turn for r in access.registers[: access.vector]):
                raise LayoutError(f"{1 << access.vector} elements at once would be of several rounds")

    def _kept(self, access: Access) -> list[int]:
        """The offsets of the registers of one side that hold no copies."""
        columns = (self.store_map if access is self.store else self.load_map).in_columns("register")
        copies = set(f2.bits(self.store_masks["register"]) if access is self.store else f2.dependent(columns))
        return [c & (1 << len(self.memory)) - 1 for i, c in enumerate(columns) if i not in copies]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""

        def side(access: Access) -> dict[str, Any]:
            return {
                "instruction": access.instruction,
                "vector": 1 << access.vector,
                "count": access.count,
                "wavefronts": access.wavefronts,
                "ideal_wavefronts": access.ideal,
                "registers": list(access.registers),
            }

        return {
            "scope": self.scope,
            "store": side(self.store),
            "load": side(self.load),
            "store_offsets": {d: [list(b) for b in bs] for d, bs in self.store_map.bases.items()},
            "load_offsets": {d: [list(b) for b in bs] for d, bs in self.load_map.bases.items()},
            "copies": dict(self.store_masks),
            "scratch_bytes": self.scratch_bytes,
            "repetitions": self.repetitions,
        }


CROWDED = 1e9
"""Cycles added to what must have bank conflicts, so that it comes last."""


class _Candidate(NamedTuple):
    """The elements of the lowest offset bits, and for each side the elements that its phases of lanes make."""

    low: tuple[int, ...]
    a_phase: tuple[int, ...]
    b_phase: tuple[int, ...]


@dataclass(frozen=True)
class _Side:
    """One side, in coordinates of what a block holds; `free` registers may be part of a vector."""

    registers: tuple[int, ...]
    free: tuple[int, ...]
    lanes: tuple[int, ...]
    others: tuple[int, ...]
    matrix: bool
    """Whether there is ldmatrix or stmatrix."""
    units: bool
    """Whether all of `free` are unit vectors: then nothing else of that kind is in their span."""


class Planner:
    """Finds the trip of a conversion; `src` is where elements are, `conversion` says where each is wanted from.

    Elements are vectors in coordinates of what a block holds: `a` are those of the writer's registers, lanes and warps,
    `b` of the reader's.
    """

    def __init__(self, src: LinearLayout, conversion: LinearLayout, bits: int, machine: Machine) -> None:
        self.machine, self.bits = machine, bits
        self.banks_log = machine.banks.bit_length() - 1
        self.bytes_log = max(0, bits.bit_length() - 4)
        self.blocks = src.in_dims["block"]
        parts = {d: src.in_columns(d) for d in ("register", "lane", "warp")}
        own = [c for columns in parts.values() for c in columns]
        free = set(f2.dependent(own))
        basis = [c for i, c in enumerate(own) if i not in free]
        self.size = len(basis)
        inside = [0] * len(own)  # elements in coordinates of what a block holds
        rows = f2.Echelon(basis) if any(own[i] for i in free) else None
        at = 0
        for i, column in enumerate(own):
            if i not in free:
                inside[i] = 1 << at
                at += 1
            elif rows is not None:
                inside[i] = rows.coefficients(column) or 0
        self.a: dict[str, list[int]] = {}
        at = 0
        for dim, columns in parts.items():
            self.a[dim] = inside[at : at + len(columns)]
            at += len(columns)
        self.masks = _masks(self.a)
        low = (1 << len(own)) - 1
        self.b = {d: [f2.multiply(inside, c & low) for c in conversion.in_columns(d)] for d in conversion.in_dims}
        self.b_block = {d: [c >> len(own) for c in conversion.in_columns(d)] for d in conversion.in_dims}
        self.scope = self._scope(conversion)
        self.writer, self.reader = self._writer(), self._reader()
        self.apart = self._apart()
        self._bytes = max(8, bits) // 8 << self.size
        self.word = max(0, 2 - self.bytes_log)
        self.most = max(0, machine.vector_bytes.bit_length() - 1 - self.bytes_log)

    def _writer(self) -> _Side:
        return self._side(self.a, {}, self.machine.stmatrix, self.masks["register"])

    def _reader(self) -> _Side:
        registers = zip(self.b["register"], self.b_block["register"], strict=True)
        copies = f2.dependent([x | y << self.size for x, y in registers])
        return self._side(self.b, self.b_block, self.machine.ldmatrix, sum(1 << i for i in copies))

    def _apart(self) -> list[int]:
        """The elements of what moves on either side: no vector may cut into them."""
        return [c for s in (self.writer, self.reader) for c in (*s.lanes, *s.others) if c]

    def best(self, below: float = math.inf) -> Trip | None:
        """The cheapest trip, or None if it cannot be cheaper than `below` cycles.

        Candidates for what is consecutive in memory are tried in the order of what they cost at least; one that
        needs more memory than there is, or has bank conflicts, is taken only if all do.
        """
        best: Trip | None = None
        for bound, candidate in self.candidates():
            if bound >= below or (best is not None and not any(best.faults) and bound >= best.cycles):
                break
            trip = self.trip(candidate)
            if best is None or (*trip.faults, trip.cycles) < (*best.faults, best.cycles):
                best = trip
        return best

    def exchanged(self, side: str, register: int, lane: int) -> Planner:
        """The planner of what is left when a register bit and a lane bit were exchanged "before" or are "after"."""
        found = copy(self)
        parts = {d: list(columns) for d, columns in (self.a if side == "before" else self.b).items()}
        parts["register"][register], parts["lane"][lane] = parts["lane"][lane], parts["register"][register]
        if side == "before":
            found.a, found.masks = parts, _masks(parts)
            found.writer = found._writer()
        else:
            found.b = parts
            found.reader = found._reader()
        found.apart = found._apart()
        return found

    @property
    def least(self) -> float:
        """What a trip costs at least, whatever changes places before or after it."""
        moved = self._moved(self.writer, self.most) + self._moved(self.reader, self.most)
        return moved + self.machine.waiting(self.scope)

    @property
    def least_with_exchange(self) -> float:
        """What a trip costs at least once a register that only one side has changed places with a lane that it shares.

        Then one more register is common. One side may be as wide as there is; the other is as wide as what is common,
        or, where the first has a matrix instruction, as far as registers of the other go on in its rows: an exchange
        never brings a lane of one side among the registers of the other.
        """
        common = len(self._common(self.writer.free, self.reader.free)) + 1
        least = math.inf
        for mine, other in ((self.writer, self.reader), (self.reader, self.writer)):
            widths = [common]
            if mine.matrix and len(mine.lanes) == 5 and self.bytes_log <= 2:
                rows = _leading(mine.lanes[:2], other.free)
                widths.append(min(self.word, common) + (rows if common >= self.word else 0))
                if self.bytes_log == 1:
                    widths.append(_leading(mine.lanes[2:], other.free))
                if other.matrix and any(x == y for x, y in zip(mine.lanes[:2], other.lanes[:2], strict=False)):
                    widths.append(self.most)
            least = min(least, self._moved(mine, self.most) + self._moved(other, min(self.most, max(widths))))
        return least + self.machine.waiting(self.scope)

    @staticmethod
    def _side(
        parts: Mapping[str, Sequence[int]], block: Mapping[str, Sequence[int]], matrix: bool, copies: int
    ) -> _Side:
        keep = [i for i in range(len(parts["register"])) if not copies >> i & 1]
        away = block.get("register", [0] * len(parts["register"]))
        others = (*parts["warp"], *parts.get("block", ()))
        free = tuple(parts["register"][i] for i in keep if not away[i])
        units = not any(c & c - 1 for c in free)
        return _Side(tuple(parts["register"][i] for i in keep), free, tuple(parts["lane"]), others, matrix, units)

    def _scope(self, conversion: LinearLayout) -> str:
        blocks = self.b_block
        crossing = any(c for d in ("register", "lane", "warp") for c in blocks[d])
        if crossing or any(c != 1 << i for i, c in enumerate(blocks["block"])):
            return "cluster"
        within = conversion.sublayout(["register", "lane", "warp"], ["warp"])
        identity = [0] * (conversion.in_log("register") + conversion.in_log("lane"))
        identity += f2.identity(conversion.in_log("warp"))
        # Of warps that hold copies one stores: the others read what it wrote.
        alone = list(within.columns) == identity and not self.masks["warp"]
        return "warp" if alone else "block"

    # -- candidates: which elements are the lowest bits of the offset -----------------------------------------------

    def candidates(self) -> list[tuple[float, _Candidate]]:
        """Candidates with the least that they can cost, cheapest first."""
        most, word = self.most, self.word
        common = self._common(self.writer.free, self.reader.free)[:most]
        # Of other registers those first that the other side's lanes tell apart: words that its lanes share.
        a = sorted(self.writer.free, key=lambda c: c not in self.reader.lanes)
        b = sorted(self.reader.free, key=lambda c: c not in self.writer.lanes)
        lows = [self._extended(common, a, word), self._extended(common, b, word)]
        if any(len(low) < word for low in lows):  # then lanes share words
            shared = [c for c in self.writer.lanes if c in self.reader.lanes]
            by = [*shared, *self.writer.lanes, *self.reader.lanes, *f2.identity(self.size)]
            lows = [self._extended(low, by, word) for low in lows]
        if len(common) < most:
            lows += [self._extended(common, a, most), self._extended(common, b, most)]
        if self._bytes > self.machine.shared_bytes:  # what is in a vector cannot be moved one after the other
            lows += [self._extended(common[:n], a, min(word, most)) for n in range(len(common))]
        found = {}
        for low in dict.fromkeys(tuple(x) for x in lows):
            bound, phases = 0.0, []
            for side in (self.writer, self.reader):
                cost, phase = self._plain(side, low)
                bound += cost
                phases.append(phase)
            found[_Candidate(low, phases[0], phases[1])] = bound
        if self.bytes_log <= 2:
            for mine, other in ((self.writer, self.reader), (self.reader, self.writer)):
                if not mine.matrix or len(mine.lanes) != 5:
                    continue
                for row, rows in self._matrix_rows(mine, other):
                    low = tuple(row)
                    bound, phase = self._plain(other, low)
                    if self._is_matrix(other, low):
                        bound, phase = self._matrix_cost(other), tuple(other.lanes[2:])
                    bound += self._matrix_cost(mine)
                    candidate = _Candidate(low, rows, phase) if mine is self.writer else _Candidate(low, phase, rows)
                    found[candidate] = min(bound, found.get(candidate, bound))
        fixed = self.machine.waiting(self.scope)
        priced = ((bound + fixed + CROWDED * self._is_crowded(c), c) for c, bound in found.items())
        return sorted(priced, key=lambda pair: pair[0])

    def _is_crowded(self, candidate: _Candidate) -> bool:
        """Whether the lowest bits and a phase of lanes make more than the banks can tell apart: conflicts for sure."""
        room = max(len(candidate.low), self.banks_log + 2 - self.bytes_log)
        phases = (candidate.a_phase, candidate.b_phase)
        return self.size > room and any(len({*candidate.low, *phase}) > room for phase in phases)

    def _plain(self, side: _Side, low: Sequence[int]) -> tuple[float, tuple[int, ...]]:
        """What ld.shared or st.shared costs without conflicts, and the elements of the lanes of a phase."""
        width = 0
        rows: f2.Echelon | None = None
        while width < len(low):
            if low[width] not in side.free:
                if side.units and not low[width] & low[width] - 1:
                    break
                rows = rows or f2.Echelon(side.free)
                if low[width] not in rows:
                    break
            width += 1
        words = width + self.bytes_log - 2
        lanes = side.lanes[: max(0, self.banks_log - words) if words > 0 else self.banks_log]
        return self._moved(side, width), tuple(x for x in lanes if x)

    def _moved(self, side: _Side, width: int) -> float:
        """What ld.shared or st.shared of 2 ** width elements costs without conflicts."""
        words, rest = width + self.bytes_log - 2, len(side.registers) - width  # no calls of max: this is called often
        phase = self.banks_log - words if words > 0 else self.banks_log
        phases = len(side.lanes) - phase if phase > 0 else len(side.lanes)
        passes = 1 << phases if phases > 0 else 1
        narrow = self.machine.narrow(4 >> -words) if words < 0 else 0.0
        return float(1 << rest if rest > 0 else 1) * (self.machine.access + self.machine.wavefront * passes + narrow)

    def _matrix_cost(self, side: _Side) -> float:
        """What ldmatrix or stmatrix costs without conflicts."""
        rest = max(0, len(side.registers) - self.word)
        matrices = min(2, rest)
        return float(1 << rest - matrices) * (self.machine.access + self.machine.wavefront * (1 << matrices))

    def _is_matrix(self, side: _Side, low: Sequence[int]) -> bool:
        """Whether rows made of these elements are rows of the other side's matrix instruction too."""
        word = self.word
        return (
            side.matrix
            and len(side.lanes) == 5
            and tuple(low[word:]) == tuple(side.lanes[:2])
            and all(x in side.free for x in low[:word])
        )

    def _matrix_rows(self, side: _Side, other: _Side) -> list[tuple[list[int], tuple[int, ...]]]:
        """Rows of 16 bytes as the side's matrix instruction sees them, plain and transposed; and what chooses a row."""
        ordered = [c for c in side.free if c in other.free] + [c for c in side.free if c not in other.free]
        found = []
        plain = [*self._extended([], ordered, self.word), *side.lanes[:2]]
        if len(plain) == self.word + 2 and f2.rank(plain) == len(plain):
            found.append((plain, tuple(side.lanes[2:])))
        trans = list(side.lanes[2:])
        first = [c for c in ordered if c not in trans][:1]
        if self.bytes_log == 1 and first and f2.rank(trans) == 3:
            found.append((trans, (*first, *side.lanes[:2])))
        return found

    def _common(self, a: Sequence[int], b: Sequence[int]) -> list[int]:
        """A basis of what both spans have in common, without what lanes or warps have a part in."""
        theirs = set(b)
        rows = f2.Echelon()
        shared = [c for c in a if c in theirs and rows.add(c)]
        mixed = any(c & c - 1 for c in (*a, *b))
        if mixed:
            shared += [c for c in f2.intersection(a, b) if rows.add(c)]
        if mixed or any(c & c - 1 for c in self.apart):
            rows = f2.Echelon(self.apart)
            shared = [c for c in shared if rows.add(c)]
        return shared

    @staticmethod
    def _extended(low: Sequence[int], by: Sequence[int], size: int) -> list[int]:
        if len(low) >= size:
            return list(low)
        rows = f2.Echelon(low)
        found = list(low)
        for c in by:
            if len(found) < size and rows.add(c):
                found.append(c)
        return found

    # -- one candidate ----------------------------------------------------------------------------------------------

    def _turns(self, low: Sequence[int]) -> list[int]:
        """Elements to be moved one after the other if memory is short, in rounds.

        Those first that registers of both sides tell apart: each register is then of one round. Of others there are
        lanes or warps that have none of a round's elements: best whole warps, and on one side only.
        """
        found: list[int] = []
        if self._bytes <= self.machine.shared_bytes:
            return found
        rows = f2.Echelon([*self.apart, *low])
        for c in self._common(self.writer.free, self.reader.free):
            if self._bytes >> len(found) <= self.machine.shared_bytes:
                break
            others = [x for s in (self.writer, self.reader) for x in s.registers if x != c]
            if c not in f2.Echelon([*self.apart, *low, *others]) and rows.add(c):
                found.append(c)
        rows = f2.Echelon([*low, *found])
        for c in self._partial():
            if self._bytes >> len(found) <= self.machine.shared_bytes:
                break
            if rows.add(c):
                found.append(c)
        return found

    def _partial(self) -> list[int]:
        """Elements that may be moved one after the other, the best first."""
        sides = ((self.writer, self.reader), (self.reader, self.writer))
        by_warps = [c for mine, other in sides for c in mine.free if c in other.others]
        registers = [c for mine, _ in sides for c in mine.free]
        return [c for c in (*by_warps, *registers, *f2.identity(self.size)) if c]

    def trip(self, candidate: _Candidate) -> Trip:
        """The whole trip with these lowest bits."""
        turns = self._turns(candidate.low)
        memory = memory_basis(
            candidate.low,
            candidate.a_phase,
            candidate.b_phase,
            self.apart,
            turns,
            self.size,
            self.bytes_log,
            self.machine,
        )
        place = f2.Echelon(memory)
        sides, scope = [], self.scope
        for side, store in ((self.writer, True), (self.reader, False)):
            registers, lanes, others = (
                tuple([place.coefficients(v) or 0 for v in vectors])
                for vectors in (side.registers, side.lanes, side.others)
            )
            whole, log = True, self.size - len(turns)
            if turns:
                if scope == "warp" and any(x >> log for x in others):
                    scope = "block"  # other warps use the same memory in other rounds
                lanes, others, whole = _in_one_round(lanes, others, log)
            offsets = Offsets(registers, lanes, others)
            log = log if turns else 0
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
            1 << len(turns),
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
    found = []
    for x in (*lanes, *others):
        turn = x >> log
        if turn not in pivots:
            pivots.add(turn)
            used.append(x)
            found.append(0)
            continue
        made = pivots.coefficients(turn) or 0
        found.append(x ^ f2.multiply(used, made))
    return tuple(found[: len(lanes)]), tuple(found[len(lanes) :]), not used


def _leading(vectors: Sequence[int], among: Sequence[int]) -> int:
    """How many of the first vectors are among others."""
    count = 0
    while count < len(vectors) and vectors[count] in among:
        count += 1
    return count


def _masks(parts: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """For each dimension the bits that hold copies."""
    free = set(f2.dependent([c for columns in parts.values() for c in columns]))
    masks, at = {}, 0
    for dim, columns in parts.items():
        masks[dim] = sum(1 << i for i in range(len(columns)) if at + i in free)
        at += len(columns)
    return masks
