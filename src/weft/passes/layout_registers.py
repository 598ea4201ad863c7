"""The price of layouts in registers: words that exceed a thread's registers where it holds the most are spilled.

    %acc      128x128xf32 by 4 warps      128 words of a thread, in any layout
    %p        128x128xf16                  64
    %row      128xf32                       1 word, or 2 where lanes repeat its elements as products leave them

A thread may have 255 registers, some of which hold addresses. In each block of operations, the pass finds the place
where the live tiles take the most registers, each in the layout in which it takes the fewest. If another layout takes
more than is left there, the words in excess are stored and loaded as often as the block is executed. Each group is
priced as if all others took as few registers as possible, so that its price does not depend on theirs.

Most tiles take as many registers in all their layouts; then nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Block, SSAValue

from weft.ir import bit_width, element_of, is_pointer, shape_of
from weft.layouts import f2

from .layout_prices import Prices
from .layout_wishes import Leader
from .natural_layouts import AnyLayout, linear_of

OTHERS = 32
"""Registers of a thread that hold addresses, masks and what operations are in the midst of."""


@dataclass(frozen=True)
class _Fullest:
    """Where a block of operations holds the most: how many words at least, of which tiles, and how often it is."""

    words: int
    tiles: frozenset[SSAValue]
    times: float


class Registers:
    """Of one function, whose groups have these ways, for so many threads of a block.

    `find` gives the group of a tile, and `is_held` says whether a value is a tile that registers hold.
    """

    def __init__(
        self,
        ways: dict[Leader, list[AnyLayout]],
        prices: Prices,
        threads: int,
        find: Callable[[SSAValue], Leader],
        is_held: Callable[[SSAValue], bool],
    ) -> None:
        self.ways, self.prices, self.find, self.is_held = ways, prices, find, is_held
        self.machine = machine = prices.machine
        self.room = min(machine.thread_registers, machine.registers // threads) - OTHERS
        self._full: list[_Fullest] = []

    def study(self, block: Block) -> None:
        """Find where the room does not suffice, if any group has layouts that differ in what they take."""
        if any(len({_elements(way, leader) for way in ways}) > 1 for leader, ways in self.ways.items() if ways[1:]):
            self._look(block, frozenset())

    @property
    def is_short(self) -> bool:
        """Whether some choice of layouts may leave too little room somewhere."""
        return bool(self._full)

    def price(self, leader: Leader, layout: AnyLayout) -> float:
        """What is spilled if a group has a layout."""
        total = 0.0
        for full in self._full:
            tiles = [tile for tile in full.tiles if self.find(tile) is leader]
            more = sum(_words(layout, tile) - self._least(tile) for tile in tiles)
            spilled = min(more, full.words + more - self.room)
            if spilled > 0:
                total += full.times * spilled * 2 * (self.machine.access + self.machine.line)
        return total

    def _least(self, tile: SSAValue) -> int:
        return min(_words(way, tile) for way in self.ways[self.find(tile)])

    def _most(self, tile: SSAValue) -> int:
        return max(_words(way, tile) for way in self.ways[self.find(tile)])

    def _look(self, block: Block, outside: frozenset[SSAValue]) -> None:
        """Look at the operations of a block, while others hold these tiles."""
        last: dict[SSAValue, int] = {}
        for i, op in enumerate(block.ops):
            for inner in op.walk():
                last.update(dict.fromkeys(inner.operands, i))
        held = {x: self._least(x) for x in (*outside, *block.args) if self.is_held(x)}
        fullest: tuple[int, frozenset[SSAValue]] = sum(held.values()), frozenset(held)
        for i, op in enumerate(block.ops):
            for region in op.regions if op.name.startswith("scf.") else ():
                for inner_block in region.blocks:
                    self._look(inner_block, frozenset(held))
            held.update({x: self._least(x) for x in op.results if x in last and self.is_held(x)})
            if sum(held.values()) > fullest[0]:
                fullest = sum(held.values()), frozenset(held)
            held = {x: words for x, words in held.items() if x in outside or last.get(x, -1) > i}
        if block.first_op is not None and sum(map(self._most, fullest[1])) > self.room:
            self._full.append(_Fullest(*fullest, self.prices.trips(block.first_op)))


def _elements(layout: AnyLayout, value: SSAValue) -> int:
    """How many elements of a tile a thread holds, copies left out."""
    return 1 << f2.rank(linear_of(layout, shape_of(value.type)).in_columns("register"))


def _words(layout: AnyLayout, value: SSAValue) -> int:
    element = element_of(value.type)
    bits = 64 if is_pointer(element) else bit_width(element)
    return -(-_elements(layout, value) * max(8, bits) // 32)
