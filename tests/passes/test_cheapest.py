"""The cheapest choices are those of trying all ways, on graphs of all kinds that are small enough to try them."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from random import Random
from time import process_time

import pytest

from weft.passes.cheapest import Problem


def made(random: Random, count: int, density: float, ways: int = 3) -> Problem:
    """A problem of so many choices, of which pairs have prices with some probability."""
    problem = Problem()
    for _ in range(count):
        problem.add([random.randrange(20) for _ in range(random.randint(1, ways))])
    for a, b in combinations(range(count), 2):
        if random.random() < density:
            ours, theirs = (len(problem.own[i]) for i in (a, b))
            prices = [[float(random.randrange(20)) for _ in range(theirs)] for _ in range(ours)]
            problem.pay(b, a, [list(column) for column in zip(*prices, strict=True)])
    return problem


def least(problem: Problem) -> float:
    """What the cheapest of all ways costs."""
    return min(problem.price(ways) for ways in product(*(range(len(row)) for row in problem.own)))


@pytest.mark.parametrize("density", [0.2, 0.5, 1.0])
def test_nothing_is_cheaper(density: float) -> None:
    random = Random(7)
    for count in (1, 2, 3, 4, 5, 6):
        for _ in range(12):
            problem = made(random, count, density)
            found = problem.cheapest()
            assert found.is_exact
            assert found.price == problem.price(found.choices) == least(problem)


def test_long_chains_with_loops_are_exact_without_trying() -> None:
    """A ladder with crossbars between neighbours has only choices with two neighbours left, one after the other."""
    random = Random(3)
    problem = Problem()
    for _ in range(300):
        problem.add([random.randrange(9) for _ in range(3)])
    for i in range(299):
        for step in (1, 2):
            if i + step < 300:
                problem.pay(i, i + step, [[random.randrange(9) for _ in range(3)] for _ in range(3)])
    assert problem.cheapest(most=1).is_exact


def test_beyond_what_is_tried_the_price_is_near() -> None:
    """Of complete graphs of eight choices, none of which can be eliminated; and no single choice can be bettered."""
    random, ratios = Random(5), []
    for _ in range(6):
        problem = made(random, 8, 1.0)
        found = problem.cheapest(most=1)
        best = least(problem)
        ratios.append(found.price / best)
        assert found.price == problem.price(found.choices) >= best
        assert 0.98 * best <= problem.bound() <= best + 1e-6 and problem.bound() - 1e-6 <= found.bound
        for i, row in enumerate(problem.own):
            others = [(*found.choices[:i], way, *found.choices[i + 1 :]) for way in range(len(row))]
            assert all(problem.price(other) >= found.price for other in others)
    assert max(ratios) < 1.15


@pytest.mark.parametrize("count, density", [(20, 0.3), (30, 0.2), (40, 0.1)])
def test_the_bound_of_a_large_graph_is_near(count: int, density: float) -> None:
    """Of graphs whose ways nobody can try, the price is a few per cent above what is proven to be the least."""
    found = made(Random(count), count, density, ways=4).cheapest(most=256)
    assert found.bound <= found.price <= 1.05 * found.bound


def test_no_choice_of_a_large_graph_is_cheaper_made_otherwise() -> None:
    """Searches with one choice given found cheaper ways than the search for all, and took as long each."""
    problem = made(Random(1), 16, 0.4)
    found = problem.cheapest(most=256)
    assert not found.is_all
    for i, row in enumerate(problem.own):
        for way in range(len(row)):
            more = problem.near(found, {i: way}) - found.price
            assert more == 0 if way == found.choices[i] else more >= 0


def test_near_a_solution_of_all_is_what_costs_the_least() -> None:
    """Where all can be eliminated, all follows."""
    problem = made(Random(2), 9, 0.15)
    found = problem.cheapest()
    for i, row in enumerate(problem.own):
        for way in range(len(row)):
            assert problem.near(found, {i: way}) == problem.cheapest({i: way}).price


@pytest.mark.parametrize("most", [1, 4096])
def test_some_choices_may_be_given(most: int) -> None:
    random = Random(4)
    for _ in range(10):
        problem = made(random, 6, 0.7)
        given = {i: random.randrange(len(problem.own[i])) for i in (1, 4)}
        ranges = [[given[i]] if i in given else range(len(row)) for i, row in enumerate(problem.own)]
        best = min(problem.price(ways) for ways in product(*ranges))
        found = problem.cheapest(given, most=most)
        assert all(found.choices[i] == way for i, way in given.items())
        assert found.bound - 1e-6 <= best <= found.price == problem.price(found.choices)
        assert most == 1 or found.price == best


def test_of_the_same_price_the_first_is_taken() -> None:
    problem = Problem()
    a, b = problem.add([1, 1]), problem.add([2, 2])
    problem.pay(a, b, [[0, 0], [0, 0]])
    assert problem.cheapest().choices == (0, 0)


def test_a_pair_of_one_choice_with_itself_is_its_own_price() -> None:
    problem = Problem()
    problem.pay(problem.add([0, 0]), 0, [[5, 9], [9, 1]])
    assert problem.cheapest().choices == (1,)


def test_a_long_chain_takes_time_in_proportion_to_its_length() -> None:
    """Which choice has the fewest neighbours is known without looking at all of them each time."""

    def seconds(length: int) -> float:
        problem = Problem()
        chain = [problem.add([1, 2]) for _ in range(length)]
        for a, b in pairwise(chain):
            problem.pay(a, b, [[0, 1], [1, 0]])
        begin = process_time()
        assert problem.cheapest().price == length
        return process_time() - begin

    short, long = (min(seconds(length) for _ in range(5)) for length in (400, 4000))
    assert long < 40 * short  # 12 times as long; 70 times if all were looked at each time
