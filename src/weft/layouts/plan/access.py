"""A register layout against shared memory: which instruction moves it, how wide, and at how many wavefronts.

An instruction has a tile: the bits of the offset that it covers and where they come from. It can be used where its tile
divides the layout from the left (Zhou et al., Linear Layouts, arXiv 2505.23819v5, theorem 5.1) after registers were
renamed (section 5.3): renaming is free.

    ld.shared, st.shared    2^n elements of one lane are consecutive: n registers make the lowest n bits
    ldmatrix, stmatrix      one 4-byte word of registers, then lanes 0 and 1, make rows of 16 bytes; the other three
                            lane bits choose one of 8 rows, each anywhere
    ... .trans              lanes 2, 3, 4 make rows of 8 elements of 16 bits; a register and lanes 0, 1 choose the row

Where memory has gaps, what one lane or one row of a matrix takes may not be cut by one, and begins at a multiple of its
size: it is at most as long as every interval and every gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.machines import Machine

from .. import f2
from ..banks import count_wavefronts, passes
from ..zoo import with_gaps

__all__ = ["Access", "Offsets", "best_access", "rearranged"]


@dataclass(frozen=True)
class Offsets:
    """Where one side's elements lie: the offset in elements that each bit adds, copies left out."""

    registers: tuple[int, ...]
    lanes: tuple[int, ...]
    others: tuple[int, ...]
    """Of warps and blocks."""
    gaps: tuple[tuple[int, int], ...] = ()
    """After every so many elements so many more are left out."""

    @property
    def whole(self) -> int:
        """Elements that are side by side, and begin at a multiple of their number, wherever there are gaps."""
        return min((size for pair in self.gaps for size in pair), default=1 << 30)

    def passes(self, lanes: Sequence[int], bits_log: int, vector: int, machine: Machine) -> tuple[int, int]:
        """Passes over the banks as `banks.passes` says; with gaps counted, of the first access of the first warp."""
        taken, ideal = passes(lanes, bits_log, vector, machine)
        if not self.gaps:
            return taken, ideal
        starts = with_gaps(np.array(f2.span(lanes)), self.gaps)
        return count_wavefronts((starts << bits_log) // 8, (1 << vector + bits_log) // 8, machine), ideal


@dataclass(frozen=True)
class Access:
    """How one side of a trip through shared memory is done.

    `registers` renames: bit i of the instruction's register index is that vector of the layout's register index; the
    first `vector` of them are those that one instruction moves.
    """

    instruction: str
    registers: tuple[int, ...]
    vector: int
    count: int
    """Instructions of each warp."""
    wavefronts: int
    """Passes over the banks that one instruction takes."""
    ideal: int
    """Passes that it would take without bank conflicts."""
    addresses: int
    """Addresses beside the first that are no immediate offsets from another, as registers and lanes share a bit."""
    bytes: int = 16
    """What one instruction moves of each lane."""
    permutes: int = 0
    """Permutations of bytes that make its words, or take them apart, where they are not of the lowest registers."""
    waiting: int = 0
    """Words loaded that wait for those of other instructions, as they are not of the lowest registers."""

    @property
    def excess(self) -> int:
        """Wavefronts lost to bank conflicts, in each instruction."""
        return self.wavefronts - self.ideal

    def cost(self, machine: Machine) -> float:
        """Cycles of each warp."""
        moving = self.count * (machine.access + machine.wavefront * self.wavefronts + machine.narrow(self.bytes))
        return moving + machine.permute * self.permutes + machine.wait * self.waiting


def best_access(
    place: Offsets, bytes_log: int, machine: Machine, *, store: bool, whole: bool = True, round_log: int = 0
) -> Access:
    """The cheapest instruction for registers at some place in memory; elements have 2 ** bytes_log bytes.

    Offsets from 2 ** round_log on, if that is not 0, are those of other rounds: all that one instruction moves is of
    one. Matrix instructions are for all lanes of a warp: not where only some take part, which is not the `whole` warp.
    """
    moving = 0
    for x in (*place.lanes, *place.others):
        moving |= x
    plain = _plain(place, moving, bytes_log, machine, store)
    options = [plain]
    if plain.bytes == machine.vector_bytes and not (plain.excess or plain.permutes or plain.waiting):
        return plain  # nothing is cheaper
    if whole and (machine.matrix_stores if store else machine.matrix_loads):
        for trans in (False, True):
            access = _matrix(place, moving, bytes_log, machine, store, trans, round_log)
            if access is not None:
                options.append(access)
    return min(options, key=lambda a: a.cost(machine))


def _prefix_registers(columns: Sequence[int], size: int) -> list[int]:
    """Register vectors whose offsets are 1, 2, 4, ...: as many as there are, up to a number."""
    registers = []
    rows: f2.Echelon | None = None
    for i in range(size):
        offset = 1 << i
        if offset in columns:
            registers.append(1 << columns.index(offset))
            continue
        rows = rows or f2.Echelon(columns)
        combination = rows.coefficients(offset)
        if combination is None:
            break
        registers.append(combination)
    return registers


def _completed(first: list[int], columns: Sequence[int], low: int) -> tuple[int, ...]:
    """All registers: those first, then others that, with some of the first, leave the offset's lowest bits alone."""
    others = f2.complement(first, len(columns))
    if not any(columns[r.bit_length() - 1] & low for r in others):
        return (*first, *others)
    return (*first, *[r ^ f2.multiply(first, columns[r.bit_length() - 1] & low) for r in others])


def _addresses(columns: Sequence[int], registers: Sequence[int], moving: int) -> int:
    return (1 << len([r for r in registers if f2.multiply(columns, r) & moving])) - 1


def rearranged(
    vector: Sequence[int], lowest: Sequence[int], registers: int, bytes_log: int, store: bool
) -> tuple[int, int]:
    """(permutations of bytes, words that wait) where vectors of 2 ** registers registers are not of the lowest.

    What uses a tile, and what makes it, has small elements in words of the lowest registers, and goes from register to
    register. A word of other registers is made of two or four, or taken apart; and where vectors are of others, what is
    loaded waits until all that is used with it has come.
    """
    word, size = max(0, 2 - bytes_log), len(vector)
    if size < word or vector == lowest[:size]:
        return 0, 0
    words = 1 << max(0, registers + bytes_log - 2)
    mixed = word and set(vector[:word]) != set(lowest[:word])
    waits = not store and set(vector) != set(lowest[:size])
    return words * word if mixed else 0, words if waits else 0


def _plain(place: Offsets, moving: int, bytes_log: int, machine: Machine, store: bool) -> Access:
    """ld.shared or st.shared, as wide as the registers allow."""
    columns = place.registers
    first = _prefix_registers(columns, max(0, machine.vector_bytes.bit_length() - 1 - bytes_log))
    while first and (moving & ((1 << len(first)) - 1) or 1 << len(first) > place.whole):  # starts: multiples of it
        first = first[:-1]
    vector = len(first)
    registers = _completed(first, columns, (1 << vector) - 1)
    is_phased = machine.load_phase and not store and 1 << vector + bytes_log == 16
    lanes = machine.served(place.lanes) if is_phased else place.lanes
    wavefronts, ideal = place.passes(lanes, bytes_log + 3, vector, machine)
    count = 1 << len(columns) - vector
    mixed = _addresses(columns, registers[vector:], moving)
    more = rearranged(first, f2.identity(vector), len(columns), bytes_log, store)
    return Access("shared", registers, vector, count, wavefronts, ideal, mixed, 1 << vector + bytes_log, *more)


def _row_register(place: Offsets, columns: Sequence[int], bytes_log: int, machine: Machine) -> int | None:
    """The register that, with lanes 0 and 1, chooses the row of a transposed matrix: one without conflicts if any."""
    best: tuple[int, int] | None = None
    for i, column in enumerate(columns):
        if column and not column & 7:
            taken, _ = place.passes([column, *place.lanes[:2]], bytes_log + 3, 3, machine)
            if best is None or taken < best[0]:
                best = taken, i
            if taken == 1:
                break
    return None if best is None else best[1]


def _by_round(columns: Sequence[int], registers: Sequence[int], log: int) -> tuple[list[int], list[int]]:
    """Registers, some combined with others, that leave the round alone; and those others."""
    same: list[int] = []
    other: list[int] = []
    rows = f2.Echelon()
    for r in registers:
        number = f2.multiply(columns, r) >> log
        if number not in rows:
            rows.add(number)
            other.append(r)
        else:
            same.append(r ^ f2.multiply(other, rows.coefficients(number) or 0))
    return same, other


def _matrix(
    place: Offsets, moving: int, bytes_log: int, machine: Machine, store: bool, trans: bool, round_log: int
) -> Access | None:
    """ldmatrix or stmatrix, if its tile divides the layout; as many matrices at once as there are registers, to 4."""
    word, columns, lanes = 2 - bytes_log, place.registers, list(place.lanes)
    if word < 0 or len(lanes) != 5 or (trans and bytes_log != 1):
        return None
    if trans:
        if lanes[2:] != [1, 2, 4]:
            return None
        contiguous = 3
        within = [c if not round_log or not c >> round_log else 0 for c in columns]
        row = _row_register(place, within, bytes_log, machine)
        if row is None:
            return None
        first = [1 << row]
        rows = [columns[row], *lanes[:2]]
    else:
        first = _prefix_registers(columns, word)
        if len(first) < word or lanes[:2] != [1 << word, 2 << word]:
            return None
        contiguous = word + 2
        rows = lanes[2:]
    if 1 << contiguous > place.whole:
        return None
    low, size = (1 << contiguous) - 1, len(first)
    registers = _completed(first, columns, 0 if trans else (1 << word) - 1)
    rest, matrices = registers[size:], min(2, len(columns) - size)
    if round_log:
        same, other = _by_round(columns, rest, round_log)
        rest, matrices = (*same, *other), min(2, len(same))
        registers = (*registers[:size], *rest)
    starts = (*rows, *place.others, *(f2.multiply(columns, r) for r in rest))
    if any(x & low for x in starts):
        return None
    single, _ = place.passes(rows, bytes_log + 3, contiguous, machine)
    vector = size + matrices
    more = rearranged(registers[:vector], f2.identity(vector), len(columns), bytes_log, store)
    return Access(
        f"{machine.matrix_stores if store else machine.matrix_loads}{'.trans' if trans else ''}.x{1 << matrices}",
        registers,
        vector,
        1 << len(rest) - matrices,
        single << matrices,
        1 << matrices,
        _addresses(columns, rest[matrices:], moving),
        16,
        *more,
    )
