"""How the blocks of a cluster divide tiles: along which dimensions, and which of them hold copies.

Tiles that are computed from each other element by element are divided alike, so no element moves between blocks:

    products       rows and columns of the result, in parts of at least 64, so that operands are as small as possible;
                   operands along the dimension that they share with the result
    reductions     along another dimension, where there is one
    all others     the slowest dimension first

(The rule for all other tiles is that of Triton 3.6.0. Its rule for products divides rows first, down to 128. Here, that
rule decides among divisions whose blocks have operands of the same size.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeVar

from xdsl.ir import Block, Operation, SSAValue

from weft.ir import int_value, ints_of, is_tensor, shape_of, walk
from weft.layouts import DistributedLayout, make_cga_layout

Bases = tuple[tuple[int, ...], ...]
"""A `cga_layout`: for each bit of a block's rank, by how many parts it moves along each dimension."""

NamedLayout = TypeVar("NamedLayout", bound=DistributedLayout)

SMALLEST_PART = 64
"""Rows and columns of a product that a block has at least, if the tile has as many."""


def own_shape(shape: Sequence[int], division: Sequence[Sequence[int]]) -> list[int]:
    """The shape of what one block has.

    >>> own_shape([64, 32], ((1, 0), (0, 0)))
    [32, 32]
    """
    part = list(shape)
    for basis in division:
        for d, x in enumerate(basis):
            part[d] //= 2 if x else 1
    return part


def divided(layout: NamedLayout, division: Bases) -> NamedLayout:
    """A layout of a block's part as one of the whole tile."""
    changed: Any = layout  # all that passes choose have this field
    divided: NamedLayout = replace(changed, cga_layout=division) if division != changed.cga_layout else layout
    return divided


def operand_division(division: Bases, index: int) -> Bases:
    """How a product's operand is divided; blocks that share its rows, or columns, have copies."""
    dim = 1 - index
    rank = len(division[0]) if division else 2
    return tuple(tuple(0 if d == rank - 2 + dim else x for d, x in enumerate(basis)) for basis in division)


def _along(shape: Sequence[int], dims: Sequence[int], blocks: int) -> Bases:
    """The first of some dimensions is divided as far as it goes, then the next; what is left are copies."""
    parts, left = [1] * len(shape), blocks
    for d in dims:
        parts[d] = min(left, shape[d])
        left //= parts[d]
    order = [*reversed(dims), *(d for d in range(len(shape)) if d not in dims)]
    split = list(parts)
    parts[order[-1]] *= left
    return tuple(tuple(b) for b in make_cga_layout(parts, split, order))


def of_product(shape: Sequence[int], blocks: int, columns_of_all: int, rows_of_all: Sequence[int] = ()) -> Bases:
    """A batch first; then parts of 128 rows, or 64 if columns would be divided too far. `columns_of_all` are those of
    all products of the same left operand: of 256 rows and 384 columns in all, each of two blocks has 256 and 192.
    `rows_of_all` are those of each product of the same right operand, which are divided alike.
    """
    batch = min(blocks, shape[0]) if len(shape) == 3 else 1
    left, (rows, columns) = blocks // batch, shape[-2:]
    by_rows, tall = 1, rows_of_all or (rows,)
    for part in (2 * SMALLEST_PART, SMALLEST_PART):
        most = max(1, min(max(tall) // part, min(tall) // SMALLEST_PART, left))
        ways = [x for x in (most >> i for i in range(most.bit_length())) if columns_of_all * x // left >= SMALLEST_PART]
        by_rows = min(ways, key=lambda x: sum(tall) // x + columns_of_all * x // left, default=most)
        if ways:
            break
    by_columns = min(left // by_rows, max(1, columns // 8))
    split = [batch, by_rows, by_columns][3 - len(shape) :]
    count = list(split)
    count[-2] *= blocks // prod(split)
    order = [len(shape) - 1, len(shape) - 2, 0][: len(shape)]
    return tuple(tuple(b) for b in make_cga_layout(count, split, order))


class Clusters:
    """The divisions of the tiles of one function among `blocks` blocks, found before any layout is chosen."""

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self._leader: dict[SSAValue, SSAValue] = {}
        self._wishes: dict[SSAValue, tuple[int, Bases]] = {}
        self.products: dict[Operation, Bases] = {}

    def default(self, shape: Sequence[int]) -> Bases:
        """The division of a tile of which nothing is known."""
        return _along(shape, range(len(shape)), self.blocks) if self.blocks > 1 else ()

    def of(self, value: SSAValue) -> Bases:
        """How a tile is divided."""
        if self.blocks == 1:
            return ()
        wish = self._wishes.get(self._find(value))
        return wish[1] if wish is not None else self.default(shape_of(value.type))

    def study(self, block: Block, groups: Iterator[Sequence[SSAValue]]) -> None:
        """Look at a function; `groups` are values that have to agree."""
        if self.blocks == 1:
            return
        for group in groups:
            self._unite(group)
        pending: list[Operation] = []
        columns: dict[SSAValue, int] = {}
        rows: dict[SSAValue, list[int]] = {}
        for op in walk(block):
            if op.name == "tt.dot":
                *_, more_rows, more_columns = shape_of(op.results[0].type)
                columns[op.operands[0]] = columns.get(op.operands[0], 0) + more_columns
                rows.setdefault(op.operands[1], []).append(more_rows)
        for op in walk(block):
            if op.name == "tt.dot":
                shape, of_all = shape_of(op.results[0].type), (columns[op.operands[0]], rows[op.operands[1]])
                division = self.products[op] = of_product(shape, self.blocks, *of_all)
                self._wish(op.results[0], 3, division)
                for index in (0, 1):
                    self._wish(op.operands[index], 2, operand_division(division, index))
            elif op.name in ("tt.reduce", "tt.scan"):
                shape, axis = shape_of(op.operands[0].type), int_value(op.properties["axis"])
                dims = [*(d for d in range(len(shape)) if d != axis), axis]
                self._wish(op.operands[0], 1, _along(shape, dims, self.blocks))
            elif op.name == "tt.trans":
                pending.append(op)
        for op in reversed(pending):
            wish = self._wishes.get(self._find(op.results[0]))
            if wish is not None:
                order = ints_of(op.properties["order"])
                back = tuple(tuple(basis[order.index(d)] for d in range(len(order))) for basis in wish[1])
                self._wish(op.operands[0], wish[0], back)

    def _find(self, value: SSAValue) -> SSAValue:
        while (leader := self._leader.get(value, value)) is not value:
            value = leader
        return value

    def _unite(self, values: Sequence[SSAValue]) -> None:
        tiles = [x for x in values if is_tensor(x.type)]
        for value in tiles[1:]:
            a, b = self._find(tiles[0]), self._find(value)
            if a is not b and shape_of(a.type) == shape_of(b.type):
                self._leader[b] = a

    def _wish(self, value: SSAValue, weight: int, division: Bases) -> None:
        leader = self._find(value)
        if weight > self._wishes.get(leader, (0, ()))[0]:
            self._wishes[leader] = weight, division
