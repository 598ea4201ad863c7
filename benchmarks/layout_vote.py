"""The layouts that a vote gives the tiles of a function, as Weft chose them before it chose by cost.

Tiles that should have the same layout form a group, across the ends of loops too. The operations vote for its layout:

    weight  who votes         for what
    6       products          the accumulator's layout of the matrix instruction
    5       reductions        the operand's layout without the axis
    4       small loads       the rows or columns of the tile that they are spread over, if few instructions load them
    3       loads, atomics    vectors along consecutive addresses; of several, the longest vectors, unless another
                              access cannot take them: rows at any address are accessed lane by lane
    2       stores            the same
    1       views             the operand's layout seen through the view; for a row or column, the layout of the tile
                              that it is spread over

A group gets the layout with the most weight, and the first of several with the same weight. An access uses the layout
of its group if that has vectors as long as its addresses allow, or shorter ones for rows at any address. A vote may
depend on the layout of another group. A group whose votes are being counted has no layout yet, so cycles end.
"""

# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from weft import ir
from weft.layouts import BlockedLayout, DistributedLayout, LinearLayout, SliceLayout
from weft.layouts.plan import vector_width
from weft.passes.blocks_of_clusters import own_shape
from weft.passes.blocks_of_threads import VECTOR_BITS
from weft.passes.layout_choices import Choices
from weft.passes.layout_problem import Chosen
from weft.passes.natural_layouts import SHAPES, linear_of
from weft.passes.row_loads import copied_row
from weft.passes.tile_groups import ACCESSES, TOGETHER, TileGroups, carried

PRODUCT, REDUCTION, SPREAD, LOAD, STORE, VIEW = 6, 5, 4, 3, 2, 1
SMALL_LOADS = 4
"""Instructions of a thread, at most, for a small load that every warp does for itself."""


@dataclass(frozen=True, eq=False)
class Vote:
    """A vote for a layout, or for what a function returns when votes are counted."""

    weight: int
    wish: Any
    narrow: bool = False
    """Whether it comes from an access to consecutive addresses that are not aligned to longer vectors."""

    def layout(self) -> Any:
        """The layout voted for; None if there turns out to be none."""
        return self.wish if isinstance(self.wish, DistributedLayout | LinearLayout) else self.wish()


