"""Best approximations by polynomials and quotients, for the coefficient tables of the math library.

`polynomial` is the Remez exchange (Muller, Elementary Functions, chapter 3) on any set of powers, with a weight; when
coefficients must be rounded to float or double they are rounded one at a time, the most important first, and the rest
fitted anew. `quotient` fits P/Q: linearised least squares whose weights are raised where the error is large (Lawson),
which comes close to the best without the delicate rational exchange.

    python tools/minimax.py            # a self-check: exp on a small interval
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mpmath import mp, mpf

mp.dps = 50
Real = Callable[[mpf], mpf]


def _nodes(a: mpf, b: mpf, count: int) -> list[mpf]:
    return [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]


def _extrema(error: Callable[[mpf], mpf], a: mpf, b: mpf, count: int) -> list[mpf]:
    """Where |error| is greatest on each run of one sign; exactly `count`, the outermost dropped if more."""
    grid = _nodes(a, b, 24 * count)
    values = [error(x) for x in grid]
    best: list[tuple[mpf, mpf]] = []
    for x, v in zip(grid, values):
        if best and (v < 0) == (best[-1][1] < 0):
            if abs(v) > abs(best[-1][1]):
                best[-1] = (x, v)
        else:
            best.append((x, v))
    while len(best) > count:
        best.pop(0 if abs(best[0][1]) < abs(best[-1][1]) else -1)
    return [x for x, _ in best]


def _remez(f: Real, powers: Sequence[int], a: mpf, b: mpf, weight: Real) -> list[mpf]:
    count = len(powers) + 1
    points = _nodes(a, b, count)
    coefficients: list[mpf] = []
    for _ in range(30):
        matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
        for i, x in enumerate(points):
            for j, p in enumerate(powers):
                matrix[i, j] = x**p
            matrix[i, count - 1] = (-1) ** i / (weight(x) or mpf("1e-99"))
            right[i] = f(x)
        try:
            solved = mp.lu_solve(matrix, right)
        except ZeroDivisionError:  # a weight that vanishes at a node
            return _lawson(f, powers, _nodes(a, b, 203)[1:-1], weight)
        coefficients, level = list(solved)[:-1], abs(solved[count - 1])

        def error(x: mpf) -> mpf:
            return weight(x) * (sum((c * x**p for c, p in zip(coefficients, powers)), mpf(0)) - f(x))

        found = _extrema(error, a, b, count)
        if len(found) < count:
            break
        points = found
        worst = max(abs(error(x)) for x in points)
        if worst < level * mpf("1.001"):
            break
    grid = _nodes(a, b, 401)[1:-1]
    if max(abs(error(x)) for x in grid) < level * mpf("1.05"):
        return coefficients
    return _lawson(f, powers, grid[::2], weight)


def _lawson(f: Real, powers: Sequence[int], xs: list[mpf], weight: Real) -> list[mpf]:
    """Least squares with weights raised where the error is large: for sets of powers where the exchange fails."""
    rows, fs, ws = [[x**p for p in powers] for x in xs], [f(x) for x in xs], [weight(x) for x in xs]
    count = len(powers)
    lawson = [mpf(1)] * len(xs)
    best: tuple[mpf, list[mpf]] | None = None
    for _ in range(60):
        matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, fx, wx, share in zip(rows, fs, ws, lawson):
            scale = share * wx * wx
            for i in range(count):
                s = scale * row[i]
                right[i] += s * fx
                for j in range(count):
                    matrix[i, j] += s * row[j]
        c = list(mp.lu_solve(matrix, right))
        errors = [
            abs(wx * (sum((ci * ri for ci, ri in zip(c, row)), mpf(0)) - fx)) for row, fx, wx in zip(rows, fs, ws)
        ]
        worst = max(errors)
        if best is None or worst < best[0]:
            best = (worst, c)
        lawson = [share * (e / worst + mpf("0.02")) for share, e in zip(lawson, errors)]
        total = sum(lawson) / len(lawson)
        lawson = [share / total for share in lawson]
    assert best is not None
    return best[1]


def polynomial(
    f: Real, powers: Sequence[int], a: float, b: float, weight: Real | None = None, kind: str = "double"
) -> tuple[list[float], float]:
    """Coefficients of `powers` for f on [a, b] with the least greatest weight*|error| (relative if none), and it.

    The coefficients are numbers of `kind` (float or double).
    """
    given = weight or (lambda x: 1 / f(x))

    def w(x: mpf) -> mpf:
        return abs(given(x))

    low, high = mpf(a), mpf(b)
    fixed: list[mpf] = []
    left = list(powers)
    coefficients: list[mpf] = []
    while left:
        if kind == "double" and len(fixed) >= 3:  # what rounding the others does is far below the error
            fixed += coefficients[1:]
            break

        def rest(x: mpf) -> mpf:
            return f(x) - sum((c * x**p for c, p in zip(fixed, powers)), mpf(0))

        coefficients = (
            _remez(rest, left, low, high, w) if not fixed else _lawson(rest, left, _nodes(low, high, 203)[1:-1], w)
        )
        c = coefficients[0]
        fixed.append(mpf(float(np.float32(float(c)))) if kind == "float" else mpf(float(c)))
        left.pop(0)
    error = max(
        abs(w(x) * (sum((c * x**p for c, p in zip(fixed, powers)), mpf(0)) - f(x)))
        for x in _nodes(low, high, 401)[1:-1]
    )
    return [float(c) for c in fixed], float(error)


def quotient(
    f: Real, p: int, q: int, a: float, b: float, weight: Real | None = None, rounds: int = 40, q_odd: bool = False
) -> tuple[list[float], list[float], float]:
    """Coefficients (constant first) of P of degree p and Q of degree q, Q(0) = 1, with P/Q close to f on [a, b]; and
    the error.
    """
    w = weight or (lambda x: 1 / f(x))
    xs = _nodes(mpf(a), mpf(b), 12 * (p + q + 2))[1:-1]
    fs, ws = [f(x) for x in xs], [w(x) for x in xs]
    powers = [[x**k for k in range(max(p, q) + 1)] for x in xs]
    lawson = [mpf(1)] * len(xs)
    below = [mpf(1)] * len(xs)
    count = p + 1 + q
    best: tuple[list[mpf], mpf] | None = None
    for _ in range(rounds):
        matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
        for x, fx, wx, share, d in zip(powers, fs, ws, lawson, below):
            row = [*x[: p + 1], *(-fx * x[k] for k in range(1, q + 1))]
            scale = share * (wx / d) ** 2
            for i in range(count):
                s = scale * row[i]
                right[i] += s * fx
                for j in range(i, count):
                    matrix[i, j] += s * row[j]
        for i in range(count):
            for j in range(i):
                matrix[i, j] = matrix[j, i]
        c = list(mp.lu_solve(matrix, right))
        tops = [sum((c[k] * x[k] for k in range(p + 1)), mpf(0)) for x in powers]
        below = [1 + sum((c[p + k] * x[k] for k in range(1, q + 1)), mpf(0)) for x in powers]
        errors = [abs(wx * (t / d - fx)) for wx, t, d, fx in zip(ws, tops, below, fs)]
        worst = max(errors)
        if best is None or worst < best[1]:
            best = (c, worst)
        lawson = [share * (e / worst + mpf("0.02")) for share, e in zip(lawson, errors)]
        total = sum(lawson) / len(lawson)
        lawson = [share / total for share in lawson]
    assert best is not None
    c, worst = best
    return [float(v) for v in c[: p + 1]], [1.0, *(float(v) for v in c[p + 1 :])], float(worst)


if __name__ == "__main__":
    found, error = polynomial(mp.exp, range(6), -0.35, 0.35)
    print([v.hex() for v in found], error)
    assert error < 1e-7
    above, under, error = quotient(mp.exp, 3, 3, -0.35, 0.35)
    print(above, under, error)
    assert error < 1e-9
