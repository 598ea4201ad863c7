"""The steps of a conversion within a warp, register by register: what is packed, chosen, shuffled and unpacked.

`Shears` (shuffle.py) is the mathematics; here are the tables that the reference executor runs, that the lowering writes
down and that the cost counts. Elements of 8 or 16 bits go in words of 32 bits: a shuffle moves a word, whatever is in
it.

    pack      each word takes elements that stay together through everything that follows
    select    each lane chooses among its words
    shuffle   each word is read from another lane
    select    each lane chooses among its words
    unpack    and each register of the result takes its element

Which elements may share a word: for r, l of the result the stages read register A' r of lane E' l + D r, and selects
add G l, H w before and F l after. A direction v of registers of the result with D v = 0 is read from one lane; if A' v
is none of what selects add (G, H, A' F), both elements are neighbours from the beginning to the end. W = A' V, for a
largest set V of such directions, is what is within words; a complement of it that contains everything that selects
add numbers the words. For 4 registers of 16 bits, with register bit 1 and lane bit 0 to be exchanged, the stages are

    select    r ^= 2 (l & 1)          shuffle    registers 2, 3 from lane l ^ 1          select    r ^= 2 (l & 1)

Register bit 0 takes no part: V = {1}, and there are two words instead of four registers. The construction is our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import f2
from .shuffle import Shears

Values = npt.NDArray[Any]
"""[warp, lane, register], or [warp, lane, word, element within it] between Pack and Unpack."""


@dataclass(frozen=True)
class Rename:
    """Register r becomes register table[r]: free."""

    table: tuple[int, ...]

    def run(self, values: Values) -> Values:
        """Execute."""
        return values[:, :, list(self.table)]


@dataclass(frozen=True)
class Pack:
    """Word k takes registers table[each * k] to table[each * (k + 1) - 1], from its lowest bits on."""

    table: tuple[int, ...]
    each: int

    def run(self, values: Values) -> Values:
        """Execute."""
        return values[:, :, list(self.table)].reshape(*values.shape[:2], -1, self.each)


@dataclass(frozen=True)
class Unpack:
    """The inverse of Pack with the elements in order: register each * k + j is element j of word k."""

    each: int

    def run(self, values: Values) -> Values:
        """Execute."""
        return values.reshape(*values.shape[:2], -1)


@dataclass(frozen=True)
class Exchange:
    """Register r becomes register r ^ direction in lanes, of warps, whose index has an odd number of these bits set."""

    direction: int
    lanes: int
    warps: int

    def run(self, values: Values) -> Values:
        """Execute."""
        warp, lane = np.arange(values.shape[0])[:, None], np.arange(values.shape[1])[None, :]
        odd = _parity(warp & self.warps) ^ _parity(lane & self.lanes)
        other = values[:, :, np.arange(values.shape[2]) ^ self.direction]
        return np.where(odd.reshape(*odd.shape, *[1] * (values.ndim - 2)), other, values)


@dataclass(frozen=True)
class Shuffle:
    """Register r is read from lane masks[r] xor what the bits of lane and warp add.

    `kind` "xor": `lanes` is the identity, no warp adds anything, and registers of mask 0 stay; "idx": the lane is
    computed.
    """

    kind: str
    masks: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]

    @property
    def moved(self) -> tuple[int, ...]:
        """The registers that take an instruction."""
        return tuple(r for r, mask in enumerate(self.masks) if mask or self.kind == "idx")

    def run(self, values: Values) -> Values:
        """Execute."""
        warp, lane = np.arange(values.shape[0])[:, None, None], np.arange(values.shape[1])[None, :, None]
        source = _sum(self.lanes, lane) ^ _sum(self.warps, warp) ^ np.array(self.masks)[None, None, :]
        moved: Values = values[warp, source, np.arange(values.shape[2])[None, None, :]]
        return moved


Step = Rename | Pack | Unpack | Exchange | Shuffle


def _parity(x: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    for shift in (16, 8, 4, 2, 1):
        x = x ^ x >> shift
    return (x & 1).astype(bool)


def _sum(columns: Sequence[int], x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    result = np.zeros_like(x)
    for i, column in enumerate(columns):
        result = result ^ (x >> i & 1) * column
    return result


@dataclass(frozen=True)
class Words:
    """How many registers take part, as logarithms, and along which directions neighbours may share a word."""

    sources: int
    """Registers of the source that are read or exchanged."""
    results: int
    """Registers of the result without copies."""
    free: tuple[int, ...]
    """Directions of registers of the result along which they hold copies."""
    together: tuple[int, ...]
    """V: directions of registers of the result along which neighbours go together."""
    before: int
    """Exchanges before and after the shuffle."""
    after: int

    def instructions(self, share: int | None, packed: int, pieces: int) -> dict[str, int]:
        """Instructions of each warp, by kind, with 2 ** packed elements in a word; `pieces` words make an element.

        All but one of 2 ** share words are shuffled; None: all of them.
        """
        sources, results = (1 << log - packed for log in (self.sources, self.results))
        shuffles = results if share is None else results - (results >> share)
        selects = sources * self.before + results * self.after
        counts = {"pack": sources, "unpack": results << packed} if packed else {}
        counts |= {"shuffle": shuffles * pieces, "select": selects * pieces}
        return {k: n for k, n in counts.items() if n}

    @staticmethod
    def shuffles(shears: Shears) -> int | None:
        """Which share of the words is shuffled: see `instructions`."""
        return None if shears.shuffle_kind == "idx" else f2.rank(shears.lanes_by_register)


def execute(shears: Shears, values: Values) -> Values:
    """The steps on values indexed [warp, lane, register]."""
    for step in steps_of(shears):
        values = step.run(values)
    return values


def instructions_of(steps: Sequence[Step], pieces: int) -> dict[str, int]:
    """Instructions of each warp, by kind, counted; `pieces` words make an element."""
    counts = dict.fromkeys(("pack", "unpack", "shuffle", "select"), 0)
    count = 0
    for step in steps:
        if isinstance(step, Rename):
            count = len(step.table)
        elif isinstance(step, Pack):
            count = len(step.table) // step.each
            counts["pack"] += count
        elif isinstance(step, Unpack):
            count *= step.each
            counts["unpack"] += count
        elif isinstance(step, Exchange):
            counts["select"] += count * pieces
        else:
            counts["shuffle"] += len(step.moved) * pieces
    return {k: n for k, n in counts.items() if n}


def words_of(shears: Shears) -> Words:
    """What takes part in a conversion by shuffles."""
    wide = 1 + max((x.bit_length() for x in shears.registers), default=0)
    copies = f2.kernel([a | d << wide for a, d in zip(shears.registers, shears.lanes_by_register, strict=True)])
    rows = f2.Echelon(copies)
    after = sum(rows.add(x) for x in shears.after)
    rows = f2.Echelon()
    before = sum(rows.add(x) for x in (*shears.before, *shears.before_by_warp))
    for x in shears.after:
        rows.add(f2.multiply(shears.registers, x))
    touched = len(rows)
    still = f2.kernel(shears.lanes_by_register) if any(shears.lanes_by_register) else f2.identity(len(shears.registers))
    together = tuple(v for v in still if rows.add(f2.multiply(shears.registers, v)))
    sources = touched + len(together) + sum(rows.add(a) for a in shears.registers)
    return Words(sources, len(shears.registers) - len(copies), tuple(copies), together, before, after)


@dataclass(frozen=True)
class _Numbering:
    """Bases of registers: `words` number the words, `within` the elements of a word; the rest changes nothing."""

    words: list[int]
    within: list[int]
    rest: Sequence[int] = ()

    def of(self, register: int) -> int:
        """elements per word * the word + the element within it."""
        rows = f2.Echelon([*self.within, *self.words, *self.rest])
        used = rows.coefficients(register)
        assert used is not None
        return used & (1 << len(self.within) + len(self.words)) - 1


def _numberings(shears: Shears) -> tuple[_Numbering, _Numbering]:
    """Of the source's registers that take part, and of the result's."""
    words = words_of(shears)
    within = list(words.together[: shears.packed])
    inside = [f2.multiply(shears.registers, v) for v in within]
    rows = f2.Echelon(inside)
    source = [x for x in (*shears.before, *shears.before_by_warp) if rows.add(x)]
    source += [x for x in (f2.multiply(shears.registers, x) for x in shears.after) if rows.add(x)]
    numbered = f2.Echelon([*words.free, *within])
    result = [x for x in shears.after if numbered.add(x)]
    for unit in f2.identity(len(shears.registers)):
        if not numbered.add(unit):
            continue
        image = f2.multiply(shears.registers, unit)
        if rows.add(image):
            source.append(image)
            result.append(unit)
            continue
        # The image has a part within words: take the direction that has none.
        part = (f2.Echelon([*inside, *source]).coefficients(image) or 0) & (1 << len(inside)) - 1
        result.append(unit ^ f2.multiply(within, part))
    return _Numbering(source, inside), _Numbering(result, within, words.free)


@lru_cache(maxsize=1024)
def steps_of(shears: Shears) -> tuple[Step, ...]:
    """The steps, in order; those that do nothing are left out."""
    source, result = _numberings(shears)
    each = 1 << shears.packed
    taken = tuple(f2.span([*source.within, *source.words]))
    steps: list[Step] = [Pack(taken, each) if shears.packed else Rename(taken)]
    steps += _exchanges(source, shears.before, shears.before_by_warp, shears.packed)
    places = [source.of(f2.multiply(shears.registers, k)) >> shears.packed for k in result.words]
    steps.append(Rename(tuple(f2.span(places))))
    if shears.shuffle_kind != "none":
        masks = f2.span([f2.multiply(shears.lanes_by_register, k) for k in result.words])
        steps.append(Shuffle(shears.shuffle_kind, tuple(masks), shears.lanes, shears.lanes_by_warp))
    steps += _exchanges(result, shears.after, (), shears.packed)
    if shears.packed:
        steps.append(Unpack(each))
    steps.append(Rename(tuple(f2.span([result.of(1 << i) for i in range(len(shears.registers))]))))
    return tuple(_useful(steps))


def _useful(steps: Sequence[Step]) -> Iterator[Step]:
    """Without renamings that change nothing; the first one stays, as how many registers there are is not known."""
    count = 0
    for step in steps:
        if isinstance(step, Rename):
            if step.table == tuple(range(count)):
                continue
            count = len(step.table)
        elif isinstance(step, Pack):
            count = len(step.table) // step.each
        elif isinstance(step, Unpack):
            count *= step.each
        yield step


def _exchanges(numbering: _Numbering, by_lane: Sequence[int], by_warp: Sequence[int], packed: int) -> list[Step]:
    """What the bits of lane and warp add to a register, as one exchange for each direction."""
    lanes = [numbering.of(x) >> packed for x in by_lane]
    warps = [numbering.of(x) >> packed for x in by_warp]
    rows = f2.Echelon()
    directions = [x for x in (*lanes, *warps) if rows.add(x)]
    rows = f2.Echelon(directions)
    parts = [[rows.coefficients(x) or 0 for x in columns] for columns in (lanes, warps)]
    steps: list[Step] = []
    for i, direction in enumerate(directions):
        lane, warp = (sum(1 << k for k, used in enumerate(p) if used >> i & 1) for p in parts)
        steps.append(Exchange(direction, lane, warp))
    return steps
