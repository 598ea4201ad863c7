"""Rounding, signs, classification, and taking floats apart: functions that are exact.

Classifications give an i32 that is 0 or 1, as libdevice's do. Special values follow C99 annex F and CUDA: `ilogb` is
INT_MIN for 0 and NaN and INT_MAX for infinity; `round` takes halves away from zero, `rint` and `nearbyint` to even.
"""

from __future__ import annotations

from .expr import (
    BIAS,
    MANTISSA,
    X,
    at_most,
    ceil,
    copysign,
    fabs,
    floor,
    fused,
    intrinsic,
    rint,
    sqrt,
    trunc,
    where,
)
from .registry import alias, define
from .scaling import power_of_two, scalef, wide_scale

_INF = float("inf")
BOTH = "float double"

define("floor", BOTH)(floor)
define("ceil", BOTH)(ceil)
define("trunc", BOTH)(trunc)
define("rint", BOTH)(rint)
alias("nearbyint", "rint")
define("sqrt", BOTH)(sqrt)
define("copysign", BOTH, "T T")(copysign)
define("fma", BOTH, "T T T")(fused)
define("abs", BOTH)(fabs)
alias("fabs", "abs")


define("abs", "i32 i64")(lambda x: X(x.f, x.f.emit(x.type, _abs_call(x))))  # the least integer stays as it is


def _abs_call(x: X) -> str:
    from_type = x.type
    suffix = f"v{from_type.lanes}{from_type.elem}" if from_type.lanes else from_type.elem
    name = f"llvm.abs.{suffix}"
    x.f.module.declarations.setdefault(name, f"declare {from_type} @{name}({from_type}, i1 immarg)")
    return f"call {from_type} @{name}({x.v}, i1 false)"


@define("round", BOTH)
def round_away(x: X) -> X:
    """Halves away from zero: the largest number below one half is added, so that it does not round up by itself."""
    half = 0.49999997019767761 if x.elem == "float" else 0.49999999999999994
    return trunc(x + copysign(x.const(half), x))


define("neg", BOTH)(lambda x: -x)
define("div", BOTH, "T T")(lambda x, y: x / y)


@define("rcp", BOTH)
def rcp(x: X) -> X:
    return 1.0 / x


define("fdim", BOTH, "T T")(lambda x, y: where(x <= y, 0.0, x - y))
define("fmax", BOTH, "T T")(lambda x, y: intrinsic("maxnum", x, y))  # the larger; of a number and a NaN, the number
define("fmin", BOTH, "T T")(lambda x, y: intrinsic("minnum", x, y))  # the smaller; of a number and a NaN, the number
define("saturatef", BOTH)(lambda x: at_most(where(x > 0.0, x, 0.0), 1.0))  # into [0, 1]; NaN becomes 0
define("isnan", BOTH, result="i32")(lambda x: x.isnan().cast("zext", "i32"))
define("isinf", BOTH, result="i32")(lambda x: (fabs(x) == _INF).cast("zext", "i32"))


@define("isfinited", BOTH, result="i32")
def isfinite(x: X) -> X:
    return (fabs(x) < _INF).cast("zext", "i32")


alias("finitef", "isfinited")


define("signbit", BOTH, result="i32")(lambda x: (x.bits() < 0).cast("zext", "i32"))


@define("nextafter", BOTH, "T T")
def nextafter(x: X, y: X) -> X:
    bits = x.bits()
    away = bits + 1
    toward = bits - 1
    outward = where((x < y) ^ (bits < 0), away, toward)
    smallest = (y.bits() & _sign_mask(x)) | 1
    moved = where(x == 0.0, smallest, outward).as_float()
    return where(x == y, y, where(x.unordered(y), x + y, moved))


def _sign_mask(x: X) -> int:
    return -(1 << (x.type.bits - 1))


def exponent_and_mantissa(x: X) -> tuple[X, X]:
    """(e, m) with |x| = 2^e m, 1 <= m < 2, e an integer of x's width; for finite x other than 0."""
    mantissa, bias = MANTISSA[x.elem], BIAS[x.elem]
    size = fabs(x)
    tiny = size < 2.0 ** (1 - bias)
    bits = where(tiny, size * 2.0 ** (mantissa + 1), size).bits()
    e = bits.lshr(mantissa) - where(tiny, bits.const(bias + mantissa + 1), bits.const(bias))
    m = ((bits & ((1 << mantissa) - 1)) | (bias << mantissa)).as_float()
    return e, m


@define("ilogb", BOTH, result="i32")
def ilogb(x: X) -> X:
    e, _ = exponent_and_mantissa(x)
    e = e.cast("trunc", "i32") if x.elem == "double" else e
    return where(fabs(x) < _INF, where(x == 0.0, -(2**31), e), where(x.isnan(), e.const(-(2**31)), e.const(2**31 - 1)))


@define("logb", BOTH)
def logb(x: X) -> X:
    e, _ = exponent_and_mantissa(x)
    return where(fabs(x) < _INF, where(x == 0.0, -_INF, e.to_float(x.elem)), x * x)


@define("ldexp", BOTH, "T i32")
def ldexp(x: X, n: X) -> X:
    """x 2^n, rounded once."""
    if wide_scale(x):
        return scalef(x, n.to_float(x.elem))
    e, m = exponent_and_mantissa(x)
    limit = 2200 if x.elem == "double" else 300
    n = where(n < limit, n, limit)
    n = where(n > -limit, n, -limit)
    wide = n.cast("sext", "i64") if x.elem == "double" else n
    total = e + wide
    low, high = (-1080, 1025) if x.elem == "double" else (-155, 129)
    total = where(total < high, total, high)
    total = where(total > low, total, low)
    half = total >> 1
    y = m * power_of_two(half, x.elem) * power_of_two(total - half, x.elem)
    return where((fabs(x) < _INF) & (x != 0.0), copysign(y, x), x + x)


alias("scalbn", "ldexp")


# -- bits as they are -------------------------------------------------------------------------------------------------


define("float_as_int", "float", result="i32")(lambda x: x.bits())
define("int_as_float", "i32", result="float")(lambda x: x.as_float())
define("double_as_longlong", "double", result="i64")(lambda x: x.bits())
define("longlong_as_double", "i64", result="double")(lambda x: x.as_float())


alias("float_as_uint", "float_as_int", "float")
alias("uint_as_float", "int_as_float", "i32")


@define("hiloint2double", "i32", "i32 i32", "double")
def hiloint2double(high: X, low: X) -> X:
    return ((high.cast("zext", "i64") << 32) | low.cast("zext", "i64")).as_float()


define("double2loint", "double", result="i32")(lambda x: x.bits().cast("trunc", "i32"))
define("double2hiint", "double", result="i32")(lambda x: x.bits().lshr(32).cast("trunc", "i32"))
# An approximate reciprocal: the upper half of 1/x, the lower half of its bits zero.
define("rcp64h", "double")(lambda x: ((1.0 / x).bits() & ~0xFFFFFFFF).as_float())
