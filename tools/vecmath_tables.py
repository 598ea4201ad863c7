"""Writes src/weft/backends/llvm/vecmath/tables.txt: the special functions as polynomials on many small intervals.

Each row is the interpolation, in 50 digits, at the Chebyshev nodes of its interval, in powers of r = x - centre.
Where a function has a zero in or beside an interval the row holds f(x)/(x - zero) instead, and the zero in two parts,
so that the result keeps its relative precision; rows begin with these two numbers (NaN where there is no zero).

    python tools/vecmath_tables.py     # some minutes
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 50
Real = Callable[[mpf], mpf]
TARGET = Path(__file__).parent.parent / "src/weft/backends/llvm/vecmath/tables.txt"


def interpolate(f: Real, a: mpf, b: mpf, degree: int) -> tuple[list[mpf], mpf]:
    """Coefficients in x - (a+b)/2, and the greatest relative error at points between the nodes."""
    middle, half = (a + b) / 2, (b - a) / 2
    nodes = [half * mp.cos(mp.pi * (2 * i + 1) / (2 * degree + 2)) for i in range(degree + 1)]
    # Newton's divided differences, then expanded
    values = [f(middle + r) for r in nodes]
    table = values[:]
    for level in range(1, degree + 1):
        for i in range(degree, level - 1, -1):
            table[i] = (table[i] - table[i - 1]) / (nodes[i] - nodes[i - level])
    coefficients = [mpf(0)] * (degree + 1)
    for i in range(degree, -1, -1):
        shifted = [mpf(0), *coefficients[:-1]]
        coefficients = [s - nodes[i] * c for s, c in zip(shifted, coefficients)]
        coefficients[0] += table[i]
    worst = mpf(0)
    for r in [half * ((2 * mpf(i) + mpf("0.37")) / 8 - 1) for i in range(8)]:
        p = mp.polyval(coefficients[::-1], r)
        exact = f(middle + r)
        worst = max(worst, abs(p / exact - 1))
    return coefficients, worst


def pieces(f: Real, start: float, step: float, count: int, degree: int, zeros: list[mpf]) -> tuple[list[float], float]:
    rows: list[float] = []
    worst = mpf(0)
    for i in range(count):
        a = mpf(start) + i * mpf(step)
        near = [z for z in zeros if abs(a + mpf(step) / 2 - z) < mpf(step)]
        if near:
            z = min(near, key=lambda z: abs(a + mpf(step) / 2 - z))
            coefficients, error = interpolate(lambda x: f(x) / (x - z), a, a + mpf(step), degree)
            high = float(z)
            rows += [high, float(z - mpf(high))]
        else:
            coefficients, error = interpolate(f, a, a + mpf(step), degree)
            rows += [float("nan"), 0.0]
        worst = max(worst, error)
        rows += [float(c) for c in coefficients]
    return rows, float(worst)


def erfcinv_of_square(w: mpf) -> mpf:
    """y with erfc(y) = exp(-w^2), by Newton's iteration on the logarithm."""
    y = w * mpf("0.9")
    for _ in range(100):
        tail = mp.erfc(y)
        step = (mp.log(tail) + w * w) * tail * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += step
        if abs(step) < mpf(10) ** -45 * y:
            return y
    raise ArithmeticError(f"no convergence for w = {w}")


def bessel_zeros(kind: Callable[[int, int], mpf], order: int, below: float) -> list[mpf]:
    zeros, k = [], 1
    while not zeros or zeros[-1] < below:
        zeros.append(kind(order, k))
        k += 1
    return zeros


def scaled_erfc(t: mpf) -> mpf:
    """(1 + 2a) exp(a^2) erfc(a), a = 4 (1+t)/(1-t): the half line in one interval (Shepherd & Laframboise 1981)."""
    a = 4 * (1 + t) / (1 - t)
    if a > 1000:
        term = total = mpf(1)
        for k in range(1, 12):
            term *= -(2 * k - 1) / (2 * a * a)
            total += term
        return (1 + 2 * a) / (a * mp.sqrt(mp.pi)) * total
    return (1 + 2 * a) * mp.exp(a * a) * mp.erfc(a)


def stirling_rest(u: mpf) -> mpf:
    """x (lgamma(x) - ((x - 1/2) log x - x + log(2 pi)/2)), u = 1/x^2."""
    if u < mpf("1e-6"):
        return mp.polyval(
            [mpf(1) / 156 * -691 / 2310, mpf(1) / 1188, -mpf(1) / 1680, mpf(1) / 1260, -mpf(1) / 360, mpf(1) / 12], u
        )
    x = 1 / mp.sqrt(u)
    return (mp.loggamma(x) - ((x - mpf("0.5")) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)) * x


def modulus(order: int, u: mpf) -> mpf:
    """sqrt(x (J^2 + Y^2)), u = 1/x^2."""
    x = 1 / mp.sqrt(max(u, mpf(10) ** -24))
    return mp.sqrt((mp.besselj(order, x) ** 2 + mp.bessely(order, x) ** 2) * x)


