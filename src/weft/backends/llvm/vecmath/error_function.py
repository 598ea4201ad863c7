"""The error function and its relatives: erf, erfc, erfcx, their inverses, and the normal distribution.

float erf, the heart of gelu, has two forms. With AVX-512: sixteen pieces of equal width, each a polynomial of degree
5 around the piece's middle, whose coefficients are read from registers by the piece's number; a dozen operations for
sixteen elements. Elsewhere: a P(a^2) below 1 and 1 - 2^-(a Q(a)) above.

Doubles: a polynomial below 1; beyond, exp(-a^2) erfcx(a), where a^2 is kept as a pair and (1+2a) erfcx(a) is one
polynomial in (a-4)/(a+4) for the whole half line (Shepherd & Laframboise, Math. Comp. 36, 1981). The inverses are
polynomials in x^2 in the middle and in sqrt(-log p) on small intervals in the tails. Floats other than erf are done
as doubles.
"""

from __future__ import annotations

from . import dd
from .exponential import exponential
from .expr import X, at_least, at_most, copysign, fabs, fma, horner, sqrt, where
from .logarithm import log_double
from .piecewise import piecewise
from .registry import define, invoke
from .scaling import lookup16, round_to_integer, wide_scale

ERF_SMALL = (
    1.1283791065216064,
    -0.37612220644950867,
    0.11279019713401794,
    -0.02666381374001503,
    0.00482884282246232,
    -0.00048633033293299377,
    -2.504332223907113e-05,
)
ERF_LARGE = (
    1.6283650398254395,
    0.9160540699958801,
    0.15371336042881012,
    -0.034657809883356094,
    0.005429605953395367,
    -0.0005079200491309166,
    2.0353563741082326e-05,
)
_STEP = 0.25390625
_PIECES = (
    (
        0.0,
        1.128379225730896,
        -1.4448712136072572e-05,
        -0.3755689263343811,
        -0.006873606238514185,
        0.13900375366210938,
    ),
    (
        0.28046301007270813,
        1.0579297542572021,
        -0.2686109244823456,
        -0.3071977198123932,
        0.1276477724313736,
        0.08004944771528244,
    ),
    (
        0.527338445186615,
        0.8718906044960022,
        -0.44273659586906433,
        -0.14071393013000488,
        0.1813364326953888,
        0.0034148895647376776,
    ),
    (
        0.7186238169670105,
        0.6316415667533875,
        -0.4811336398124695,
        0.03376886248588562,
        0.1471301168203354,
        -0.05423709750175476,
    ),
    (
        0.8490860462188721,
        0.40223777294158936,
        -0.4085262417793274,
        0.14252127707004547,
        0.06407681852579117,
        -0.06825083494186401,
    ),
    (
        0.9274081587791443,
        0.2251637578010559,
        -0.2858579158782959,
        0.16687610745429993,
        -0.010004620999097824,
        -0.044531192630529404,
    ),
    (
        0.9687963724136353,
        0.11079434305429459,
        -0.16879531741142273,
        0.13449430465698242,
        -0.045520562678575516,
        -0.012302269227802753,
    ),
    (
        0.9880474805831909,
        0.04792257025837898,
        -0.08517072349786758,
        0.0849512591958046,
        -0.0471745990216732,
        0.0077991182915866375,
    ),
    (
        0.9959291815757751,
        0.018220746889710426,
        -0.037010516971349716,
        0.04404596984386444,
        -0.032423198223114014,
        0.013026264496147633,
    ),
    (
        0.9987694621086121,
        0.00608969759196043,
        -0.013922599144279957,
        0.019170165061950684,
        -0.0169838834553957,
        0.010021082125604153,
    ),
    (
        0.9996703267097473,
        0.00178907613735646,
        -0.004547442309558392,
        0.007092729676514864,
        -0.007293508388102055,
        0.005498128943145275,
    ),
    (
        0.9999217987060547,
        0.0004620249674189836,
        -0.0012896305415779352,
        0.002248592209070921,
        -0.0027742653619498014,
        0.002370234113186598,
    ),
    (
        0.9999836087226868,
        0.00010488316911505535,
        -0.00032277233549393713,
        0.0006140776677057147,
        -0.000680417928379029,
        0.000835910439491272,
    ),
    (
        0.9999969601631165,
        2.092906834150199e-05,
        -6.942543404875323e-05,
        0.00014500827819574624,
        -0.00020285321807023138,
        0.0002460775140207261,
    ),
    (
        0.9999995231628418,
        3.671114427561406e-06,
        -1.8291784726898186e-05,
        2.9690794690395705e-05,
        0.00021078079589642584,
        6.123747152741998e-05,
    ),
    (
        0.9999999403953552,
        5.660437523147266e-07,
        -5.224924279900733e-06,
        5.282350230118027e-06,
        0.00014276668662205338,
        1.2986684851057362e-05,
    ),
)
"""Row k: erf(k STEP + r) = c0 + c1 r + ..."""


