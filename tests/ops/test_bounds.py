"""Facts about integers, against all small integers: every row's transfer function on every pair of facts of four bits.

A fact stands for all integers within its bounds that are its multiples; what an operation gives of any of them, wrapped
to its type, must be within the fact that the transfer function gives, and a multiple of what it says.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from weft.ops.bounds import Bounds, any_of, fitted, two_part
from weft.ops.row import INTEGERS, Row
from weft.ops.table import ROWS, bounds_of

BITS = 4
LOW, HIGH = -8, 8
NUMBERS = np.arange(LOW, HIGH)
PAIRS = [row for row in ROWS.values() if row.bounds is not None and row.of_integers is not None]
RNG = np.random.default_rng(0)


def facts() -> Iterator[Bounds]:
    """Every fact about integers of four bits that some integer fulfils."""
    for low in range(LOW, HIGH):
        for high in range(low, HIGH):
            for multiple in (1, 2, 4, 8):
                if any(v % multiple == 0 for v in range(low, high + 1)):
                    yield Bounds(low, high, multiple)
        yield Bounds.exact(low)


FACTS = list(facts())


def held(fact: Bounds) -> np.ndarray:
    """Which of the sixteen numbers a fact lets through."""
    return (fact.low <= NUMBERS) & (fact.high >= NUMBERS) & (NUMBERS % fact.multiple == 0)


HELD = np.array([held(fact) for fact in FACTS])


def wrapped(values: np.ndarray, bits: int = BITS) -> np.ndarray:
    return (values + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def check(fact: Bounds, values: np.ndarray, what: object) -> None:
    assert fact.low <= values.min() and values.max() <= fact.high and (values % fact.multiple == 0).all(), (what, fact)


def results(row: Row) -> np.ndarray:
    """What the row gives of each pair of the sixteen numbers: [16, 16]."""
    read = NUMBERS % 16 if row.is_unsigned else NUMBERS
    assert row.of_integers is not None
    return wrapped(np.array([[row.of_integers(int(a), int(b), BITS) for b in read] for a in read]))


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row.name)
def test_of_two_integers(row: Row) -> None:
    """Every pair of facts in the slow run; else a part of them, another for each row."""
    table = results(row)
    chosen = RNG.choice(len(FACTS), (3000, 2))
    for i, j in chosen.tolist():
        a, b = FACTS[i], FACTS[j]
        check(bounds_of(row.name, [a, b], BITS), table[np.ix_(HELD[i], HELD[j])], (row.name, a, b))


@pytest.mark.slow
@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row.name)
def test_every_pair(row: Row) -> None:
    table = results(row)
    for i, a in enumerate(FACTS):
        rows = table[HELD[i]]
        for j, b in enumerate(FACTS):
            check(bounds_of(row.name, [a, b], BITS), rows[:, HELD[j]], (row.name, a, b))


def test_of_one_integer() -> None:
    for fact, mask in zip(FACTS, HELD, strict=True):
        x = NUMBERS[mask]
        check(bounds_of("math.absi", [fact], BITS), wrapped(np.abs(x)), ("absi", fact))
        for name in ("math.ctpop", "math.ctlz", "math.cttz"):
            count = {"math.ctpop": lambda v: v.bit_count(), "math.ctlz": lambda v: BITS - v.bit_length(),
                     "math.cttz": lambda v: (v & -v).bit_length() - 1 if v else BITS}[name]  # fmt: skip
            check(bounds_of(name, [fact], BITS), np.array([count(int(v) % 16) for v in x]), (name, fact))
        check(bounds_of("arith.extsi", [fact], 8, BITS), x, ("extsi", fact))
        check(bounds_of("arith.extui", [fact], 8, BITS), x % 16, ("extui", fact))
        for bits in (1, 2, 3):
            check(bounds_of("arith.trunci", [fact], bits, BITS), wrapped(x, bits), ("trunci", bits, fact))
        for bits in (2, 4, 8):
            check(bounds_of("arith.index_cast", [fact], bits, BITS), wrapped(x, bits), ("index_cast", bits, fact))


def test_of_a_choice() -> None:
    for a, b in RNG.choice(len(FACTS), (500, 2)).tolist():
        found = bounds_of("arith.select", [any_of(1), FACTS[a], FACTS[b]], BITS)
        check(found, NUMBERS[HELD[a] | HELD[b]], (FACTS[a], FACTS[b]))
        check(FACTS[a] | FACTS[b], NUMBERS[HELD[a] | HELD[b]], (FACTS[a], FACTS[b]))


SIGNS = {
    "both": ("addi", "muli", "divsi", "floordivsi", "ceildivsi", "ori", "xori", "minsi", "maxui", "andi"),
    "either": ("andi", "maxsi", "minui"),
    "first": ("remsi", "remui", "shrsi", "shrui", "divui", "ceildivui"),
}


@pytest.mark.parametrize("which", SIGNS)
def test_what_is_not_negative(which: str) -> None:
    """Facts are not only true, but say what is needed: none of these is negative if so many operands are not."""
    any_, positive = any_of(32), Bounds(0, (1 << 31) - 1)
    for name in SIGNS[which]:
        pairs = {
            "both": [(positive, positive)],
            "first": [(positive, any_)],
            "either": [(positive, any_), (any_, positive)],
        }
        for pair in pairs[which]:
            assert bounds_of(f"arith.{name}", pair, 32, wrapping=False).low >= 0, name
    assert bounds_of("arith.extui", [any_], 64, 32) == Bounds(0, (1 << 32) - 1)
    assert bounds_of("arith.shrui", [any_, Bounds.exact(1)], 32) == Bounds(0, (1 << 31) - 1)


def test_multiples() -> None:
    eight, n = Bounds.exact(8), any_of(32, 16)
    assert bounds_of("arith.muli", [n, eight], 32).multiple == 128
    assert bounds_of("arith.addi", [n, eight], 32).multiple == 8
    assert bounds_of("arith.divsi", [n, eight], 32).multiple == 2
    assert bounds_of("arith.shrsi", [n, Bounds.exact(2)], 32).multiple == 4
    assert bounds_of("arith.shli", [n, Bounds.exact(2)], 32).multiple == 64
    assert bounds_of("arith.andi", [n, Bounds.exact(-64)], 32).multiple == 64
    assert two_part(0) == two_part(1 << 40) == 1 << 30


def test_results_that_are_taken_to_fit() -> None:
    """Of what the type does not hold nothing is said; the bounds of the rest are kept."""
    for fact in (Bounds(-20, 5), Bounds(-3, 30), Bounds(9, 40), Bounds(-40, -9), Bounds(-20, 20)):
        kept = fitted(fact, BITS, wrapping=False)
        assert LOW <= kept.low <= kept.high < HIGH
        for value in range(max(fact.low, LOW), min(fact.high + 1, HIGH)):
            assert kept.low <= value <= kept.high


def test_every_row_of_integers_says_what_is_known() -> None:
    """But for those of which nothing is: upper halves of products."""
    without = {row.name for row in ROWS.values() if row.kind == INTEGERS and row.bounds is None}
    assert without == {"arith.mulhui", "arith.mulhsi", "tt.mulhiui"}
