"""Formulate the layouts of a function as one problem: the price of each way, alone and with those of its neighbours.

    choices      groups of tiles, and places: of accesses of memory, reductions and scans, each with its ways
    alone        accesses; reductions and scans; a product's result and operands, which the instruction gives, or which
                 are stored to shared memory for it; work on elements; registers that are spilled
    in pairs     a place and the groups of what it takes and gives; a tile and what an operation on shapes makes of it;
                 a row, and the tile that it is spread over; a tile, and a loop that begins with it or ends with it

A conversion is placed where the tile is computed, and is executed as often. If several users want a tile in the same
layout, it is converted once and paid for once: a *copy* of a tile is a choice too, to be made or not. A user that wants
the tile in that layout costs `NEVER` if the copy is not made.

    %x = tt.load %p            group [1, 8], or [8, 1]
    tt.store %q, %x            place [8, 1], or [1, 8]       copy of %x in [8, 1]: made for 137 cycles, or not made
    tt.store %r, %x            the same                      copy of %x in [1, 8]: the same
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.ir import bit_width, element_of, is_pointer, is_tensor, shape_of
from weft.layouts import BlockedLayout, DotOperandLayout, LinearLayout, SharedLayout

from .cheapest import Problem, Solution
from .layout_prices import Prices
from .layout_registers import Registers
from .layout_wishes import Leader, alike
from .natural_layouts import AnyLayout, linear_of
from .row_loads import is_copied
from .tile_groups import LOOPS, MOVED_VIEWS, TOGETHER

LATER = 1e-6
"""What a way costs beside the one before it, so that of equals the first is taken."""
NO_CHOICE = Solution((), 0.0, 0.0)
NEVER = 1e9
"""What is not looked at: an access in a layout that neither its addresses nor its tile have; and what cannot be: a copy
that is wanted but not made."""


class Studied(Protocol):
    """What is known of a function whose layouts are chosen: `Choices` of layout_choices.py."""

    ahead: bool
    accesses: dict[Operation, BlockedLayout]
    products: dict[Operation, AnyLayout]
    operands: dict[Operation, list[AnyLayout]]
    shapes: list[Operation]
    together: list[Operation]
    entered: list[tuple[SSAValue, BlockArgument]]

    def find(self, value: SSAValue) -> Leader: ...
    def forms(self, op: Operation, index: int) -> Sequence[SharedLayout]: ...
    def is_result(self, layout: AnyLayout) -> bool: ...
    def in_registers(self, op: Operation, index: int) -> AnyLayout | None: ...
    def is_free(self, value: SSAValue) -> bool: ...
    def is_view(self, value: SSAValue) -> bool: ...
    def is_apart(self, value: SSAValue, op: Operation) -> bool: ...
    def has_layout(self, value: SSAValue) -> bool: ...
    def through(self, value: SSAValue) -> tuple[SSAValue, list[Operation]]: ...
    def seen(self, views: Sequence[Operation], layout: AnyLayout) -> AnyLayout | None: ...
    def wanted(self, views: Sequence[Operation], layout: AnyLayout) -> AnyLayout: ...
    def natural(self, op: Operation, layout: AnyLayout) -> AnyLayout | None: ...


@dataclass
class Chosen:
    """Layouts of groups, and of the places of accesses, reductions and scans."""

    groups: dict[Leader, AnyLayout] = field(default_factory=dict)
    places: dict[Operation, AnyLayout] = field(default_factory=dict)
    solution: Solution = NO_CHOICE


@dataclass(frozen=True, eq=False)
class _Chooser:
    """A group or a place: its ways, and its number in the problem; None where there is one way only."""

    number: int | None
    ways: list[AnyLayout]


@dataclass(frozen=True, eq=False)
class _Use:
    """Who wants a tile, and in which layout for each of its own ways."""

    by: _Chooser
    wanted: list[AnyLayout]


@dataclass(frozen=True, eq=False)
class _Made:
    """How a tile comes out for each way of who makes it; None where nothing is known."""

    by: _Chooser
    given: list[AnyLayout | None]


class LayoutProblem:
    """The problem of one function, whose groups have these ways."""

    def __init__(
        self, choices: Studied, ways: dict[Leader, list[AnyLayout]], prices: Prices, registers: Registers | None
    ) -> None:
        self.choices, self.ways, self.prices = choices, ways, prices
        self.problem = Problem()
        self._groups = {leader: self._chooser(each, [0.0] * len(each)) for leader, each in ways.items()}
        for leader, chooser in self._groups.items() if registers is not None and registers.is_short else ():
            self._pays(chooser, partial(registers.price, leader))  # type: ignore[union-attr]
        self._places: dict[Operation, _Chooser] = {}
        self._uses: dict[SSAValue, list[_Use]] = {}
        self._made: dict[SSAValue, _Made] = {}
        """The tiles that do not come out as their groups lie."""
        self._seen: set[tuple[object, ...]] = set()

    def solved(self) -> Chosen:
        """The cheapest layouts."""
        for op in self.choices.accesses:
            self._access(op)
        if any(each.number is not None for each in self._groups.values()):
            for op in self.choices.shapes:
                self._shape(op)
            for op in self.choices.products:
                self._product(op)
            self._elements()
            for init, argument in self.choices.entered:
                self._spread(init, self._group(argument))
        for value in self._made:
            if self._is_used_in_group(value):
                self._wants(value, self._group(value), self._group(value).ways)
        for value, uses in self._uses.items():
            self._move(value, uses)
        return self.of(self.problem.cheapest())

    def of(self, solution: Solution) -> Chosen:
        """The layouts of a solution."""

        def layout(chooser: _Chooser) -> AnyLayout:
            return chooser.ways[solution.choices[chooser.number] if chooser.number is not None else 0]

        groups = {leader: layout(each) for leader, each in self._groups.items()}
        return Chosen(groups, {op: layout(each) for op, each in self._places.items()}, solution)

    def candidates(self) -> list[int]:
        """How many ways each group and place has that has several."""
        each = [*self._groups.values(), *self._places.values()]
        return [len(chooser.ways) for chooser in each if chooser.number is not None]

    def more(self, leaders: Sequence[Leader], layout: AnyLayout, best: Solution) -> float | None:
        """What it costs more than a solution if groups have a layout, everything else chosen anew, or, where not all
        choices can be tried, what can follow. None if one of them cannot have the layout, or if it costs less: the
        solution is not the cheapest then."""
        given: dict[int, int] = {}
        for leader in leaders:
            chooser, shape = self._groups[leader], shape_of(leader.type)
            way = next((i for i, each in enumerate(chooser.ways) if alike(each, layout, shape)), None)
            if way is None:
                return None
            if chooser.number is not None:
                given[chooser.number] = way
        if not given:
            return None
        if best.is_all:
            return self.problem.cheapest(given).price - best.price
        more = self.problem.near(best, given) - best.price
        return more if more >= 0 else None

    # -- prices -------------------------------------------------------------------------------------------------------

    def _chooser(self, ways: list[AnyLayout], prices: Sequence[float]) -> _Chooser:
        if len(ways) == 1:
            return _Chooser(None, ways)
        return _Chooser(self.problem.add([price + i * LATER for i, price in enumerate(prices)]), ways)

    def _group(self, value: SSAValue) -> _Chooser:
        return self._groups[self.choices.find(value)]

    def _pays(self, by: _Chooser, price: Callable[[AnyLayout], float]) -> None:
        """What a chooser costs in each of its ways, if it has several."""
        if by.number is not None:
            for way, layout in enumerate(by.ways):
                self.problem.own[by.number][way] += price(layout)

    def _pair(self, a: _Chooser, b: _Chooser, price: Callable[[AnyLayout, AnyLayout], float]) -> None:
        """What two cost, if one of them has several ways."""
        if a.number is not None and b.number is not None:
            self.problem.pay(a.number, b.number, [[price(x, y) for y in b.ways] for x in a.ways])
        elif a.number is not None:
            self._pays(a, lambda layout: price(layout, b.ways[0]))
        else:
            self._pays(b, lambda layout: price(a.ways[0], layout))

    def _moved(self, value: SSAValue, source: AnyLayout, result: AnyLayout) -> float:
        """What it costs to move a tile after it is made."""
        element = element_of(value.type)
        bits = 64 if is_pointer(element) else max(8, bit_width(element))
        maker = value.owner
        times = self.prices.trips(maker.first_op if isinstance(maker, Block) else maker)
        return times * self.prices.conversion(source, result, shape_of(value.type), bits)

    def _move(self, value: SSAValue, uses: list[_Use]) -> None:
        """A tile is moved to where it is wanted, once for all who want it in the same layout."""
        shape, group = shape_of(value.type), self._group(value)
        made = self._made.get(value) or _Made(group, [*group.ways])

        def moved(layout: AnyLayout | None) -> list[float]:
            free = layout is None
            return [0.0 if free or each is None else self._moved(value, each, layout) for each in made.given]  # type: ignore[arg-type]

        users: dict[LinearLayout, list[_Use]] = {}
        for use in uses:
            for layout in {linear_of(each, shape): None for each in use.wanted}:
                users.setdefault(layout, []).append(use)
        shared = [layout for layout, each in users.items() if len(each) > 1]
        for use in uses:
            columns = [moved(None if linear_of(each, shape) in shared else each) for each in use.wanted]
            self._pair_of(made.by, use.by, _turned(columns))
        for layout in shared:
            prices = moved(layout)
            if not any(prices):
                continue
            copy = _Chooser(self.problem.add([0.0, 0.0]), [])
            self._pair_of(made.by, copy, [[0.0, price] for price in prices])
            for use in users[layout]:
                wants = [linear_of(each, shape) == layout for each in use.wanted]
                self._pair_of(use.by, copy, [[NEVER if each else 0.0, 0.0] for each in wants])

    def _is_used_in_group(self, value: SSAValue) -> bool:
        """Whether someone takes a tile as its group lies, who has no way of their own."""
        choices = self.choices
        for use in value.uses:
            op = use.operation
            has_place = op in self._places or op in choices.accesses or op.name in LOOPS
            has_place = has_place or (op in choices.products and not (use.index < 2 and choices.forms(op, use.index)))
            is_apart = op.name in TOGETHER and choices.is_apart(value, op)
            if not has_place and not is_apart and not any(map(choices.is_view, op.results)):
                return True
        return False

    def _pair_of(self, a: _Chooser, b: _Chooser, prices: list[list[float]]) -> None:
        """The same for prices that are known: those of each way of the first, for each of the second."""
        if a.number is not None and b.number is not None:
            self.problem.pay(a.number, b.number, prices)
            return
        number, row = (a.number, [each[0] for each in prices]) if b.number is None else (b.number, prices[0])
        if number is not None:
            self.problem.own[number] = [x + y for x, y in zip(self.problem.own[number], row, strict=True)]

    # -- operations ---------------------------------------------------------------------------------------------------

    def _wants(self, value: SSAValue, by: _Chooser, layouts: list[AnyLayout]) -> None:
        self._uses.setdefault(value, []).append(_Use(by, layouts))

    def _tiles(self, values: Sequence[SSAValue]) -> Iterator[tuple[SSAValue, list[Operation]]]:
        """Tiles that have to be somewhere for an operation, and through which views it sees them."""
        for value in values:
            if is_tensor(value.type) and not self.choices.is_free(value):
                inner, views = self.choices.through(value)
                if not self.choices.is_free(inner):
                    yield inner, views

    def _access(self, op: Operation) -> None:
        """An access is made in a layout of its own."""
        choices, wish = self.choices, self.choices.accesses[op]
        taken = list(self._tiles(op.operands))
        given = [x for x in op.results if choices.has_layout(x)]
        around = [x for x, views in taken if not views] + given
        place = self._place(op, [wish], around, partial(self._accessed, op))
        if place is None:
            return
        for inner, views in taken:
            self._wants(inner, place, [choices.wanted(views, own) for own in place.ways])
        for value in given:
            self._made[value] = _Made(place, [*place.ways])
        if len(taken) + len(given) == 1:
            inner, views = taken[0] if taken else (given[0], [])

            def apart(group: AnyLayout, own: AnyLayout) -> float:
                is_known = own is wish or alike(group, choices.wanted(views, own), shape_of(inner.type))
                return 0.0 if is_known else NEVER

            self._pair(self._group(inner), place, apart)

    def _accessed(self, op: Operation, layout: AnyLayout) -> float:
        ahead = self.choices.ahead and is_copied(op)
        return self.prices.trips(op) * self.prices.access(op, layout, ahead)

    def _place(
        self,
        op: Operation,
        first: list[AnyLayout],
        around: Sequence[SSAValue],
        price: Callable[[AnyLayout], float],
    ) -> _Chooser | None:
        """Where an operation is done: in a layout of its own or that of a group around it; None where all are one."""
        layouts, shape = [*first], shape_of(op.operands[0].type)
        for value in around:
            for layout in self._group(value).ways:
                if not any(alike(layout, x, shape) for x in layouts):
                    layouts.append(layout)
        if len(layouts) == 1 and all(self._group(x).number is None for x in around):
            return None
        place = self._places[op] = self._chooser(layouts, [price(x) if len(layouts) > 1 else 0.0 for x in layouts])
        return place

    def _shape(self, op: Operation) -> None:
        """A result comes out as the operand lies."""
        choices = self.choices
        for inner, views in self._tiles(op.operands[:1]):
            source = self._group(inner)
            if op.name == "tt.reduce" and not views:
                source = self._combined(op)
            elif views:
                self._spread_to(inner, [], source)
            given = [self._natural(op, views, each) for each in source.ways]
            for result in op.results:
                if choices.has_layout(result):
                    self._made[result] = _Made(source, given)

    def _natural(self, op: Operation, views: Sequence[Operation], layout: AnyLayout) -> AnyLayout | None:
        seen = self.choices.seen(views, layout)
        return self.choices.natural(op, seen) if seen is not None else None

    def _combined(self, op: Operation) -> _Chooser:
        """A reduction or a scan is done where its operands lie, or where it costs less."""
        taken = list(self._tiles(op.operands))
        around = [x for x, views in taken if not views]
        place = self._place(op, [], around, partial(self._combining, op))
        if place is None:
            return self._group(around[0])
        for inner, views in taken:
            self._wants(inner, place, [self.choices.wanted(views, own) for own in place.ways])
        return place

    def _combining(self, op: Operation, layout: AnyLayout) -> float:
        return self.prices.trips(op) * self.prices.reduction(op, layout)

    def _product(self, op: Operation) -> None:
        """A product takes its accumulator, and gives its result, in its own layout."""
        choices, own = self.choices, _Chooser(None, [self.choices.products[op]])
        self._made[op.results[0]] = _Made(own, [*own.ways])
        if choices.has_layout(op.operands[2]):
            self._wants(op.operands[2], own, own.ways)
        for value, layout in zip(op.operands, choices.operands.get(op, ()), strict=False):
            if choices.has_layout(value) and isinstance(layout, DotOperandLayout):
                self._wants(value, _Chooser(None, [layout]), [layout])
        for index in (0, 1):
            self._operand(op, index)

    def _operand(self, op: Operation, index: int) -> None:
        """An operand that a product reads in shared memory is stored there as its group lies, unless it is copied
        there, or is left in registers as it comes out of another product."""
        choices, value = self.choices, op.operands[index]
        forms = choices.forms(op, index)
        if not forms or (choices.ahead and isinstance(maker := _viewed(value), Operation) and is_copied(maker)):
            return
        shape, bits = shape_of(value.type), bit_width(element_of(value.type))
        in_registers = choices.in_registers(op, index)

        def price(views: Sequence[Operation], layout: AnyLayout) -> float:
            seen = choices.seen(views, layout)
            if seen is None:
                return 0.0  # it is made anew in the default
            if in_registers is not None and choices.is_result(seen):
                return self.prices.conversion(seen, in_registers, shape, bits)
            return self.prices.stored(seen, forms, shape, bits)

        for inner, views in self._tiles([value]):
            maker = value.owner
            times = self.prices.trips(maker.first_op if isinstance(maker, Block) else maker)
            self._pays(self._group(inner), lambda layout, views=views: times * price(views, layout))  # type: ignore[misc]

    def _elements(self) -> None:
        """Work on elements; rows that are spread over tiles, and tiles of other loops."""
        choices = self.choices
        counted: dict[Leader, float] = {}
        for op in choices.together:
            results = [x for x in op.results if choices.has_layout(x)]
            if not results:
                continue
            leader, times = choices.find(results[0]), self.prices.trips(op)
            counted[leader] = counted.get(leader, 0.0) + times
            if op.name == "tt.scan" and any(not views for _, views in self._tiles(op.operands)):
                place = self._combined(op)
                for result in results:
                    self._made[result] = _Made(place, [*place.ways])
                continue
            for value in op.operands:
                if choices.is_view(value) or choices.is_apart(value, op):
                    self._spread(value, self._groups[leader])
        for leader, count in counted.items():
            self._pays(self._groups[leader], partial(self._worked, shape_of(leader.type), count))

    def _worked(self, shape: Sequence[int], count: float, layout: AnyLayout) -> float:
        return self.prices.work(layout, shape, count)

    def _spread(self, value: SSAValue, target: _Chooser) -> None:
        """A tile, or the row that is spread over it, is moved to where a group wants it."""
        for inner, views in self._tiles([value]):
            self._spread_to(inner, views, target)

    def _spread_to(self, inner: SSAValue, views: Sequence[Operation], target: _Chooser) -> None:
        if (inner, target, *_named(views)) not in self._seen:
            self._seen.add((inner, target, *_named(views)))
            self._wants(inner, target, [self.choices.wanted(views, each) for each in target.ways])


def _named(views: Sequence[Operation]) -> tuple[object, ...]:
    """What makes views through which a tile is seen the same."""
    return tuple([(op.name, str(op.properties.get("axis", "")), op.results[0].type) for op in views])


def _viewed(value: SSAValue) -> Operation | Block:
    """What makes the tile that another one is with its dimensions in another order, which memory shows as well."""
    while isinstance(value.owner, Operation) and value.owner.name in MOVED_VIEWS:
        value = value.owner.operands[0]
    return value.owner


def _turned(columns: list[list[float]]) -> list[list[float]]:
    return [list(row) for row in zip(*columns, strict=True)]
