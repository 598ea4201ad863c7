"""The layouts of a function as one problem: what each way costs, alone and with what its neighbours have.

    choices      groups of tiles, and accesses of memory, each with its ways
    alone        accesses; reductions; a product's result and operands, which the instruction gives; work on elements
    in pairs     an access and the group of what it moves; a tile and what an operation on shapes makes of it; a row,
                 and the tile that it is spread over

A conversion stands where the tile is made, and is done as often as that is. What is made once for several users is paid
for once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from xdsl.ir import Block, Operation, SSAValue

from weft.ir import bit_width, element_of, is_pointer, is_tensor, shape_of
from weft.layouts import BlockedLayout, DotOperandLayout

from .cheapest import Problem, Solution
from .layout_prices import Prices
from .layout_wishes import Leader, alike
from .natural_layouts import AnyLayout
from .row_loads import is_copied

LATER = 1e-6
"""What a way costs beside the one before it, so that of equals the first is taken."""
NO_CHOICE = Solution((), 0.0, 0.0)
NEVER = 1e9
"""What is not looked at: an access in a layout that neither its addresses nor its tile have."""


class Studied(Protocol):
    """What is known of a function whose layouts are chosen: `Choices` of layout_choices.py."""

    ahead: bool
    accesses: dict[Operation, BlockedLayout]
    products: dict[Operation, AnyLayout]
    operands: dict[Operation, list[AnyLayout]]
    shapes: list[Operation]
    together: list[Operation]

    def find(self, value: SSAValue) -> Leader: ...
    def is_free(self, value: SSAValue) -> bool: ...
    def is_view(self, value: SSAValue) -> bool: ...
    def has_layout(self, value: SSAValue) -> bool: ...
    def through(self, value: SSAValue) -> tuple[SSAValue, list[Operation]]: ...
    def seen(self, views: Sequence[Operation], layout: AnyLayout) -> AnyLayout | None: ...
    def wanted(self, views: Sequence[Operation], layout: AnyLayout) -> AnyLayout: ...
    def natural(self, op: Operation, layout: AnyLayout) -> AnyLayout | None: ...


@dataclass
class Chosen:
    """Layouts of groups and of accesses."""

    groups: dict[Leader, AnyLayout] = field(default_factory=dict)
    accesses: dict[Operation, AnyLayout] = field(default_factory=dict)
    solution: Solution = NO_CHOICE


class LayoutProblem:
    """The problem of one function, whose groups have these ways."""

    def __init__(self, choices: Studied, ways: dict[Leader, list[AnyLayout]], prices: Prices) -> None:
        self.choices, self.ways, self.prices = choices, ways, prices
        self.problem = Problem()
        self._numbers = {
            leader: self.problem.add([i * LATER for i in range(len(each))])
            for leader, each in ways.items()
            if len(each) > 1
        }
        self._accesses: dict[Operation, tuple[int, list[AnyLayout]]] = {}
        self._paid: set[tuple[object, ...]] = set()

    def solved(self) -> Chosen:
        """The cheapest layouts."""
        for op in self.choices.accesses:
            self._access(op)
        if self._numbers:
            for op in self.choices.shapes:
                self._shape(op)
            for op in self.choices.products:
                self._product(op)
            self._elements()
        found = self.problem.cheapest()
        chosen = Chosen(solution=found)
        for leader, each in self.ways.items():
            number = self._numbers.get(leader)
            chosen.groups[leader] = each[found.choices[number] if number is not None else 0]
        for op, wish in self.choices.accesses.items():
            number, layouts = self._accesses.get(op, (-1, [wish]))
            chosen.accesses[op] = layouts[found.choices[number] if number >= 0 else 0]
        return chosen

    def more(self, leader: Leader, best: Solution) -> list[float]:
        """What each way of a group costs more than the cheapest solution, everything else chosen anew."""
        number = self._numbers.get(leader)
        if number is None:
            return [0.0]
        ways = range(len(self.ways[leader]))
        return [
            0.0 if way == best.choices[number] else self.problem.cheapest({number: way}).price - best.price
            for way in ways
        ]

    # -- prices -------------------------------------------------------------------------------------------------------

    def _pays(self, leader: Leader, price: Callable[[AnyLayout], float]) -> None:
        """What a group costs in each of its ways, if it has several."""
        number = self._numbers.get(leader)
        if number is not None:
            for way, layout in enumerate(self.ways[leader]):
                self.problem.own[number][way] += price(layout)

    def _pair(self, a: Leader, b: Leader, price: Callable[[AnyLayout, AnyLayout], float]) -> None:
        """What two groups cost, if one of them has several ways."""
        m, n = self._numbers.get(a), self._numbers.get(b)
        ours, theirs = self.ways[a], self.ways[b]
        if m is not None and n is not None:
            self.problem.pay(m, n, [[price(x, y) for y in theirs] for x in ours])
        elif m is not None:
            self._pays(a, lambda layout: price(layout, theirs[0]))
        else:
            self._pays(b, lambda layout: price(ours[0], layout))

    def _moved(self, value: SSAValue, source: AnyLayout, result: AnyLayout) -> float:
        """What it costs to move a tile after it is made."""
        element = element_of(value.type)
        bits = 64 if is_pointer(element) else max(8, bit_width(element))
        maker = value.owner
        times = self.prices.trips(maker) if isinstance(maker, Operation) else self._trips_in(maker)
        return times * self.prices.conversion(source, result, shape_of(value.type), bits)

    def _trips_in(self, block: Block) -> float:
        first = block.first_op
        return self.prices.trips(first)

    def _is_paid(self, *key: object) -> bool:
        """Whether something is paid for already; it is from now on."""
        if key in self._paid:
            return True
        self._paid.add(key)
        return False

    # -- operations ---------------------------------------------------------------------------------------------------

    def _access(self, op: Operation) -> None:
        """An access is made in a layout of its own."""
        choices, wish = self.choices, self.choices.accesses[op]
        operands = [x for x in op.operands if is_tensor(x.type) and not choices.is_free(x)]
        results = [x for x in op.results if choices.has_layout(x)]
        seen = [(*choices.through(x), True) for x in operands]
        around = [each for each in seen if not choices.is_free(each[0])] + [(x, [], False) for x in results]
        layouts: list[AnyLayout] = [wish]
        shape = shape_of(op.operands[0].type)
        for inner, views, _ in around:
            for layout in self.ways[choices.find(inner)] if not views else ():
                if not any(alike(layout, x, shape) for x in layouts):
                    layouts.append(layout)
        if len(layouts) == 1 and all(choices.find(x) not in self._numbers for x, _, _ in around):
            return
        times = self.prices.trips(op)
        ahead = choices.ahead and is_copied(op)
        number = self.problem.add([times * self.prices.access(op, x, ahead) + i * LATER for i, x in enumerate(layouts)])
        self._accesses[op] = number, layouts
        is_alone = len(around) == 1
        for inner, views, is_operand in around:
            leader = choices.find(inner)

            def price(group: AnyLayout, own: AnyLayout, inner: SSAValue = inner, views: list[Operation] = views,
                      is_operand: bool = is_operand) -> float:  # fmt: skip
                wanted = choices.wanted(views, own)
                if is_alone and own is not wish and not alike(group, wanted, shape_of(inner.type)):
                    return NEVER
                return self._moved(inner, group, wanted) if is_operand else self._moved(inner, own, group)

            other = self._numbers.get(leader)
            rows = [[price(group, own) for own in layouts] for group in self.ways[leader]]
            if other is not None:
                self.problem.pay(other, number, rows)
            else:
                for way, extra in enumerate(rows[0]):
                    self.problem.own[number][way] += extra

    def _shape(self, op: Operation) -> None:
        """A result comes out as the operand lies, and is moved to where its group does."""
        choices, operand = self.choices, op.operands[0]
        if choices.is_free(operand):
            return
        inner, views = choices.through(operand)
        if choices.is_free(inner):
            return
        leader, times = choices.find(inner), self.prices.trips(op)
        if op.name == "tt.reduce" and not views:
            self._pays(leader, lambda layout: times * self.prices.reduction(op, layout))
        for result in op.results:
            if not choices.has_layout(result):
                continue

            def price(source: AnyLayout, target: AnyLayout, result: SSAValue = result) -> float:
                seen = choices.seen(views, source)
                natural = choices.natural(op, seen) if seen is not None else None
                return self._moved(result, natural, target) if natural is not None else 0.0

            self._pair(leader, choices.find(result), price)

    def _product(self, op: Operation) -> None:
        """A product takes its accumulator, and gives its result, in its own layout."""
        choices, own = self.choices, self.choices.products[op]
        result = op.results[0]
        leader, total = choices.find(result), op.operands[2]
        ways = 1 if choices.is_free(total) else 2
        self._pays(leader, lambda layout: ways * self._moved(result, own, layout))
        for value, layout in zip(op.operands, choices.operands.get(op, ()), strict=False):
            if choices.has_layout(value) and isinstance(layout, DotOperandLayout):
                self._operand(value, layout)

    def _operand(self, value: SSAValue, wanted: AnyLayout) -> None:
        if not self._is_paid(value, wanted):
            self._pays(self.choices.find(value), lambda layout: self._moved(value, layout, wanted))

    def _elements(self) -> None:
        """Work on elements, and rows that are spread over tiles."""
        choices = self.choices
        counted: dict[Leader, float] = {}
        for op in choices.together:
            results = [x for x in op.results if choices.has_layout(x)]
            if not results:
                continue
            leader, times = choices.find(results[0]), self.prices.trips(op)
            counted[leader] = counted.get(leader, 0.0) + times
            if op.name == "tt.scan":
                self._pays(leader, partial(self._scanned, op, times))
            for value in op.operands:
                if choices.is_view(value) and not choices.is_free(value):
                    inner, views = choices.through(value)
                    if not choices.is_free(inner) and not self._is_paid(inner, leader, *_named(views)):
                        self._pair(choices.find(inner), leader, partial(self._spread, inner, views))
        for leader, count in counted.items():
            self._pays(leader, partial(self._worked, shape_of(leader.type), count))

    def _scanned(self, op: Operation, times: float, layout: AnyLayout) -> float:
        return times * self.prices.reduction(op, layout)

    def _worked(self, shape: Sequence[int], count: float, layout: AnyLayout) -> float:
        return self.prices.work(layout, shape, count)

    def _spread(self, inner: SSAValue, views: Sequence[Operation], source: AnyLayout, target: AnyLayout) -> float:
        """A row moved to where a tile that it is spread over wants it."""
        return self._moved(inner, source, self.choices.wanted(views, target))


def _named(views: Sequence[Operation]) -> tuple[object, ...]:
    """What makes views through which a tile is seen the same."""
    return tuple([(op.name, str(op.properties.get("axis", "")), op.results[0].type) for op in views])
