"""Choosing among registers in words: one permutation of bytes takes any elements of two words.

A gather whose column is in words of 32 bits, four bytes or two halves each, makes words of its result by permutations.
The selectors of all of them come from the places that the elements have in their column. For a column of 16 bytes, w0
to w3, and four elements wanted, N has the four bits of the place of each:

    low  = permute(w0, w1, N & 0x7777)                       among eight bytes
    high = permute(w2, w3, N & 0x7777)
    permute(low, high, N >> 1 & 0x4444 | 0x3210)             each of its place in one or the other

Selectors need not be made again where the same indices are used again. Choosing element by element takes four times as
many instructions for bytes, and a predicate for each choice, of which there are seven. The construction is our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .. import f2


@dataclass(frozen=True)
class Picking:
    """How columns lie in words: `within` number the elements of a column, `apart` the columns; vectors of registers."""

    each: int
    """Elements of a word."""
    within: tuple[int, ...]
    apart: tuple[int, ...]

    @property
    def words(self) -> int:
        """Words of a column."""
        return (1 << len(self.within)) // self.each

    @property
    def order(self) -> list[int]:
        """The registers one after the other as they lie in words: column by column."""
        return f2.span([*self.within, *self.apart])

    def place(self, register: int) -> int:
        """Where an element is in its column."""
        return self._number(register) & (1 << len(self.within)) - 1

    def column(self, register: int) -> int:
        """Which column it is of."""
        return self._number(register) >> len(self.within)

    @cached_property
    def _numbers(self) -> f2.Echelon:
        return f2.Echelon([*self.within, *self.apart])

    def _number(self, register: int) -> int:
        return self._numbers.coefficients(register) or 0

    def results(self, read: Sequence[int], together: int) -> list[tuple[int, ...]]:
        """The registers of the result in words, each of one column; `read` is a register of the column of each.

        `together` registers are in a word; the last of a column is there more than once where there are not as many.
        """
        columns: dict[int, list[int]] = {}
        for r, register in enumerate(read):
            columns.setdefault(self.column(register), []).append(r)
        results = []
        for registers in columns.values():
            for at in range(0, len(registers), together):
                part = registers[at : at + together]
                results.append((*part, *[part[-1]] * (together - len(part))))
        return results

    def instructions(self, results: int, together: int) -> dict[str, int]:
        """Instructions for so many words of the result, by kind; "integer" are those that make selectors."""
        bits, numbers = len(self.within), -(-len(self.within) // 4)
        joined = (together - 1 + (self.each == 2)) * numbers + (2 * together if numbers > 1 else 0)
        first = 2 if self.each == 2 else int(bits > 3)
        further = sum([1 if bit % 4 == 2 else 2 for bit in range(self.each.bit_length(), bits)])
        return {"permute": results * max(1, self.words - 1), "integer": results * (joined + first + further)}


def picking(registers: int, spread: Sequence[int], element_bits: int) -> Picking | None:
    """How columns lie in words, or None where elements are no part of words, or a lane has less than a word of them.

    There are 2 ** registers of them; those of a column differ by sums of `spread`.
    """
    if element_bits > 16:
        return None
    each = 32 // max(8, element_bits)
    within = _ascending(spread)
    for unit in f2.complement(within, registers):  # short columns share words
        if 1 << len(within) < each:
            within.append(unit)
    if 1 << len(within) < each:
        return None
    within = _ascending(within)
    return Picking(each, tuple(within), tuple(f2.complement(within, registers)))


def _ascending(vectors: Sequence[int]) -> list[int]:
    """The basis of a span in which the highest bit of each vector is in no other, the lowest first."""
    ordered: list[int] = []
    for v in vectors:
        for w in ordered:
            v = min(v, v ^ w)
        if v:
            ordered = sorted([*(min(w, w ^ v) if w >> v.bit_length() - 1 & 1 else w for w in ordered), v])
    return ordered
