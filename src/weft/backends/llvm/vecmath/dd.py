"""Numbers as unevaluated sums of two floats of one type (about twice the precision), for steps where one is not enough.

A pair (high, low) has |low| at most half a unit in the last place of high. The operations are those of Dekker (1971)
and Knuth, with the product exact by fma; see Muller et al., Handbook of Floating-Point Arithmetic, chapter 14. Names:
`two_*` are exact.
"""

from __future__ import annotations

from .expr import Number, X, fma

Pair = tuple[X, X]


def two_sum(a: X, b: X | Number) -> Pair:
    """a + b exactly."""
    b = a.const(b)
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def quick_two_sum(a: X, b: X) -> Pair:
    """a + b exactly, where |a| >= |b| (or a = 0)."""
    s = a + b
    return s, b - (s - a)


def two_prod(a: X, b: X | Number) -> Pair:
    """a * b exactly, barring underflow."""
    p = a * b
    return p, fma(a, b, -p)


def add(a: Pair, b: Pair) -> Pair:
    """The sum of two pairs."""
    s, e = two_sum(a[0], b[0])
    t, u = two_sum(a[1], b[1])
    s, e = quick_two_sum(s, e + t)
    return quick_two_sum(s, e + u)


def add_quick(a: Pair, b: Pair) -> Pair:
    """a + b, where |a| >= |b|."""
    s, e = quick_two_sum(a[0], b[0])
    return quick_two_sum(s, e + (a[1] + b[1]))


def add_single(a: Pair, b: X | Number) -> Pair:
    """A pair plus a number."""
    s, e = two_sum(a[0], b)
    return quick_two_sum(s, e + a[1])


def mul(a: Pair, b: Pair) -> Pair:
    """The product of two pairs."""
    p, e = two_prod(a[0], b[0])
    return quick_two_sum(p, fma(a[0], b[1], fma(a[1], b[0], e)))


def mul_const(a: X, c: tuple[float, float]) -> Pair:
    """a times a constant given in two parts."""
    p, e = two_prod(a, c[0])
    return quick_two_sum(p, fma(a, c[1], e))


def div(a: Pair, b: Pair) -> Pair:
    """The quotient of two pairs."""
    q = a[0] / b[0]
    r = fma(-q, b[0], a[0])
    r = fma(-q, b[1], r + a[1])
    return quick_two_sum(q, r / b[0])


def constant(x: X, parts: tuple[float, float]) -> Pair:
    """A pair from two numbers."""
    return x.const(parts[0]), x.const(parts[1])