class Election(TileGroups):
    """The layouts of a function, of which choices know the accesses and the products."""

    def __init__(self, choices: Any, block: Any) -> None:
        super().__init__()
        self.choices, self.facts = choices, choices.facts
        self.rows: dict[Any, Any] = {}
        """The layouts of small loads that are loaded as they are spread, or are copied."""
        self.narrow: set[Any] = set()
        """Layouts with short vectors that were chosen for what cannot take longer ones."""
        self._votes: dict[Any, list[Vote]] = {}
        self._chosen: dict[Any, Any] = {}
        self._open: set[Any] = set()
        self._undecided: set[Any] = set()
        """Groups without a vote until the groups that are being counted have a layout."""
        self.study(block)
        for op in choices.accesses:
            self._unite_gather(op)
        for value in choices.tiles:
            self.of(value)

    # -- counting ------------------------------------------------------------------------------------------------------

    def of(self, value: Any) -> Any:
        """The layout of a tile that is not free."""
        leader = self.find(value)
        layout = self._elected(leader)
        if layout is None:
            division = self.choices.clusters.of(leader)
            layout = self._chosen[leader] = self.choices.default(ir.shape_of(leader.type), division)
        return layout

    def _elected(self, leader: Any) -> Any:
        if leader in self._chosen:
            return self._chosen[leader]
        self._open.add(leader)
        layout = self._count(leader)
        self._open.discard(leader)
        if not self._open:
            self._undecided.clear()
        if layout is not None:
            self._chosen[leader] = layout
        return layout

    def _count(self, leader: Any) -> Any:
        """What has the most weight; an access lengthens the vectors of others along the same order, unless one is
        narrow: in each of several accesses for a thread's longer piece the lanes would leave gaps between them."""
        best, weight = None, 0
        narrow: dict[Any, None] = {}
        for vote in sorted(self._votes.get(leader, ()), key=lambda v: -v.weight):
            if best is not None and vote.weight < weight and not (weight == LOAD and vote.weight == STORE):
                break
            layout = vote.layout()
            if layout is None:
                continue
            if best is None:
                best, weight = layout, vote.weight
            elif has_longer_vectors(layout, best) and (vote.weight == weight or has_order_of(layout, best)):
                best = layout
            if vote.narrow:
                narrow[layout] = None
        for layout in narrow if weight in (LOAD, STORE) else ():
            if has_order_of(layout, best) and has_longer_vectors(best, layout):
                best = layout
        self.narrow |= {best} & narrow.keys() if best is not None else set()
        return best

    def known(self, value: Any) -> Any:
        """The layout of a tile, as far as it is known while others are chosen, and an operation asked for it."""
        if self.is_free(value) or not ir.is_tensor(value.type):
            return None
        if self.is_view(value):
            inner = self.known(value.owner.operands[0])
            return self.choices.seen([value.owner], inner) if inner is not None else None
        leader = self.find(value)
        if leader in self._open or leader in self._undecided:
            return None
        if not self._open:
            return self.of(value)
        layout = self._elected(leader)
        if layout is None:
            self._undecided.add(leader)
        return layout

    # -- votes ---------------------------------------------------------------------------------------------------------

    def _unite(self, values: Any) -> None:
        for kept, gone in self.unite(values):
            self._votes.setdefault(kept, []).extend(self._votes.pop(gone, []))

    def _vote(self, value: Any, weight: int, wish: Any, narrow: bool = False) -> None:
        if self.has_layout(value):
            self._votes.setdefault(self.find(value), []).append(Vote(weight, wish, narrow))

    def study(self, block: Any) -> None:
        """Groups and votes of a block and those in it."""
        products = self.choices.products
        for op in block.ops:
            if op.name.startswith("scf."):
                for region in op.regions:
                    for inner in region.blocks:
                        self.study(inner)
                for group in carried(op):
                    self._unite(group)
            elif op.name in ACCESSES and ir.is_tensor(op.operands[0].type):
                self._access(op)
            elif op in products:
                self._unite([op.operands[2], op.results[0]])
                self._vote(op.results[0], PRODUCT, products[op])
            elif op.name in TOGETHER:
                self._together(op)
            elif op.name == "tt.gather":
                self._unite([op.operands[1], op.results[0]])
            elif op.results and any(ir.is_tensor(r.type) for r in op.results):
                is_reduced = op.name == "tt.reduce"
                for values in (list(op.operands), list(op.results)) if is_reduced else ():
                    self._unite(values)
                for result in op.results[:1] if is_reduced else op.results:
                    self._vote(result, REDUCTION if is_reduced else VIEW, partial(self._natural, op))

    def _natural(self, op: Any) -> Any:
        layout = self.known(op.operands[0]) if op.name in SHAPES else None
        return self.choices.natural(op, layout) if layout is not None else None

    def _together(self, op: Any) -> None:
        values = [*op.operands, *op.results]
        self._unite(values)
        for value in values:
            if self.is_view(value) and not self.is_free(value):
                for other in values:
                    self._vote(other, VIEW, partial(self.known, value))
            for use in value.uses:
                if use.operation.name == "tt.broadcast":
                    spread = use.operation.results[0]
                    self._vote(value, VIEW, lambda spread=spread: next(self._around(spread), None))

    def _access(self, op: Any) -> None:
        pointer, layout = op.operands[0], self.choices.accesses[op]
        shape, narrow = ir.shape_of(pointer.type), self._is_narrow(pointer, layout)
        for result in op.results:
            self._vote(result, LOAD, layout, narrow)
            self._vote(result, LOAD, partial(self._of_addresses, pointer, layout))
        own = own_shape(shape, self.choices.clusters.of(pointer))
        if op.name == "tt.load" and prod(own) == max(own) <= self.choices.lanes * self.choices.warps:
            self._vote(op.results[0], SPREAD, lambda: self._row(op, layout))
        for i, value in enumerate(op.operands):
            self._vote(value, LOAD if i == 0 else STORE, layout, narrow)

    def _is_narrow(self, pointer: Any, layout: BlockedLayout) -> bool:
        """Whether consecutive addresses are not aligned to vectors as long as they might be."""
        along = layout.order[0]
        most = min(VECTOR_BITS // bits_at(pointer), ir.shape_of(pointer.type)[along])
        return layout.size_per_thread[along] < most <= self.facts.of(pointer).contiguity[along]

    def _unite_gather(self, op: Any) -> None:
        """What is loaded element by element lies as the addresses that are computed from what was loaded."""
        pointer = op.operands[0]
        if op.name != "tt.load" or max(self.choices.accesses[op].size_per_thread) > 1 or self.is_free(pointer):
            return
        groups = [self.find(x) for x in (pointer, op.results[0])]
        if not any(v.weight > LOAD for g in groups for v in self._votes.get(g, ())):
            self._unite([pointer, op.results[0]])

    def _of_addresses(self, pointer: Any, wish: BlockedLayout) -> Any:
        """The layout of addresses that are computed from what was loaded, where a thread has as many in a row."""
        layout = None if self.is_free(pointer) or self.is_view(pointer) else self.known(pointer)
        return layout if has_order_of(layout, wish) and covers(layout, wish) else None

    def access(self, op: Any) -> Any:
        """The layout of an access: that of what it loads, or of its pointers, if that has vectors as long, or others
        that are loaded with it have none."""
        wish, row = self.choices.accesses[op], self.rows.get(op)
        if row is not None and self.known(op.results[0]) == row:
            return row
        for value in (*op.results, *op.operands[:2]):
            layout = self.of(value) if self.has_layout(value) else None
            if has_order_of(layout, wish) and (covers(layout, wish) or layout in self.narrow):
                return layout
        return wish

    # -- small loads ---------------------------------------------------------------------------------------------------

    def _row(self, op: Any, default: Any) -> Any:
        """The layout of a row or column that is loaded: so that it can be copied ahead, or as it is spread."""
        choices, layout = self.choices, self._spread(op)
        if choices.ahead and not choices.clusters.of(op.operands[0]):
            given = layout if layout is not None else default
            layout = copied_row(op, given, self.facts, choices.lanes, choices.warps) or layout
        if layout is not None:
            self.rows[op] = layout
        return layout

    def _spread(self, op: Any) -> Any:
        """The layout in which a row or column is spread over a tile, if few instructions load it so."""
        for use in op.results[0].uses:
            view = use.operation
            for parent in self._around(view.results[0]) if view.name in ("tt.expand_dims", "tt.broadcast") else ():
                is_slice = view.name == "tt.expand_dims"
                layout = SliceLayout(ir.int_value(view.properties["axis"]), parent) if is_slice else parent
                if self._accesses_of(op, layout) <= SMALL_LOADS:
                    return layout
        return None

    def _around(self, view: Any) -> Iterator[Any]:
        """Layouts of the tiles that a view is combined with element by element."""
        for use in view.uses:
            op = use.operation
            if op.name == "tt.broadcast":
                yield from self._around(op.results[0])
            elif op.name in TOGETHER:
                layout = self.known(op.results[0]) if len(op.results) == 1 else None
                if isinstance(layout, DistributedLayout):
                    yield layout

    def _accesses_of(self, op: Any, layout: Any) -> int:
        """How many instructions of a thread load a row or column in a layout."""
        pointer = op.operands[0]
        shape, facts = ir.shape_of(pointer.type), self.facts.of(pointer)
        along = max(range(len(shape)), key=lambda d: shape[d])
        if facts.constancy[along] >= shape[along]:
            return 1
        linear, bits = linear_of(layout, list(shape)), bits_at(pointer)
        order = [along, *(d for d in range(len(shape)) if d != along)]
        run = min(vector_width(linear, shape, bits, order), facts.contiguity[along])
        run = min(run, facts.divisibility[along] * 8 // bits)
        kept = linear.in_dims["register"] >> linear.free_variable_masks()["register"].bit_count()
        return kept // max(1, run)


class Voted(Choices):
    """Layouts by vote: nothing is wished through other tiles, priced or solved."""

    def decide(self, block: Any) -> None:
        """Look at a function, and elect the layout of every tile."""
        self.clusters.study(block, self.alike(block))
        self.study(block)
        self.tiles = list(self._tiles(block))
        election = Election(self, block)
        groups = {leader: election.of(leader) for leader in map(self.find, self.tiles)}
        self._chosen = Chosen(groups, {op: election.access(op) for op in self.accesses})


def bits_at(pointer: Any) -> int:
    """How many bits the elements have that the pointers of a tile point at."""
    element = ir.element_of(pointer.type)
    return max(8, ir.bit_width(element.pointee)) if ir.is_pointer(element) else 64


def has_longer_vectors(a: Any, b: Any) -> bool:
    """Whether a thread has more in a row in a layout than in another one."""
    are_blocked = isinstance(a, BlockedLayout) and isinstance(b, BlockedLayout)
    return are_blocked and max(a.size_per_thread) > max(b.size_per_thread)


def has_order_of(a: Any, b: Any) -> bool:
    """Whether two layouts go along dimensions in the same order."""
    return isinstance(a, BlockedLayout) and isinstance(b, BlockedLayout) and a.order == b.order


def covers(layout: BlockedLayout, needed: BlockedLayout) -> bool:
    """Whether a thread has as many elements in a row as another layout wants, or more."""
    return all(a >= b for a, b in zip(layout.size_per_thread, needed.size_per_thread, strict=True))
