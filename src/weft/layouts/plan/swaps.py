"""Elements within a word change places with lanes: byte permutations around one shuffle for two words.

A word of 32 bits holds four bytes or two halves; bit p of an element's place in its word and bit j of the lane are to
be exchanged. What lane l keeps of a word is the half whose bit p is l's bit j; the rest goes to lane l ^ 2^j. Two words
have a whole word to send:

    sent = permute(u, v)          the elements that go, those of u where bit p is 0, those of v where it is 1
    got  = shuffle(sent, 2^j)
    u'   = permute(u, got)        v' = permute(v, got)

The permutations differ between even and odd lanes: their selectors are registers. For bytes in an order that is
natural on both sides this is three permutations and one shuffle for two words and nothing else, where `Shears`
(shuffle.py) have to pack elements that stay together in other words first. The construction is our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import f2
from .steps import Pack, Rename, Step, Unpack, Values

Places = tuple[tuple[int, int], ...]
"""For each element of a word the (operand, element) that it is."""


@dataclass(frozen=True)
class Swap:
    """Bit `bit` of an element's place in its word and bit `lane` of the lane are exchanged; words go in pairs."""

    bit: int
    lane: int

    def places(self, each: int, odd: int) -> tuple[Places, Places, Places]:
        """What is sent, of two words; and what each of both becomes, of itself and what arrives."""
        mask = 1 << self.bit
        sent = tuple((k >> self.bit & 1, k & ~mask | (0 if odd else mask)) for k in range(each))
        kept = [k >> self.bit & 1 == odd for k in range(each)]
        first = tuple((0, k) if kept[k] else (1, k & ~mask) for k in range(each))
        second = tuple((0, k) if kept[k] else (1, k | mask) for k in range(each))
        return sent, first, second

    def selectors(self, each: int, odd: int) -> tuple[int, ...]:
        """The same as selectors of `permute`: four bits for each byte, that of the first operand's bytes 0 to 3."""
        size = 4 // each
        return tuple(
            sum((4 * word + size * k + b) << 4 * (size * i + b) for i, (word, k) in enumerate(p) for b in range(size))
            for p in self.places(each, odd)
        )

    def run(self, values: Values) -> Values:
        """Execute on [warp, lane, word, element]."""
        each, lanes = values.shape[3], np.arange(values.shape[1])

        def permuted(a: Values, b: Values, selector: int) -> Values:
            permuted_words = []
            for odd in (0, 1):
                places = self.places(each, odd)[selector]
                permuted_words.append(np.stack([(a, b)[word][..., k] for word, k in places], axis=-1))
            return np.where((lanes >> self.lane & 1)[None, :, None, None] == 1, permuted_words[1], permuted_words[0])

        first, second = values[:, :, 0::2], values[:, :, 1::2]
        received = permuted(first, second, 0)[:, lanes ^ 1 << self.lane]
        both = [permuted(first, received, 1), permuted(second, received, 2)]
        return np.stack(both, axis=3).reshape(values.shape)


@dataclass(frozen=True)
class Swaps:
    """Words of registers, and the swaps, one after the other.

    The words are made of the registers `within`, vectors of the register index, and numbered by the others.
    """

    within: tuple[int, ...]
    registers: int
    """Register bits in all."""
    swaps: tuple[Swap, ...]

    @property
    def is_natural(self) -> bool:
        """Whether words are of consecutive registers: then they need not be put together."""
        return self.within == tuple(f2.identity(len(self.within)))

    @property
    def steps(self) -> tuple[Step | Swap, ...]:
        """Packing, the swaps, and unpacking."""
        each = 1 << len(self.within)
        order = f2.span([*self.within, *f2.complement(self.within, self.registers)])
        place = {r: k for k, r in enumerate(order)}
        steps: list[Step | Swap] = [Pack(tuple(order), each), *self.swaps, Unpack(each)]
        return (*steps, *([] if self.is_natural else [Rename(tuple(place[r] for r in range(len(order))))]))

    @property
    def instructions(self) -> dict[str, int]:
        """Instructions of each warp, by kind."""
        words = 1 << self.registers - len(self.within)
        n = len(self.swaps) * words // 2
        return {"pack": words, "unpack": 1 << self.registers, "shuffle": n, "permute": 3 * n}

    def run(self, values: Values) -> Values:
        """Execute on values indexed [warp, lane, register]."""
        for step in self.steps:
            values = step.run(values)
        return values

    def exchanged(self, columns: Sequence[int], lanes: Sequence[int]) -> tuple[list[int], list[int]]:
        """The columns of registers and lanes after the swaps."""
        rows, other = list(columns), list(lanes)
        for swap in self.swaps:
            at = self.within[swap.bit].bit_length() - 1
            rows[at], other[swap.lane] = other[swap.lane], rows[at]
        return rows, other

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "words_of": list(self.within),
            "swaps": [{"element_bit": s.bit, "lane_bit": s.lane} for s in self.swaps],
            "elements_in_a_word": 1 << len(self.within),
        }
