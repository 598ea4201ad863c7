"""Find the cheapest combination of choices, where prices depend on single choices and on pairs of them.

    x: 0 costs 3, 1 costs 0        y: 0 costs 0, 1 costs 5        z: 0 costs 1, 1 costs 0
    x and y cost 4 if they differ, y and z cost 2 if they differ

    >>> problem = Problem()
    >>> x, y, z = (problem.add(prices) for prices in ([3, 0], [0, 5], [1, 0]))
    >>> problem.pay(x, y, [[0, 4], [4, 0]])
    >>> problem.pay(y, z, [[0, 2], [2, 0]])
    >>> problem.cheapest()
    Solution(choices=(0, 0, 0), price=4, bound=4)
    >>> problem.cheapest({x: 1})
    Solution(choices=(1, 0, 0), price=5, bound=5)

A choice with at most two neighbours is eliminated: for each combination of their values its own best value is known,
and its price is added to theirs. When all remaining choices have three neighbours or more, one of them is tried with
each of its values, and so on, for at most `most` choices in all; then the result is exact. Beyond that, a choice is
made as if each neighbour could follow it, and at the end each choice is made again, given the others, until nothing is
gained. Of values at the same price the first is taken.

A solution has a lower bound of the price of all solutions. If the result is exact, that is its own price. Otherwise,
prices of the choices that cannot be eliminated are moved between choices and the pairs that contain them, so that no
sum changes; the bound is the sum of the least entry of each row and of each matrix. Balancing the prices of a choice,
round after round, never lowers it (Kovalevsky and Koval, 1975; Werner, "A linear programming approach to max-sum
problem", 2007).

The reductions are those of Scholz and Eckstein for register allocation (partitioned boolean quadratic programming,
LCTES 2002). They eliminate the graphs of structured programs, which have narrow tree decompositions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import cycle, islice
from operator import add
from types import MappingProxyType

Row = list[float]
Matrix = list[Row]
Follower = tuple[int, tuple[int, ...], dict[tuple[int, ...], int]]
"""An eliminated choice, its neighbours, and its best way for each combination of their ways."""
NOTHING_GIVEN: Mapping[int, int] = MappingProxyType({})

MOST = 4096
"""The most choices that the search makes: half a second if 60 choices cannot be eliminated."""
AGAIN = 4
"""How many times as many choices improving a solution may make. With 170 choices, 24 tries gain nothing, and 70 save
7 to 20 %."""
ROUNDS = 50
"""How often prices are balanced to find a bound: further rounds raise it by less than a thousandth."""


@dataclass(frozen=True)
class Solution:
    """The way of each choice, their price, and a lower bound of the price of any solution."""

    choices: tuple[int, ...]
    price: float
    bound: float
    is_all: bool = field(default=True, repr=False)
    """Whether the search was complete."""

    @property
    def is_exact(self) -> bool:
        """Whether no solution is cheaper, except for the rounding of sums."""
        return self.price - self.bound <= 1e-9 * abs(self.price)


class Problem:
    """Choices, each with the price of each way to make it, and prices of pairs."""

    def __init__(self) -> None:
        self.own: list[Row] = []
        self.pairs: dict[tuple[int, int], Matrix] = {}
        self._neighbours: list[dict[int, Matrix]] = []
        """The pairs of each choice, as they were when they were asked for last; empty after a change."""

    def add(self, prices: Sequence[float]) -> int:
        """Add a choice, and return its number."""
        self.own.append([*prices])
        self._neighbours = []
        return len(self.own) - 1

    def pay(self, a: int, b: int, prices: Matrix) -> None:
        """Let two choices cost `prices[way of a][way of b]`, in addition to their present price."""
        if a == b:
            for way, row in enumerate(prices):
                self.own[a][way] += row[way]
            return
        if a > b:
            a, b, prices = b, a, _turned(prices)
        before = self.pairs.get((a, b))
        self._neighbours = []
        self.pairs[a, b] = [[*row] for row in prices] if before is None else _sum(before, prices)

    def price(self, choices: Sequence[int]) -> float:
        """The price of a solution."""
        alone = sum(row[way] for row, way in zip(self.own, choices, strict=True))
        return alone + sum(prices[choices[a]][choices[b]] for (a, b), prices in self.pairs.items())

    def cheapest(self, given: Mapping[int, int] = NOTHING_GIVEN, most: int = MOST) -> Solution:
        """The cheapest solution with some choices given, or one near it if `most` choices do not suffice."""
        around = self._around()
        rest = self._rest(around, given)
        made = {**rest.solve(most), **given}
        choices = tuple([made[i] for i in range(len(self.own))])
        if not rest.is_exact:
            choices = self._improved(choices, around, given, most)
        price = self.price(choices)
        return Solution(choices, price, price if rest.is_exact else min(price, self.bound(given)), rest.is_exact)

    def near(self, solution: Solution, given: Mapping[int, int]) -> float:
        """The price of a solution with some choices changed, if those that can be eliminated adapt and others stay."""
        around = self._around()
        kept = {i: solution.choices[i] for i in self._rest(around, given).entangled()}
        return self.price(self._followed(around, {**kept, **given}))

    def bound(self, given: Mapping[int, int] = NOTHING_GIVEN) -> float:
        """A lower bound of the price of any solution, found without a search for one."""
        return self._rest(self._around(), given).bound()

    def _around(self) -> list[dict[int, Matrix]]:
        """The pairs of each choice. Nobody changes them: a search consumes copies of the dictionaries."""
        if not self._neighbours:
            self._neighbours = [{} for _ in self.own]
            for (a, b), prices in self.pairs.items():
                self._neighbours[a][b], self._neighbours[b][a] = prices, _turned(prices)
        return self._neighbours

    def _rest(self, around: list[dict[int, Matrix]], given: Mapping[int, int]) -> _Rest:
        """The problem without the given choices, as a copy for a search to consume."""
        rest = _Rest({i: [*row] for i, row in enumerate(self.own)}, [{**pairs} for pairs in around])
        for i, way in given.items():
            rest.make(i, way)
        return rest

    def _improved(
        self, choices: tuple[int, ...], around: list[dict[int, Matrix]], given: Mapping[int, int], most: int
    ) -> tuple[int, ...]:
        """Try other ways of the choices that cannot be eliminated, until none is cheaper or after too many tries."""
        entangled = self._rest(around, given).entangled()
        ways = [(i, way) for i in entangled for way in range(len(self.own[i]))]
        least, since = self.price(choices), 0
        for i, way in islice(cycle(ways), AGAIN * most // len(self.own)):
            if since == len(ways):
                break
            since += 1
            if way != choices[i]:
                kept = {k: choices[k] for k in entangled}
                tried = self._followed(around, {**kept, **given, i: way})
                if (price := self.price(tried)) < least - 1e-9 * abs(least):
                    choices, least, since = tried, price, 0
        return choices

    def _followed(self, around: list[dict[int, Matrix]], given: Mapping[int, int]) -> tuple[int, ...]:
        """The cheapest solution if all choices that cannot be eliminated are given."""
        made = {**self._rest(around, given).solve(0), **given}
        return tuple([made[i] for i in range(len(self.own))])


class _Rest:
    """The part of a problem that is left while choices are eliminated."""

    def __init__(self, own: dict[int, Row], around: list[dict[int, Matrix]]) -> None:
        self.own, self.around = own, around
        self.is_exact = True
        self.settled = 0.0
        """The price of eliminated choices that have no neighbours left."""

    def solve(self, most: int) -> dict[int, int]:
        """The ways of all choices that are left."""
        followers = self._eliminate()
        made = self._tried(most // len(self.own)) if self.own else {}
        for i, neighbours, best in reversed(followers):
            made[i] = best[tuple([made[j] for j in neighbours])]
        return made

    def bound(self) -> float:
        """A lower bound of the price of all choices that are left."""
        self._eliminate()
        for _ in range(ROUNDS if self.own else 0):
            self._even_out()
        pairs = [m for i, around in self.around_left() for j, m in around.items() if i < j]
        return self.settled + sum(map(min, self.own.values())) + sum(min(map(min, m)) for m in pairs)

    def entangled(self) -> list[int]:
        """Choices after whose removal all others can be eliminated. This consumes the object."""
        left: list[int] = []
        self._eliminate()
        while self.own:
            left.append(self._most_entangled())
            self.make(left[-1], 0)
            self._eliminate()
        return left

    def _most_entangled(self) -> int:
        return max(self.own, key=lambda k: len(self.around[k]))

    def around_left(self) -> list[tuple[int, dict[int, Matrix]]]:
        """The pairs of each choice that is left."""
        return [(i, self.around[i]) for i in self.own]

    def _even_out(self) -> None:
        """Each choice takes the least price of each of its ways from its pairs, and returns an equal part to each."""
        for i, around in self.around_left():
            least = {j: [min(row) for row in m] for j, m in around.items()}
            total = [sum(prices) for prices in zip(self.own[i], *least.values(), strict=True)]
            part = [price / (len(around) + 1) for price in total]
            self.own[i] = part
            for j, m in around.items():
                around[j] = [[x - y + z for x in row] for row, y, z in zip(m, least[j], part, strict=True)]
                self.around[j][i] = _turned(around[j])

    def _eliminate(self) -> list[Follower]:
        """Eliminate choices until all that are left have three neighbours or more."""
        followers: list[Follower] = []
        fewest = [(len(self.around[i]), i) for i in self.own]  # an entry is outdated once the choice got another number
        heapify(fewest)
        while fewest and fewest[0][0] <= 2:
            number, i = heappop(fewest)
            if i not in self.own or number != len(self.around[i]):
                continue
            follower = self._eliminated(i)
            followers.append(follower)
            for j in follower[1]:
                heappush(fewest, (len(self.around[j]), j))
        return followers

    def _eliminated(self, i: int) -> Follower:
        """Eliminate a choice with at most two neighbours: its best way for each combination of theirs."""
        own, around = self.own.pop(i), {j: self.around[j].pop(i) for j in self.around[i]}
        self.around[i] = {}
        best: dict[tuple[int, ...], int] = {}
        if not around:
            best[()] = _first_of(own)
            self.settled += own[best[()]]
        elif len(around) == 1:
            ((j, prices),) = around.items()
            for y, row in enumerate(prices):
                ways = [a + b for a, b in zip(own, row, strict=True)]
                best[y,] = _first_of(ways)
                self.own[j][y] += ways[best[y,]]
        else:
            (j, left), (k, right) = around.items()
            prices = [[0.0] * len(right) for _ in left]
            for y, row in enumerate(left):
                for z, other in enumerate(right):
                    ways = [a + b + c for a, b, c in zip(own, row, other, strict=True)]
                    best[y, z] = _first_of(ways)
                    prices[y][z] = ways[best[y, z]]
            before = self.around[j].get(k)
            self.around[j][k] = prices if before is None else _sum(before, prices)
            self.around[k][j] = _turned(self.around[j][k])
        return i, tuple(around), best

    def _taken(self, i: int) -> dict[int, Matrix]:
        """Remove a choice from its neighbours, and return its pairs."""
        around, self.around[i] = self.around[i], {}
        for j in around:
            del self.around[j][i]
        return around

    def _tried(self, most: int) -> dict[int, int]:
        """Solve what is left: try all ways of the choice with the most neighbours, or the most promising."""
        i = self._most_entangled()
        own = self.own[i]
        if len(own) > most:
            self.is_exact = False
            followed = [
                price + sum(min(map(add, prices[way], self.own[j])) for j, prices in self.around[i].items())
                for way, price in enumerate(own)
            ]
            return self._with(i, _first_of(followed), most)[1]
        tries: list[tuple[float, dict[int, int]]] = []
        is_exact = True
        for way in range(len(own)):
            copy = _Rest({k: [*row] for k, row in self.own.items()}, [{**x} for x in self.around])
            tries.append(copy._with(i, way, most // len(own) * len(copy.own)))
            is_exact &= copy.is_exact
        self.is_exact &= is_exact
        return min(tries, key=lambda found: found[0])[1]

    def make(self, i: int, way: int) -> None:
        """Make a choice: the prices of its pairs become prices of its neighbours alone."""
        self.settled += self.own.pop(i)[way]
        for j, prices in self._taken(i).items():
            self.own[j] = [a + b for a, b in zip(self.own[j], prices[way], strict=True)]

    def _with(self, i: int, way: int, most: int) -> tuple[float, dict[int, int]]:
        """Make a choice; the price of everything that is left, and the ways of all choices."""
        self.make(i, way)
        rows = {k: [*row] for k, row in self.own.items()}
        pairs = [(a, b, m) for a in rows for b, m in self.around[a].items() if a < b]
        before = self.settled
        made = self.solve(most)
        price = before + sum(rows[k][made[k]] for k in rows) + sum(m[made[a]][made[b]] for a, b, m in pairs)
        return price, {**made, i: way}


def _turned(prices: Matrix) -> Matrix:
    return [list(column) for column in zip(*prices, strict=True)]


def _sum(a: Matrix, b: Matrix) -> Matrix:
    return [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(a, b, strict=True)]


def _first_of(prices: Row) -> int:
    """The first of the cheapest."""
    return prices.index(min(prices))
