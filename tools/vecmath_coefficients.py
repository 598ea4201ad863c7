"""Coefficients of the math library's approximations, with the error each leaves (relative, unless said otherwise).

    python tools/vecmath_coefficients.py            # all of them
    python tools/vecmath_coefficients.py exp log    # those whose name contains a word

Fits are made by tools/minimax.py in 50 digits; each entry prints as a line for
src/weft/backends/llvm/vecmath/coefficients.txt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import itemgetter

import numpy as np
from minimax import Real, polynomial
from mpmath import mp, mpf

LN2 = mp.log(2)
_entries: dict[str, Callable[[], object]] = {}


def fit(
    name: str, f: Real, degree: int | Sequence[int], a: mpf, b: mpf, weight: Real | None = None, kind: str = "double"
) -> None:
    powers = range(degree + 1) if isinstance(degree, int) else degree
    _entries[name] = lambda: polynomial(f, powers, a, b, weight, kind)


def guarded(f: Real, limit: Real, below: float = 1e-9) -> Real:
    """f, with its series `limit` where the formula divides by nearly zero."""
    return lambda x: limit(x) if abs(x) < below else f(x)


# -- exponentials: base**r = 1 + r c1 + r^2 Q(r) ----------------------------------------------------------------------
for kind, degree in (("float", 6), ("double", 11)):
    for name, scale in (("exp", mpf(1)), ("exp2", LN2), ("exp10", mp.log(10))):
        half = LN2 / 2 / scale * mpf("1.001")
        fit(
            f"{name}.{kind}",
            guarded(lambda r, s=scale: (mp.expm1(s * r) - s * r) / r**2, lambda r, s=scale: s**2 / 2 + s**3 * r / 6),
            degree - 2,
            -half,
            half,
            lambda r, s=scale: r * r / mp.exp(s * r),
            kind,
        )
for name, scale in (("exp", mpf(1)), ("exp2", LN2), ("exp10", mp.log(10))):
    half = LN2 / 32 / scale * mpf("1.01")
    fit(
        f"{name}.table",
        guarded(lambda r, s=scale: mp.expm1(s * r) / r, lambda r, s=scale: s + s**2 * r / 2),
        2,
        -half,
        half,
        lambda r, s=scale: r / mp.exp(s * r) + mpf("1e-12"),
        "float",
    )
# sinh(x) = x + x^3 P(x^2)
for kind, degree in (("float", 3), ("double", 7)):
    fit(
        f"sinh.{kind}",
        guarded(lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: mpf(1) / 6 + z / 120),
        degree,
        0,
        mpf("1.01"),
        lambda z: z,
        kind,
    )

# -- logarithms: log_b(1+f) = c1 f + f^2 Q(f) on [sqrt(1/2), sqrt(2)] --------------------------------------------------
LOW, HIGH = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(mpf(2)) - 1
for name, scale in (("log", mpf(1)), ("log2", 1 / LN2), ("log10", 1 / mp.log(10))):
    fit(
        f"{name}.float",
        guarded(lambda f, s=scale: s * (mp.log1p(f) - f) / f**2, lambda f, s=scale: s * (-mpf(1) / 2 + f / 3)),
        8,
        LOW,
        HIGH,
        lambda f, s=scale: f * f / (s * mp.log1p(f)) if f else mpf(0),
        "float",
    )
# the same after taking a factor out (AVX-512), on [-1/32, 1/16]
for name, scale in (("log", mpf(1)), ("log2", 1 / LN2), ("log10", 1 / mp.log(10))):
    fit(
        f"{name}.table",
        guarded(lambda f, s=scale: s * (mp.log1p(f) - f) / f**2, lambda f, s=scale: s * (-mpf(1) / 2 + f / 3)),
        3,
        mpf("-0.0318"),
        mpf("0.0626"),
        lambda f, s=scale: f * f / (s * mp.log1p(f)) if f else mpf(0),
        "float",
    )


def log_factors(name: str) -> tuple[list[float], list[float], float]:
    """Floats near the inverses of the middles of sixteen intervals, chosen so that their logarithms are nearly floats.

    (Gal & Bachelis 1991.) Intervals 0..7 are sixteenths of [1, 1.5), 8..15 thirty-seconds of [0.75, 1).
    """
    scale = {"log": mpf(1), "log2": 1 / LN2, "log10": 1 / mp.log(10)}[name]
    inverses, logarithms, worst = [], [], mpf(0)
    for i in range(16):
        middle = mpf(1 if i in (0, 15) else (1 + (i + 0.5) / 16) / (1 if i < 8 else 2))
        start = np.float32(float(1 / middle))
        best: tuple[mpf, float, float] | None = None
        for step in range(-3000, 3001) if middle != 1 else (0,):
            inverse = float((start.view(np.int32) + step).astype(np.int32).view(np.float32))
            exact = -scale * mp.log(mpf(inverse))
            rounded = float(np.float32(float(exact)))
            error = abs(exact - rounded)
            if best is None or error < best[0]:
                best = (error, inverse, rounded)
        assert best is not None
        worst = max(worst, best[0])
        inverses.append(best[1])
        logarithms.append(best[2])
    return inverses, logarithms, float(worst)


for name in ("log", "log2", "log10"):
    for part, table in enumerate(("factors", "logarithms")):
        _entries[f"{name}.{table}"] = lambda n=name, i=part: itemgetter(i, 2)(log_factors(n))  # type: ignore[misc]
# log((1+s)/(1-s)) = 2s + s^3 R(s^2)
ZMAX = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.001")
fit(
    "log.double",
    guarded(lambda z: 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: mpf(2) / 3 + 2 * z / 5, 1e-18),
    6,
    0,
    ZMAX,
    lambda z: z,
)
fit(
    "log.dd",
    guarded(
        lambda z: (2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z - mpf(2) / 3) / z,
        lambda z: mpf(2) / 5 + 2 * z / 7,
        1e-18,
    ),
    8,
    0,
    ZMAX,
    lambda z: z,
)

# -- trigonometric kernels on [-pi/4, pi/4]; z = r^2 -------------------------------------------------------------------
Z = (mp.pi / 4 * mpf("1.001")) ** 2
for kind, degree in (("float", 2), ("double", 5)):
    fit(
        f"sin.{kind}",
        guarded(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: -mpf(1) / 6 + z / 120, 1e-18),
        degree,
        0,
        Z,
        lambda z: z,
        kind,
    )
    fit(
        f"cos.{kind}",
        guarded(lambda z: ((mp.cos(mp.sqrt(z)) - 1) / z + mpf(1) / 2) / z, lambda z: mpf(1) / 24 - z / 720, 1e-14),
        degree,
        0,
        Z,
        lambda z: z * z,
        kind,
    )
fit(
    "tan.float",
    guarded(lambda z: (mp.tan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: mpf(1) / 3 + 2 * z / 15, 1e-18),
    5,
    0,
    Z,
    lambda z: z,
    "float",
)
# sin(pi r), cos(pi r) on [-1/4, 1/4]
PI = mp.pi
for kind, degree in (("float", 3), ("double", 6)):
    fit(
        f"sinpi.{kind}",
        guarded(
            lambda z: (mp.sin(PI * mp.sqrt(z)) / mp.sqrt(z) - PI) / z, lambda z: -(PI**3) / 6 + z * PI**5 / 120, 1e-18
        ),
        degree - 1,
        0,
        mpf("0.0626"),
        lambda z: z,
        kind,
    )
    fit(
        f"cospi.{kind}",
        guarded(lambda z: (mp.cos(PI * mp.sqrt(z)) - 1) / z, lambda z: -(PI**2) / 2 + z * PI**4 / 24, 1e-14),
        degree,
        0,
        mpf("0.0626"),
        lambda z: z,
        kind,
    )

# -- tanh(x) = x + x^3 P(x^2) below 0.6 -------------------------------------------------------------------------------
fit(
    "tanh.float",
    guarded(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: -mpf(1) / 3 + 2 * z / 15, 1e-14),
    4,
    0,
    mpf("0.37"),
    lambda z: z,
    "float",
)

# -- float erf: a P(a^2) below 1, 1 - 2^-(a Q(a)) to where it is 1; or 16 pieces around k*STEP (the first: a P(a)) ----
fit(
    "erf.float.small",
    guarded(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z), lambda z: 2 / mp.sqrt(PI) * (1 - z / 3)),
    6,
    0,
    mpf("1.001"),
    None,
    "float",
)
fit(
    "erf.float.large",
    lambda a: -mp.log(mp.erfc(a), 2) / a,
    6,
    mpf("0.999"),
    mpf("3.95"),
    lambda a: a * mp.erfc(a),
    "float",
)
STEP = mpf(0.25390625)
fit(
    "erf.float.piece0",
    guarded(lambda a: mp.erf(a) / a, lambda a: 2 / mp.sqrt(PI) * (1 - a * a / 3)),
    4,
    mpf("1e-9"),
    STEP / 2 * mpf("1.001"),
    None,
    "float",
)
for k in range(1, 16):
    fit(
        f"erf.float.piece{k}",
        lambda r, k=k: mp.erf(k * STEP + r),
        5,
        -STEP / 2 * mpf("1.001"),
        STEP / 2 * mpf("1.001"),
        None,
        "float",
    )

# -- inverse trigonometric: x + x^3 P(x^2), atan to tan(pi/8), asin to 1/2 --------------------------------------------
for kind, degree in (("float", 4), ("double", 10)):
    fit(
        f"atan.{kind}",
        guarded(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: -mpf(1) / 3 + z / 5, 1e-18),
        degree,
        0,
        mpf("0.1718"),
        lambda z: z,
        kind,
    )
for kind, degree in (("float", 4), ("double", 11)):
    fit(
        f"asin.{kind}",
        guarded(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: mpf(1) / 6 + 3 * z / 40, 1e-18),
        degree,
        0,
        mpf("0.2502"),
        lambda z: z,
        kind,
    )

# the arc tangent to 1 without a division, for GPUs
fit(
    "atan.float.one",
    guarded(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: -mpf(1) / 3 + z / 5, 1e-18),
    7,
    0,
    1,
    lambda z: z,
    "float",
)

# log2(m)/log2(e) = v + v^3 P(v^2), v = 2(m-1)/(m+1), for GPUs
fit(
    "log2.pair.float",
    guarded(
        lambda z: (2 * mp.atanh(mp.sqrt(z) / 2) / mp.sqrt(z) - 1) / z / LN2,
        lambda z: (mpf(1) / 12 + z / 80) / LN2,
        1e-18,
    ),
    3,
    0,
    4 * ZMAX,
    lambda z: z,
    "float",
)

# -- powers: log2((1+s)/(1-s))/s for float pow; cbrt on [0.7, 5.7] to begin with --------------------------------------
fit(
    "log2.pow",
    guarded(lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / LN2, lambda z: 2 / LN2 * (1 + z / 3), 1e-18),
    5,
    0,
    ZMAX,
)
fit("exp2.pow", lambda r: mpf(2) ** r, 7, mpf("-0.5005"), mpf("0.5005"))
fit("cbrt.start", mp.cbrt, 4, mpf("0.7"), mpf("5.7"))

if __name__ == "__main__":
    words = sys.argv[1:]
    for entry, make in _entries.items():
        if not words or any(word in entry for word in words):
            values, error = make()  # type: ignore[misc]
            print(f"# {entry}: error {error:.2e} = 2^{float(mp.log(error, 2)):.1f}")
            print(entry, *values, flush=True)
