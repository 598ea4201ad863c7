"""The layouts that are chosen for functions at random cost the least of all that could be, and what the problem says
that they cost is what they cost in the layout IR that is made of them."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from weft.analysis import AxisFacts
from weft.ir import bit_width, element_of, is_tensor, parse_module, shape_of, verify, walk
from weft.ir.gpu import encoding_of
from weft.machines import machine_of
from weft.passes import layout_choices, tile_pipeline
from weft.passes.assign_layouts import assign_layouts
from weft.passes.layout_prices import Prices
from weft.passes.layout_problem import NEVER, Chosen, LayoutProblem

from .random_functions import RandomFunction

MACHINE = machine_of("cuda:90")
SIZES = (32, 64)
"""Of tiles: products of the larger ones read their operands in shared memory."""


def assigned(
    text: str, monkeypatch: pytest.MonkeyPatch, given: dict[int, int] | None = None
) -> tuple[ModuleOp, LayoutProblem, Chosen]:
    """The layout IR of a function, its problem, and the solution; some choices may be given."""
    kept: list[tuple[LayoutProblem, Chosen]] = []

    class Kept(LayoutProblem):
        def solved(self) -> Chosen:
            chosen = super().solved()
            if given is not None:
                chosen = self.of(self.problem.cheapest(given))
            kept.append((self, chosen))
            return chosen

    monkeypatch.setattr(layout_choices, "LayoutProblem", Kept)
    module = tile_pipeline(parse_module(text, "random.ttir"))
    assign_layouts(module, MACHINE)
    verify(module, "layout")
    ((problem, chosen),) = kept
    return module, problem, chosen


def cost(module: ModuleOp) -> float:
    """What layout IR costs, by the same prices, from its operations alone."""
    prices, total = Prices(MACHINE, AxisFacts()), 0.0
    for op in walk(module):
        if not op.operands or not is_tensor(op.operands[0].type):
            continue
        layout = encoding_of(op.operands[0].type).named
        times = prices.trips(op)
        if op.name == "ttg.convert_layout":
            element, result = element_of(op.operands[0].type), encoding_of(op.results[0].type).named
            moved = prices.conversion(layout, result, shape_of(op.operands[0].type), max(8, bit_width(element)))
            total += times * moved
        elif op.name == "ttg.local_alloc":  # a product reads it there
            made, shared = op.operands[0].owner, op.results[0].type.data.layout.named
            bits = bit_width(element_of(op.operands[0].type))
            stored = prices.stored(layout, [shared], shape_of(op.operands[0].type), bits)
            total += prices.trips(made.first_op if isinstance(made, Block) else made) * stored
        elif op.name in ("tt.load", "tt.store"):
            total += times * prices.access(op, layout)
        elif op.name in ("tt.reduce", "tt.scan"):
            total += times * prices.reduction(op, layout)
        if op.name in ("arith.addf", "arith.mulf", "math.exp", "tt.scan") and is_tensor(op.results[0].type):
            total += prices.work(layout, shape_of(op.results[0].type), times)
    return total


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.thinned(6)
def test_what_is_chosen_costs_the_least(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all ways where they can be counted, else of what there is when one or two are others, all else chosen anew."""
    function = RandomFunction(Random(seed), 4, SIZES[seed // 2 % 2])
    _, problem, chosen = assigned(function.text, monkeypatch)
    rows, solution = problem.problem.own, chosen.solution
    assert solution.is_exact and solution.price == problem.problem.price(solution.choices)
    if prod(map(len, rows)) <= 1 << 13:
        prices = map(problem.problem.price, product(*map(range, map(len, rows))))
        assert solution.price == pytest.approx(min(prices))
    random = Random(seed)
    for _ in range(20):
        given = {i: random.randrange(len(rows[i])) for i in random.sample(range(len(rows)), min(len(rows), 2))}
        assert problem.problem.cheapest(given).price >= solution.price - 1e-6


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.thinned(6)
def test_the_price_is_that_of_what_is_made(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two ways to lay out a function, the problem sees the difference that their layout IR has."""
    function, random = RandomFunction(Random(seed), 4, SIZES[seed // 2 % 2]), Random(seed)
    module, problem, chosen = assigned(function.text, monkeypatch)
    constant = cost(module) - chosen.solution.price
    choosers = [
        each.number for each in (*problem._groups.values(), *problem._places.values()) if each.number is not None
    ]
    for _ in range(3):
        given = {i: random.randrange(len(problem.problem.own[i])) for i in random.sample(choosers, len(choosers) // 2)}
        module, _, other = assigned(function.text, monkeypatch, given)
        if other.solution.price < NEVER:
            assert cost(module) - other.solution.price == pytest.approx(constant, abs=0.01)