def phase(order: int, u: mpf) -> mpf:
    """x times what the phase of J + iY has beyond x - (2 order + 1) pi/4, u = 1/x^2."""
    x = 1 / mp.sqrt(max(u, mpf(10) ** -24))
    turned = mp.mpc(mp.besselj(order, x), mp.bessely(order, x)) * mp.expj(-(x - mp.pi * (2 * order + 1) / 4))
    return mp.arg(turned) * x


def large_i(order: int, t: mpf) -> mpf:
    """sqrt(x) exp(-x) I(x), t = 1/x."""
    if t < mpf("1e-5"):
        m, total, term = 4 * order * order, mpf(1), mpf(1)
        for k in range(1, 9):
            term *= -(m - (2 * k - 1) ** 2) * t / (8 * k)
            total += term
        return total / mp.sqrt(2 * mp.pi)
    x = 1 / t
    return mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)


def small_y0(z: mpf) -> mpf:
    """(Y0(x) - 2/pi log(x/x0) J0(x)) / (x^2 - x0^2), x0 the first zero of Y0, z = x^2."""
    zero = mp.besselyzero(0, 1)
    x = mp.sqrt(z)
    return (mp.bessely(0, x) - 2 / mp.pi * mp.log(x / zero) * mp.besselj(0, x)) / (z - zero**2)


def small_y1(z: mpf) -> mpf:
    """(Y1(x) - 2/pi (log(x) J1(x) - 1/x)) / x, z = x^2."""
    x = mp.sqrt(z)
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x


def even(f: Real) -> Real:
    """f(x)/x as a function of x^2."""
    return lambda z: f(mp.sqrt(z)) / mp.sqrt(z)


def tables() -> dict[str, tuple[float, float, int, list[float], float]]:
    made: dict[str, tuple[float, float, int, list[float], float]] = {}

    def add(
        name: str, f: Real, start: float, step: float, count: int, degree: int, zeros: list[mpf] | None = None
    ) -> None:
        rows, error = pieces(f, start, step, count, degree, zeros or [])
        made[name] = (start, step, degree + 3, rows, error)
        print(name, count, "pieces, relative error", error, flush=True)

    add("j0", lambda x: mp.besselj(0, x), 0.0, 0.5, 52, 11, bessel_zeros(mp.besseljzero, 0, 27))
    add("j1", lambda x: mp.besselj(1, x), 0.0, 0.5, 52, 11, [mpf(0), *bessel_zeros(mp.besseljzero, 1, 27)])
    add("y0", lambda x: mp.bessely(0, x), 2.0, 0.5, 48, 13, bessel_zeros(mp.besselyzero, 0, 27))
    add("y1", lambda x: mp.bessely(1, x), 1.5, 0.5, 49, 15, bessel_zeros(mp.besselyzero, 1, 27))
    add("i0", lambda x: mp.exp(-x) * mp.besseli(0, x), 0.0, 0.5, 32, 12)
    add("i1", lambda x: mp.exp(-x) * mp.besseli(1, x) / x, 0.0, 0.5, 32, 12)
    add("lgamma", lambda x: mp.loggamma(x) / ((x - 1) * (x - 2)), 0.5, 0.125, 60, 12)
    add("tgamma", mp.gamma, 1.0, 0.125, 56, 12)
    add("erfcinv", lambda w: erfcinv_of_square(w) / w, 0.75, 0.5, 54, 15)
    add("erf", even(mp.erf), 0.0, 1.0, 1, 12)
    add("erfinv", even(mp.erfinv), 0.0, 0.25, 1, 14)
    add("erfcx", scaled_erfc, -1.0, 2.0, 1, 25)
    add("stirling", stirling_rest, 0.0, 1 / 64, 1, 7)
    for order in (0, 1):
        add(f"modulus{order}", lambda u, n=order: modulus(n, u), 0.0, 1 / 512, 1, 6)  # type: ignore[misc]
        add(f"phase{order}", lambda u, n=order: phase(n, u), 0.0, 1 / 512, 1, 6)  # type: ignore[misc]
        add(f"i{order}_large", lambda t, n=order: large_i(n, t), 0.0, 1 / 16, 1, 14)  # type: ignore[misc]
    add("y0_small", small_y0, 0.0, 4.0, 1, 8)
    add("y1_small", small_y1, 0.0, 2.5, 1, 8)
    return made


def main() -> None:
    lines = [
        "# Polynomials on small intervals, written by tools/vecmath_tables.py; for each function: name, start, step, "
        "row length,",
        "# greatest relative error between nodes, rows (base 85)",
    ]
    for name, (start, step, width, rows, error) in tables().items():
        text = base64.b85encode(struct.pack(f"<{len(rows)}d", *rows)).decode()
        lines.append(f"{name} {start} {step} {width} {error:.1e} {text}")
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
