"""What each function of the math library is checked against, where, and the error that is stated for it.

References are more precise than the function under test: for floats the same function in double or long double, for
doubles long double (glibc's, on x86) or mpmath in 40 digits on fewer points. `stated` is the greatest error in units
in the last place, for float and double; docs/reference/math.md prints it beside what was measured.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.special as special

LD = np.longdouble
PRECISE_LONG_DOUBLE = np.finfo(LD).nmant >= 63

Range = tuple[str, float, float]
"""("lin" or "log", low, high): uniform in the value or in its logarithm, both signs if low < 0"""


@dataclass(frozen=True)
class Case:
    name: str
    stated: tuple[float, float]
    ranges: tuple[tuple[Range, ...], ...]
    """for each argument, where samples are taken; the first ranges of the arguments go together, and so on"""
    wide: Callable[..., np.ndarray] | None = None
    """the function on long doubles"""
    double: Callable[..., np.ndarray] | None = None
    """the function on doubles, for checking floats"""
    exact: Callable[..., object] | None = None
    """the function on mpmath numbers"""
    patterns: bool = True
    """also on random bit patterns"""
    absolute: str = ""
    """where the error is not relative to the result: in words"""
    modulus: Callable[..., np.ndarray] | None = None
    """what the error is relative to, if not the result"""
    elems: tuple[str, ...] = ("float", "double")
    ints: tuple[int, ...] = field(default=())
    """arguments that are i32"""


def mp():
    """mpmath with 40 digits."""
    import mpmath

    mpmath.mp.dps = 40
    return mpmath.mp


def lin(*bounds: float) -> tuple[Range, ...]:
    return tuple(("lin", a, b) for a, b in zip(bounds[::2], bounds[1::2]))


def log(*bounds: float) -> tuple[Range, ...]:
    return tuple(("log", a, b) for a, b in zip(bounds[::2], bounds[1::2]))


def _tail_inverse(p: object) -> object:
    """y with erfc(y) = p, by Newton's iteration on the logarithm."""
    m = mp()
    if p <= 0 or p >= 2:
        return m.nan if p < 0 or p > 2 else (m.inf if p == 0 else -m.inf)
    if p > 1e-3:
        return m.erfinv(1 - p)
    w = m.sqrt(-m.log(p))
    y = w * m.mpf("0.9")
    for _ in range(80):
        tail = m.erfc(y)
        step = (m.log(tail) + w * w) * tail * m.sqrt(m.pi) / 2 * m.exp(y * y)
        y += step
        if abs(step) < m.mpf(10) ** -34 * y:
            break
    return y


def _erfc(x: object) -> object:
    """erfc(x); 0 where that is less than any double, since mpmath 1.4 fails on very large arguments."""
    m = mp()
    return m.erfc(x) if not x > 100 else m.mpf(0)


def _scaled_erfc(x: object) -> object:
    m = mp()
    if m.isnan(x):
        return x
    if x > 1e5:
        return (1 - 1 / (2 * x * x)) / (x * m.sqrt(m.pi))
    return m.exp(x * x) * m.erfc(x) if x > -30 else m.inf


def _log_gamma(x: object) -> object:
    m = mp()
    if x > 0:
        return m.loggamma(x)
    return m.inf if x == m.floor(x) else m.log(abs(m.gamma(x)))


def _gamma(x: object) -> object:
    m = mp()
    if x == 0 or (x < 0 and x == m.floor(x)):
        return m.nan if x else m.inf
    if x > 200:
        return m.inf
    return m.gamma(x) if x > -200 else m.mpf(0)


def _pi_argument(x: np.ndarray) -> np.ndarray:
    return x - 2 * np.rint(x / 2)


def _sinpi(x: np.ndarray) -> np.ndarray:
    t = _pi_argument(x)
    n = np.rint(2 * t)
    r = LD(np.pi) * (t - n / 2) + LD(1.2246467991473532e-16) * (t - n / 2)
    n = np.where(np.isfinite(n), n, 0).astype(int) % 4
    y = np.choose(n, [np.sin(r), np.cos(r), -np.sin(r), -np.cos(r)])
    return np.where(y == 0, np.copysign(0, x), y)


def _cospi(x: np.ndarray) -> np.ndarray:
    t = _pi_argument(x)
    n = np.rint(2 * t)
    r = LD(np.pi) * (t - n / 2) + LD(1.2246467991473532e-16) * (t - n / 2)
    n = np.where(np.isfinite(n), n, 0).astype(int) % 4
    return np.choose(n, [np.cos(r), -np.sin(r), -np.cos(r), np.sin(r)])


