"""Which layout each tile is to have: those that cost the least together, found over the whole function.

Idea ---- Operands and results of an elementwise operation have the same layout, and so have loop-carried tiles and
those that both sides of a branch yield: such tiles form a group (tile_groups.py). The candidates for a group are
layouts that operations wish for. Each layout has a price in each operation (layout_prices.py), and between neighbours
with different layouts there is a conversion, at the price of its plan times the iterations of the loops around it. The
sum over the function is minimised (cheapest.py). If two layouts cost the same, the first of this list is taken:

    products          the accumulator's layout of the matrix instruction
    reductions        the operand's layout without the axis
    rows, columns     the layout of the tile that they are spread over
    loads, atomics    vectors along consecutive addresses
    stores            the same
    views, shapes     the operand's layout seen through the view

Tiles of different loops are in different groups, and a reduction or a scan may be done in a layout of its own.

An access has a layout of its own. It is that which its addresses wish for, with a conversion to what its group has, or
the one of its group: with shorter vectors, or lanes in more sectors, or elements that every warp loads for itself, as
long as that costs less than moving the tile.

A tile that any thread can compute (a range, a constant, and values computed from these) is *free*: it has no layout of
its own and is in no group. Each user gets a copy computed in the layout that it wants, and nothing moves. The same
holds for views (`broadcast`, `expand_dims`, `splat`).

Example
-------
A transposing copy of a 64x64 tile of f16 by 4 warps:

    %x = tt.load %p                   addresses run along axis 1: [1, 8] elements of a thread
    %y = arith.addf %x, %x
    tt.store %q, %y                   addresses run along axis 0: [8, 1]

    >>> loaded = blocked_for((64, 64), [1, 0], 8, lanes=32, warps=4)
    >>> stored = blocked_for((64, 64), [0, 1], 8, lanes=32, warps=4)
    >>> print(loaded)
    BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    >>> print(stored)
    BlockedLayout([8, 1], [8, 4], [1, 4], [0, 1])

%x and %y are one group with two candidate layouts, and each access has the same two. If all have [1, 8], the store
touches a sector for every element; if the store has [8, 1], there is a conversion in front of it, which costs less. The
group may have either, since the conversion costs the same before the addition. So it gets the first of the list, the
load's.

Invariants
----------
* All candidates ("ways") are found before any is chosen: the wishes of operations, and their images through views and
  operations on shapes, in either direction for rows and columns. A group has at most `MOST_WAYS`. A group with one way
  needs no choice.
* A group for which no operation has a wish gets the default, four elements of a thread along the last axis. A row that
  is broadcast to such a tile gets the tile's layout.
* Prices are computed only where ways differ: most functions have one or two groups with more than one way.
* Tiles that a rewrite puts in the place of others join their groups (`stands_for`).

The remaining conversions use the cheapest plan (layouts/plan/). Tiles of one dimension whose layout no operation
depends on are laid out anew for memory (recoalesce.py). Decision 46 has the alternatives.

That every operation on shapes has a layout in which it moves nothing, so that groups can reach through it, is theorem
9.3 of Zhou et al., Linear Layouts (arXiv 2505.23819).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import prod

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts
from weft.base import LayoutError, Span, each_once
from weft.base.remarks import InstructionDeclined, LayoutChosen, LayoutsCompared, RemarkCollector, Wish
from weft.ir.gpu import told_layout
from weft.layouts import BlockedLayout, DistributedLayout, DotOperandLayout, LinearLayout, SharedLayout, SliceLayout
from weft.machines import Machine
from weft.targets.table import products

from .blocks_of_clusters import Bases, Clusters, divided, own_shape
from .blocks_of_threads import VECTOR_BITS, access_layout, blocked_for, multiplying_layout, warps_over_rows
from .layout_prices import Prices
from .layout_problem import Chosen, LayoutProblem
from .layout_registers import Registers
from .layout_wishes import LOAD, PRODUCT, REDUCTION, SPREAD, STORE, VIEW, Link, Wanted, Wishes
from .matrix_layouts import matrix_layouts
from .natural_layouts import SHAPES, AnyLayout, joined_layout, linear_of, natural_result, source_layout
from .probable_strides import probable_strides
from .row_loads import copied_row, is_copied
from .tile_groups import ACCESSES, MOVED_VIEWS, TOGETHER, TileGroups, carried, entered
from .vendor import passes_of

DOTS = ("tt.dot", "tt.dot_scaled")


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
        """The layouts that addresses wish for."""
        self.products: dict[Operation, AnyLayout] = {}
        """The layouts of their results."""
        self.declined: dict[Operation, str] = {}
        """Why they are not products of several warps together."""
        self.operands: dict[Operation, list[AnyLayout]] = {}
        """The layouts of the two operands of each product whose operands lie in registers; of a scaled one, of all."""
        self.tiles: list[SSAValue] = []
        """The tiles that have a layout of their own."""
        self.shapes: list[Operation] = []
        """Operations whose results follow from where operands lie."""
        self.together: list[Operation] = []
        """Operations whose operands and results lie alike, and scans."""
        self.entered: list[tuple[SSAValue, BlockArgument]] = []
        """What loops are given, and the arguments that begin as that."""
        self._wants: list[tuple[SSAValue, Wanted]] = []
        self._wishes = Wishes(self.find)
        self._problem = LayoutProblem(self, {}, Prices(machine, self.facts), None)
        self._chosen = Chosen()

    def decide(self, block: Block) -> None:
        """Look at a function, and choose the layout of every tile, while operations are as they were."""
        self.clusters.study(block, self.alike(block))
        self.study(block)
        self.tiles = list(self._tiles(block))
        for value, wanted in self._wants:
            self._wishes.want(value, wanted)
        for op in self.products:
            for index in (0, 1):
                self._stored(op, index)
        self._link()
        self._wishes.follow()
        for op in self.accesses:
            self._copied(op)
        ways = self._ways()
        prices = Prices(self.machine, self.facts)
        registers = Registers(ways, prices, self.lanes * self.warps, self.find, self._is_held)
        registers.study(block)
        self._problem = LayoutProblem(self, ways, prices, registers)
        self._chosen = self._problem.solved()

    def _is_held(self, value: SSAValue) -> bool:
        """Whether a tile is in registers from where it is made: one that is copied ahead is in shared memory."""
        op = value.owner
        return self.has_layout(value) and not (self.ahead and isinstance(op, Operation) and is_copied(op))

    def _tiles(self, block: Block) -> Iterator[SSAValue]:
        """The tiles that have a layout of their own."""
        for op in ir.walk(block):
            arguments = [a for r in op.regions for b in r.blocks for a in b.args]
            for value in (*op.results, *arguments):
                if self.has_layout(value):
                    yield value

    def _ways(self) -> dict[SSAValue, list[AnyLayout]]:
        """The ways of each group: the default, larger tiles first, for those for which nobody wishes anything."""
        leaders = list(dict.fromkeys(self.find(x) for x in self.tiles))
        for leader in sorted(leaders, key=lambda x: -prod(ir.shape_of(x.type))):
            if not self._wishes.ways(leader):
                layout = self.default(ir.shape_of(leader.type), self.clusters.of(leader))
                self._wishes.give(leader, layout)
                self._wishes.follow()
        return {leader: self._wishes.ways(leader) for leader in leaders}

    def tell(self, remarks: RemarkCollector, span: Span | None) -> None:
        """Say of each group which layout it has, who asked for it, and who for another; after `decide`."""
        texts: dict[int, str] = {}

        def text(layout: AnyLayout) -> str:
            return texts.get(id(layout)) or texts.setdefault(id(layout), told_layout(layout))

        told: set[tuple[int, str]] = set()
        for values in self._told_together(text):
            leaders = list(dict.fromkeys(map(self.find, values)))
            names = dict.fromkeys(x.name_hint for x in values if x.name_hint)
            layout = text(self._chosen.groups[leaders[0]])
            wanted = sorted((x for each in leaders for x in self._wishes.of.get(each, ())), key=lambda x: -x.rank)
            won = next((x.by for x in wanted if text(x.layout) == layout), None)
            place = id(won.location) if won is not None else 0, layout
            if not names and place in told:  # one of many that a function makes which was inlined here
                continue
            told.add(place)
            others, prices = dict[Wish, None](), dict[str, float | None]()
            for other in wanted:
                wish = text(other.layout)
                if wish != layout and self._is_asked(other):
                    if wish not in prices:
                        prices[wish] = self._problem.more(leaders, other.layout, self._chosen.solution)
                    others[Wish(ir.site_of(other.by), wish, prices[wish])] = None
            by = ir.site_of(won) if won is not None else None
            tile = ir.span_of_value(values[0]), ir.tile_text(values[0].type), tuple(names), layout
            remarks.add(LayoutChosen(*tile, by, tuple(others)))
        candidates = self._problem.candidates()
        if candidates:
            price, bound = self._chosen.solution.price, self._chosen.solution.bound
            remarks.add(LayoutsCompared(span, len(candidates), sum(candidates), price, bound))
        for op, reason in self.declined.items():
            remarks.add(InstructionDeclined(ir.site_of(op).span, self.adds.of_memory, reason))

    def _told_together(self, text: Callable[[AnyLayout], str]) -> Iterable[list[SSAValue]]:
        """The tiles of each group, with those of other loops that use them and got the same layout."""
        together = TileGroups()
        apart: list[tuple[SSAValue, SSAValue]] = [
            (init, argument) for init, argument in self.entered if self.has_layout(init)
        ]
        for op in self.together:
            results = [x for x in op.results if self.has_layout(x)]
            apart += [(x, results[0]) for x in op.operands if results and self.is_apart(x, op)]
        for a, b in apart:
            if text(self.of(a)) == text(self.of(b)):
                together.unite([self.find(a), self.find(b)])
        groups: dict[SSAValue, list[SSAValue]] = {}
        for value in self.tiles:
            groups.setdefault(together.find(self.find(value)), []).append(value)
        return groups.values()

    def _is_asked(self, wanted: Wanted) -> bool:
        """Whether an operation asks for a layout itself, or its neighbour has the one that makes it this."""
        return wanted.source is None or self._chosen.groups.get(self.find(wanted.source[0])) is wanted.source[1]

    def default(self, shape: Sequence[int], division: Bases | None = None) -> BlockedLayout:
        """The layout of tiles for which nothing speaks."""
        cga = self.clusters.default(shape) if division is None else division
        order = list(reversed(range(len(shape))))
        return divided(blocked_for(own_shape(shape, cga), order, 4, self.lanes, self.warps), cga)

    # -- what was chosen ----------------------------------------------------------------------------------------------

    def of(self, value: SSAValue) -> AnyLayout:
        """The layout of a tile; the default for one that is free, which a view may be of."""
        if self.is_free(value):
            return self.default(ir.shape_of(value.type))
        return self._chosen.groups[self.find(value)]

    def access(self, op: Operation) -> AnyLayout:
        """The layout by which memory is accessed."""
        return self._chosen.places.get(op, self.accesses[op])

    def place(self, op: Operation) -> AnyLayout | None:
        """Where a reduction or a scan is done; None for where its operands lie."""
        return self._chosen.places.get(op)

    def known(self, value: SSAValue) -> AnyLayout | None:
        """The layout of a tile; None for one that is free, or a view whose operand's layout says nothing of it."""
        if self.is_free(value) or not ir.is_tensor(value.type):
            return None
        inner, views = self.through(value)
        return self.seen(views, self.of(inner))

    # -- operands in shared memory ------------------------------------------------------------------------------------

    def forms(self, op: Operation, index: int) -> Sequence[SharedLayout]:
        """The layouts of shared memory in which a product may read an operand; none if it reads it in registers, or if
        the blocks of a cluster divide it: what each of them stores is not priced."""
        if not self.is_result(self.products[op]) or self.clusters.products.get(op):
            return ()
        return self.adds.forms(op, index, (), self.accesses.get)

    def is_result(self, layout: AnyLayout) -> bool:
        """Whether a layout is that of the result of a product that reads shared memory."""
        return self.adds.is_result(layout)

    def in_registers(self, op: Operation, index: int) -> AnyLayout | None:
        """The layout in which a product that reads shared memory takes an operand that comes out of another one; None
        where it is stored too."""
        result = self.products[op]
        return self.adds.left_in_registers(op, result) if not index and not isinstance(result, LinearLayout) else None

    # -- views --------------------------------------------------------------------------------------------------------

    def through(self, value: SSAValue) -> tuple[SSAValue, list[Operation]]:
        """What a tile is a view of, and the operations from there to it; itself if it is none."""
        views: list[Operation] = []
        while self.is_view(value):
            op = value.owner
            assert isinstance(op, Operation)
            views.append(op)
            value = op.operands[0]
        return value, views[::-1]

    def seen(self, views: Sequence[Operation], layout: AnyLayout) -> AnyLayout | None:
        """The layout that a tile of some layout has when it is looked at through views; None where that is none."""
        for op in views:
            if isinstance(layout, LinearLayout) or op.name in MOVED_VIEWS:
                return None
            if op.name == "tt.broadcast":
                if self._repeats(layout, ir.shape_of(op.results[0].type)):
                    return None
            elif isinstance(layout, SliceLayout) and layout.dim == ir.int_value(op.properties["axis"]):
                layout = layout.parent
            else:
                return None
        return layout

    @staticmethod
    def wanted(views: Sequence[Operation], layout: AnyLayout) -> AnyLayout:
        """The layout that a tile has to have if what is seen of it through views is to have some layout."""
        for op in reversed(views):
            layout = source_layout(op, op.operands[0], layout)
        return layout

    def _repeats(self, layout: DistributedLayout, shape: Sequence[int]) -> bool:
        """Whether threads hold more copies of a tile than they have to.

        So they would where a row or column of few elements is spread over a tile along the axis in which its own layout
        has no threads: [1, 1] over [1, 2048] as 2048 registers of each thread, all threads the same.
        """
        free = layout.to_linear(list(shape)).free_variable_masks()
        copies = 1 << free["lane"].bit_count() + free["warp"].bit_count()
        return copies > max(1, self.lanes * self.warps // prod(shape))

    # -- looking at operations ----------------------------------------------------------------------------------------

    def _want(self, by: Operation, value: SSAValue, rank: int, layout: AnyLayout) -> None:
        if self.has_layout(value):
            self._wants.append((value, Wanted(by, rank, layout)))

    def study(self, block: Block) -> None:
        """Groups and wishes of a block and those in it."""
        for op in block.ops:
            if op.name.startswith("scf."):
                for region in op.regions:
                    for inner in region.blocks:
                        self.study(inner)
                begun = entered(op)
                self.entered += [each for each in begun if self.has_layout(each[1])]
                for i, group in enumerate(carried(op)):
                    self.unite(group[1:] if i < len(begun) else group)
            elif op.name in ACCESSES and ir.is_tensor(op.operands[0].type):
                self._access(op)
            elif op.name == "tt.dot":
                self._product(op)
            elif isinstance(op, ir.tt.DotScaledOp):
                self._scaled_product(op)
            elif op.name in TOGETHER:
                taken = [x for x in op.operands if not self.is_apart(x, op)]
                for tiles in (taken, op.results) if op.name == "tt.scan" else ([*taken, *op.results],):
                    self.unite(tiles)
                self.together.append(op)
                if op.name == "tt.scan":
                    self._scan(op)
            elif op.results and any(ir.is_tensor(r.type) for r in op.results):
                self._other(op)

    def _access(self, op: Operation) -> None:
        pointer = op.operands[0]
        element = ir.element_of(pointer.type)
        bits = max(8, ir.bit_width(element.pointee)) if ir.is_pointer(element) else 64  # type: ignore[attr-defined]
        moved = next((x for x in (*op.results, *op.operands[1:2], pointer) if not self.is_free(x)), pointer)
        cga = self.clusters.of(moved)
        shape = own_shape(ir.shape_of(pointer.type), cga)
        facts = self.facts.of(pointer)
        is_scattered = len(shape) > 1 and all(n == 1 or s == 1 for n, s in zip(facts.contiguity, shape, strict=True))
        strides = probable_strides(pointer, self.facts) if is_scattered else ()
        layout = access_layout(shape, facts, bits, self.lanes, self.warps, strides)
        layout = divided(self.adds.access_layout(op, layout, bits, self.machine, self.warps), cga)
        self.accesses[op] = layout
        for result in op.results:
            self._want(op, result, LOAD, layout)
        for i, value in enumerate(op.operands):
            self._want(op, value, LOAD if i == 0 else STORE, layout)

    def _scan(self, op: Operation) -> None:
        """A scan wishes for elements of a thread that follow each other, whatever accesses can take at a time."""
        value, axis = op.operands[0], ir.int_value(op.properties["axis"])
        cga = self.clusters.of(value)
        shape = own_shape(ir.shape_of(value.type), cga)
        order = [axis, *(d for d in reversed(range(len(shape))) if d != axis)]
        vector = VECTOR_BITS // max(8, ir.bit_width(ir.element_of(value.type)))
        self._want(op, value, VIEW, divided(blocked_for(shape, order, max(1, vector), self.lanes, self.warps), cga))

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
        self.unite([op.operands[2], result])
        self._want(op, result, PRODUCT, layout)

    def _stored(self, op: Operation, index: int) -> None:
        """A product that reads an operand in shared memory wishes for whole vectors of its rows there, unless it is
        loaded, and its access has a wish, follows from how another tile lies, or comes out of another product."""
        value = op.operands[index]
        follows = isinstance(value.owner, Operation) and (value.owner in self.accesses or value.owner.name in SHAPES)
        if follows or not self.has_layout(value) or self._wishes.is_of(value, PRODUCT):
            return
        bits, cga = max(8, ir.bit_width(ir.element_of(value.type))), self.clusters.of(value)
        shape = own_shape(ir.shape_of(value.type), cga)
        for form in self.forms(op, index):
            first = form.to_linear(list(shape)).bases["offset"][0]
            rows = [d for d in reversed(range(len(shape))) if first[d]]
            order = [*rows, *(d for d in reversed(range(len(shape))) if not first[d])]
            blocked = blocked_for(shape, order, VECTOR_BITS // bits, self.lanes, self.warps)
            self._wishes.want(value, Wanted(op, VIEW, divided(blocked, cga)))

    def _scaled_product(self, op: ir.tt.DotScaledOp) -> None:
        layouts = self.adds.scaled_layouts(op, self.machine, self.warps, _is_chained(op))
        assert layouts is not None, "scaled products that no instruction does were taken apart"
        self.operands[op], self.products[op] = list(layouts), layouts[2]
        self.unite([op.c, op.d])
        self._want(op, op.d, PRODUCT, layouts[2])

    def _other(self, op: Operation) -> None:
        if op.name == "tt.gather":
            self.unite([op.operands[1], op.results[0]])
            return
        if op.name == "tt.reduce":
            self.unite(list(op.operands))
            self.unite(list(op.results))
        if op.name in SHAPES:
            self.shapes.append(op)

    def _link(self) -> None:
        """What ways of some groups are for others."""
        for op in self.shapes:
            if not self.is_free(op.operands[0]):
                inner, views = self.through(op.operands[0])
                rank = REDUCTION if op.name == "tt.reduce" else VIEW
                if op.name == "tt.reduce" and not views:
                    self._warps_over_rows(op, inner)
                for result in op.results[:1] if op.name == "tt.reduce" else op.results:
                    if self.has_layout(result):
                        self._wishes.link(inner, Link(op, rank, result, partial(self._natural, op, views)))
        for op in self.together:
            results = [x for x in op.results if self.has_layout(x)]
            for value in op.operands if results else ():
                if self.is_view(value) or self.is_apart(value, op) or op.name == "tt.scan":
                    self._link_views(op, value, results[0])
        for init, argument in self.entered:
            loop = argument.block.parent_op()
            assert loop is not None
            self._link_views(loop, init, argument)
        for op in self.accesses:
            pointer = op.operands[0]
            if op.results and not self.is_free(pointer) and not self.is_view(pointer):
                self._wishes.link(pointer, Link(op, LOAD, op.results[0], lambda layout: layout))
                self._wishes.link(op.results[0], Link(op, STORE, pointer, lambda layout: layout))

    def _link_views(self, op: Operation, value: SSAValue, result: SSAValue) -> None:
        """What a tile's ways are for one that sees it through views, and the other way round."""
        inner, views = self.through(value)
        if not self.is_free(inner):
            self._wishes.link(inner, Link(op, VIEW, result, partial(self._image, inner, views)))
            self._wishes.link(result, Link(op, SPREAD, inner, partial(self.wanted, views)))

    def _warps_over_rows(self, op: Operation, operand: SSAValue) -> None:
        """A reduction also wishes for what accesses wish for, with its rows dealt to the warps."""
        axis, shape = ir.int_value(op.properties["axis"]), ir.shape_of(operand.type)
        for wanted in list(self._wishes.of.get(self.find(operand), ())):
            if wanted.rank == LOAD and isinstance(wanted.layout, BlockedLayout):
                layout = warps_over_rows(wanted.layout, own_shape(shape, self.clusters.of(operand)), axis)
                if layout is not None:
                    self._wishes.want(operand, Wanted(op, VIEW, layout))

    def _image(self, inner: SSAValue, views: Sequence[Operation], layout: AnyLayout) -> AnyLayout | None:
        """The layout of what is seen of a tile through views; with a reshape among them, that in which each thread
        repeats its own elements. None if threads have copies of the tile: it does not decide how the larger one lies.
        """
        seen = self.seen(views, layout)
        if seen is not None or not any(op.name in MOVED_VIEWS for op in views):
            return seen
        linear = linear_of(layout, ir.shape_of(inner.type))
        if any(linear.free_variable_masks()[dim] for dim in ("lane", "warp")):
            return None
        for op in views:
            linear = linear_of(natural_result(op, linear), ir.shape_of(op.results[0].type))
        return linear

    def _natural(self, op: Operation, views: Sequence[Operation], layout: AnyLayout) -> AnyLayout | None:
        seen = self.seen(views, layout)
        return self.natural(op, seen) if seen is not None else None

    @staticmethod
    def natural(op: Operation, layout: AnyLayout) -> AnyLayout | None:
        """The layout in which an operation on shapes gives its result without moving anything; None where there is
        none."""
        try:
            if op.name == "tt.join":
                return joined_layout(linear_of(layout, list(ir.shape_of(op.operands[0].type))))
            return natural_result(op, layout)
        except LayoutError:
            return None

    def _copied(self, op: Operation) -> None:
        """A row or column that is copied iterations ahead lies as its copies do."""
        if not self.ahead or op.name != "tt.load" or self.clusters.of(op.operands[0]):
            return
        shape = ir.shape_of(op.operands[0].type)
        if prod(shape) == max(shape) <= self.lanes * self.warps:
            leader = self.find(op.results[0])
            layout = copied_row(op, self._wishes.ways(leader)[0], self.facts, self.lanes, self.warps)
            if layout is not None:
                self.accesses[op] = layout
                self._wishes.only(leader, Wanted(op, SPREAD, layout))


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
