"""Half precision where the processor has no instruction to convert it.

LLVM calls `__extendhfsf2` and `__truncsfhf2` of a compiler's library then, which a Python process need not hold. So the
module brings them along, written on integers:

    define weak_odr hidden float @__extendhfsf2(half %x) { ... }
"""

from __future__ import annotations

from .emit import Function, Module
from .values import FLOAT, HALF, I16, I32, Value, const

_LINKAGE = "weak_odr hidden"


def define_conversions(module: Module) -> None:
    """Define the two functions that LLVM calls."""
    extend = module.function("__extendhfsf2", FLOAT, [("x", HALF)], "nounwind", _LINKAGE)
    extend.ret(_extended(extend, extend.args[0]))
    trunc = module.function("__truncsfhf2", HALF, [("x", FLOAT)], "nounwind", _LINKAGE)
    trunc.ret(_truncated(trunc, trunc.args[0]))


def _extended(f: Function, x: Value) -> Value:
    bits = f.cast("zext", f.bitcast(x, I16), I32)
    sign = f.shl(f.and_(bits, const(I32, 0x8000)), const(I32, 16))
    magnitude = f.shl(f.and_(bits, const(I32, 0x7FFF)), const(I32, 13))
    # As a float its exponent is too small by 127 - 15, which a multiplication repairs, also of denormals.
    finite = f.bitcast(f.fmul(f.bitcast(magnitude, FLOAT), const(FLOAT, 2.0**112)), I32)
    top = const(I32, 0x7C00 << 13)
    special = f.or_(magnitude, const(I32, 0x7F800000))
    quiet = f.select(f.icmp("ugt", magnitude, top), f.or_(special, const(I32, 0x00400000)), special)
    return f.bitcast(f.or_(f.select(f.icmp("uge", magnitude, top), quiet, finite), sign), FLOAT)


def _truncated(f: Function, x: Value) -> Value:
    bits = f.bitcast(x, I32)
    sign = f.and_(f.lshr(bits, const(I32, 16)), const(I32, 0x8000))
    magnitude = f.and_(bits, const(I32, 0x7FFFFFFF))
    odd = f.and_(f.lshr(magnitude, const(I32, 13)), const(I32, 1))
    rounded = f.add(magnitude, f.add(odd, const(I32, 0xFFF)))
    normal = f.sub(f.lshr(rounded, const(I32, 13)), const(I32, 112 << 10))
    # The last place of one half is that of a denormal result: the addition rounds.
    half = const(FLOAT, 0.5)
    denormal = f.sub(f.bitcast(f.fadd(f.bitcast(magnitude, FLOAT), half), I32), f.bitcast(half, I32))
    result = f.select(f.icmp("ult", magnitude, const(I32, 0x38800000)), denormal, normal)  # below 2^-14
    result = f.select(f.icmp("uge", magnitude, const(I32, 0x47800000)), const(I32, 0x7C00), result)  # from 2^16 on
    payload = f.and_(f.lshr(magnitude, const(I32, 13)), const(I32, 0x3FF))
    nan = f.or_(payload, const(I32, 0x7E00))
    result = f.select(f.icmp("ugt", magnitude, const(I32, 0x7F800000)), nan, result)
    return f.bitcast(f.cast("trunc", f.or_(result, sign), I16), HALF)