@define("erf", "float")
def erf_float(x: X) -> X:
    a = at_most(fabs(x), 3.93)
    if wide_scale(x) and x.type.lanes % 16 == 0:
        n, bits = round_to_integer(a, 1 / _STEP)
        r = fma(n, -_STEP, a)
        y = horner(r, [lookup16(bits, list(column)) for column in zip(*_PIECES)])
    else:
        z = at_most(a * a, 1.0)
        small = a * horner(z, ERF_SMALL)
        y = where(a < 1.0, small, 1.0 - exponential("exp2", -(a * horner(a, ERF_LARGE)), normal=True))
    return copysign(y, x)


_INF = float("inf")
_NAN = float("nan")
_SQRT_HALF = 0.7071067811865476
_SQRT_TWO = 1.4142135623730951


def _scaled_tail(a: X) -> X:
    """exp(a^2) erfc(a) for a >= 0."""
    return piecewise("erfcx", (a - 4.0) / (a + 4.0)) / fma(a, 2.0, 1.0)


def _tail(a: X, square: dd.Pair, factor: float = 1.0) -> X:
    """factor * erfc(a) for a >= 0 with a^2 given; the exponential is scaled up until the end, since it may be
    denormal.
    """
    e = exponential("exp", -square[0], 200, low=-square[1])
    return e * _scaled_tail(a) * (factor * 2.0**-200)


def _small_erf(x: X) -> X:
    return x * piecewise("erf", at_most(x * x, 1.0))


@define("erf", "double")
def erf_double(x: X) -> X:
    a = at_most(fabs(x), 6.5)
    far = 1.0 - exponential("exp", -(a * a), normal=True) * _scaled_tail(a)
    return where(a < 1.0, _small_erf(x), copysign(far, x))


@define("erfc", "double", long=True)
def erfc(x: X) -> X:
    a = at_most(fabs(x), 30.0)
    y = _tail(a, dd.two_prod(a, a))
    y = where(x < 0.0, 2.0 - y, y)
    return where(fabs(x) < 0.5, 1.0 - _small_erf(x), y)


@define("erfcx", "double", long=True)
def erfcx(x: X) -> X:
    """exp(x^2) erfc(x): for negative x, 2 exp(x^2) less the value at -x."""
    a = fabs(x)
    y = _scaled_tail(at_most(a, 1e150))
    y = where(a > 1e150, 0.5641895835477563 / a, y)
    b = at_most(a, 30.0)
    high, low = dd.two_prod(b, b)
    grown = exponential("exp", high, 1, low=low)
    middle = exponential("exp", high) * (1.0 - _small_erf(x))
    return where(a < 0.5, middle, where(x < 0.0, grown - y, y))


def _inverse_tail(p: X) -> X:
    """y with erfc(y) = p, for 0 < p <= 1/2."""
    w = sqrt(-log_double(p))
    return w * piecewise("erfcinv", w)


def _inverse_middle(x: X) -> X:
    """y with erf(y) = x, for |x| <= 1/2."""
    return x * piecewise("erfinv", at_most(x * x, 0.25))


@define("erfinv", "double", long=True)
def erfinv(x: X) -> X:
    a = fabs(x)
    p = 1.0 - a
    y = copysign(_inverse_tail(where((p > 0.0) & (p <= 0.5), p, 0.25)), x)
    y = where(a <= 0.5, _inverse_middle(x), y)
    y = where(a == 1.0, copysign(x.const(_INF), x), y)
    return where(a <= 1.0, y, _NAN)


@define("erfcinv", "double", long=True)
def erfcinv(x: X) -> X:
    p = where(x > 1.0, 2.0 - x, x)
    y = _inverse_tail(where((p > 0.0) & (p <= 0.5), p, 0.25))
    y = where(x > 1.0, -y, y)
    y = where(p >= 0.5, _inverse_middle(1.0 - x), y)
    y = where(p == 0.0, where(x > 1.0, -_INF, x.const(_INF)), y)
    return where((x >= 0.0) & (x <= 2.0), y, _NAN)


@define("normcdf", "double", long=True)
def normcdf(x: X) -> X:
    """erfc(-x/sqrt 2)/2; the square of x/sqrt 2 is x^2/2 exactly, which the far tail needs."""
    bounded = at_least(at_most(x, 40.0), -40.0)
    high, low = dd.two_prod(bounded, bounded)
    y = _tail(fabs(bounded) * _SQRT_HALF, (high * 0.5, low * 0.5), 0.5)
    y = where(x > 0.0, 1.0 - y, y)
    return where(fabs(bounded) < 0.5, fma(_small_erf(bounded * _SQRT_HALF), 0.5, 0.5), y)


@define("normcdfinv", "double", long=True)
def normcdfinv(x: X) -> X:
    """-sqrt 2 erfcinv(2x)"""
    return erfcinv(x + x) * -_SQRT_TWO


def _through_double(name: str) -> None:
    define(name, "float", long=True)(lambda x: invoke(name, x.widen()).narrow())


for _name in ("erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv"):
    _through_double(_name)