def _norm(*xs: np.ndarray) -> np.ndarray:
    total = np.sqrt(sum(x * x for x in xs))
    return np.where(np.any([np.isinf(x) for x in xs], axis=0), LD(np.inf), total)


def _powi(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.power(x, n.astype(LD))


def _fdim(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0))


def _inverse_root(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


def _tiny(x: np.ndarray) -> np.ndarray:
    return 1 / np.where(x == 0, x, np.cbrt(x))


def _bessel(kind: str, order: int) -> Callable[[object], object]:
    return lambda x: getattr(mp(), kind)(order, x) if kind != "bessely" or x >= 0 else mp().nan


def _bessel_n(kind: str) -> Callable[[object, object], object]:
    return lambda n, x: getattr(mp(), kind)(int(n), x)


def _modulus_n(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    m = mp()
    return np.array(
        [
            float(abs(m.mpc(m.besselj(int(k), m.mpf(float(v))), m.bessely(int(k), m.mpf(float(v))))))
            for k, v in zip(n, x)
        ]
    )


_SMALL = ("log", 1e-12, 1.0)
_WIDE = lin(-1e3, 1e3, -1e6, 1e6) + log(1e5, 1e30)

CASES = [
    Case("exp", (1.1, 1), (lin(-110, 90, -750, 710, -1, 1),), np.exp),
    Case("exp2", (1.1, 1), (lin(-160, 130, -1080, 1025, -1, 1),), np.exp2),
    Case(
        "exp10",
        (1.1, 1.1),
        (lin(-46, 39, -325, 309, -1, 1),),
        exact=lambda x: mp().mpf(10) ** x if abs(x) < 400 else mp().inf * (x > 0),
        double=lambda x: np.power(LD(10), x.astype(LD)),
        patterns=False,
    ),
    Case("expm1", (1.5, 2.5), (lin(-1, 1, -40, 90, -40, 710) + (_SMALL,),), np.expm1),
    Case("log", (1.5, 1), (lin(0, 10, 0.5, 2, 0.98, 1.02) + log(1e-45, 1e38, 1e-300, 1e300),), np.log),
    Case("log2", (2, 1), (lin(0, 10, 0.5, 2, 0.98, 1.02) + log(1e-45, 1e38, 1e-300, 1e300),), np.log2),
    Case("log10", (2, 1), (lin(0, 10, 0.5, 2, 0.98, 1.02) + log(1e-45, 1e38, 1e-300, 1e300),), np.log10),
    Case("log1p", (1, 1), (lin(-1, 10, -0.5, 0.5) + (_SMALL, ("log", 1e-3, 1e30)),), np.log1p),
    Case("sin", (2, 1), (_WIDE,), np.sin),
    Case("cos", (2, 1), (_WIDE,), np.cos),
    Case("tan", (3.5, 2.5), (_WIDE,), np.tan),
    Case("sinpi", (1, 1), (lin(-3, 3, -1e5, 1e5),), _sinpi),
    Case("cospi", (1, 1), (lin(-3, 3, -1e5, 1e5),), _cospi),
    Case("asin", (1, 1), (lin(-1, 1) + (_SMALL,),), np.arcsin),
    Case("acos", (1, 1), (lin(-1, 1) + (_SMALL,),), np.arccos),
    Case("atan", (2, 2), (lin(-5, 5, -0.6, 0.6) + (_SMALL,),), np.arctan),
    Case("atan2", (2.5, 2.5), (lin(-3, 3, -1, 1), lin(-3, 3, -100, 100)), np.arctan2),
    Case("sinh", (2.5, 2), (lin(-4, 4, -89, 89, -711, 711) + (_SMALL,),), np.sinh),
    Case("cosh", (2, 2), (lin(-4, 4, -89, 89, -711, 711),), np.cosh),
    Case("tanh", (2, 3), (lin(-4, 4, -20, 20) + (_SMALL,),), np.tanh),
    Case("asinh", (1, 2), (lin(-3, 3) + log(1e-10, 1e30),), np.arcsinh),
    Case("acosh", (1, 2.5), (lin(1, 3) + log(1, 1e30),), np.arccosh),
    Case("atanh", (1, 2), (lin(-1, 1) + (_SMALL,),), np.arctanh),
    Case("sqrt", (0.51, 0.51), (lin(0, 100),), np.sqrt),
    Case("rsqrt", (1.5, 2), (lin(0, 100) + log(1e-40, 1e38),), _inverse_root),
    Case("cbrt", (1, 1), (lin(-100, 100) + log(1e-40, 1e38),), np.cbrt),
    Case("rcbrt", (1, 2), (lin(-100, 100) + log(1e-40, 1e38),), _tiny),
    Case("pow", (1, 2), (log(1e-13, 1e13) + lin(0, 2, 0.9, 1.1), lin(-3, 3, -100, 100, -1000, 1000)), np.power),
    Case("powi", (1, 2), (lin(-2, 2, 0.9, 1.1), lin(-100, 100, -1000, 1000)), _powi, ints=(1,)),
    Case("hypot", (0.51, 1.5), (lin(-3, 3), lin(-3, 3)), np.hypot),
    Case("rhypot", (1, 2.5), (lin(-3, 3), lin(-3, 3)), lambda x, y: 1 / _norm(x, y)),
    Case("norm3d", (1, 2), (lin(-3, 3),) * 3, _norm),
    Case("norm4d", (1, 2), (lin(-3, 3),) * 4, _norm),
    Case("rnorm3d", (1, 2.5), (lin(-3, 3),) * 3, lambda *xs: 1 / _norm(*xs)),
    Case("rnorm4d", (1, 2.5), (lin(-3, 3),) * 4, lambda *xs: 1 / _norm(*xs)),
    Case("fmod", (0, 0), (lin(-100, 100, -1e6, 1e6), lin(-3, 3, -1, 1)), np.fmod),
    Case("fdim", (0.51, 0.51), (lin(-3, 3), lin(-3, 3)), _fdim),
    Case(
        "ldexp",
        (0.51, 0.51),
        (lin(-3, 3, -3, 3), lin(-150, 150, -1100, 1100)),
        lambda x, n: np.ldexp(x, np.clip(n, -16000, 16000)),
        ints=(1,),
    ),
    Case("erf", (2.5, 2), (lin(-4, 4, -7, 7) + (_SMALL,),), double=special.erf, exact=lambda x: mp().erf(x)),
    Case("erfc", (1, 3), (lin(-4, 4, 0, 28) + (_SMALL,),), double=special.erfc, exact=_erfc),
    Case(
        "erfcx",
        (1, 2.5),
        (lin(-4, 4, -27, 28) + (_SMALL, ("log", 1e-3, 1e10)),),
        double=special.erfcx,
        exact=_scaled_erfc,
    ),
    Case(
        "erfinv",
        (1, 3),
        (lin(-1, 1, 0.99, 1) + (_SMALL,),),
        double=special.erfinv,
        exact=lambda x: mp().erfinv(x) if abs(x) < 1 else (x * mp().inf if abs(x) == 1 else mp().nan),
    ),
    Case("erfcinv", (1, 3), (lin(0, 2) + log(1e-300, 1, 1e-20, 1),), double=special.erfcinv, exact=_tail_inverse),
    Case(
        "normcdf",
        (1, 3.5),
        (lin(-6, 6, -38, 10),),
        double=special.ndtr,
        exact=lambda x: _erfc(-x / mp().sqrt(2)) / 2,
    ),
    Case(
        "normcdfinv",
        (1, 3),
        (lin(0, 1) + log(1e-300, 1, 1e-20, 1),),
        double=special.ndtri,
        exact=lambda p: -mp().sqrt(2) * _tail_inverse(2 * p),
    ),
    Case(
        "lgamma",
        (1, 3),
        (lin(0, 5, 0.9, 1.1, 1.9, 2.1, 0, 100) + log(1e-10, 1e30),),
        double=special.gammaln,
        exact=_log_gamma,
        patterns=False,
        absolute="below 0, near its zeros, 3 units of 1",
    ),
    Case("tgamma", (1, 3.5), (lin(0, 5, 0, 172, -5, 0, -180, 0) + log(1e-30, 1),), exact=_gamma, patterns=False),
    Case("j0", (1, 3.5), (lin(-30, 30, 0, 1000) + log(1e-10, 1e4),), exact=_bessel("besselj", 0), patterns=False),
    Case("j1", (1, 3.5), (lin(-30, 30, 0, 1000) + log(1e-10, 1e4),), exact=_bessel("besselj", 1), patterns=False),
    Case("y0", (1, 3.5), (lin(0, 3, 0, 30, 0, 1000) + log(1e-10, 1e4),), exact=_bessel("bessely", 0), patterns=False),
    Case("y1", (1, 3.5), (lin(0, 3, 0, 30, 0, 1000) + log(1e-10, 1e4),), exact=_bessel("bessely", 1), patterns=False),
    Case(
        "jn",
        (1, 20),
        (lin(0, 40, 0, 40), lin(0, 50) + log(1e-3, 50)),
        exact=_bessel_n("besselj"),
        patterns=False,
        ints=(0,),
        absolute="double: relative to sqrt(J^2 + Y^2), for orders to 40; about one unit more for each order",
        modulus=_modulus_n,
    ),
    Case(
        "yn",
        (1, 20),
        (lin(0, 40, 0, 40), lin(0.1, 50) + log(1e-1, 50)),
        exact=_bessel_n("bessely"),
        patterns=False,
        ints=(0,),
        absolute="double: relative to sqrt(J^2 + Y^2), for orders to 40; about one unit more for each order",
        modulus=_modulus_n,
    ),
    Case(
        "cyl_bessel_i0",
        (1, 3.5),
        (lin(-30, 30, 0, 713) + log(1e-10, 100),),
        double=special.i0,
        exact=_bessel("besseli", 0),
        patterns=False,
    ),
    Case(
        "cyl_bessel_i1",
        (1, 3.5),
        (lin(-30, 30, 0, 713) + log(1e-10, 100),),
        double=special.i1,
        exact=_bessel("besseli", 1),
        patterns=False,
    ),
]
BY_NAME = {case.name: case for case in CASES}


def samples(case: Case, elem: str, count: int, seed: int = 7) -> list[np.ndarray]:
    """Points in the case's ranges, `count` in each."""
    random = np.random.default_rng(seed)
    kind = np.float32 if elem == "float" else np.float64
    columns = []
    for ranges in case.ranges:
        parts = []
        for shape, low, high in ranges:
            if shape == "lin":
                parts.append(random.uniform(low, high, count))
            else:
                parts.append(
                    np.exp(random.uniform(np.log(low), np.log(high), count))
                    * random.choice([1.0, -1.0] if low == 1e-12 else [1.0], count)
                )
        columns.append(np.concatenate(parts))
    longest = max(map(len, columns))
    with np.errstate(all="ignore"):
        return [
            np.resize(c, longest).round().astype(np.int32) if i in case.ints else np.resize(c, longest).astype(kind)
            for i, c in enumerate(columns)
        ]


def reference(case: Case, elem: str, args: list[np.ndarray]) -> np.ndarray:
    """The function to more than twice the digits that matter, as long doubles."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.wide is not None and (elem == "float" or PRECISE_LONG_DOUBLE):
            return case.wide(*(a if a.dtype.kind == "i" else a.astype(LD) for a in args))
        if elem == "float" and case.double is not None:
            return np.asarray(case.double(*(a.astype(np.float64) for a in args)), LD)
        assert case.exact is not None
        return np.array([_from_mp(case.exact, point) for point in zip(*args)], LD)


def _from_mp(f: Callable[..., object], point: tuple) -> np.longdouble:
    m = mp()
    try:
        y = f(*(int(p) if isinstance(p, np.integer) else m.mpf(float(p)) for p in point))
    except (ValueError, ZeroDivisionError):
        return LD(np.nan)
    y = m.mpf(y) if not hasattr(y, "imag") or y.imag == 0 else m.nan
    if m.isnan(y):
        return LD(np.nan)
    head = float(y)
    if np.isinf(head) or abs(head) < 1e-290:
        return LD(m.nstr(y, 25)) if np.isfinite(head) else LD(head)
    return LD(head) + LD(float(y - m.mpf(head)))


def special_points(case: Case, elem: str, values: np.ndarray) -> list[np.ndarray]:
    """All pairs of special values for functions of two arguments, the values themselves for one."""
    count = len(case.ranges)
    if count == 1:
        return [values]
    grids = [g.ravel() for g in np.meshgrid(values, values)]
    while len(grids) < count:
        grids.append(np.roll(grids[0], 5 * len(grids)))
    with np.errstate(all="ignore"):
        return [
            np.clip(np.nan_to_num(g), -(2.0**31), 2.0**31 - 1).astype(np.int64).astype(np.int32)
            if i in case.ints
            else g
            for i, g in enumerate(grids)
        ]
