"""Which layout each tile is to have: tiles that should agree are a group, and operations vote.

Idea
----
Moving a tile between layouts is what costs, so tiles that are combined element by element should lie alike. They are
put into one group: operands and results of an element-wise operation, what a loop carries, what both sides of a branch
hand on. Then each operation that is fast in one particular layout votes for it, and each group gets the layout with
the most weight. Where an operation wants another one than its group has, `assign_layouts` inserts a conversion.

    weight  who votes         for what
    6       products          the accumulator's layout of the matrix instruction
    5       reductions        the operand's layout without the axis
    4       small loads       (of no more elements than threads) the rows or columns of the tile they are spread over:
                              every warp loads its own, and nothing is moved
    3       loads, atomics    vectors along consecutive addresses; of several, the longest vectors, unless another
                              access cannot take them: rows at any address are accessed lane by lane
    2       stores            the same
    1       views             the operand's layout seen through the view; for a row or column, the layout of the tile
                              that it is spread over

A tile that can be computed anywhere (a range, a constant, what is made of them) is *free*: it has no layout of its own
and is in no group. Whoever wants it gets one made, in any layout, and nothing moves. The same holds of views
(`broadcast`, `expand_dims`, `splat`). Groups are kept by tile_groups.py; row_loads.py knows the small loads.

Example
-------
A transposing copy of a 64x64 tile of f16 by 4 warps:

    %x = tt.load %p                   addresses run along axis 1: a vote of 3 for [1, 8] elements of a thread
    %y = arith.addf %x, %x
    tt.store %q, %y                   addresses run along axis 0: a vote of 2 for [8, 1]

    >>> loaded = blocked_for((64, 64), [1, 0], 8, lanes=32, warps=4)
    >>> stored = blocked_for((64, 64), [0, 1], 8, lanes=32, warps=4)
    >>> print(loaded)
    BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    >>> print(stored)
    BlockedLayout([8, 1], [8, 4], [1, 4], [0, 1])

%x and %y are one group, and so is what the store takes: three tiles, one vote of each kind. The load wins, %y is
computed as it was loaded, and the store's operand is converted, once, to [8, 1]: both accesses move 16 bytes of each
thread, and 8 KiB go through shared memory once. %p and %q are free: their ranges are computed in both layouts. Had the
store won, the conversion would stand before the addition; it would cost the same here, and twice as much if %x and
another load were added.

Invariants
----------
* Votes are counted by weight, of one weight in the order of the program. A vote may ask for the layout of another
  group; a group that is being counted has none yet (`_open`), so that circles end.
* A group keeps its layout once it is chosen. Tiles that a rewrite puts in the place of others join their groups
  (`stands_for`).
* Every group gets a layout: one that nobody votes for gets the default, four elements of a thread along the last axis.
  A default never decides for others: where a row without a vote is spread over a tile, the tile decides.

Why votes, and not costs
------------------------
The obvious alternative is to price whole assignments: every operation in every layout, every conversion by its plan.
Layouts are many (each access, each view of it, each operand of each product), conversions depend on pairs of them, and
the choice for one tile is a price for all of its neighbours. Votes decide in one walk over the function. What remains
to be moved is moved in the cheapest way that its plan finds (layouts/plan/), and tiles whose layout nothing sees are
laid out anew for memory (recoalesce.py). Triton's way, a blocked layout for everything, then coalescing, then removal
of conversions (its passes `coalesce` and `remove-layout-conversions`), finds the same layouts for simple kernels by
inserting conversions first and searching for those that can go; here they are not made.

That every operation on shapes has a layout in which it moves nothing, so that groups can reach through it, is theorem
9.3 of Zhou et al., Linear Layouts (arXiv 2505.23819); the votes are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import prod

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts
from weft.base import LayoutError, each_once
from weft.base.remarks import InstructionDeclined, LayoutChosen, RemarkCollector, Wish
from weft.ir.gpu import told_layout
from weft.layouts import BlockedLayout, DistributedLayout, DotOperandLayout, LinearLayout, SliceLayout
from weft.machines import Machine
from weft.targets.table import products

from .blocks_of_clusters import Bases, Clusters, divided, own_shape
from .blocks_of_threads import VECTOR_BITS, access_layout, blocked_for, multiplying_layout
from .matrix_layouts import matrix_layouts
from .natural_layouts import SHAPES, AnyLayout, joined_layout, linear_of, natural_result
from .row_loads import RowLoads
from .tile_groups import ACCESSES, MOVED_VIEWS, TOGETHER, TileGroups, carried
from .vendor import passes_of

PRODUCT, REDUCTION, SPREAD, LOAD, STORE, VIEW = 6, 5, 4, 3, 2, 1
DOTS = ("tt.dot", "tt.dot_scaled")


@dataclass(frozen=True, eq=False)
class _Vote:
    weight: int
    by: Operation
    wish: AnyLayout | Callable[[], AnyLayout | None]
    """The layout, or what finds it when votes are counted."""
    narrow: bool = False
    """Whether it is of an access whose addresses are consecutive, but not aligned to longer vectors than these."""

    def layout(self) -> AnyLayout | None:
        """The layout that is wished; None if there is none after all."""
        return self.wish if isinstance(self.wish, DistributedLayout | LinearLayout) else self.wish()


class Choices(TileGroups):
    """The layouts of one function; made while types are plain."""

    def __init__(self, machine: Machine, warps: int, blocks: int = 1, ahead: bool = False) -> None:
        super().__init__()
        self.machine, self.warps, self.lanes = machine, warps, machine.lanes
        self.adds = passes_of(machine)
        self.ahead = ahead
        """Whether loads for products are copied iterations ahead."""
        self.clusters = Clusters(blocks)
        self.facts = AxisFacts()
        self.accesses: dict[Operation, BlockedLayout] = {}
        self.rows = RowLoads(self.facts, self.clusters, (self.lanes, warps), ahead, self.known)
        self.products: dict[Operation, AnyLayout] = {}
        """The layouts of their results."""
        self.declined: dict[Operation, str] = {}
        """Why they are not products of several warps together."""
        self.operands: dict[Operation, list[AnyLayout]] = {}
        """The layouts of the two operands of each product whose operands lie in registers; of a scaled one, of all."""
        self.narrow: set[AnyLayout] = set()
        """Layouts with short vectors that were chosen for what cannot take longer ones."""
        self.tiles: list[SSAValue] = []
        """The tiles that have a layout of their own."""
        self._spreads: dict[SSAValue, list[SSAValue]] = {}
        self._votes: dict[SSAValue, list[_Vote]] = {}
        self._chosen: dict[SSAValue, AnyLayout] = {}
        self._counted: dict[_Vote, AnyLayout | None] = {}
        """What was wished when votes were counted."""
        self._won: dict[SSAValue, Operation] = {}
        """Who asked for the layout of a group; nobody for the default."""
        self._open: set[SSAValue] = set()
        self._undecided: set[SSAValue] = set()
        """Groups for which nothing speaks as long as those that are open are not chosen."""

    def decide(self, block: Block) -> None:
        """Look at a function, and choose the layout of every tile, while operations are as they were."""
        self.clusters.study(block, self.alike(block))
        self.study(block)
        for op in list(self.accesses):
            self._unite_gather(op)
        self.tiles = list(self._tiles(block))
        for value in self.tiles:
            self.of(value)

    def _tiles(self, block: Block) -> Iterator[SSAValue]:
        """The tiles that have a layout of their own."""
        for op in ir.walk(block):
            arguments = [a for r in op.regions for b in r.blocks for a in b.args]
            for value in (*op.results, *arguments):
                if self.has_layout(value):
                    yield value

    def tell(self, remarks: RemarkCollector) -> None:
        """Say of each group which layout it has, who asked for it, and who for another; after `decide`."""
        groups: dict[SSAValue, tuple[SSAValue, dict[str, None]]] = {}
        for value in self.tiles:
            _, names = groups.setdefault(self.find(value), (value, {}))
            if value.name_hint:
                names[value.name_hint] = None
        texts: dict[int, str] = {}

        def text(layout: AnyLayout) -> str:
            return texts.get(id(layout)) or texts.setdefault(id(layout), told_layout(layout))

        told: set[tuple[int, str]] = set()
        for leader, (first, names) in groups.items():
            layout, won, others = text(self._chosen[leader]), self._won.get(leader), dict[Wish, None]()
            place = id(won.location) if won is not None else 0, layout
            if not names and place in told:  # one of many that a function makes which was inlined here
                continue
            told.add(place)
            for vote in self._votes.get(leader, ()):
                wish = self._counted.get(vote, vote.wish)
                if isinstance(wish, DistributedLayout | LinearLayout) and text(wish) != layout:
                    others[Wish(ir.site_of(vote.by), text(wish))] = None
            by = ir.site_of(won) if won is not None else None
            tile = ir.span_of_value(first), ir.tile_text(first.type), tuple(names), layout
            remarks.add(LayoutChosen(*tile, by, tuple(others)))
        for op, reason in self.declined.items():
            remarks.add(InstructionDeclined(ir.site_of(op).span, self.adds.of_memory, reason))

    # -- groups -----------------------------------------------------------------------------------------------------

    def _unite(self, values: Sequence[SSAValue]) -> None:
        """Put tiles into one group, and their votes together."""
        for kept, gone in self.unite(values):
            self._votes.setdefault(kept, []).extend(self._votes.pop(gone, []))

    def _vote(
        self,
        by: Operation,
        value: SSAValue,
        weight: int,
        layout: AnyLayout | Callable[[], AnyLayout | None],
        narrow: bool = False,
    ) -> None:
        if self.has_layout(value):
            self._votes.setdefault(self.find(value), []).append(_Vote(weight, by, layout, narrow))

    def default(self, shape: Sequence[int], division: Bases | None = None) -> BlockedLayout:
        """The layout of tiles for which nothing speaks."""
        cga = self.clusters.default(shape) if division is None else division
        order = list(reversed(range(len(shape))))
        return divided(blocked_for(own_shape(shape, cga), order, 4, self.lanes, self.warps), cga)

    def of(self, value: SSAValue) -> AnyLayout:
        """The layout of a tile that is not free."""
        leader = self.find(value)
        layout = self._elected(leader)
        if layout is None:
            layout = self._chosen[leader] = self.default(ir.shape_of(leader.type), self.clusters.of(leader))
        return layout

    def _elected(self, leader: SSAValue) -> AnyLayout | None:
        """The layout of a group, if something speaks for one."""
        layout = self._chosen.get(leader)
        if layout is not None:
            return layout
        self._open.add(leader)
        layout = self._count(leader)
        self._open.discard(leader)
        if not self._open:
            self._undecided.clear()
        if layout is not None:
            self._chosen[leader] = layout
        return layout

    def _count(self, leader: SSAValue) -> AnyLayout | None:
        """What has the most weight; an access lengthens the vectors of others along the same order.

        Unless one of them is narrow: a thread would take its longer piece of consecutive elements in several accesses,
        and in each of them the lanes would leave gaps between them. Elements of 2 bytes in pieces of 16: eight accesses
        of 32 sectors each for what eight accesses of 2 or 3 sectors do, and a wide access done in narrow pieces costs
        only that it is several.
        """
        best: AnyLayout | None = None
        weight, by = 0, None
        narrow: dict[AnyLayout, Operation] = {}
        for vote in sorted(self._votes.get(leader, ()), key=lambda v: -v.weight):
            if best is not None and vote.weight < weight and not (weight == LOAD and vote.weight == STORE):
                break
            layout = self._counted[vote] = vote.layout()
            if layout is None:
                continue
            if best is None:
                best, weight, by = layout, vote.weight, vote.by
            elif _has_longer_vectors(layout, best) and (vote.weight == weight or _has_order_of(layout, best)):
                best, by = layout, vote.by
            if vote.narrow:
                narrow.setdefault(layout, vote.by)
        for layout, narrow_access in narrow.items() if weight in (LOAD, STORE) else ():
            if best is not None and _has_order_of(layout, best) and _has_longer_vectors(best, layout):
                best, by = layout, narrow_access
        self.narrow |= {best} & narrow.keys() if best is not None else set()
        if by is not None:
            self._won[leader] = by
        return best

    def known(self, value: SSAValue) -> AnyLayout | None:
        """The layout of a tile, as far as it is known while others are chosen; None for one that is free.

        None as well if no operation asked for a layout: the default layout of a row must not decide the layout of the
        tile that it is broadcast to; the tile decides.
        """
        if self.is_free(value) or not ir.is_tensor(value.type):
            return None
        if self.is_view(value):
            return self._of_view(value)
        leader = self.find(value)
        if leader in self._open or leader in self._undecided:
            return None
        if not self._open:
            return self.of(value)
        layout = self._elected(leader)
        if layout is None:
            self._undecided.add(leader)
        return layout

    def _of_view(self, value: SSAValue) -> AnyLayout | None:
        op = value.owner
        assert isinstance(op, Operation)
        inner = self.known(op.operands[0])
        if inner is None or isinstance(inner, LinearLayout) or op.name in MOVED_VIEWS:
            return None
        if op.name == "tt.broadcast":
            return None if self._repeats(inner, ir.shape_of(value.type)) else inner
        if isinstance(inner, SliceLayout) and inner.dim == ir.int_value(op.properties["axis"]):
            return inner.parent
        return None

    def _repeats(self, layout: DistributedLayout, shape: Sequence[int]) -> bool:
        """Whether threads hold more copies of a tile than they have to.

        So they would where a row or column of few elements is spread over a tile along the axis in which its own layout
        has no threads: [1, 1] over [1, 2048] as 2048 registers of each thread, all threads the same.
        """
        free = layout.to_linear(list(shape)).free_variable_masks()
        copies = 1 << free["lane"].bit_count() + free["warp"].bit_count()
        return copies > max(1, self.lanes * self.warps // prod(shape))

    # -- looking at operations ----------------------------------------------------------------------------------------

    def study(self, block: Block) -> None:
        """Groups and votes of a block and those in it."""
        for op in block.ops:
            if op.name.startswith("scf."):
                self._control(op)
            elif op.name in ACCESSES and ir.is_tensor(op.operands[0].type):
                self._access(op)
            elif op.name == "tt.dot":
                self._product(op)
            elif isinstance(op, ir.tt.DotScaledOp):
                self._scaled_product(op)
            elif op.name in TOGETHER:
                self._together(op)
            elif op.results and any(ir.is_tensor(r.type) for r in op.results):
                self._other(op)

    def _together(self, op: Operation) -> None:
        values = [*op.operands, *op.results]
        self._unite(values)
        for value in values:
            if self.is_view(value) and not self.is_free(value):
                for other in values:
                    self._vote(op, other, VIEW, lambda value=value: self.known(value))  # type: ignore[misc]
            for spread in self._spread_from(value):
                self._vote(op, value, VIEW, partial(self.rows.first_around, spread))

    def _spread_from(self, value: SSAValue) -> list[SSAValue]:
        """The tiles that a row or column is spread over; kept, as one value may have thousands of uses."""
        spreads = self._spreads.get(value)
        if spreads is None:
            users = [use.operation for use in value.uses]
            spreads = self._spreads[value] = [op.results[0] for op in users if op.name == "tt.broadcast"]
        return spreads

    def _control(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.study(block)
        for group in carried(op):
            self._unite(group)

    def _access(self, op: Operation) -> None:
        pointer = op.operands[0]
        element = ir.element_of(pointer.type)
        bits = max(8, ir.bit_width(element.pointee)) if ir.is_pointer(element) else 64  # type: ignore[attr-defined]
        moved = next((x for x in (*op.results, *op.operands[1:2], pointer) if not self.is_free(x)), pointer)
        cga = self.clusters.of(moved)
        shape = own_shape(ir.shape_of(pointer.type), cga)
        layout = access_layout(shape, self.facts.of(pointer), bits, self.lanes, self.warps)
        layout = divided(self.adds.access_layout(op, layout, bits, self.machine, self.warps), cga)
        self.accesses[op] = layout
        narrow = self._is_narrow(pointer, layout, bits)
        for result in op.results:
            self._vote(op, result, LOAD, layout, narrow)
            self._vote(op, result, LOAD, lambda: self._of_addresses(pointer, layout))
        if op.name == "tt.load" and prod(shape) == max(shape) <= self.lanes * self.warps:
            self._vote(op, op.results[0], SPREAD, lambda: self.rows.layout_of(op, layout))
        for i, value in enumerate(op.operands):
            self._vote(op, value, LOAD if i == 0 else STORE, layout, narrow)

    def _is_narrow(self, pointer: SSAValue, layout: BlockedLayout, bits: int) -> bool:
        """Whether consecutive addresses are not aligned to vectors as long as they might be."""
        along = layout.order[0]
        most = min(VECTOR_BITS // bits, ir.shape_of(pointer.type)[along])
        return layout.size_per_thread[along] < most <= self.facts.of(pointer).contiguity[along]

    def _unite_gather(self, op: Operation) -> None:
        """What is loaded element by element lies as the addresses that are computed from what was loaded.

        So one is not moved to the other, and what the addresses are computed of is not computed in two layouts. What
        products and reductions lay out, or rows and columns as they are spread, stays apart.
        """
        pointer = op.operands[0]
        if op.name != "tt.load" or max(self.accesses[op].size_per_thread) > 1 or self.is_free(pointer):
            return
        groups = [self.find(x) for x in (pointer, op.results[0])]
        if not any(v.weight > LOAD for g in groups for v in self._votes.get(g, ())):
            self._unite([pointer, op.results[0]])

    def _of_addresses(self, pointer: SSAValue, wish: AnyLayout) -> AnyLayout | None:
        """The layout of addresses that are computed from what was loaded, where a thread has as many in a row."""
        layout = None if self.is_free(pointer) or self.is_view(pointer) else self.known(pointer)
        alike = isinstance(layout, BlockedLayout) and isinstance(wish, BlockedLayout) and layout.order == wish.order
        return layout if alike and _covers(layout, wish) else None  # type: ignore[arg-type]

    def access(self, op: Operation) -> AnyLayout:
        """The layout of an access: that of what it loads, or of its pointers, if that has vectors as long, or others
        that are loaded with it have none.
        """
        wish = self.accesses[op]
        row = self.rows.layouts.get(op)
        if row is not None and self.known(op.results[0]) == row:
            return row
        for value in (*op.results, *op.operands[:2]):
            layout = None if self.is_free(value) or self.is_view(value) else self.of(value)
            alike = isinstance(layout, BlockedLayout) and layout.order == wish.order
            if isinstance(layout, BlockedLayout) and alike and (_covers(layout, wish) or layout in self.narrow):
                return layout
        return wish

    def _product(self, op: Operation) -> None:
        result = op.results[0]
        cga = self.clusters.products.get(op, ())
        shape, a = own_shape(ir.shape_of(result.type), cga), op.operands[0]
        elements = [str(ir.element_of(x.type)) for x in op.operands]
        assert isinstance(op, ir.tt.DotOp)
        precise, access = op.is_precise, self.accesses.get
        group = "" if precise else self.adds.product_layout(op, shape, self.machine, self.warps, access)
        entries = products(self.machine, *elements, precise=precise) if isinstance(group, str) else ()
        depth, fed = ir.shape_of(a.type)[-1], _reaches(a, forward=False)
        chained = fed or _is_chained(op)
        asked = self.adds.asked(op, entries, self.machine, chained)
        laid = matrix_layouts(asked, shape, depth, self.machine, self.warps, chained, cga, fed=fed)
        if not isinstance(group, str):
            layout: AnyLayout = divided(group, cga)
        elif laid is not None:
            *self.operands[op], layout = laid
        else:
            layout = lanes = divided(multiplying_layout(shape, self.lanes, self.warps), cga)
            self.operands[op] = [DotOperandLayout(i, lanes, 0) for i in range(2)]
        if isinstance(group, str) and group:
            self.declined[op] = group
        self.products[op] = layout
        self._unite([op.operands[2], result])
        self._vote(op, result, PRODUCT, layout)

    def _scaled_product(self, op: ir.tt.DotScaledOp) -> None:
        layouts = self.adds.scaled_layouts(op, self.machine, self.warps, _is_chained(op))
        assert layouts is not None, "scaled products that no instruction does were taken apart"
        self.operands[op], self.products[op] = list(layouts), layouts[2]
        self._unite([op.c, op.d])
        self._vote(op, op.d, PRODUCT, layouts[2])

    def _other(self, op: Operation) -> None:
        if op.name == "tt.reduce":
            self._unite(list(op.operands))
            self._unite(list(op.results))
            weight = REDUCTION
        elif op.name == "tt.gather":
            self._unite([op.operands[1], op.results[0]])
            return
        else:
            weight = VIEW
        for result in op.results:
            if result is op.results[0] or op.name != "tt.reduce":
                self._vote(op, result, weight, lambda: self.natural(op))

    def natural(self, op: Operation) -> AnyLayout | None:
        """The layout in which an operation on shapes gives its result without moving anything, if that is known."""
        layout = self.known(op.operands[0]) if op.name in SHAPES else None
        if layout is None:
            return None
        try:
            if op.name == "tt.join":
                return joined_layout(linear_of(layout, list(ir.shape_of(op.operands[0].type))))
            return natural_result(op, layout)
        except LayoutError:
            return None


def _has_longer_vectors(a: AnyLayout, b: AnyLayout) -> bool:
    return (
        isinstance(a, BlockedLayout)
        and isinstance(b, BlockedLayout)
        and max(a.size_per_thread) > max(b.size_per_thread)
    )


def _has_order_of(a: AnyLayout, b: AnyLayout) -> bool:
    return isinstance(a, BlockedLayout) and isinstance(b, BlockedLayout) and a.order == b.order


def _covers(layout: BlockedLayout, needed: BlockedLayout) -> bool:
    return all(a >= b for a, b in zip(layout.size_per_thread, needed.size_per_thread, strict=True))


def _is_chained(op: Operation) -> bool:
    """Whether the result of a product becomes an operand of another one, or is made of one's result."""
    return _reaches(op.results[0], forward=True) or any(_reaches(x, forward=False) for x in op.operands[:2])


def _reaches(value: SSAValue, forward: bool) -> bool:
    todo = [value]
    for x in islice(each_once(todo), 201):
        if forward:
            for use in x.uses:
                if use.operation.name in DOTS and use.index < 2:
                    return True
                if use.operation.name not in (*DOTS, "scf.yield"):
                    todo += use.operation.results
        elif not isinstance(x, BlockArgument) and isinstance(x.owner, Operation):
            if x.owner.name in DOTS:
                return True
            if not x.owner.regions:
                todo += x.owner.operands
    return False
